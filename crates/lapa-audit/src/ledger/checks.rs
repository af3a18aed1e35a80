//! Tests on the transcript, while it streams.

use rayon::prelude::*;

use crate::epsilon_bound::{binomial_tail, normal_cdf};

/// Coordinates within this many standard deviations of 0 are counted.
const NEAR: f64 = 0.5;
/// Pairs of devices that are compared in a round, about.
const PAIRS: usize = 256;

/// Update of one device in one round, as the base station received it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedUpdate<'a> {
    /// The device.
    pub device: u32,
    /// The received gradient.
    pub gradient: &'a [f32],
    /// Standard deviation of the Gaussian noise on each coordinate, at least, by what was declared.
    pub sigma: f64,
}

/// The least likely outcome of a family of tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Tests done.
    pub tests: u64,
    /// The smallest p-value of all.
    pub p_value: f64,
    /// The round, a device, and the other device or the same.
    pub place: (u32, u32, u32),
}

impl Default for Worst {
    fn default() -> Self {
        Self { tests: 0, p_value: 1.0, place: (0, 0, 0) }
    }
}

impl Worst {
    /// The p-value of the whole family (Bonferroni).
    pub fn corrected(&self) -> f64 {
        (self.p_value * self.tests.max(1) as f64).min(1.0)
    }

    fn add(&mut self, outcomes: impl IntoIterator<Item = (f64, (u32, u32, u32))>) {
        for (p_value, place) in outcomes {
            self.tests += 1;
            if p_value < self.p_value {
                (self.p_value, self.place) = (p_value, place);
            }
        }
    }
}

/// Tests that the noise is as large as declared, and new each time.
///
/// All tests count coordinates near 0. Noise N(0, s²) on whatever else is in a coordinate leaves it
/// within c·s of 0 with a chance of at most P(|N(0, 1)| ≤ c), since that is the most at a mean of 0
/// (Anderson 1955), whatever the gradients are. So the count is at most binomial, and too many of
/// them have a p-value that is exact. Gradients only hide a defect, they do not make one up.
///
/// - Too little noise: r is near 0.
/// - Two devices with the same noise in a round: r/σ of one less (or plus) that of the other is
///   near 0; the declared noise there has the variance 2.
/// - A device with the same noise in two rounds, one after the other: as above; but later gradients
///   depend on earlier noise, so that only the later noise counts, with the variance 1.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Too little noise.
    pub noise: Worst,
    /// Two devices, one round.
    pub devices: Worst,
    /// One device, two rounds.
    pub rounds: Worst,
    /// Rounds and devices of the received updates.
    pub heard: Vec<(u32, u32)>,
    /// The last r/σ of each device.
    last: Vec<Option<Vec<f32>>>,
}

