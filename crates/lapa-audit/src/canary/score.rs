//! What the transcript says of each canary, while it streams.

use std::sync::Arc;

use lapa::config::{Clip, Learn};
use lapa::data::Split;
use lapa::model::{Batch, Network, Worker};
use rayon::prelude::*;

use super::Canary;
use crate::ledger::Heard;

/// Canaries that are scored with one worker.
const BLOCK: usize = 16;

/// Sums over the rounds, per canary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// Σ⟨r, g⟩/σ², of what was received along the canary's own clipped gradient.
    pub along: f64,
    /// Σ‖g‖²/σ²
    pub squares: f64,
    /// Σ‖g‖, and over how many rounds.
    pub norms: f64,
    /// Rounds in which its device sent.
    pub rounds: u32,
}

/// One accumulator per canary; nothing else is kept of the transcript.
pub(crate) struct Scorer {
    pub canaries: Vec<Canary>,
    pub sums: Vec<Sums>,
    network: Arc<Network>,
    /// The training set, whose images are shared with the run.
    data: Split,
    learn: Learn,
}

/// Products of what one device sent, r, with what all others sent together, s.
struct Others {
    /// ⟨r, s⟩
    along: f64,
    /// ‖s‖²
    square: f64,
}

impl Scorer {
    pub fn new(canaries: Vec<Canary>, network: Network, data: Split, learn: Learn) -> Self {
        let sums = vec![Sums::default(); canaries.len()];
        Self { canaries, sums, network: network.into(), data, learn }
    }

    /// Adds a round: what devices sent that were given `parameters`.
    ///
    /// What the others sent is what all devices have in common; its direction is taken out of both
    /// r and g, since it tells of no single record.
    pub fn observe(&mut self, parameters: &[f32], heard: &[Heard<'_>]) {
        let mut total = vec![0.0f64; parameters.len()];
        for one in heard {
            total.iter_mut().zip(one.gradient).for_each(|(sum, &r)| *sum += f64::from(r));
        }
        let square: f64 = total.iter().map(|s| s * s).sum();
        let others: Vec<Others> = heard
            .iter()
            .map(|one| {
                let (with_total, own) = dots(one.gradient, &total, one.gradient);
                Others { along: with_total - own, square: square - 2.0 * with_total + own }
            })
            .collect();
        let Self { canaries, sums, network, data, learn } = self;
        let blocks = canaries.par_chunks(BLOCK).zip(sums.par_chunks_mut(BLOCK));
        blocks.for_each(|(canaries, sums)| {
            let mut worker = Worker::new(network.clone());
            let mut gradient = vec![0.0; parameters.len()];
            for (canary, sums) in canaries.iter().zip(sums) {
                let Some(place) = heard.iter().position(|one| one.device == canary.device) else {
                    continue;
                };
                let (one, others) = (&heard[place], &others[place]);
                let batch = Batch { data, samples: &[canary.sample] };
                own_gradient(&mut worker, learn, parameters, batch, &mut gradient);
                let (with_total, mut along) = dots(&gradient, &total, one.gradient);
                let mut norm: f64 = gradient.iter().map(|&g| f64::from(g).powi(2)).sum();
                if !norm.is_finite() {
                    continue;
                }
                sums.norms += norm.sqrt();
                sums.rounds += 1;
                if heard.len() > 1 && others.square > 0.0 {
                    let common = with_total - along;
                    along -= common * others.along / others.square;
                    norm -= common * common / others.square;
                }
                let variance = if one.sigma > 0.0 { one.sigma * one.sigma } else { 1.0 };
                sums.along += along / variance;
                sums.squares += norm.max(0.0) / variance;
            }
        });
    }
}

/// The canary's gradient, clipped as a sample's is; unclipped where nothing or the whole upload is.
fn own_gradient(
    worker: &mut Worker,
    learn: &Learn,
    parameters: &[f32],
    batch: Batch<'_>,
    gradient: &mut [f32],
) {
    match (learn.clip, learn.clip_norm) {
        (Clip::Sample, Some(norm)) => {
            worker.clipped_gradient(parameters, batch, norm as f32, 1.0, gradient);
        }
        _ => {
            worker.gradient(parameters, batch, gradient);
        }
    }
}

/// ⟨v, a⟩ and ⟨v, b⟩
fn dots(v: &[f32], a: &[f64], b: &[f32]) -> (f64, f64) {
    v.iter().zip(a).zip(b).fold((0.0, 0.0), |(with_a, with_b), ((&v, &a), &b)| {
        (with_a + f64::from(v) * a, with_b + f64::from(v) * f64::from(b))
    })
}
