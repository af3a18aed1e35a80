//! What the transcript says of each canary, while it streams.

use std::sync::Arc;

use lapa::config::{Clip, Learn};
use lapa::data::Split;
use lapa::model::{Batch, Network, Worker};
use rayon::prelude::*;

use super::Canary;
use crate::ledger::Heard;

/// Sums over the rounds, per canary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// Σ⟨r, g′⟩/σ²: what was received along what the canary's clipped gradient g has for itself.
    pub along: f64,
    /// Σ⟨g, g′⟩/σ²: what it is for a canary that is in the sum once in every round.
    pub own: f64,
    /// Σ‖g′‖²/σ²: its variance from noise alone.
    pub variance: f64,
    /// Σ‖g‖
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

impl Scorer {
    /// For canaries in the order of their devices.
    pub fn new(canaries: Vec<Canary>, network: Network, data: Split, learn: Learn) -> Self {
        let sums = vec![Sums::default(); canaries.len()];
        Self { canaries, sums, network: network.into(), data, learn }
    }

    /// Adds a round: what devices sent that were given `parameters`.
    ///
    /// g′ is g without the direction of what all other devices sent, and without the mean over
    /// the device's canaries: what records, or canaries, have in common tells of no single one.
    pub fn observe(&mut self, parameters: &[f32], heard: &[Heard<'_>]) {
        let mut total = vec![0.0f64; parameters.len()];
        for one in heard {
            total.iter_mut().zip(one.gradient).for_each(|(sum, &r)| *sum += f64::from(r));
        }
        let Self { canaries, sums, network, data, learn } = self;
        let mut devices: Vec<(&[Canary], &mut [Sums])> = Vec::new();
        let mut rest = sums.as_mut_slice();
        for own in canaries.chunk_by(|a, b| a.device == b.device) {
            let (first, later) = rest.split_at_mut(own.len());
            devices.push((own, first));
            rest = later;
        }
        devices.into_par_iter().for_each(|(canaries, sums)| {
            let Some(one) = heard.iter().find(|one| one.device == canaries[0].device) else {
                return;
            };
            let mut worker = Worker::new(network.clone());
            let mut gradients = vec![0.0; canaries.len() * parameters.len()];
            for (canary, gradient) in
                canaries.iter().zip(gradients.chunks_exact_mut(parameters.len()))
            {
                let batch = Batch { data, samples: &[canary.sample] };
                own_gradient(&mut worker, learn, parameters, batch, gradient);
            }
            add(sums, &gradients, one, &total, heard.len());
        });
    }
}

/// The sums of one device's canaries, with their gradients one after the other.
fn add(sums: &mut [Sums], gradients: &[f32], one: &Heard<'_>, total: &[f64], devices: usize) {
    let coordinates = total.len();
    let received = one.gradient.iter().map(|&r| f64::from(r));
    let others: Vec<f64> = total.iter().zip(received.clone()).map(|(sum, r)| sum - r).collect();
    let square: f64 = others.iter().map(|s| s * s).sum();
    let outward = |gradient: &[f32]| -> Vec<f64> {
        let along: f64 = gradient.iter().zip(&others).map(|(&g, s)| f64::from(g) * s).sum();
        // Alone, a device has no others; rounding may leave some.
        let factor = if devices > 1 && square > 0.0 { along / square } else { 0.0 };
        gradient.iter().zip(&others).map(|(&g, s)| f64::from(g) - factor * s).collect()
    };
    let mut mean = vec![0.0; coordinates];
    for gradient in gradients.chunks_exact(coordinates) {
        for (mean, g) in mean.iter_mut().zip(outward(gradient)) {
            *mean += g / sums.len() as f64;
        }
    }
    let noise = if one.sigma > 0.0 { one.sigma * one.sigma } else { 1.0 };
    for (sums, gradient) in sums.iter_mut().zip(gradients.chunks_exact(coordinates)) {
        let (mut along, mut own, mut variance, mut norm) = (0.0, 0.0, 0.0, 0.0);
        let values = gradient.iter().zip(outward(gradient)).zip(&mean).zip(received.clone());
        for (((&g, outward), mean), r) in values {
            let (g, direction) = (f64::from(g), outward - mean);
            along += r * direction;
            own += g * direction;
            variance += direction * direction;
            norm += g * g;
        }
        if (along + own + variance + norm).is_finite() {
            sums.along += along / noise;
            sums.own += own / noise;
            sums.variance += variance / noise;
            sums.norms += norm.sqrt();
            sums.rounds += 1;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two canaries along the first two axes, of which the second is in; everyone has the third.
    #[test]
    fn what_is_common_does_not_count() {
        let gradients = [1.0, 0.0, 5.0, 0.0, 1.0, 5.0];
        let received = [0.0, 0.5, 9.0];
        let one = Heard { device: 0, gradient: &received, sigma: 0.5 };
        // Others sent the third axis only.
        let total = [0.0, 0.5, 12.0];
        let mut sums = [Sums::default(); 2];
        add(&mut sums, &gradients, &one, &total, 2);
        // g′ is ±(½, −½, 0), and σ² is ¼.
        assert_eq!([sums[0].along, sums[1].along], [-1.0, 1.0]);
        assert_eq!([sums[0].own, sums[0].variance], [2.0, 2.0]);
        // A device alone has nothing in common with anyone; the mean still goes.
        let mut alone = [Sums::default(); 2];
        add(&mut alone, &gradients, &one, &[0.0, 0.5, 9.0], 1);
        assert_eq!([alone[0].along, alone[1].along], [-1.0, 1.0]);
    }
}
