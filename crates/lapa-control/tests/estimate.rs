//! Estimates of L, μ and δ, where the truth is known.

use std::convert::Infallible;

use lapa::config::{Experiment, Override};
use lapa::data::DataName;
use lapa::simulation::Simulation;
use lapa_control::bound::*;
use proptest::prelude::*;

/// Two devices with F_k(w) = ½c_k·Σ_i h_i w_i², weights ¾ and ¼, c = 1 and 5: F has Hessian
/// diag(2h), and δ² = (¾·1 + ¼·25)/2² = 1.75 everywhere.
const HESSIAN: [f64; 3] = [0.5, 2.0, 6.0];

fn point(round: u32, parameters: [f32; 3]) -> Point {
    let gradient = gradient(&parameters);
    let squares: f64 = gradient.iter().map(|g| g * g).sum();
    let loss = gradient.iter().zip(&parameters).map(|(g, &w)| 0.5 * g * f64::from(w)).sum();
    Point { round, parameters: parameters.to_vec(), loss, gradient, local_squares: 1.75 * squares }
}

fn gradient(parameters: &[f32]) -> Vec<f64> {
    parameters.iter().zip(HESSIAN).map(|(&w, h)| 2.0 * h * f64::from(w)).collect()
}

/// Gradient descent from (1, 1, 1) to the minimum.
fn path() -> Vec<Point> {
    let mut w = [1.0f32; 3];
    let mut points = vec![point(0, w)];
    for round in 1..=30 {
        let step = gradient(&w);
        w.iter_mut().zip(step).for_each(|(w, g)| *w -= (0.05 * g) as f32);
        points.push(point(round, w));
    }
    points.push(point(31, [0.0; 3]));
    points
}

#[test]
fn a_quadratic_gives_its_constants() {
    let points = path();
    let at =
        |index: usize| curvature(&points[index], 20, |w| Ok::<_, Infallible>(gradient(w))).unwrap();
    // At the minimum too, where the gradient is 0.
    let curvatures = [at(0), at(15), at(31)];
    for value in curvatures {
        // The parameters are 32-bit: steps of 1e-3 are exact to 1e-4 of themselves.
        assert!((value / 12.0 - 1.0).abs() < 1e-3, "{value}");
    }
    let estimates = Estimates::from_pilot(&points, &curvatures).unwrap();
    assert!((estimates.smoothness() / 12.0 - 1.0).abs() < 1e-3);
    assert!(estimates.secants.most < 12.0 + 1e-9);
    // F* = 0 is on the path. ‖∇F‖²/2F lies between the eigenvalues, and ends at the smallest.
    assert_eq!((estimates.lowest_loss, estimates.lowest_round), (0.0, 31));
    assert!((estimates.initial_gap - 8.5).abs() < 1e-6);
    assert!(estimates.convexity.least >= 1.0 && estimates.convexity.least < 1.01);
    // Its minimum being 0, nothing changes if F* is taken for 0.
    assert_eq!(estimates.convexity_above_zero, estimates.convexity.least);
    // At the start ‖∇F‖²/2F = (1 + 16 + 144)/17, the largest.
    assert!((estimates.convexity.most - 161.0 / 17.0).abs() < 1e-5);
    for delta in [estimates.dissimilarity_squared.least, estimates.dissimilarity_squared.most] {
        assert!((delta - 1.75).abs() < 1e-12);
    }
    let constants = estimates.constants(0.05);
    assert!((constants.dissimilarity.powi(2) - 1.75).abs() < 1e-9);
    constants.check().unwrap();
}

