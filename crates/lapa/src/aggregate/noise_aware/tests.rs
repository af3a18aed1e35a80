//! Noise-aware weights against a slow twin, the conditions of a least, and known limits.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{NoiseAwareConfig, fedavg, global, shares, weights};

/// η of a configuration.
fn usual() -> f64 {
    NoiseAwareConfig::default().noise_weight
}

/// Devices of a round: label distributions, samples, noise; and the target.
#[derive(Debug)]
struct Case {
    distributions: Vec<Vec<f64>>,
    target: Vec<f64>,
    samples: Vec<u32>,
    variances: Vec<f64>,
}

impl Case {
    fn weights(&self, noise_weight: f64) -> Vec<f64> {
        let views: Vec<&[f64]> = self.distributions.iter().map(Vec::as_slice).collect();
        weights(&views, &self.target, &self.samples, &self.variances, noise_weight)
    }

    /// η·s_k²·mean(1/s²)
    fn penalties(&self, noise_weight: f64) -> Vec<f64> {
        let mean = self.variances.iter().map(|v| 1.0 / v).sum::<f64>() / self.samples.len() as f64;
        self.variances.iter().map(|v| noise_weight * v * mean).collect()
    }

    fn of(&self, devices: &[usize]) -> Self {
        Self {
            distributions: devices.iter().map(|&k| self.distributions[k].clone()).collect(),
            target: self.target.clone(),
            samples: devices.iter().map(|&k| self.samples[k]).collect(),
            variances: devices.iter().map(|&k| self.variances[k]).collect(),
        }
    }

    /// Half the derivative of what is minimized, at G.
    fn slope(&self, weights: &[f64], penalties: &[f64]) -> Vec<f64> {
        let labels = 0..self.target.len();
        let off: Vec<f64> = labels
            .map(|l| dot(weights, self.distributions.iter().map(|p| p[l])) - self.target[l])
            .collect();
        (0..weights.len())
            .map(|k| dot(&off, self.distributions[k].iter().copied()) + penalties[k] * weights[k])
            .collect()
    }

    fn value(&self, weights: &[f64], penalties: &[f64]) -> f64 {
        let labels = 0..self.target.len();
        let off =
            labels.map(|l| dot(weights, self.distributions.iter().map(|p| p[l])) - self.target[l]);
        let noise: f64 = weights.iter().zip(penalties).map(|(g, d)| d * g * g).sum();
        off.map(|x| x * x).sum::<f64>() + noise
    }
}

fn dot(a: &[f64], b: impl Iterator<Item = f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gaussian elimination with pivots; None if singular.
fn eliminate(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs()))?;
        rows.swap(i, pivot);
        if rows[i][i].abs() < 1e-14 {
            return None;
        }
        let pivot = rows[i].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    Some((0..n).map(|i| rows[i][n] / rows[i][i]).collect())
}

/// The best over all sets of devices: for each, the stationary point with ΣG = 1 and weight on
/// these alone, if it has no weight below 0.
fn exhaustive(case: &Case, penalties: &[f64]) -> Vec<f64> {
    let count = case.samples.len();
    let mut best: Option<(f64, Vec<f64>)> = None;
    for set in 1u32..1 << count {
        let members: Vec<usize> = (0..count).filter(|k| set >> k & 1 == 1).collect();
        let mut rows: Vec<Vec<f64>> = members
            .iter()
            .map(|&k| {
                let p = &case.distributions[k];
                let product = |q: &Vec<f64>| dot(p, q.iter().copied());
                let mut row: Vec<f64> =
                    members.iter().map(|&j| product(&case.distributions[j])).collect();
                row[members.iter().position(|&j| j == k).unwrap()] += penalties[k];
                row.extend([-1.0, product(&case.target)]);
                row
            })
            .collect();
        let mut sum = vec![1.0; members.len()];
        sum.extend([0.0, 1.0]);
        rows.push(sum);
        let Some(solution) = eliminate(rows) else { continue };
        let mut found = vec![0.0; count];
        members.iter().zip(&solution).for_each(|(&k, &g)| found[k] = g);
        let value = case.value(&found, penalties);
        let better = best.as_ref().is_none_or(|(least, _)| value < *least);
        if better && found.iter().all(|&g| g >= 0.0) {
            best = Some((value, found));
        }
    }
    best.unwrap().1
}

#[track_caller]
fn assert_close(ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len());
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() <= tolerance, "{ours:?} is not {theirs:?}");
    }
}

/// Devices with few labels or many, and noise over six decades, over some labels.
fn cases(devices: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    (1usize..11).prop_flat_map(move |labels| {
        let count = prop_oneof![3 => Just(0.0), 1 => 1.0..500.0];
        let counts = proptest::collection::vec(count, labels);
        let noise = prop_oneof![Just(1.0), 1e-3..1e3];
        proptest::collection::vec((counts, 1u32..6000, noise), devices.clone()).prop_map(|all| {
            let counts: Vec<Vec<f64>> = all.iter().map(|(counts, ..)| counts.clone()).collect();
            Case {
                distributions: counts.iter().map(|counts| shares(counts)).collect(),
                target: global(&counts),
                samples: all.iter().map(|(_, samples, _)| *samples).collect(),
                variances: all.iter().map(|(.., noise)| *noise).collect(),
            }
        })
    })
}

