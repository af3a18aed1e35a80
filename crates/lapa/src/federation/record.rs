//! The record of a round.

use lapa_wireless::units::Db;

use super::{Asked, Federation};
use crate::budget::{Books, Granted, Result};
use crate::config::{Entropy, ObserveDevices};
use crate::error::FederationError;
use crate::observe::{DeviceRecord, DeviceRecords, DeviceSummary, Insight, NoiseMode, RoundRecord};
use crate::radio::{Link, RadioError};

/// The record of a round in which these devices were received with these `weights`.
pub(crate) fn record(
    on: &mut Federation,
    asked: &Asked,
    weights: &[(u32, f64)],
    insights: &[Insight],
    evaluation: Option<(f64, f64)>,
) -> Result<RoundRecord, FederationError> {
    let devices = devices(on, asked, weights, insights)?;
    let Federation { experiment, station, radio, .. } = on;
    let granted = &asked.granted;
    let on_air = asked.on_air();
    let coordinates = station.model().parameters.len();
    let air = radio
        .uplink()
        .airtime(&experiment.transmit, coordinates, &on_air)
        .map_err(RadioError::from)?;
    let sent = radio.uplink().bytes(coordinates) * weights.len() as u64;
    let model = (size_of::<f32>() * coordinates * granted.len()) as u64;
    let under_noising = || granted.iter().filter_map(Granted::under_noising);
    Ok(RoundRecord {
        round: station.round(),
        accuracy: evaluation.map(|(accuracy, _)| accuracy),
        loss: evaluation.map(|(_, loss)| loss),
        pid_error: asked.allocation.pid_error,
        epsilon_round: asked.allocation.epsilon_round,
        noise_mode: noise_mode(granted),
        under_noised: under_noising().count() as u32,
        under_noising: under_noising().reduce(f64::max),
        outages: asked.selection.skipped.len() as u32,
        airtime_s: air.time.0,
        energy_j: air.energy.0,
        uplink_bytes: sent + station.histogram_bytes(),
        downlink_bytes: model,
        devices: match experiment.observe.devices {
            ObserveDevices::List => DeviceRecords::List(devices),
            ObserveDevices::Summary => DeviceRecords::Summary(DeviceSummary::of(&devices).into()),
        },
        seconds: asked.start.elapsed().as_secs_f64(),
    })
}

/// The devices of a round, those that skipped it included, by number.
fn devices(
    on: &mut Federation,
    asked: &Asked,
    weights: &[(u32, f64)],
    insights: &[Insight],
) -> Result<Vec<DeviceRecord>> {
    let Federation { experiment, station, books, .. } = on;
    // No base station could observe insights: they are for simulations only.
    let insights = if experiment.run.entropy == Entropy::Seed { insights } else { &[] };
    let mut list = Vec::with_capacity(asked.granted.len() + asked.selection.skipped.len());
    let mut received = weights.iter().peekable();
    for (slot, (granted, link, angle)) in asked.entries().enumerate() {
        // Both are in the order of the devices; what was lost on the way weighs nothing.
        let answer = received.next_if(|(device, _)| *device == granted.device);
        let insight = insights.get(slot);
        list.push(DeviceRecord {
            weight: answer.map_or(0.0, |(_, weight)| *weight),
            epsilon: granted.epsilon,
            sigma_artificial: granted.sigma(),
            sigma_required: granted.sigma_required,
            angle,
            selected: true,
            sigma_channel: granted.sigma_channel,
            gradient_norm: insight.map(|insight| insight.norm),
            clipped: insight.map(|insight| insight.clipped),
            ..silent(books, station.public_samples(), link)?
        });
    }
    for link in &asked.selection.skipped {
        list.push(silent(books, station.public_samples(), link)?);
    }
    list.sort_by_key(|record| record.device);
    Ok(list)
}

/// The source of a round's noise.
fn noise_mode(granted: &[Granted]) -> Option<NoiseMode> {
    let noisy = || granted.iter().filter(|granted| granted.sigma_required > 0.0);
    noisy().next()?;
    if noisy().all(|granted| granted.sigma() == 0.0) {
        return Some(NoiseMode::Channel);
    }
    let artificial = noisy().all(Granted::is_artificial);
    Some(if artificial { NoiseMode::Artificial } else { NoiseMode::Mixed })
}

/// The record of a device that does not send.
fn silent(books: &mut Books, public_samples: &[u32], link: &Link) -> Result<DeviceRecord> {
    let spent = books.spent(link.device)?;
    Ok(DeviceRecord {
        device: link.device,
        samples: public_samples[link.device as usize],
        spent_claimed: spent.claimed,
        spent_provable: spent.provable,
        sinr_db: Db::of(link.sinr).0,
        ser: link.ser,
        ..DeviceRecord::default()
    })
}
