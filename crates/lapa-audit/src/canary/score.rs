//! Scores of the canaries, from the transcript as it streams.

use std::sync::Arc;

use lapa::config::{BatchSampling, Clip, Experiment, Learn, Update};
use lapa::data::{Split, Values};
use lapa::model::{BLOCK, Batch, Blocks, Network, SampleClip, Worker};
use lapa::seed::{Purpose, stream};
use rand::seq::index;
use rayon::prelude::*;

use super::plant::OTHERS;
use super::{Canary, Planted};
use crate::ledger::ReceivedUpdate;
use crate::scale::is_image;

/// Sums over the rounds, per canary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// Σ⟨r, g′⟩/s²: what was received along what the canary's clipped gradient g has for itself; s² is
    /// the variance of the noise, or that of ⟨r, g′⟩/‖g′‖ over the device's canaries if it is more.
    pub along: f64,
    /// Σ⟨g, g′⟩/s²: what it is for a canary that is in the sum once in every round.
    pub own: f64,
    /// Σ‖g′‖²/s²: its variance.
    pub variance: f64,
    /// Σ‖g‖
    pub norms: f64,
    /// Σ‖g′‖
    pub own_norms: f64,
    /// Rounds in which its device sent.
    pub rounds: u32,
}

/// Mean gradients of other records that are taken out of a canary's.
const DIRECTIONS: usize = 8;

/// One accumulator per canary; nothing else is kept of the transcript.
pub(crate) struct Scorer {
    pub canaries: Vec<Canary>,
    pub sums: Vec<Sums>,
    network: Arc<Network>,
    /// The training set, whose images are shared with the run.
    data: Split,
    /// Each device's other records, by label.
    ordinary: Vec<Vec<u32>>,
    learn: Learn,
    /// True if every batch has all records.
    all: bool,
    seed: u64,
}

impl Scorer {
    /// For canaries planted in a run, of which the attacker knows all other records.
    pub fn new(planted: &Planted, experiment: &Experiment, network: Network, seed: u64) -> Self {
        let train = &planted.data.train;
        let is_canary = planted.canaries.iter().map(|canary| canary.sample).min();
        let ordinary = planted.partition.devices.iter().map(|device| {
            let others = device.samples.iter().filter(|&&sample| Some(sample) < is_canary);
            let mut others: Vec<u32> = others.copied().collect();
            others.sort_by_key(|&sample| train.labels[sample as usize]);
            others
        });
        Self {
            sums: vec![Sums::default(); planted.canaries.len()],
            canaries: planted.canaries.clone(),
            network: network.into(),
            data: train.clone(),
            ordinary: ordinary.collect(),
            learn: experiment.learn.clone(),
            all: experiment.learn.sampling == BatchSampling::Full
                || experiment.learn.update == Update::Epoch,
            seed,
        }
    }

    /// Description of the canaries.
    pub fn drawn(&self) -> &'static str {
        match &self.data.values {
            Values::Halves(_) => "random features at the largest value of the test set",
            _ if is_image(self.data.shape) => "random dots in the dark part of the image",
            _ => "each value the largest or, more often, the least of the test set",
        }
    }

    /// Adds a round: what devices sent that were given `parameters`.
    ///
    /// g′ is g without the directions of the device's other records, as a sample of them shows, and
    /// without the mean over the device's canaries: what records, or canaries, have in common
    /// tells of no single one.
    pub fn observe(&mut self, round: u32, parameters: &[f32], heard: &[ReceivedUpdate<'_>]) {
        let Self { canaries, sums, network, data, ordinary, learn, all, seed } = self;
        let mut devices: Vec<(&[Canary], &mut [Sums])> = Vec::new();
        let mut rest = sums.as_mut_slice();
        for own in canaries.chunk_by(|a, b| a.device == b.device) {
            let (first, later) = rest.split_at_mut(own.len());
            devices.push((own, first));
            rest = later;
        }
        devices.into_par_iter().for_each(|(canaries, sums)| {
            let device = canaries[0].device;
            let Some(one) = heard.iter().find(|one| one.device == device) else { return };
            let mut worker = Worker::new(network.clone());
            let mut gradients = vec![0.0; canaries.len() * parameters.len()];
            for (canary, gradient) in
                canaries.iter().zip(gradients.chunks_exact_mut(parameters.len()))
            {
                let batch = Batch { data, samples: &[canary.sample] };
                mean_gradient(&mut worker, learn, parameters, batch, gradient);
            }
            let others = &ordinary[device as usize];
            let share = if *all { 1.0 } else { learn.batch_fraction };
            let count = (share * others.len() as f64).ceil() as usize;
            let key = u64::from(round) << 32 | u64::from(device);
            let mut rng = stream(*seed, Purpose::Audit, OTHERS, key);
            let mut chosen = index::sample(&mut rng, others.len(), count).into_vec();
            // By label again: a direction is that of one or two labels.
            chosen.sort_unstable();
            let chosen: Vec<u32> = chosen.into_iter().map(|place| others[place]).collect();
            let mut directions = Vec::with_capacity(DIRECTIONS);
            let mut mean = vec![0.0; parameters.len()];
            for samples in chosen.chunks(chosen.len().div_ceil(DIRECTIONS).max(1)) {
                mean_gradient(&mut worker, learn, parameters, Batch { data, samples }, &mut mean);
                add_direction(&mut directions, &mean);
            }
            add(sums, &gradients, one, &directions);
        });
    }
}

