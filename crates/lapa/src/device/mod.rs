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
    /// Number k of the device, from 0.
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
}

impl Device<'_> {
    /// Learns from the global `model`, then adds the noise that is on record. `scale` is the public
    /// scale of the update, `room` is memory for it.
    pub fn answer(
        &self,
        model: &[f32],
        recorded: &Recorded,
        scale: f64,
        streams: Streams<'_>,
        learner: &mut Learner,
        room: Vec<f32>,
    ) -> Result<Reply, AnswerError> {
        let mut raw = learner.take_update();
        learner.local_update(self, model, streams.batch, &mut raw)?;
        let grid = self.grid.as_ref();
        let update = PrivateUpdate::new(&raw, recorded, scale, grid, streams.noise, room)?;
        let insight = Insight { norm: raw.norm, clipped: raw.clipped };
        learner.keep_update(raw);
        Ok(Reply { update, insight })
    }
}
