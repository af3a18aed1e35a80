//! Exact losses, which only a simulation can know, against a plain computation.

mod common;

use std::num::NonZeroUsize;

use common::{data, devices, federation};
use lapa::simulation::{ExactLossError, Simulation};

/// Softmax regression in plain 64-bit loops: mean loss and gradient over some samples. Parameters
/// are W, class by class, then b.
fn logistic(parameters: &[f32], samples: &[u32]) -> (f64, Vec<f64>) {
    let data = data();
    let (pixels, classes) = (data.train.shape.len(), data.classes);
    let (mut loss, mut gradient) = (0.0, vec![0.0; parameters.len()]);
    for &sample in samples {
        let image: Vec<f64> =
            data.train.input(sample as usize).into_iter().map(f64::from).collect();
        let label = usize::from(data.train.labels[sample as usize]);
        let logit = |class: usize| {
            let weights = &parameters[class * pixels..(class + 1) * pixels];
            let sum: f64 = weights.iter().zip(&image).map(|(&w, x)| f64::from(w) * x).sum();
            sum + f64::from(parameters[classes * pixels + class])
        };
        let exponentials: Vec<f64> = (0..classes).map(|class| logit(class).exp()).collect();
        let total: f64 = exponentials.iter().sum();
        loss -= (exponentials[label] / total).ln() / samples.len() as f64;
        for class in 0..classes {
            let error = exponentials[class] / total - f64::from(u8::from(class == label));
            let error = error / samples.len() as f64;
            for (g, x) in gradient[class * pixels..].iter_mut().zip(&image) {
                *g += error * x;
            }
            gradient[classes * pixels + class] += error;
        }
    }
    (loss, gradient)
}

fn all(federation: &Simulation) -> Vec<f64> {
    vec![
        1.0 / federation.records().dealt().unwrap().devices.len() as f64;
        federation.records().dealt().unwrap().devices.len()
    ]
}

/// After two rounds: losses, norms, their weighted sums and the gradient. Clipping, noise and
/// batches, which the run has, do not touch it.
#[test]
fn losses_and_gradients_are_those_of_a_plain_loop() {
    let mut federation =
        federation(&["privacy.epsilon=1", "learn.clip=sample", "learn.clip_norm=0.01"]);
    for _ in 0..2 {
        federation.next_round().unwrap();
    }
    let parameters = federation.model().parameters.clone();
    let weights = [0.5, 0.0, 0.2, 0.3];
    let study = federation.exact_loss(&parameters, &weights, None).unwrap();
    let taking: Vec<u32> = study.devices.iter().map(|local| local.device).collect();
    assert_eq!(taking, [0, 2, 3]);
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{a} {b}");
    let (mut loss, mut squares) = (0.0, 0.0);
    let mut gradient = vec![0.0; parameters.len()];
    for local in &study.devices {
        let samples = &federation.records().dealt().unwrap().devices[local.device as usize].samples;
        assert_eq!(local.samples, samples.len());
        let (own_loss, own) = logistic(&parameters, samples);
        let square: f64 = own.iter().map(|g| g * g).sum();
        near(local.loss, own_loss);
        near(local.gradient_norm, square.sqrt());
        let weight = weights[local.device as usize];
        loss += weight * own_loss;
        squares += weight * square;
        gradient.iter_mut().zip(&own).for_each(|(sum, g)| *sum += weight * g);
    }
    near(study.loss, loss);
    near(study.local_squares, squares);
    for (a, b) in study.gradient.iter().zip(&gradient) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

/// A device that uploads its full gradient, unclipped, has the norm that the study finds.
#[test]
fn norms_are_those_of_the_next_uploads() {
    let mut federation = federation(&["learn.batch_fraction=1", "learn.clip=none"]);
    let study =
        federation.exact_loss(&federation.model().parameters, &all(&federation), None).unwrap();
    let record = federation.next_round().unwrap();
    for (local, device) in study.devices.iter().zip(devices(&record)) {
        let norm = device.gradient_norm.unwrap();
        assert!((local.gradient_norm / norm - 1.0).abs() < 1e-5, "{local:?} {norm}");
    }
}

#[test]
fn few_samples_are_taken_evenly() {
    let federation = federation(&[]);
    let parameters = &federation.model().parameters;
    let study =
        federation.exact_loss(parameters, &[0.0, 1.0, 0.0, 0.0], NonZeroUsize::new(7)).unwrap();
    let samples = &federation.records().dealt().unwrap().devices[1].samples;
    let some: Vec<u32> = (0..7).map(|i| samples[i * samples.len() / 7]).collect();
    assert_eq!(study.devices[0].samples, 7);
    assert!((study.loss - logistic(parameters, &some).0).abs() < 1e-5);
}

#[test]
fn threads_do_not_change_a_bit() {
    let study = |threads: &str| {
        let federation = federation(&["model.name=mlp", threads]);
        federation.exact_loss(&federation.model().parameters, &all(&federation), None).unwrap()
    };
    assert_eq!(study("run.threads=1"), study("run.threads=3"));
}

#[test]
fn refusals_name_the_value() {
    let federation = federation(&[]);
    let parameters = &federation.model().parameters;
    let study = |parameters: &[f32], weights: &[f64]| {
        federation.exact_loss(parameters, weights, None).unwrap_err()
    };
    let given = parameters.len();
    assert_eq!(
        study(&parameters[1..], &all(&federation)),
        ExactLossError::Parameters { given: given - 1, expected: given }
    );
    assert_eq!(
        study(parameters, &[0.5, 0.25]),
        ExactLossError::Weights { given: 2, sum: 0.75, devices: 4 }
    );
    for weights in [[0.5, 0.5, 0.5, 0.5], [2.0, -1.0, 0.0, 0.0], [f64::NAN, 1.0, 0.0, 0.0]] {
        assert!(matches!(study(parameters, &weights), ExactLossError::Weights { given: 4, .. }));
    }
    let diverged = vec![f32::NAN; given];
    assert_eq!(study(&diverged, &all(&federation)), ExactLossError::NotFinite { device: 0 });
}

#[test]
fn a_run_that_protects_someone_is_not_studied() {
    let federation = federation(&["privacy.epsilon=1", "run.entropy=os"]);
    let error = federation.exact_loss(&federation.model().parameters, &all(&federation), None);
    assert_eq!(error, Err(ExactLossError::NotASimulation));
}

/// Another seed for what is drawn leaves the first model as it is and changes batches and noise;
/// the run's own seed changes nothing.
#[test]
fn a_run_can_be_drawn_again_from_the_same_start() {
    let rounds = |seed: Option<u64>| {
        let mut federation = federation(&["privacy.epsilon=8"]);
        let start = federation.model().clone();
        if let Some(seed) = seed {
            federation.redraw(seed);
        }
        federation.next_round().unwrap();
        (start, federation.model().clone())
    };
    let (own, same, other) = (rounds(None), rounds(Some(3)), rounds(Some(4)));
    assert_eq!(own, same);
    assert_eq!(own.0, other.0);
    assert_ne!(own.1, other.1);
}
