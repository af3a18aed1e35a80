//! Weights against separately written references (tests/vectors/README.md), and what holds for all.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde::Deserialize;

use super::wasserstein::GroundMetric::{LabelDistance, TotalVariation};
use super::wasserstein::{GroundMetric, default_floor, distance, distances, weights};
use super::{FedAdp, Reference, Rule, fedavg, histogram};
use crate::radio::Threshold;

#[derive(Deserialize)]
struct WassersteinVectors {
    distances: Vec<DistanceCase>,
    weights: Vec<WeightsCase>,
}

#[derive(Deserialize)]
struct DistanceCase {
    kind: String,
    p: Vec<f64>,
    g: Vec<f64>,
    total_variation: f64,
    label_distance: f64,
    scipy: f64,
}

#[derive(Deserialize)]
struct WeightsCase {
    floor: f64,
    samples: Vec<u32>,
    distances: Vec<f64>,
    weights: Vec<f64>,
}

#[derive(Deserialize)]
struct FedAdpVectors {
    cases: Vec<FedAdpCase>,
}

#[derive(Deserialize)]
struct FedAdpCase {
    devices: usize,
    rounds: Vec<FedAdpRound>,
}

#[derive(Deserialize)]
struct FedAdpRound {
    devices: Vec<u32>,
    samples: Vec<u32>,
    gradients: Vec<Vec<f32>>,
    weights: Vec<f64>,
    angles: Vec<f64>,
}

fn wasserstein_vectors() -> WassersteinVectors {
    serde_json::from_str(include_str!("../../tests/vectors/wasserstein.json")).unwrap()
}

#[track_caller]
fn assert_close(ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len());
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() <= tolerance, "{ours:?} is not {theirs:?}");
    }
}

fn views(gradients: &[Vec<f32>]) -> Vec<&[f32]> {
    gradients.iter().map(Vec::as_slice).collect()
}

#[test]
fn distances_are_those_of_a_linear_program_and_of_scipy() {
    let cases = wasserstein_vectors().distances;
    assert!(cases.len() >= 200);
    for DistanceCase { kind, p, g, total_variation, label_distance, scipy } in cases {
        let (p, g) = (histogram::shares(&p), histogram::shares(&g));
        let (ours, label) = (distance(TotalVariation, &p, &g), distance(LabelDistance, &p, &g));
        assert_close(&[ours, label, label], &[total_variation, label_distance, scipy], 1e-12);
        if kind == "equal" {
            assert_eq!((total_variation, label_distance), (0.0, 0.0));
        }
    }
}

/// 1/W is known to 10⁻¹⁶ of its size, and so is the logarithm of a weight.
#[test]
fn wasserstein_weights_are_those_of_sixty_digits() {
    for WeightsCase { floor, samples, distances, weights: theirs } in wasserstein_vectors().weights
    {
        let ours = weights(&samples, &distances, floor);
        assert_close(&ours, &theirs, 1e-14 + 1e-15 / floor);
    }
}

/// Rounds with some devices absent, zero gradients, and a mean of zero; the state goes through JSON
/// after every round.
#[test]
fn fedadp_is_that_of_numpy() {
    let vectors: FedAdpVectors =
        serde_json::from_str(include_str!("../../tests/vectors/fedadp.json")).unwrap();
    for case in vectors.cases {
        let mut fedadp = FedAdp::new(case.devices);
        let mut seen = BTreeSet::new();
        for round in case.rounds {
            let ours = fedadp.by_angles(&round.devices, &round.samples, &views(&round.gradients));
            assert_close(&ours, &round.weights, 1e-12);
            let state = fedadp.state();
            // Devices that never took part have no angle: 0 in the vectors.
            let angle = |k: usize| state[&k.to_string()]["angle"].as_f64().unwrap_or(0.0);
            let angles: Vec<f64> = (0..case.devices).map(angle).collect();
            assert_close(&angles, &round.angles, 1e-12);
            seen.extend(round.devices);
            assert_eq!(state.as_object().unwrap().len(), seen.len());
            let text = state.to_string();
            let mut restored = FedAdp::new(case.devices);
            assert!(restored.restore(serde_json::from_str(&text).unwrap()));
            assert_eq!(restored, fedadp);
            let last = seen.last().map_or(0, |&device| device as usize);
            assert!(!FedAdp::new(last).restore(state));
            fedadp = restored;
        }
    }
}

