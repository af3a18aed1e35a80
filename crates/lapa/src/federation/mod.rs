//! A federation as its base station runs it, with simulated or remote devices.

mod asked;
mod record;

pub(crate) use asked::Asked;
pub(crate) use record::record;

use std::sync::Arc;

use lapa_privacy::allocate::AllocatorState;
use lapa_privacy::ledger::{DataKey, Ledger, Repeat};
use sha2::{Digest, Sha256};

use crate::aggregate::{GlobalModel, WeightingState};
use crate::budget::{Books, DeviceBudget, PrivacySummary, Result};
use crate::config::Experiment;
use crate::data::Origin;
use crate::radio::Radio;
use crate::station::Station;

/// The base station, the radio and the books: all that a round reads and changes besides devices.
pub struct Federation {
    pub(crate) experiment: Experiment,
    /// Origin of the data, for the manifest.
    pub(crate) origin: Origin,
    pub(crate) station: Station,
    pub(crate) radio: Radio,
    pub(crate) books: Books,
    /// Worker threads, for the manifest.
    pub(crate) threads: usize,
}

/// A federation that has no ledger yet: all of it is checked.
pub(crate) struct Prepared {
    pub experiment: Experiment,
    pub origin: Origin,
    /// Digest of the records that each device holds.
    pub partition: [u8; 32],
    pub station: Station,
    pub radio: Radio,
    /// The experiment that releases follow from.
    pub declared: Experiment,
    pub budgets: Vec<Arc<DeviceBudget>>,
    /// The meaning of a round that is recorded already.
    pub repeat: Repeat,
    pub threads: usize,
}

impl Prepared {
    /// The federation with a ledger that is gone with the process.
    pub fn in_memory(self) -> Result<Federation> {
        let data = DataKey { data: "memory".into(), partition: "memory".into() };
        self.open(Ledger::in_memory()?, &data, "memory")
    }

    /// The federation that records its releases in `ledger` as `run`.
    ///
    /// The names of data on a ledger are made with its key, so that they tell nothing of the records
    /// to anyone without it.
    pub fn record_in(self, ledger: Ledger, run: &str) -> Result<Federation> {
        let mut data = Sha256::new();
        self.origin.hashes.iter().for_each(|file| data.update(&file.sha256));
        let data = DataKey {
            data: ledger.keyed_digest(&data.finalize())?,
            partition: ledger.keyed_digest(&self.partition)?,
        };
        self.open(ledger, &data, run)
    }

    fn open(self, ledger: Ledger, data: &DataKey, run: &str) -> Result<Federation> {
        let Self { experiment, origin, station, radio, declared, budgets, threads, repeat, .. } =
            self;
        let (samples, q) = (station.public_samples(), station.model().parameters.len());
        let books = Books::open(&declared, samples, budgets, q, ledger, data, (run, repeat))?;
        Ok(Federation { experiment, origin, station, radio, books, threads })
    }
}

impl Federation {
    /// The privacy of the run so far.
    pub fn privacy(&mut self) -> Result<PrivacySummary> {
        PrivacySummary::new(&self.experiment, &mut self.books)
    }

    /// Warnings since the last call.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = self.books.take_warnings();
        warnings.append(&mut self.radio.take_warnings());
        warnings.append(&mut self.station.take_warnings());
        warnings
    }

    /// Continues after `round` rounds, with spending as the ledger has it, which is at least that of
    /// round `asked`. False if the weights are of another number of devices.
    pub(crate) fn restore(
        &mut self,
        (round, asked): (u32, u32),
        model: GlobalModel,
        weighting: WeightingState,
        allocator: Option<AllocatorState>,
    ) -> Result<bool> {
        if !self.station.restore(round, model, weighting, allocator)? {
            return Ok(false);
        }
        self.books.restore(round, asked, self.station.weighting().labels().is_some())?;
        Ok(true)
    }
}
