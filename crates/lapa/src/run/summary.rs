//! The summary of a run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Result, RunError, SUMMARY};
use crate::atomic::read_json;
use crate::budget::{PrivacyError, PrivacySummary};
use crate::config::NoiseControl;
use crate::error::FederationError;
use crate::federation::Federation;
use crate::model::Confusion;
use crate::observe::{DeviceAccuracy, RoundRecord, number};
use crate::simulation::Simulation;

/// summary.json
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Final test accuracy, in [0, 1].
    pub accuracy: Option<f64>,
    /// Final mean test loss.
    pub loss: Option<f64>,
    /// Rounds.
    pub rounds: u32,
    /// Time over all rounds, interruptions left out.
    pub seconds: f64,
    /// Devices.
    pub devices: u32,
    /// Number of transmissions skipped because of a weak link.
    pub outages: u64,
    /// Total time for which the radio channel was busy.
    pub airtime_s: f64,
    /// Total energy that the devices radiated, at most.
    pub energy_j: f64,
    /// Bytes the devices sent in all.
    pub uplink_bytes: u64,
    /// Bytes the base station sent in all.
    pub downlink_bytes: u64,
    /// T_th, the last round with artificial noise: of all devices, or of each; null if the
    /// channel's noise never replaces it.
    pub switching_round: Option<SwitchingRound>,
    /// Releases with less noise than asked for.
    pub under_noised: UnderNoised,
    /// Claimed, proven and spent ε.
    #[serde(flatten)]
    pub privacy: PrivacySummary,
    /// Final test accuracy of each class; `None` for one without test images. Empty where the last
    /// round was not evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_accuracy: Vec<Option<f64>>,
    /// Test images by class (rows) and by the class they were taken for (columns).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Confusion>,
    /// Accuracy of each device for its own labels. Not observable: in simulations only, and absent
    /// with the operating system's entropy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_accuracy: Option<DeviceAccuracy>,
}

impl Summary {
    /// The summary of a federation so far: `records` are all its rounds.
    pub(super) fn new(
        records: &[RoundRecord],
        federation: &mut Federation,
        seconds: f64,
    ) -> Result<Self, PrivacyError> {
        // Of the evaluation that is on record, not of a model that diverged since.
        let evaluated = records.last().and_then(|record| record.accuracy);
        let confusion = evaluated.and_then(|_| federation.station.confusion());
        let confusion = confusion.filter(|matrix| matrix.accuracy() == evaluated).cloned();
        let summary = Self {
            class_accuracy: confusion.as_ref().map(Confusion::class_accuracy).unwrap_or_default(),
            confusion,
            rounds: federation.station.round(),
            seconds,
            devices: federation.station.public_samples().len() as u32,
            switching_round: switching_round(federation),
            privacy: federation.privacy()?,
            ..Self::default()
        };
        Ok(summary.with_totals(records))
    }

    /// The same with what only the simulation knows.
    pub(super) fn of_simulation(self, simulation: &Simulation) -> Self {
        let matrix = self.confusion.as_ref();
        let device_accuracy = matrix.and_then(|matrix| simulation.device_accuracy(matrix));
        Self { device_accuracy, ..self }
    }

    /// The same with totals of the rounds.
    pub(super) fn with_totals(self, records: &[RoundRecord]) -> Self {
        let last = records.last();
        Self {
            accuracy: last.and_then(|record| record.accuracy),
            loss: last.and_then(|record| record.loss),
            outages: records.iter().map(|record| u64::from(record.outages)).sum(),
            airtime_s: records.iter().map(|record| record.airtime_s).sum(),
            energy_j: records.iter().map(|record| record.energy_j).sum(),
            uplink_bytes: records.iter().map(|record| record.uplink_bytes).sum(),
            downlink_bytes: records.iter().map(|record| record.downlink_bytes).sum(),
            under_noised: UnderNoised {
                device_rounds: records.iter().map(|record| u64::from(record.under_noised)).sum(),
                worst_factor: records
                    .iter()
                    .filter_map(|record| record.under_noising)
                    .reduce(f64::max),
            },
            ..self
        }
    }
}

impl Simulation {
    /// The summary of the rounds so far, which took `seconds`: `records` are all of them.
    pub fn summary(
        &mut self,
        records: &[RoundRecord],
        seconds: f64,
    ) -> Result<Summary, FederationError> {
        Ok(Summary::new(records, &mut self.federation, seconds)?.of_simulation(self))
    }
}

/// T_th: the last round with artificial noise; 0 if there was none, the last of all if it never
/// ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SwitchingRound {
    /// One for all devices (control.switch.rule = "sum").
    All(u32),
    /// One for each device; `None` if it never sent.
    Each(Vec<Option<u32>>),
}

impl SwitchingRound {
    /// Least, median and most over the devices; `None` if no device sent.
    pub fn spread(&self) -> Option<[u32; 3]> {
        let mut rounds: Vec<u32> = match self {
            Self::All(round) => vec![*round],
            Self::Each(each) => each.iter().flatten().copied().collect(),
        };
        rounds.sort_unstable();
        Some([*rounds.first()?, rounds[rounds.len() / 2], *rounds.last()?])
    }
}

/// Releases with less noise than their costs asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnderNoised {
    /// Their number: one for each device and round.
    pub device_rounds: u64,
    /// The largest σ_required/σ among them; null if there are none.
    #[serde(with = "number::optional")]
    pub worst_factor: Option<f64>,
}

fn switching_round(federation: &Federation) -> Option<SwitchingRound> {
    let (control, books) = (&federation.experiment.control, &federation.books);
    let each = (0..books.devices()).map(|device| books.switching_round(device));
    match control.noise {
        NoiseControl::Always => None,
        noise if noise.goes_by_sum() => each.max().flatten().map(SwitchingRound::All),
        _ => Some(SwitchingRound::Each(each.collect())),
    }
}

/// The summary of a finished run, or `None` while it is not finished.
pub fn read_summary(folder: &Path) -> Result<Option<Summary>> {
    let path = folder.join(SUMMARY);
    let summary = read_json(&path).map_err(RunError::io("read", &path))?;
    summary.transpose().map_err(RunError::invalid(&path))
}