#[test]
fn fedadp_of_one_device_is_all_its_own() {
    let mut fedadp = FedAdp::new(3);
    assert_eq!(fedadp.by_angles(&[1], &[40], &[&[0.3, -0.7, 0.1]]), [1.0]);
    assert_eq!(fedadp.by_angles(&[], &[], &[]), [0.0; 0]);
}

/// f(0) = 5(1 − e^{−e⁵}) and f(π/2) = 5(1 − e^{−e^{−5(π/2 − 1)}}): the second device is silent.
#[test]
fn fedadp_takes_a_silent_device_for_a_right_angle() {
    let weights = FedAdp::new(2).by_angles(&[0, 1], &[100, 300], &[&[2.0, -1.0], &[0.0, 0.0]]);
    let right = 5.0 * (1.0 - (-(-5.0 * (std::f64::consts::FRAC_PI_2 - 1.0)).exp()).exp());
    let (with, against) = (f64::exp(5.0), 3.0 * right.exp());
    assert_close(&weights, &[with / (with + against), against / (with + against)], 1e-12);
    let silent: &[f32] = &[0.0, 0.0];
    assert_close(
        &FedAdp::new(2).by_angles(&[0, 1], &[100, 300], &[silent, silent]),
        &[0.25, 0.75],
        1e-15,
    );
}

/// Angles to the weighted mean of the others, taken with plain sums. An update of large errors turns the
/// mean of all to itself, but not that of the others.
#[test]
fn leave_one_out_angles_are_those_to_the_mean_of_the_others() {
    let gradients: [&[f32]; 3] = [&[1.0, 0.2, 0.0], &[0.8, -0.1, 0.3], &[-9.0, 7.0, 4.0]];
    let samples = [100_u32, 300, 200];
    let contribution = |device: usize| {
        let others = |at: usize| -> f64 {
            let others = (0..3).filter(|other| *other != device);
            others.map(|o| f64::from(samples[o]) * f64::from(gradients[o][at])).sum()
        };
        let (mut inner, mut rest, mut own) = (0.0, 0.0, 0.0);
        for (at, g) in gradients[device].iter().enumerate() {
            let (g, m) = (f64::from(*g), others(at));
            (inner, rest, own) = (inner + g * m, rest + m * m, own + g * g);
        }
        let angle = (inner / (rest * own).sqrt()).acos();
        5.0 * (1.0 - (-(-5.0 * (angle - 1.0)).exp()).exp())
    };
    let parts = [0, 1, 2].map(|k| f64::from(samples[k]) * contribution(k).exp());
    let expected = parts.map(|part| part / parts.iter().sum::<f64>());
    let by = |reference| FedAdp::new(3).to(reference).by_angles(&[0, 1, 2], &samples, &gradients);
    assert_close(&by(Reference::LeaveOneOut), &expected, 1e-12);
    // Its share of the samples is a third, and here no device agrees with the others.
    assert!(by(Reference::Mean)[2] > 0.9 && expected[2] < 0.34, "{expected:?}");
}

/// A mean of angles of π is not above π, or a run could not be resumed.
#[test]
fn fedadp_fits_after_many_opposite_rounds() {
    let mut fedadp = FedAdp::new(2);
    for _ in 0..500 {
        fedadp.by_angles(&[0, 1], &[1, 3], &[&[-1.0], &[1.0]]);
        assert!(FedAdp::new(2).restore(fedadp.state()), "{fedadp:?}");
    }
}