impl Checks {
    /// Nothing was heard yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was heard in a round.
    pub fn observe(&mut self, round: u32, heard: &[ReceivedUpdate<'_>]) {
        self.heard.extend(heard.iter().map(|one| (round, one.device)));
        let noisy: Vec<(u32, Vec<f32>)> = heard
            .par_iter()
            .filter(|one| one.sigma > 0.0 && one.sigma.is_finite())
            .map(|one| {
                let scaled = |&r: &f32| (f64::from(r) / one.sigma) as f32;
                (one.device, one.gradient.iter().map(scaled).collect())
            })
            .collect();
        let own: Vec<_> = noisy
            .par_iter()
            .map(|(device, values)| {
                (p_value(values.iter().copied(), 1.0), (round, *device, *device))
            })
            .collect();
        self.noise.add(own);
        let pairs: Vec<_> = pairs(round, noisy.len())
            .into_par_iter()
            .flat_map_iter(|(a, b)| {
                let ((first, a), (second, b)) = (&noisy[a], &noisy[b]);
                together(a, b, std::f64::consts::SQRT_2)
                    .map(|p_value| (p_value, (round, *first, *second)))
            })
            .collect();
        self.devices.add(pairs);
        for (device, values) in noisy {
            let place = device as usize;
            if self.last.len() <= place {
                self.last.resize(place + 1, None);
            }
            if let Some(last) = &self.last[place] {
                let outcomes = together(&values, last, 1.0);
                self.rounds.add(outcomes.map(|p_value| (p_value, (round, device, device))));
            }
            self.last[place] = Some(values);
        }
    }
}

/// p-values of a − b and a + b.
fn together(a: &[f32], b: &[f32], deviation: f64) -> [f64; 2] {
    let pairs = a.iter().zip(b);
    [
        p_value(pairs.clone().map(|(a, b)| a - b), deviation),
        p_value(pairs.map(|(a, b)| a + b), deviation),
    ]
}

/// The chance that as many values are as near to 0, if each has noise of this standard deviation.
fn p_value(values: impl Iterator<Item = f32>, deviation: f64) -> f64 {
    let near = (NEAR * deviation) as f32;
    let (mut count, mut all) = (0u64, 0u64);
    for value in values {
        count += u64::from(value.abs() <= near);
        all += 1;
    }
    // Rounding to f32 moves the edge by 10⁻⁷ of it.
    let chance = 2.0 * normal_cdf(NEAR * (1.0 + 1e-6)) - 1.0;
    binomial_tail(count, all, chance)
}

/// Pairs of `devices` to compare in a round: all of them, or if they are many, others each round.
fn pairs(round: u32, devices: usize) -> Vec<(usize, usize)> {
    if devices < 2 {
        return Vec::new();
    }
    let shifts = devices / 2;
    let at_once = (PAIRS / devices).clamp(1, shifts);
    let first = (round as usize).wrapping_mul(at_once);
    let mut pairs: Vec<(usize, usize)> = (0..at_once)
        .map(|i| 1 + (first + i) % shifts)
        .flat_map(|shift| (0..devices).map(move |a| (a, (a + shift) % devices)))
        .map(|(a, b)| (a.min(b), a.max(b)))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use lapa::seed::{Purpose, stream};
    use lapa_privacy::sampler::add_gaussian;

    use super::*;

    #[test]
    fn every_pair_has_its_turn() {
        for devices in [2, 3, 4, 7, 15, 40] {
            let seen: HashSet<_> = (1..=20).flat_map(|round| pairs(round, devices)).collect();
            assert_eq!(seen.len(), devices * (devices - 1) / 2, "{devices}");
        }
        assert!(pairs(1, 1000).len() <= 1000 && pairs(3, 1).is_empty());
    }

    fn noisy(sigma: f64, seed: u64, size: f32) -> Vec<f32> {
        let mut values: Vec<f32> = (0..5000).map(|i| size * ((i % 7) as f32 - 3.0)).collect();
        add_gaussian(&mut values, sigma, &mut stream(seed, Purpose::Noise, 0, 0)).unwrap();
        values
    }

    /// Honest noise is suspected about as often as the p-value says: 200 transcripts of 3 devices
    /// and 4 rounds, whole families at 0.05 each; Binomial(600, 0.05) allows 53 at α = 10⁻⁴.
    #[test]
    fn honest_noise_passes() {
        let mut suspected = 0;
        for seed in 0..200u64 {
            let mut checks = Checks::new();
            for round in 1..=4 {
                let sent: Vec<Vec<f32>> = (0..3)
                    .map(|device| noisy(0.3, seed * 100 + u64::from(round) * 10 + device, 0.0))
                    .collect();
                let heard: Vec<ReceivedUpdate> = (0..)
                    .zip(&sent)
                    .map(|(device, gradient)| ReceivedUpdate { device, gradient, sigma: 0.3 })
                    .collect();
                checks.observe(round, &heard);
            }
            assert_eq!(
                (checks.noise.tests, checks.devices.tests, checks.rounds.tests),
                (12, 24, 18)
            );
            for worst in [checks.noise, checks.devices, checks.rounds] {
                suspected += u32::from(worst.corrected() <= 0.05);
            }
        }
        assert!(suspected <= 53, "{suspected}");
    }

    /// Gradients as large as the noise hide nothing that is grossly wrong, and accuse nobody.
    #[test]
    fn gradients_are_no_noise_and_noise_is_no_gradient() {
        let (a, b) = (noisy(1.0, 1, 0.2), noisy(1.0, 2, 0.2));
        let heard = |sigma| {
            [
                ReceivedUpdate { device: 0, gradient: &a, sigma },
                ReceivedUpdate { device: 1, gradient: &b, sigma },
            ]
        };
        let mut honest = Checks::new();
        honest.observe(1, &heard(1.0));
        assert!(honest.noise.corrected() > 0.01 && honest.devices.corrected() > 0.01);
        let mut quieter = Checks::new();
        quieter.observe(1, &heard(1.5));
        assert!(quieter.noise.corrected() < 1e-9);
        let same = [
            ReceivedUpdate { device: 0, gradient: &a, sigma: 1.0 },
            ReceivedUpdate { device: 7, gradient: &a, sigma: 1.0 },
        ];
        let mut shared = Checks::new();
        shared.observe(1, &same);
        assert!(shared.devices.corrected() < 1e-9 && shared.noise.corrected() > 0.01);
        assert_eq!(shared.devices.place, (1, 0, 7));
        let mut reused = Checks::new();
        reused.observe(1, &same[..1]);
        reused.observe(2, &same[..1]);
        assert!(reused.rounds.corrected() < 1e-9 && reused.devices.tests == 0);
    }
}
