//! Every layer against PyTorch: `tests/vectors/layers.json` and `configured_layers.json`.

use serde::Deserialize;
use std::collections::HashMap;

use super::*;
use crate::model::kernels::PADDING;
use crate::model::layer::{Layer, Shape};
use crate::model::loss::cross_entropy_gradient;
use crate::model::network::Kernels;
use crate::model::plan::Plan;
use crate::model::sample_clip::BLOCK;

#[derive(Deserialize)]
struct Tensor {
    shape: Vec<usize>,
    data: Vec<f32>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    input: Tensor,
    output: Tensor,
    upstream: Tensor,
    d_input: Tensor,
    params: HashMap<String, Tensor>,
    d_params: HashMap<String, Tensor>,
    kernel: Option<usize>,
    groups: Option<usize>,
    layer: Option<Layer>,
}

#[derive(Deserialize)]
struct LossCase {
    name: String,
    input: Tensor,
    labels: Vec<usize>,
    loss: f32,
    d_input: Tensor,
}

fn vectors() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../tests/vectors/layers.json")).unwrap()
}

fn op_of(layer: Layer, input: Shape, kernels: Kernels) -> Box<dyn Op> {
    Plan::new(input, kernels).path("", &[layer], input, (0, 0)).unwrap().0.remove(0).op
}

fn flat(tensors: &HashMap<String, Tensor>) -> Vec<f32> {
    ["weight", "bias"].iter().filter_map(|k| tensors.get(*k)).flat_map(|t| t.data.clone()).collect()
}

fn assert_close(what: &str, ours: &[f32], theirs: &[f32]) {
    let scale = theirs.iter().fold(1e-3f32, |m, v| m.max(v.abs()));
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= 2e-5 * scale, "{what}[{i}]: {a}, PyTorch has {b}");
    }
}

/// The cases of a layer of `layers.json`.
fn check(layer: &str, make: impl Fn(&Case) -> Layer) {
    let cases: Vec<Case> = serde_json::from_value(vectors()[layer].clone()).unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        check_case(&format!("{layer}/{}", case.name), &case, &make(&case));
    }
}

fn check_case(name: &str, case: &Case, layer: &Layer) {
    let shape = match case.input.shape[1..] {
        [channels, rows, cols] => Shape::new(channels, rows, cols),
        ref rest => Shape::new(rest.iter().product(), 1, 1),
    };
    for kernels in [Kernels::Reference, Kernels::Fast] {
        check_op(&format!("{name}, {kernels:?}"), case, &*op_of(layer.clone(), shape, kernels));
        if !Layer::any(std::slice::from_ref(layer), |layer| *layer == Layer::BatchNorm) {
            check_samples(name, case, &*op_of(layer.clone(), shape, kernels));
        }
    }
}

/// Inputs or gradients of a case, with the room behind them that kernels may read.
fn padded(tensor: &Tensor) -> Vec<f32> {
    [&tensor.data[..], &[f32::NAN; PADDING]].concat()
}

/// Forward, input gradient and parameter gradient of one case.
fn check_op(name: &str, case: &Case, op: &dyn Op) {
    let n = case.input.shape[0];
    let parameters = flat(&case.params);
    assert_eq!(parameters.len(), op.parameter_count(), "{name}");
    let mut saved = Saved::default();
    let (x, dy) = (padded(&case.input), padded(&case.upstream));
    let mut y = vec![f32::NAN; case.output.data.len() + PADDING];
    op.forward(&parameters, n, &x, &mut y, &mut saved);
    assert_close(&format!("{name}: output"), &y, &case.output.data);

    let pass = Pass { n, x: &x, y: &y, dy: &dy };
    let mut gradient = vec![f32::NAN; parameters.len()];
    op.gradient(&parameters, pass, &mut saved, &mut gradient);
    assert_close(&format!("{name}: d_params"), &gradient, &flat(&case.d_params));
    let mut dx = vec![f32::NAN; case.input.data.len() + PADDING];
    op.backward(&parameters, pass, &mut dx, &mut saved);
    assert_close(&format!("{name}: d_input"), &dx, &case.d_input.data);
}