#[test]
fn fedadp_read_from_a_damaged_file_does_not_fit() {
    for (angle, fits) in [("1.5", true), ("-0.1", false), ("3.2", false), ("1e300", false)] {
        let json = format!(r#"{{"4": {{"angle": {angle}, "rounds": 2}}}}"#);
        let state: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(FedAdp::new(5).restore(state.clone()), fits, "{angle}");
        assert!(!FedAdp::new(4).restore(state), "there is no device 4");
    }
}

#[test]
fn config_names_of_the_ground_metrics() {
    for (metric, name) in
        [(TotalVariation, "\"total-variation\""), (LabelDistance, "\"label-distance\"")]
    {
        assert_eq!(serde_json::to_string(&metric).unwrap(), name);
        assert_eq!(serde_json::from_str::<GroundMetric>(name).unwrap(), metric);
    }
}

/// Fifteen devices of uniform labels, each off by chance. Without a floor one would take most.
#[test]
fn the_floor_keeps_equals_equal() {
    let counts: Vec<Vec<f64>> = (0..15)
        .map(|k| (0..10).map(|l| f64::from(300 + (7 * k * l + k) % (k + 1))).collect())
        .collect();
    let samples = [3000; 15];
    for metric in [TotalVariation, LabelDistance] {
        let w = distances(metric, &counts);
        assert_close(&weights(&samples, &w, default_floor(metric)), &fedavg(&samples), 1e-15);
        let bare = weights(&samples, &w, 1e-6);
        assert!(bare.iter().any(|&weight| weight > 0.8), "{bare:?}");
    }
}

/// Moves mass from the left as it comes, the way that is least when labels are |i − j| apart.
fn greedy_transport(p: &[f64], g: &[f64]) -> f64 {
    let (mut p, mut g) = (p.to_vec(), g.to_vec());
    let (mut from, mut to, mut cost) = (0, 0, 0.0);
    while from < p.len() && to < g.len() {
        let moved = p[from].min(g[to]);
        cost += moved * from.abs_diff(to) as f64;
        p[from] -= moved;
        g[to] -= moved;
        if p[from] <= g[to] {
            from += 1;
        } else {
            to += 1;
        }
    }
    cost
}

/// Label counts, some of them zero or below.
fn counts(labels: usize) -> impl Strategy<Value = Vec<f64>> {
    let count = prop_oneof![Just(0.0), -50.0..500.0, (0u32..300).prop_map(f64::from)];
    proptest::collection::vec(count, labels)
}

/// |D_k| and W_k of some devices.
fn devices() -> impl Strategy<Value = (Vec<u32>, Vec<f64>)> {
    let w = prop_oneof![Just(0.0), 0.0..1e-5, 0.0..1.0, 0.0..9.0];
    proptest::collection::vec((1u32..60_000, w), 1..20)
        .prop_map(|devices| devices.into_iter().unzip())
}

fn floor() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1e-6), Just(0.2), Just(0.5), 1e-6..1.0]
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn distances_are_those_of_slow_twins((p, g) in (1usize..14).prop_flat_map(|n| (counts(n), counts(n)))) {
        let (p, g) = (histogram::shares(&p), histogram::shares(&g));
        prop_assert!((sum(&p) - 1.0).abs() < 1e-12 && p.iter().all(|&share| share >= 0.0));
        let (tv, label) = (distance(TotalVariation, &p, &g), distance(LabelDistance, &p, &g));
        prop_assert!((label - greedy_transport(&p, &g)).abs() < 1e-12);
        let common: f64 = p.iter().zip(&g).map(|(p, g)| p.min(*g)).sum();
        prop_assert!((tv - (1.0 - common)).abs() < 1e-12);
        prop_assert!(label >= tv - 1e-12 && label <= tv * (p.len() - 1) as f64 + 1e-12);
        for (metric, w) in [(TotalVariation, tv), (LabelDistance, label)] {
            prop_assert!((w - distance(metric, &g, &p)).abs() < 1e-12);
            prop_assert_eq!(distance(metric, &p, &p), 0.0);
        }
    }

    #[test]
    fn the_scale_of_counts_does_not_matter(
        all in proptest::collection::vec(counts(10), 1..15),
        scale in 1e-6..1e6,
    ) {
        let scaled: Vec<Vec<f64>> =
            all.iter().map(|counts| counts.iter().map(|count| count * scale).collect()).collect();
        for metric in [TotalVariation, LabelDistance] {
            let (a, b) = (distances(metric, &all), distances(metric, &scaled));
            prop_assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    /// No device has more than e^{1/floor − 1/max W} times its share of the data.
    #[test]
    fn wasserstein_weights_are_bounded_shares((samples, w) in devices(), floor in floor()) {
        let ours = weights(&samples, &w, floor);
        prop_assert!((sum(&ours) - 1.0).abs() < 1e-12);
        let largest = w.iter().copied().fold(floor, f64::max);
        let most = (1.0 / floor - 1.0 / largest).exp() * (1.0 + 1e-9);
        for (weight, share) in ours.iter().zip(fedavg(&samples)) {
            prop_assert!(*weight >= 0.0 && *weight <= share * most);
        }
    }

    #[test]
    fn a_larger_distance_never_has_more_weight(
        (samples, w) in devices(), floor in floor(), more in 0.0..1.0,
    ) {
        let equal = vec![10; w.len()];
        let ours = weights(&equal, &w, floor);
        for (i, j) in (0..w.len()).zip(1..w.len()) {
            prop_assert!((w[i] - w[j]) * (ours[i] - ours[j]) <= 0.0);
        }
        let mut further = w.clone();
        further[0] += more;
        prop_assert!(weights(&samples, &further, floor)[0] <= weights(&samples, &w, floor)[0]);
    }

    /// So that selection needs no renormalization of its own.
    #[test]
    fn weights_of_the_selected_are_those_of_all_renormalized(
        (samples, w) in devices(), sinr in proptest::collection::vec(0.1..20.0, 20),
    ) {
        let chosen = |k: usize| Threshold::SinrDb(5.0).passes(sinr[k], 1.0);
        let selected: Vec<usize> = (0..samples.len()).filter(|&k| chosen(k)).collect();
        let of = |values: &[f64]| -> Vec<f64> { selected.iter().map(|&k| values[k]).collect() };
        let renormalized = |all: Vec<f64>| -> Vec<f64> {
            let kept = of(&all);
            let total = sum(&kept);
            kept.into_iter().map(|weight| weight / total).collect()
        };
        let few: Vec<u32> = selected.iter().map(|&k| samples[k]).collect();
        assert_close(&fedavg(&few), &renormalized(fedavg(&samples)), 1e-12);
        let all = weights(&samples, &w, 0.2);
        assert_close(&weights(&few, &of(&w), 0.2), &renormalized(all), 1e-12);
    }

    /// Weights of FedAdp add up to 1 and depend neither on the gradients' unit nor on the order of
    /// devices.
    #[test]
    fn fedadp_weighs_directions(
        devices in proptest::collection::vec(
            (1u32..5000, proptest::collection::vec(-2f32..2.0, 19)), 2..8,
        ),
    ) {
        let (samples, gradients): (Vec<u32>, Vec<Vec<f32>>) = devices.into_iter().unzip();
        let ids: Vec<u32> = (0..samples.len() as u32).collect();
        let ours = FedAdp::new(ids.len()).by_angles(&ids, &samples, &views(&gradients));
        prop_assert!((sum(&ours) - 1.0).abs() < 1e-12);

        let doubled: Vec<Vec<f32>> =
            gradients.iter().map(|g| g.iter().map(|x| x * 2.0).collect()).collect();
        let same = FedAdp::new(ids.len()).by_angles(&ids, &samples, &views(&doubled));
        prop_assert_eq!(&same, &ours);

        let back = |k: &u32| ids.len() - 1 - *k as usize;
        let turned_samples: Vec<u32> = ids.iter().map(|k| samples[back(k)]).collect();
        let turned: Vec<&[f32]> = ids.iter().map(|k| &*gradients[back(k)]).collect();
        let turned = FedAdp::new(ids.len()).by_angles(&ids, &turned_samples, &turned);
        let expected: Vec<f64> = ids.iter().map(|k| ours[back(k)]).collect();
        assert_close(&turned, &expected, 1e-9);
    }
}
