//! What a round reports.

use std::time::Instant;

use lapa_wireless::units::Db;

use super::{Federation, FederationError};
use crate::config::{Entropy, ObserveDevices};
use crate::observe::{DeviceRecord, DeviceRecords, DeviceSummary, NoiseMode, RoundRecord};
use crate::privatize::{Budgets, Granted, PrivatizeError};
use crate::round::Asked;
use crate::transmit::Link;

impl Federation {
    pub(crate) fn record(
        &mut self,
        asked: &Asked,
        answered: &[Granted],
        weights: &[f64],
        evaluation: Option<(f64, f64)>,
        start: Instant,
    ) -> Result<RoundRecord, FederationError> {
        // What no base station could observe is for simulations only.
        let simulated = self.experiment.run.entropy == Entropy::Seed;
        let Asked { granted, passed_over, decision } = asked;
        let mut list = Vec::with_capacity(granted.len() + passed_over.len());
        let mut answers = answered.iter().zip(weights).peekable();
        for (slot, granted) in granted.iter().enumerate() {
            // Both are in the order of the devices; what was lost on the way weighs nothing.
            let answer = answers.next_if(|(answered, _)| answered.device == granted.device);
            let weight = answer.map_or(0.0, |(_, &weight)| weight);
            // Devices elsewhere keep their updates to themselves.
            let insight = self.insights.get(slot).filter(|_| simulated);
            list.push(DeviceRecord {
                weight,
                epsilon: granted.epsilon,
                sigma_artificial: granted.sigma(),
                sigma_required: granted.sigma_required,
                angle: granted.angle,
                selected: true,
                sigma_channel: granted.sigma_channel,
                gradient_norm: insight.map(|insight| insight.norm),
                clipped: insight.map(|insight| insight.clipped),
                ..silent(&mut self.budgets, &self.public_samples, &granted.link)?
            });
        }
        for link in passed_over {
            list.push(silent(&mut self.budgets, &self.public_samples, link)?);
        }
        list.sort_by_key(|record| record.device);
        let on_air: Vec<Link> = granted.iter().map(|granted| granted.link).collect();
        let coordinates = self.model.parameters.len();
        let air = self.uplink.airtime(coordinates, &on_air)?;
        let sent = self.uplink.bytes(coordinates) * answered.len() as u64;
        let model = (size_of::<f32>() * coordinates * granted.len()) as u64;
        Ok(RoundRecord {
            round: self.round,
            accuracy: evaluation.map(|(accuracy, _)| accuracy),
            loss: evaluation.map(|(_, loss)| loss),
            pid_error: decision.pid_error,
            epsilon_round: decision.epsilon_round,
            noise_mode: noise_mode(granted),
            under_noised: granted.iter().filter_map(Granted::under_noising).count() as u32,
            under_noising: granted.iter().filter_map(Granted::under_noising).reduce(f64::max),
            outages: passed_over.len() as u32,
            airtime_s: air.time.0,
            energy_j: air.energy.0,
            uplink_bytes: sent + self.histogram_bytes(),
            downlink_bytes: model,
            devices: match self.experiment.observe.devices {
                ObserveDevices::List => DeviceRecords::List(list),
                ObserveDevices::Summary => DeviceRecords::Summary(DeviceSummary::of(&list).into()),
            },
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Label histograms travel once, 4 bytes a count; counted with round 1.
    fn histogram_bytes(&self) -> u64 {
        match self.experiment.aggregate.rule.histograms().is_some() && self.round == 1 {
            true => (4 * self.data.classes * self.partition.devices.len()) as u64,
            false => 0,
        }
    }
}

/// Where the noise of a round came from.
fn noise_mode(granted: &[Granted]) -> Option<NoiseMode> {
    let noisy = || granted.iter().filter(|granted| granted.sigma_required > 0.0);
    noisy().next()?;
    if noisy().all(|granted| granted.sigma() == 0.0) {
        return Some(NoiseMode::Channel);
    }
    match noisy().all(|granted| granted.sigma() >= granted.sigma_required) {
        true => Some(NoiseMode::Artificial),
        false => Some(NoiseMode::Mixed),
    }
}

/// What there is to say of a device that does not send.
fn silent(
    budgets: &mut Budgets,
    public_samples: &[u32],
    link: &Link,
) -> Result<DeviceRecord, PrivatizeError> {
    let spent = budgets.spent(link.device)?;
    Ok(DeviceRecord {
        device: link.device,
        samples: public_samples[link.device as usize],
        weight: 0.0,
        epsilon: 0.0,
        sigma_artificial: 0.0,
        sigma_required: 0.0,
        spent_claimed: spent.claimed,
        spent_provable: spent.provable,
        angle: None,
        sinr_db: Db::of(link.sinr).0,
        ser: link.ser,
        selected: false,
        sigma_channel: 0.0,
        gradient_norm: None,
        clipped: None,
    })
}