/// The sum of the gradients of single samples, unclipped, is the gradient of the batch; and the
/// squared norm of one is that of its gradient.
fn check_samples(name: &str, case: &Case, op: &dyn Op) {
    let n = case.input.shape[0];
    let parameters = flat(&case.params);
    let mut saved = Saved::default();
    let (x, dy) = (padded(&case.input), padded(&case.upstream));
    let mut y = vec![f32::NAN; case.output.data.len() + PADDING];
    op.forward(&parameters, n, &x, &mut y, &mut saved);
    let pass = Pass { n, x: &x, y: &y, dy: &dy };
    op.backward_inside(&parameters, pass, &mut saved);
    let mut dx = vec![f32::NAN; case.input.data.len() + PADDING];
    op.backward(&parameters, pass, &mut dx, &mut saved);
    assert_close(&format!("{name}: d_input of samples"), &dx, &case.d_input.data);
    if parameters.is_empty() {
        return;
    }
    let mut total = vec![0.0; parameters.len()];
    let mut sum = vec![f64::NAN; parameters.len()];
    for i in 0..n {
        op.begin_clipped(&mut saved);
        let norm = op.sample_norm_squared(pass, i, &mut saved);
        op.add_sample(pass, i, 1.0, &mut saved);
        op.end_block(&mut saved);
        op.finish_clipped(&saved, &mut sum);
        let squares: f64 = sum.iter().map(|g| g * g).sum();
        assert!(norm > 0.0 && (norm / squares - 1.0).abs() < 1e-4, "{name}: {norm} ≠ {squares}");
        total.iter_mut().zip(&sum).for_each(|(total, &g)| *total += g as f32);
    }
    assert_close(&format!("{name}: sum of samples"), &total, &flat(&case.d_params));
}

/// Layers as a configuration writes them.
#[test]
fn configured_layers_match_pytorch() {
    let vectors = include_str!("../../../tests/vectors/configured_layers.json");
    let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
    let cases: Vec<Case> = serde_json::from_value(vectors["cases"].clone()).unwrap();
    for case in cases {
        let layer = case.layer.clone().unwrap();
        check_case(&format!("{}/{}", layer.word(), case.name), &case, &layer);
    }
}

#[test]
fn conv() {
    check("conv", |case| Layer::conv(case.output.shape[1], case.kernel.unwrap()));
}

#[test]
fn max_pool() {
    check("max_pool", |_| Layer::max_pool(2));
}

#[test]
fn relu() {
    check("relu", |_| Layer::Relu);
}

#[test]
fn tanh() {
    check("tanh", |_| Layer::Tanh);
}

#[test]
fn batch_norm() {
    check("batch_norm", |_| Layer::BatchNorm);
}

#[test]
fn group_norm() {
    check("group_norm", |case| Layer::GroupNorm { groups: case.groups.unwrap() });
}

#[test]
fn linear() {
    check("linear", |case| Layer::Linear { outputs: case.output.shape[1] });
}

/// The sum of the gradients of `dy.len()` samples that have the input `x` in common and the
/// gradient `dy[i]` in each output.
fn sum(op: &dyn Op, x: &[f32], dy: &[f32]) -> Vec<f64> {
    let (n, outputs) = (dy.len(), op.output_len());
    let mut saved = Saved::default();
    let x: Vec<f32> = x.iter().copied().cycle().take(n * x.len() + PADDING).collect();
    let dy: Vec<f32> = dy.iter().flat_map(|&d| std::iter::repeat_n(d, outputs)).collect();
    let mut y = vec![0.0; n * outputs];
    let parameters: Vec<f32> = (0..op.parameter_count()).map(|j| 1.0 - (j % 2) as f32).collect();
    op.forward(&parameters, n, &x, &mut y, &mut saved);
    let pass = Pass { n, x: &x, y: &y, dy: &dy };
    op.backward_inside(&parameters, pass, &mut saved);
    op.begin_clipped(&mut saved);
    for first in (0..n).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(n);
        for i in block {
            op.sample_norm_squared(pass, i, &mut saved);
            op.add_sample(pass, i, 1.0, &mut saved);
        }
        op.end_block(&mut saved);
    }
    let mut sum = vec![f64::NAN; op.parameter_count()];
    op.finish_clipped(&saved, &mut sum);
    sum
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