/// Adds a direction to an orthonormal list, by what the list does not have yet (Gram & Schmidt).
fn add_direction(directions: &mut Vec<Vec<f64>>, vector: &[f32]) {
    let mut rest: Vec<f64> = vector.iter().map(|&value| f64::from(value)).collect();
    let before: f64 = rest.iter().map(|r| r * r).sum();
    take_out(&mut rest, directions);
    let square: f64 = rest.iter().map(|r| r * r).sum();
    // Less is rounding.
    if square > 1e-10 * before && square.is_finite() {
        let norm = square.sqrt();
        rest.iter_mut().for_each(|r| *r /= norm);
        directions.push(rest);
    }
}

fn take_out(vector: &mut [f64], directions: &[Vec<f64>]) {
    for direction in directions {
        let along: f64 = vector.iter().zip(direction).map(|(v, d)| v * d).sum();
        vector.iter_mut().zip(direction).for_each(|(v, d)| *v -= along * d);
    }
}

/// The sums of one device's canaries, with their gradients one after the other.
fn add(sums: &mut [Sums], gradients: &[f32], one: &ReceivedUpdate<'_>, directions: &[Vec<f64>]) {
    let coordinates = one.gradient.len();
    let mut own: Vec<Vec<f64>> = gradients
        .chunks_exact(coordinates)
        .map(|gradient| {
            let mut own: Vec<f64> = gradient.iter().map(|&g| f64::from(g)).collect();
            take_out(&mut own, directions);
            own
        })
        .collect();
    let mut mean = vec![0.0; coordinates];
    for gradient in &own {
        mean.iter_mut().zip(gradient).for_each(|(mean, g)| *mean += g / sums.len() as f64);
    }
    let mut round = Vec::with_capacity(sums.len());
    let (mut energy, mut room) = (0.0, 0.0);
    for (gradient, own) in gradients.chunks_exact(coordinates).zip(&mut own) {
        own.iter_mut().zip(&mean).for_each(|(g, mean)| *g -= mean);
        let dot = |values: &[f32]| -> f64 {
            values.iter().zip(&*own).map(|(&value, g)| f64::from(value) * g).sum()
        };
        let (along, with_itself) = (dot(one.gradient), dot(gradient));
        let square: f64 = own.iter().map(|g| g * g).sum();
        let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        energy += along * along;
        room += square;
        round.push((along, with_itself, square, norm));
    }
    // Other records are noise to the attacker, too. Where all is 0 nothing is known.
    let noise = (one.sigma * one.sigma).max(energy / room);
    if !noise.is_finite() || noise <= 0.0 {
        return;
    }
    for (sums, (along, with_itself, square, norm)) in sums.iter_mut().zip(round) {
        sums.along += along / noise;
        sums.own += with_itself / noise;
        sums.variance += square / noise;
        sums.norms += norm;
        sums.own_norms += square.sqrt();
        sums.rounds += 1;
    }
}

/// The mean gradient, clipped as samples' are; unclipped where nothing or the whole upload is.
fn mean_gradient(
    worker: &mut Worker,
    learn: &Learn,
    parameters: &[f32],
    batch: Batch<'_>,
    gradient: &mut [f32],
) {
    match (learn.clip, learn.clip_norm) {
        (Clip::Sample, Some(norm)) => {
            let denominator = batch.samples.len() as f64;
            let mut exact = vec![0.0; gradient.len()];
            let clip = SampleClip { norm, denominator, blocks: Blocks::Each(BLOCK) };
            worker.clipped_gradient(parameters, batch, clip, &mut exact);
            gradient.iter_mut().zip(exact).for_each(|(g, e)| *g = e as f32);
        }
        _ => {
            worker.gradient(parameters, batch, gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two canaries along the first two axes, of which the second is in; everyone has the third.
    #[test]
    fn what_is_common_does_not_count() {
        let gradients = [1.0, 0.0, 5.0, 0.0, 1.0, 5.0];
        let received = [0.0, 0.5, 9.0];
        let one = ReceivedUpdate { device: 0, gradient: &received, sigma: 0.5 };
        let mut directions = Vec::new();
        add_direction(&mut directions, &[0.0, 0.0, 3.0]);
        add_direction(&mut directions, &[0.0, 0.0, -7.0]);
        assert_eq!(directions, [[0.0, 0.0, 1.0]]);
        // g′ is ±(½, −½, 0), and s² is σ² = ¼; also if only the mean over the canaries is taken out.
        for directions in [&directions[..], &[]] {
            let mut sums = [Sums::default(); 2];
            add(&mut sums, &gradients, &one, directions);
            assert_eq!([sums[0].along, sums[1].along], [-1.0, 1.0]);
            assert_eq!([sums[0].own, sums[0].variance], [2.0, 2.0]);
        }
    }
}
