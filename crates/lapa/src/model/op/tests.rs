//! Every layer against PyTorch: `tests/vectors/layers.json`.

use serde::Deserialize;
use std::collections::HashMap;

use super::*;
use crate::model::kernels::PADDING;
use crate::model::layer::Shape;
use crate::model::loss::cross_entropy_gradient;
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

fn flat(tensors: &HashMap<String, Tensor>) -> Vec<f32> {
    ["weight", "bias"].iter().filter_map(|k| tensors.get(*k)).flat_map(|t| t.data.clone()).collect()
}

fn assert_close(what: &str, ours: &[f32], theirs: &[f32]) {
    let scale = theirs.iter().fold(1e-3f32, |m, v| m.max(v.abs()));
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= 2e-5 * scale, "{what}[{i}]: {a}, PyTorch has {b}");
    }
}

/// Forward, input gradient and parameter gradient of one case; parameter gradients per sample too.
fn check(layer: &str, make: impl Fn(&Case, Shape) -> Box<dyn Op>) {
    let cases: Vec<Case> = serde_json::from_value(vectors()[layer].clone()).unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let name = format!("{layer}/{}", case.name);
        let [n, rest @ ..] = &case.input.shape[..] else { panic!("{name}: no shape") };
        let shape = match *rest {
            [channels, rows, cols] => Shape::new(channels, rows, cols),
            _ => Shape::new(rest.iter().product(), 1, 1),
        };
        let op = make(&case, shape);
        let parameters = flat(&case.params);
        assert_eq!(parameters.len(), op.parameter_count(), "{name}");
        let mut saved = Saved::default();
        let mut y = vec![f32::NAN; case.output.data.len()];
        op.forward(&parameters, *n, &case.input.data, &mut y, &mut saved);
        assert_close(&format!("{name}: output"), &y, &case.output.data);

        let pass = Pass { n: *n, x: &case.input.data, y: &y, dy: &case.upstream.data };
        let mut gradient = vec![f32::NAN; parameters.len()];
        op.gradient(pass, &mut saved, &mut gradient);
        assert_close(&format!("{name}: d_params"), &gradient, &flat(&case.d_params));
        let mut dx = vec![f32::NAN; case.input.data.len()];
        op.backward(&parameters, pass, &mut dx, &mut saved);
        assert_close(&format!("{name}: d_input"), &dx, &case.d_input.data);

        // Summing unclipped samples one by one must give the batch gradient (no batch norm).
        if layer != "batch_norm" && !parameters.is_empty() {
            op.begin_clipped(&mut saved);
            for i in 0..*n {
                let norm = op.sample_norm_squared(pass, i, &mut saved);
                assert!(norm > 0.0);
                op.add_sample(pass, i, 1.0, &mut saved);
            }
            op.end_block(&mut saved);
            let mut sum = vec![f64::NAN; parameters.len()];
            op.finish_clipped(&saved, &mut sum);
            let sum: Vec<f32> = sum.iter().map(|&g| g as f32).collect();
            assert_close(&format!("{name}: sum of samples"), &sum, &flat(&case.d_params));
        }
    }
}

#[test]
fn conv() {
    check("conv", |case, input| {
        let output = Shape::new(case.output.shape[1], case.output.shape[2], case.output.shape[3]);
        Box::new(Conv { input, output, kernel: case.kernel.unwrap() })
    });
}

#[test]
fn max_pool() {
    check("max_pool", |_, input| Box::new(MaxPool { input }));
}

#[test]
fn relu() {
    check("relu", |_, shape| Box::new(Relu { len: shape.len() }));
}

#[test]
fn tanh() {
    check("tanh", |_, shape| Box::new(Tanh { len: shape.len() }));
}

#[test]
fn batch_norm() {
    check("batch_norm", |_, shape| Box::new(BatchNorm { shape }));
}

#[test]
fn group_norm() {
    check("group_norm", |case, shape| Box::new(GroupNorm { shape, groups: case.groups.unwrap() }));
}

#[test]
fn linear() {
    check("linear", |case, shape| {
        Box::new(Linear { inputs: shape.len(), outputs: case.output.shape[1] })
    });
}

/// The sum of the gradients of `dy.len()` samples that have the input `x` in common and the
/// gradient `dy[i]` in each output.
fn sum(op: &dyn Op, x: &[f32], dy: &[f32]) -> Vec<f64> {
    let (n, outputs) = (dy.len(), op.output_len());
    let mut saved = Saved::default();
    let x: Vec<f32> = x.iter().copied().cycle().take(n * x.len() + PADDING).collect();
    let dy: Vec<f32> = dy.iter().flat_map(|&d| std::iter::repeat_n(d, outputs)).collect();
    let mut y = vec![0.0; n * outputs];
    op.forward(&vec![1.0; op.parameter_count()], n, &x, &mut y, &mut saved);
    let pass = Pass { n, x: &x, y: &y, dy: &dy };
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
    let mut ops: Vec<Box<dyn Op>> = vec![
        Box::new(Linear { inputs: 72, outputs: 1 }),
        Box::new(Conv { input, output: Shape::new(1, 2, 2), kernel: 5 }),
        Box::new(GroupNorm { shape: input, groups: 1 }),
    ];
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