/// Records of ±1 bring each coordinate to a power of two, then small ones of 0.6 units of the last
/// place follow: in f32 each counts as one unit below the power and as none above it, and one
/// record decides which. Every kind of layer with parameters sums so that it does not matter.
#[test]
fn one_record_moves_the_sum_of_a_layer_by_no_more_than_its_own_gradient() {
    const RECORDS: usize = 40_000;
    const BELOW: usize = 1 << 14;
    let input = Shape::new(2, 6, 6);
    let standardized =
        Layer::Conv { channels: 1, kernel: 5, stride: 1, padding: 0, standardized: true };
    let layers = [
        Layer::Linear { outputs: 1 },
        Layer::conv(1, 5),
        standardized,
        Layer::GroupNorm { groups: 1 },
        Layer::Residual { layers: vec![Layer::conv(1, 5)] },
    ];
    let both = [Kernels::Reference, Kernels::Fast];
    let mut ops: Vec<Box<dyn Op>> = layers
        .into_iter()
        .flat_map(|layer| both.map(|kernels| op_of(layer.clone(), input, kernels)))
        .collect();
    #[cfg(target_arch = "x86_64")]
    if let Some(op) = ConvPoolRelu::new(input, 1, 5) {
        ops.push(Box::new(op));
    }
    let x: Vec<f32> = (0..72).map(|i| if i % 2 == 0 { 1.0 } else { 0.5 }).collect();
    for op in ops {
        let one = sum(&*op, &x, &[1.0]);
        let alone = length(one.iter().copied());
        // The largest coordinate crosses a power of two where the sum of the large records does.
        let scale = one.iter().fold(0.0f64, |most, g| most.max(g.abs())) as f32;
        let small = -0.6 / 1024.0;
        let records = |large: usize| -> Vec<f32> {
            let value = |i| if i < large { 1.0 / scale } else { small / scale };
            (0..RECORDS).map(value).collect()
        };
        let naive = |large| records(large).iter().fold(0f32, |sum, &g| sum + g * scale);
        assert!((naive(BELOW + 1) - naive(BELOW)).abs() > 10.0, "these records drift in f32");
        let moved = sum(&*op, &x, &records(BELOW + 1));
        let moved: Vec<f64> =
            moved.iter().zip(sum(&*op, &x, &records(BELOW))).map(|(a, b)| a - b).collect();
        let expected = alone / f64::from(scale) * (1.0 + 0.6 / 1024.0);
        let moved = length(moved.into_iter());
        assert!((moved / expected - 1.0).abs() < 1.0 / 1024.0, "{moved} instead of {expected}");
    }
}

#[test]
fn cross_entropy() {
    let cases: Vec<LossCase> = serde_json::from_value(vectors()["cross_entropy"].clone()).unwrap();
    for case in cases {
        let [n, classes] = case.input.shape[..] else { panic!("{}: shape", case.name) };
        let mut delta = vec![0.0; n * classes];
        let rows = case.input.data.chunks_exact(classes).zip(delta.chunks_exact_mut(classes));
        let sum: f32 = rows
            .zip(&case.labels)
            .map(|((x, d), &label)| cross_entropy_gradient(x, label, 1.0 / n as f32, d))
            .sum();
        assert_close(&case.name, &[sum / n as f32], &[case.loss]);
        assert_close(&case.name, &delta, &case.d_input.data);
    }
}

#[test]
fn a_not_a_number_passes_through_relu_and_reaches_the_loss() {
    let mut y = [0.0; 2];
    let mut saved = Saved::default();
    Relu { len: 2 }.forward(&[], 1, &[f32::NAN, -1.0], &mut y, &mut saved);
    assert!(y[0].is_nan() && y[1] == 0.0);
}
