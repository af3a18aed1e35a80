//! The pilot: a run whose noise powers are fitted to.

use lapa::config::{
    Control, Data, Entropy, Experiment, NoiseControl, ObserveDevices, Pilot as PilotData, Powers,
};
use lapa::data::{self, DataName, Dataset};
use lapa::error::FederationError;
use lapa::observe::{DeviceRecords, RoundRecord};
use lapa::optimize::PowerChoice;
use lapa::radio::Links;
use lapa::simulation::Simulation;
use lapa_privacy::Release;
use std::path::PathBuf;

use super::PhaseError;
use crate::power::{Trace, TraceArrays};

/// Test images of a pilot on synthetic digits.
const TEST_IMAGES: usize = 1_000;

/// The experiment of pilot `number`, from 0: equal powers, artificial noise wherever the channel's does not
/// suffice for a device, evaluated once.
///
/// On synthetic digits it spends nothing. On the devices' own data it is charged to `ledger`, which
/// the run then shares; on basis certified it spends its fraction of each device's budget. On basis
/// paper its noise is not that of the run, which powers should not be fitted to.
pub fn pilot_experiment(
    experiment: &Experiment,
    ledger: Option<PathBuf>,
    number: u32,
) -> Experiment {
    let mut pilot = experiment.clone();
    let control = &experiment.control;
    let as_run = control.pilot == PilotData::Synthetic || experiment.is_certified();
    let other = u64::from(number) + u64::from(!as_run);
    if other > 0 {
        // Far from the seeds that people count up.
        pilot.run.training_seed = Some(experiment.run.training_seed() ^ (other << 40));
    }
    let (devices, most_w) =
        (experiment.partition.scheme.devices(), experiment.transmit.max_power_w);
    pilot.transmit.power_w = Powers::All(control.average_power_w(devices, most_w));
    pilot.control = Control {
        noise: match control.noise {
            NoiseControl::Always => NoiseControl::Always,
            NoiseControl::Switch(_) | NoiseControl::TopUp => NoiseControl::TopUp,
        },
        power: PowerChoice::Equal,
        total_power_w: control.total_power_w,
        least_power_w: 0.0,
        pilot: control.pilot,
        // The pilot does not depend on how powers are judged and optimized: it may serve again.
        ..Experiment::default().control
    };
    pilot.run.evaluate_every = experiment.run.rounds;
    pilot.observe.devices = ObserveDevices::List;
    match control.pilot {
        PilotData::Synthetic => {
            pilot.data = Data::named(DataName::Synthetic);
            pilot.run.ledger = None;
            pilot.run.entropy = Entropy::Seed;
        }
        PilotData::Private(private) => {
            pilot.run.ledger = ledger;
            if let Some(privacy) = pilot.privacy.as_mut().filter(|_| as_run) {
                // The same budget, and so the same currency, but only a part of it is spent.
                privacy.budget_fraction = private.budget_fraction;
            }
        }
    }
    pilot
}

/// Refuses an experiment in whose pilots no device ever passes the threshold: its J is 0.
pub(super) fn expect_sender(experiment: &Experiment) -> Result<(), PhaseError> {
    let pilot = pilot_experiment(experiment, None, 0);
    let (rounds, threshold) = (pilot.run.rounds, pilot.aggregate.threshold);
    let devices: Vec<u32> = (0..pilot.partition.scheme.devices()).collect();
    // Fewer devices on the air disturb each other less.
    let together = if pilot.run.participation == 1.0 { devices.len() } else { 1 };
    let redrawn = if pilot.radio.redraw_every == 0 { rounds } else { pilot.radio.redraw_every };
    let mut links = Links::new(pilot.setting()).map_err(FederationError::from)?;
    let (mut best_sinr, mut best_ser) = (0.0_f64, 1.0_f64);
    for round in (1..=rounds).step_by(redrawn as usize) {
        for some in devices.chunks(together) {
            for link in links.draw(round, some).map_err(FederationError::from)? {
                if link.passes(&threshold) {
                    return Ok(());
                }
                (best_sinr, best_ser) = (best_sinr.max(link.sinr), best_ser.min(link.ser));
            }
        }
    }
    Err(PhaseError::NobodyPasses { threshold, best_sinr_db: 10.0 * best_sinr.log10(), best_ser })
}

/// Training data of the pilot: the run's data, or as many digits drawn by code.
pub fn pilot_data(experiment: &Experiment, data: &Dataset) -> Result<Dataset, PhaseError> {
    if experiment.control.pilot != PilotData::Synthetic {
        return Ok(data.clone());
    }
    let digits = data::digits(data.train.len(), TEST_IMAGES);
    let digits = digits.with_features(experiment.model.feature_map(), &mut |_| {});
    let digits = digits.map_err(FederationError::from)?;
    let (shape, classes) = (data.train.shape, data.classes);
    if (digits.train.shape, digits.classes) == (shape, classes) {
        Ok(digits)
    } else {
        Err(PhaseError::OtherImages { shape, classes })
    }
}

/// A finished pilot, as far as powers are fitted to it.
#[derive(Clone, Debug)]
pub struct Pilot {
    /// Weights, required noise and channels.
    pub trace: Trace,
    /// Release of each device, apart from its noise.
    pub releases: Vec<Release>,
    /// The largest budget of a device; `None` without budgets.
    pub budget: Option<f64>,
}

impl Pilot {
    /// Reads a pilot off its records. `federation` is that of the pilot; it need not have run.
    pub fn new(federation: &Simulation, records: &[RoundRecord]) -> Result<Self, PhaseError> {
        let (experiment, budgets) = (federation.experiment(), federation.books());
        let devices = budgets.devices() as usize;
        let cells = records.len() * devices;
        let mut arrays = TraceArrays {
            weights: vec![0.0; cells],
            sigma_required: vec![0.0; cells],
            nu_at_watt: vec![0.0; cells],
            quiet_scale_squared: Vec::with_capacity(devices),
            trust: vec![experiment.channel_trust(); devices],
            noise_within_scale: budgets.noise_within_scale(),
        };
        for device in 0..budgets.devices() {
            let scale = budgets.quiet_scale(device).map_err(FederationError::from)?;
            arrays.quiet_scale_squared.push(scale.ok_or(PhaseError::NoAmplitudes)?.powi(2));
        }
        let mut links = Links::new(experiment.setting()).map_err(FederationError::from)?;
        for (row, record) in records.iter().enumerate() {
            // Draws the channels of the round.
            links.draw(record.round, &[0]).map_err(FederationError::from)?;
            for device in 0..devices {
                let part = experiment.transmit.uplink.noise_part();
                let nu = part * experiment.radio.noise_power_w / links.gain(device as u32);
                arrays.nu_at_watt[row * devices + device] = nu;
            }
            let DeviceRecords::List(list) = &record.devices else {
                return Err(PhaseError::NoDevices(record.round));
            };
            for device in list.iter().filter(|device| device.selected) {
                let (round, number) = (record.round, device.device);
                if number as usize >= devices {
                    return Err(PhaseError::Device { round, device: number, devices });
                }
                let at = row * devices + number as usize;
                arrays.weights[at] = device.weight;
                arrays.sigma_required[at] = device.sigma_required;
            }
        }
        let releases = (0..budgets.devices()).map(|device| budgets.release(device).clone());
        let budget = (0..budgets.devices())
            .filter_map(|device| Some(budgets.declared(device)?.budget().epsilon()))
            .reduce(f64::max);
        Ok(Self { trace: Trace::new(arrays)?, releases: releases.collect(), budget })
    }
}
