//! The device: everything that may see records.
//!
//! A device answers a base station with a [`PrivateUpdate`] or a noisy label histogram, and with
//! nothing else. Both need a [`Recorded`]: the ledger's proof that the release is on the disk. The
//! raw update in between cannot leave this folder.
//!
//! ```compile_fail,E0603
//! let raw = lapa::device::learn::LocalUpdate::default();
//! ```
//!
//! Simulated and real devices are the same [`Device`]; who holds the records and the ledger differs.

mod learn;
mod privatize;
mod settings;

pub use learn::{Batches, Learner, NotFinite};
pub use privatize::PrivateUpdate;
pub(crate) use privatize::{grid, noisy_counts};
pub use settings::{BatchSampling, Clip, Learn, Update};

use std::borrow::Cow;

use lapa_privacy::OutOfRange;
use lapa_privacy::ledger::Recorded;
use lapa_privacy::sampler::{Grid, GridError};
use rand::Rng;

use crate::data::Split;
use crate::observe::Insight;

/// A device, its records and the way it learns from them.
#[derive(Clone)]
pub struct Device<'a> {
    /// Number k of the device, from 0: that of its account in the ledger that records its releases.
    pub number: u32,
    /// `[learn]`
    pub learn: &'a Learn,
    /// The data set that holds its records.
    pub records: &'a Split,
    /// Its records, by index.
    pub samples: Cow<'a, [u32]>,
    /// Its batches.
    pub batches: Batches,
    /// The grid that clipped sample gradients are rounded to, for discrete noise.
    pub grid: Option<Grid>,
}

/// Random streams of a device in a round.
pub struct Streams<'a> {
    /// For its batch.
    pub batch: &'a mut dyn Rng,
    /// For its noise.
    pub noise: &'a mut dyn Rng,
}

/// The answer of a device.
pub struct Reply {
    /// The update that it sends.
    pub update: PrivateUpdate,
    /// Numbers that it keeps to itself.
    pub insight: Insight,
}

/// Failure of a device to answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Training has diverged.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// Noise cannot be drawn.
    #[error(transparent)]
    Noise(#[from] NoiseError),
}

/// Noise that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// σ is negative or not finite.
    #[error(transparent)]
    Sigma(#[from] OutOfRange),
    /// Sums on the grid are out of its range.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A record of another device.
    #[error("device {device} has no release on record: this one is of device {recorded}")]
    OtherDevice {
        /// The device.
        device: u32,
        /// The device on record.
        recorded: u32,
    },
}

impl Device<'_> {
    /// Learns from the global `model`, then adds the noise that is on record. `scale` is the public
    /// scale of the update, `room` is memory for it.
    pub fn answer(
        &self,
        model: &[f32],
        recorded: Recorded,
        scale: f64,
        streams: Streams<'_>,
        learner: &mut Learner,
        room: Vec<f32>,
    ) -> Result<Reply, AnswerError> {
        let mut raw = learner.take_update();
        learner.local_update(self, model, streams.batch, &mut raw)?;
        let grid = self.grid.as_ref();
        let update =
            PrivateUpdate::new(&raw, (self.number, recorded), scale, grid, streams.noise, room)?;
        let insight = Insight { norm: raw.norm, clipped: raw.clipped };
        learner.keep_update(raw);
        Ok(Reply { update, insight })
    }
}

#[cfg(test)]
mod tests {
    use lapa_privacy::Event;
    use lapa_privacy::ledger::{DataKey, DeclaredBudget, Ledger, Repeat, Request};

    use super::learn::LocalUpdate;
    use super::*;
    use crate::seed::{Purpose, stream};

    /// The record of a release without noise.
    fn record(ledger: &mut Ledger, device: u32) -> Recorded {
        let data = DataKey { data: "data".into(), partition: "data".into() };
        let (epsilon, capacity) = (f64::INFINITY, f64::INFINITY);
        let budget = DeclaredBudget { kind: "none".into(), epsilon, delta: 0.5, capacity };
        ledger.begin_run("run", &data, &[(device, budget)]).unwrap();
        let request = [Request { device, cost: f64::INFINITY }];
        let offers = ledger.offer("run", 1, Repeat::Replay, 0.0, &request).unwrap();
        let event = Event::NonPrivate { what: "test".into() };
        offers.record([(event, f64::INFINITY)]).unwrap().remove(0).unwrap()
    }

    #[test]
    fn a_record_of_another_device_makes_no_noise() {
        let recorded = record(&mut Ledger::in_memory().unwrap(), 3);
        let mut rng = stream(1, Purpose::Noise, 1, 3);
        let update = LocalUpdate { gradient: vec![0.5], ..LocalUpdate::default() };
        for (device, fits) in [(3, true), (2, false)] {
            let recorded = || (device, recorded.again().unwrap());
            let private = PrivateUpdate::new(&update, recorded(), 1.0, None, &mut rng, Vec::new());
            let whole = PrivateUpdate::of_whole(vec![0.5], 1.0, recorded(), &mut rng);
            let counts = noisy_counts(&[1], recorded(), &mut rng);
            assert_eq!([private.is_ok(), whole.is_ok(), counts.is_ok()], [fits; 3]);
            let expected = "device 2 has no release on record: this one is of device 3";
            for error in [private.err(), whole.err(), counts.err()].into_iter().flatten() {
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn a_record_in_a_file_is_drawn_from_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&folder.path().join("ledger.db")).unwrap();
        assert_eq!(record(&mut ledger, 0).again(), None);
    }
}
