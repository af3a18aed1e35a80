//! Networks as functions of vectors: derivatives against finite differences.

use std::sync::Arc;

use lapa::model::{Function, Layer, Network, Shape};
use lapa::seed::{Purpose, Stream, stream};
use rand::RngExt;

fn uniform(len: usize, rng: &mut Stream) -> Vec<f32> {
    (0..len).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect()
}

/// 5 → 7 → 4 → 3, relu and tanh.
fn function() -> (Function, Vec<f32>, Stream) {
    let mut rng = stream(3, Purpose::ModelInit, 0, 0);
    let layers = [
        Layer::Linear { outputs: 7 },
        Layer::Relu,
        Layer::Linear { outputs: 4 },
        Layer::Tanh,
        Layer::Linear { outputs: 3 },
    ];
    let network = Network::new(Shape::new(5, 1, 1), &layers).unwrap();
    let parameters = network.initial_parameters(&mut rng);
    (Function::new(Arc::new(network)), parameters, rng)
}

/// Σ d·y over a batch of 6.
fn weighted(function: &mut Function, parameters: &[f32], inputs: &[f32], d: &[f32]) -> f64 {
    let outputs = function.forward(parameters, inputs, 6);
    outputs.iter().zip(d).map(|(&y, &d)| f64::from(y) * f64::from(d)).sum()
}

/// The derivative in each of `values` by central differences; kinks of relu aside, their error at
/// this step is below 1e-3 in single precision.
fn differences(values: &[f32], mut f: impl FnMut(&[f32]) -> f64) -> Vec<f64> {
    const STEP: f32 = 1e-2;
    let mut values = values.to_vec();
    (0..values.len())
        .map(|i| {
            let middle = values[i];
            values[i] = middle + STEP;
            let above = f(&values);
            values[i] = middle - STEP;
            let below = f(&values);
            values[i] = middle;
            (above - below) / (2.0 * f64::from(STEP))
        })
        .collect()
}

fn assert_close(ours: &[f32], expected: &[f64]) {
    assert_eq!(ours.len(), expected.len());
    // At most one relu in a hundred changes sides within the step.
    let far =
        ours.iter().zip(expected).filter(|(a, b)| (f64::from(**a) - **b).abs() > 2e-3).count();
    assert!(100 * far <= ours.len().max(100), "{far} of {} derivatives differ", ours.len());
}

#[test]
fn derivatives_agree_with_finite_differences() {
    let (mut function, parameters, mut rng) = function();
    let (inputs, d) = (uniform(30, &mut rng), uniform(18, &mut rng));
    let mut gradient = vec![0.0; parameters.len()];
    weighted(&mut function, &parameters, &inputs, &d);
    function.gradient(&parameters, &d, &mut gradient);
    let in_inputs = function.input_gradient(&parameters, &d).to_vec();
    let in_parameters = differences(&parameters, |p| weighted(&mut function, p, &inputs, &d));
    assert_close(&gradient, &in_parameters);
    let expected = differences(&inputs, |x| weighted(&mut function, &parameters, x, &d));
    assert_close(&in_inputs, &expected);
}

/// A batch is no more than its vectors, whatever was computed before.
#[test]
fn vectors_do_not_see_their_batch() {
    let (mut function, parameters, mut rng) = function();
    let inputs = uniform(30, &mut rng);
    let together = function.forward(&parameters, &inputs, 6).to_vec();
    for (x, y) in inputs.chunks_exact(5).zip(together.chunks_exact(3)) {
        let alone = function.forward(&parameters, x, 1);
        assert!(alone.iter().zip(y).all(|(a, b)| (a - b).abs() < 1e-6), "{alone:?} {y:?}");
    }
}