/// Of softmax regression at w = 0 the Hessian is (I/C − 11ᵀ/C²) ⊗ M, with M the weighted mean of
/// x̃x̃ᵀ over samples, x̃ being the pixels and a 1: its largest eigenvalue is that of M over C.
#[test]
fn the_curvature_of_logistic_regression_at_zero_is_that_of_the_data() {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 2, seed = 3, threads = 2 }
        model.name = 'logistic'
        partition.mix = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
    ";
    let experiment = Experiment::from_toml(text, "test", &[] as &[Override]).unwrap();
    let data = lapa::data::load(&DataName::Synthetic, &mut |_| {}).unwrap();
    let federation = Simulation::new(experiment, data).unwrap();
    let weights = [0.4, 0.3, 0.2, 0.1];
    let parameters = vec![0.0f32; federation.network().parameter_count()];
    let study = federation.exact_loss(&parameters, &weights, None).unwrap();
    // All classes are equally likely.
    assert!((study.loss - 10f64.ln()).abs() < 1e-5);
    let point = Point {
        round: 0,
        parameters,
        loss: study.loss,
        gradient: study.gradient,
        local_squares: study.local_squares,
    };
    let found = curvature(&point, 25, |w| {
        federation.exact_loss(w, &weights, None).map(|study| study.gradient)
    });
    let expected = second_moment(&federation, &weights) / 10.0;
    let found = found.unwrap();
    assert!((found / expected - 1.0).abs() < 5e-3, "{found} {expected}");
}

/// The largest eigenvalue of M, by power iterations on the samples themselves.
fn second_moment(federation: &Simulation, weights: &[f64]) -> f64 {
    let train = &federation.data().train;
    let mut rows: Vec<(f64, Vec<f64>)> = Vec::new();
    for (device, weight) in federation.records().dealt().unwrap().devices.iter().zip(weights) {
        for &sample in &device.samples {
            let pixels = train.input(sample as usize).into_iter().map(f64::from);
            rows.push((weight / device.samples.len() as f64, pixels.chain([1.0]).collect()));
        }
    }
    let mut direction = vec![1.0; rows[0].1.len()];
    let mut value = 0.0;
    for _ in 0..200 {
        let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        direction.iter_mut().for_each(|d| *d /= norm);
        let mut next = vec![0.0; direction.len()];
        for (weight, row) in &rows {
            let along: f64 = row.iter().zip(&direction).map(|(x, d)| x * d).sum();
            next.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * along * x);
        }
        value = next.iter().zip(&direction).map(|(n, d)| n * d).sum();
        direction = next;
    }
    value
}

#[test]
fn refusals_say_what_is_missing() {
    let points = path();
    let error = |points: &[Point]| Estimates::from_pilot(points, &[]).unwrap_err();
    assert_eq!(error(&points[..1]), EstimateError::TooFewPoints { given: 1 });
    assert_eq!(error(&[]), EstimateError::TooFewPoints { given: 0 });
    assert_eq!(error(&[points[0].clone(), points[0].clone()]), EstimateError::NoChange);
    let mut odd = points.clone();
    odd[2].gradient.pop();
    assert_eq!(error(&odd), EstimateError::Lengths { round: 2, parameters: 3, gradient: 2 });
    let mut bad = points.clone();
    bad[3].loss = f64::NAN;
    assert!(matches!(error(&bad), EstimateError::NotFinite { round: 3, .. }));
    let mut bad = points;
    bad[4].gradient[1] = f64::INFINITY;
    assert!(matches!(error(&bad), EstimateError::NotFinite { round: 4, .. }));
}

proptest! {
    /// No numbers on a path lead to NaN.
    #[test]
    fn no_path_gives_nan(
        values in proptest::collection::vec(
            (any::<f32>(), prop_oneof![any::<f64>(), -1.0..1.0f64], 0.0..1e3f64), 0..6
        ),
        curvatures in proptest::collection::vec(0.0..1e6f64, 0..3),
    ) {
        let point = |(round, (w, loss, squares)): (u32, (f32, f64, f64))| Point {
            round,
            parameters: vec![w],
            loss,
            gradient: vec![squares.sqrt() / 2.0],
            local_squares: squares,
        };
        let points: Vec<Point> = (0..).zip(values).map(point).collect();
        if let Ok(estimates) = Estimates::from_pilot(&points, &curvatures) {
            for spread in [estimates.secants, estimates.convexity, estimates.dissimilarity_squared] {
                prop_assert!(spread.least >= 0.0 && spread.least <= spread.median);
                prop_assert!(spread.median <= spread.most);
            }
            prop_assert!(estimates.initial_gap >= 0.0 && estimates.smoothness() >= 0.0);
        }
    }
}