fn noise_weight() -> impl Strategy<Value = f64> {
    prop_oneof![Just(usual()), (-3.0..3.0f64).prop_map(|x| 10f64.powf(x))]
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn weights_are_the_best_of_all_sets(case in cases(1..7), noise_weight in noise_weight()) {
        let theirs = exhaustive(&case, &case.penalties(noise_weight));
        assert_close(&case.weights(noise_weight), &theirs, 1e-8);
    }

    /// Equal slopes where there is weight, none smaller where there is none: with convexity that is
    /// the least, for any number of devices.
    #[test]
    fn no_weight_is_worth_moving(
        case in prop_oneof![cases(1..60), cases(500..501)],
        noise_weight in noise_weight(),
    ) {
        let ours = case.weights(noise_weight);
        prop_assert!((ours.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        prop_assert!(ours.iter().all(|&g| g >= 0.0));
        let penalties = case.penalties(noise_weight);
        let slope = case.slope(&ours, &penalties);
        let level = dot(&slope, ours.iter().copied());
        let scale = 1e-9 * (1.0 + level.abs());
        for (g, slope) in ours.iter().zip(&slope) {
            prop_assert!(*slope >= level - scale && (*g == 0.0 || *slope <= level + scale));
        }
    }

    /// The unit of noise does not matter, nor does the order of devices.
    #[test]
    fn weights_have_no_unit(case in cases(2..20), noise_weight in noise_weight(), unit in 1e-9..1e9) {
        let ours = case.weights(noise_weight);
        let variances = case.variances.iter().map(|v| v * unit).collect();
        assert_close(&Case { variances, ..case.of(&(0..ours.len()).collect::<Vec<_>>()) }
            .weights(noise_weight), &ours, 1e-9);
        let back: Vec<usize> = (0..ours.len()).rev().collect();
        let turned: Vec<f64> = back.iter().map(|&k| ours[k]).collect();
        assert_close(&case.of(&back).weights(noise_weight), &turned, 1e-9);
    }

    #[test]
    fn where_noise_is_all_weights_go_by_its_inverse(case in cases(1..20)) {
        let inverse: Vec<f64> = case.variances.iter().map(|v| 1.0 / v).collect();
        let total: f64 = inverse.iter().sum();
        let limit: Vec<f64> = inverse.iter().map(|x| x / total).collect();
        assert_close(&case.weights(1e6), &limit, 1e-4);
        // With the same labels everywhere there is nothing else, whatever η.
        let distributions = vec![case.target.clone(); limit.len()];
        assert_close(&Case { distributions, ..case }.weights(0.1), &limit, 1e-9);
    }

    /// Remaining devices are weighed by the same problem without the others; weights sum to 1.
    #[test]
    fn selected_devices_share_all_the_weight(
        case in cases(1..7), kept in 1u32..64, noise_weight in noise_weight(),
    ) {
        let kept: Vec<usize> = (0..case.samples.len()).filter(|k| kept >> k & 1 == 1).collect();
        let few = case.of(&kept);
        let ours = few.weights(noise_weight);
        if kept.is_empty() {
            prop_assert!(ours.is_empty());
        } else {
            prop_assert!((ours.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert_close(&ours, &exhaustive(&few, &few.penalties(noise_weight)), 1e-8);
        }
    }
}

fn three_devices(variances: [f64; 3]) -> Case {
    let counts = [vec![30.0, 10.0], vec![0.0, 20.0], vec![45.0, 0.0]];
    Case {
        distributions: counts.iter().map(|counts| shares(counts)).collect(),
        target: global(&counts),
        samples: vec![40, 20, 45],
        variances: variances.to_vec(),
    }
}

/// Σ(|D_k|/|D|)·p_k = u, and ΣG_k²/|D_k| is least at G_k = |D_k|/|D|.
#[test]
fn without_noise_weights_are_those_of_fedavg() {
    for noise_weight in [1e-3, usual(), 1e3] {
        let case = three_devices([0.0; 3]);
        assert_close(&case.weights(noise_weight), &fedavg(&case.samples), 1e-12);
    }
}

#[test]
fn the_edges_have_weights() {
    assert_eq!(weights(&[], &[], &[], &[], 1.0), [0.0; 0]);
    assert_eq!(three_devices([1.0, 2.0, 3.0]).of(&[1]).weights(0.1), [1.0]);
    // One device without noise, one that is lost, all that are lost.
    for variances in [[0.0, 1.0, 1.0], [1.0, f64::INFINITY, 1.0], [f64::INFINITY; 3]] {
        let ours = three_devices(variances).weights(usual());
        assert!((ours.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{ours:?}");
        assert!(ours.iter().all(|&g| (0.0..=1.0).contains(&g)), "{ours:?}");
    }
    assert_eq!(three_devices([1.0, f64::INFINITY, 1.0]).weights(1.0)[1], 0.0);
    assert!(three_devices([0.0, 1.0, 1.0]).weights(1.0)[0] > 0.99);
}
