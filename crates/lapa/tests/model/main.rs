//! Whole models: against PyTorch, finite differences, the im2col twin, and sample by sample.

mod evaluation;
mod layers;

use std::sync::Arc;

use lapa::aggregate::{GlobalDelta, GlobalModel};
use lapa::config::Norm;
use lapa::data::Split;
use lapa::model::{
    BLOCK, Batch, Blocks, Clipped, Kernels, Layer, Network, SampleClip, Shape, Worker, cifar_cnn,
    cnn, cnn_tanh, logistic, mlp, resnet8,
};
use lapa::seed::{Purpose, stream};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::RngExt;
use serde_json::Value;

fn vector(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The hash of tests/vectors/README.md.
fn unit(n: u32) -> f64 {
    let mut h = n.wrapping_mul(2_654_435_761);
    h ^= h >> 15;
    h = h.wrapping_mul(2_246_822_519);
    h ^= h >> 13;
    f64::from(h >> 12) / f64::from(1 << 20)
}

/// Images and labels of a vector file.
fn problem(vector: &Value) -> Split {
    let (n, seed) = (vector["batch"].as_u64().unwrap(), vector["image_seed"].as_u64().unwrap());
    let mut images = Vec::new();
    for i in 0..n as u32 * 784 {
        let (row, col) = (i % 784 / 28, i % 28);
        let u = unit(seed as u32 + i);
        let inside = (5..23).contains(&row) && (5..23).contains(&col) && u >= 0.25;
        images.push(if inside { (256.0 * u) as u8 } else { 0 });
    }
    let row_14 = floats(&vector["image_row_14"]);
    for (byte, value) in images[14 * 28..][..28].iter().zip(row_14) {
        assert!((f64::from(*byte) / 255.0 - value).abs() < 1e-7, "the image formula differs");
    }
    let labels = vector["labels"].as_array().unwrap();
    let labels = labels.iter().map(|v| v.as_u64().unwrap() as u8).collect();
    Split { values: images.into(), labels, shape: Shape::new(1, 28, 28) }
}

fn parameters(vector: &Value) -> Vec<f32> {
    let mut parameters = Vec::new();
    for tensor in vector["tensors"].as_array().unwrap() {
        let count: f64 = floats(&tensor["shape"]).iter().product();
        assert_eq!(tensor["first"].as_u64().unwrap() as usize, parameters.len());
        let (scale, shift) = (tensor["scale"].as_f64().unwrap(), tensor["shift"].as_f64().unwrap());
        for _ in 0..count as usize {
            let value = shift + scale * (unit(parameters.len() as u32) - 0.5);
            parameters.push(value as f32);
        }
    }
    parameters
}

fn length(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt()
}

fn assert_gradient(name: &str, ours: &[f32], vector: &Value) {
    let expected = &vector["gradient"];
    let size = expected["norm"].as_f64().unwrap();
    assert!((length(ours) - size).abs() < 1e-5 * size, "{name}: norm {} ≠ {size}", length(ours));
    let stride = expected["stride"].as_u64().unwrap() as usize;
    for (k, theirs) in floats(&expected["data"]).into_iter().enumerate() {
        let ours = f64::from(ours[k * stride]);
        assert!(
            (ours - theirs).abs() < 2e-5 * (size / 20.0 + theirs.abs()),
            "{name}: entry {} is {ours}, PyTorch has {theirs}",
            k * stride
        );
    }
}

fn models() -> [(&'static str, Vec<Layer>); 8] {
    [
        ("cnn_batch", cnn(Norm::Batch, 10)),
        ("cnn_group", cnn(Norm::Group, 10)),
        ("cnn_none", cnn(Norm::None, 10)),
        ("cnn_tanh", cnn_tanh(Norm::Group, 10)),
        ("cifar_cnn", cifar_cnn(10)),
        ("resnet8", resnet8(Norm::Group, 10)),
        ("mlp", mlp(10)),
        ("logistic", logistic(10)),
    ]
}

fn all(split: &Split) -> Vec<u32> {
    (0..split.len() as u32).collect()
}

fn worker(layers: &[Layer], kernels: Kernels) -> (Arc<Network>, Worker) {
    let network = Network::with_kernels(Shape::new(1, 28, 28), layers, kernels).unwrap();
    let network = Arc::new(network);
    (network.clone(), Worker::new(network))
}

#[test]
fn whole_models_match_pytorch() {
    for (name, layers) in models() {
        let vector = vector(name);
        let (data, parameters) = (problem(&vector), parameters(&vector));
        for kernels in [Kernels::Fast, Kernels::Reference] {
            let (network, mut worker) = worker(&layers, kernels);
            assert_eq!(network.parameter_count() as u64, vector["parameters"].as_u64().unwrap());
            let mut gradient = vec![f32::NAN; network.parameter_count()];
            let batch = Batch { data: &data, samples: &all(&data) };
            let loss = f64::from(worker.gradient(&parameters, batch, &mut gradient));
            let expected = vector["loss"].as_f64().unwrap();
            assert!((loss - expected).abs() < 1e-5 * expected, "{name}: loss {loss} ≠ {expected}");
            assert_gradient(&format!("{name} {kernels:?}"), &gradient, &vector);
        }
    }
}

/// The mean of the clipped gradients of a batch over `n`, and its report.
fn clipped(
    worker: &mut Worker,
    parameters: &[f32],
    batch: Batch<'_>,
    norm: f64,
    n: usize,
) -> (Clipped, Vec<f32>) {
    let mut gradient = vec![f64::NAN; parameters.len()];
    let clip = SampleClip { norm, denominator: n as f64, blocks: Blocks::Each(BLOCK) };
    let report = worker.clipped_gradient(parameters, batch, clip, &mut gradient);
    (report, gradient.iter().map(|&g| g as f32).collect())
}

#[test]
fn per_sample_clipping_matches_pytorch() {
    let models = [
        ("cnn", cnn(Norm::Group, 10)),
        ("cifar_cnn", cifar_cnn(10)),
        ("resnet8", resnet8(Norm::Group, 10)),
    ];
    for (name, layers) in models {
        let vector = vector(&format!("{name}_per_sample"));
        let (data, parameters) = (problem(&vector), parameters(&vector));
        let clip_norm = vector["clip_norm"].as_f64().unwrap();
        let norms = floats(&vector["sample_norms"]);
        for kernels in [Kernels::Fast, Kernels::Reference] {
            let (network, mut worker) = worker(&layers, kernels);
            let samples = all(&data);
            let batch = Batch { data: &data, samples: &samples };
            // PyTorch's leave no room for rounding.
            let widened = clip_norm / (1.0 - 1.0 / 1024.0);
            let (report, gradient) =
                clipped(&mut worker, &parameters, batch, widened, samples.len());
            assert_eq!(gradient.len(), network.parameter_count());
            assert_eq!(report.clipped, norms.iter().filter(|&&norm| norm > widened).count());
            assert_gradient(&format!("{name} per sample {kernels:?}"), &gradient, &vector);
        }
    }
}

#[test]
fn server_momentum_matches_pytorch() {
    let vector = vector("momentum");
    let start: Vec<f32> = floats(&vector["start"]).iter().map(|&v| v as f32).collect();
    let mut model = GlobalModel {
        velocity: vec![0.0; start.len()],
        parameters: start,
        average: Vec::new(),
        statistics: Vec::new(),
    };
    let (rate, momentum) =
        (vector["learning_rate"].as_f64().unwrap(), vector["momentum"].as_f64().unwrap());
    for step in vector["steps"].as_array().unwrap() {
        let gradient = floats(&step["gradient"]).iter().map(|&v| v as f32).collect();
        model.apply(&GlobalDelta { gradient }, rate, momentum, 0.0);
        for (ours, theirs) in [(&model.parameters, "weights"), (&model.velocity, "velocity")] {
            for (a, b) in ours.iter().zip(floats(&step[theirs])) {
                assert!((f64::from(*a) - b).abs() < 1e-6 * (1.0 + b.abs()), "{theirs}: {a} ≠ {b}");
            }
        }
    }
}

/// Random images with exact zeros, as real ones have.
fn random_split(n: usize, shape: Shape, classes: u8, seed: u64) -> Split {
    let mut rng = stream(seed, Purpose::SyntheticData, 0, 0);
    let pixel = |rng: &mut lapa::seed::Stream| match rng.random::<f32>() < 0.5 {
        true => 0,
        false => rng.random::<u8>(),
    };
    let images = (0..n * shape.len()).map(|_| pixel(&mut rng)).collect::<Vec<u8>>();
    let labels = (0..n).map(|_| rng.random_range(0..classes)).collect();
    Split { values: images.into(), labels, shape }
}

#[test]
fn gradients_match_finite_differences() {
    // Smooth layers only, since a step across a kink of relu or pooling has no slope.
    let conv = |channels, stride, standardized| Layer::Conv {
        channels,
        kernel: 3,
        stride,
        padding: 1,
        standardized,
    };
    let layers = [
        conv(4, 1, true),
        Layer::GroupNorm { groups: 2 },
        Layer::Gelu,
        Layer::Residual { layers: vec![conv(4, 1, false), Layer::Tanh] },
        Layer::AveragePool { kernel: 3, stride: Some(2) },
        Layer::Residual { layers: vec![conv(6, 2, false), Layer::Tanh, conv(6, 1, false)] },
        Layer::GroupNorm { groups: 3 },
        Layer::GlobalAveragePool,
        Layer::Linear { outputs: 6 },
        Layer::Tanh,
        Layer::Linear { outputs: 4 },
    ];
    let shape = Shape::new(2, 10, 9);
    let data = random_split(5, shape, 4, 3);
    let network = Arc::new(Network::new(shape, &layers).unwrap());
    let mut worker = Worker::new(network.clone());
    let mut parameters = network.initial_parameters(&mut stream(5, Purpose::ModelInit, 0, 0));
    let samples = all(&data);
    let batch = Batch { data: &data, samples: &samples };
    let mut gradient = vec![0.0; parameters.len()];
    worker.gradient(&parameters, batch, &mut gradient);
    let mut loss_at = |parameters: &[f32]| worker.evaluate(parameters, &[], batch).loss_sum / 5.0;
    for j in (0..parameters.len()).step_by(3) {
        let original = parameters[j];
        let h = 2e-3;
        parameters[j] = original + h;
        let above = loss_at(&parameters);
        parameters[j] = original - h;
        let below = loss_at(&parameters);
        parameters[j] = original;
        let slope = (above - below) / (2.0 * f64::from(h));
        let ours = f64::from(gradient[j]);
        assert!((slope - ours).abs() < 2e-3 * (0.1 + slope.abs()), "{j}: {ours}, slope {slope}");
    }
}

#[test]
fn floats_train_as_the_bytes_that_they_stand_for() {
    let bytes = random_split(5, Shape::new(3, 12, 12), 4, 8);
    let inputs = (0..bytes.len()).flat_map(|i| bytes.input(i)).collect::<Vec<f32>>();
    let floats = Split { values: inputs.into(), ..bytes.clone() };
    let layers = [Layer::conv(6, 3), Layer::Relu, Layer::Linear { outputs: 4 }];
    let network = Arc::new(Network::new(bytes.shape, &layers).unwrap());
    let p = network.initial_parameters(&mut stream(5, Purpose::ModelInit, 0, 0));
    let [a, b] = [&bytes, &floats].map(|data| {
        let mut gradient = vec![0.0; p.len()];
        let batch = Batch { data, samples: &all(data) };
        Worker::new(network.clone()).gradient(&p, batch, &mut gradient);
        gradient
    });
    assert_eq!(a, b);
}

/// Batch and clipped gradient of the fast kernels against the im2col twin.
fn compare_with_twin(shape: Shape, layers: &[Layer], n: usize, seed: u64) {
    let data = random_split(n, shape, 7, seed);
    let samples = all(&data);
    let batch = Batch { data: &data, samples: &samples };
    let run = |kernels| {
        let network = Arc::new(Network::with_kernels(shape, layers, kernels).unwrap());
        let p = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
        let mut worker = Worker::new(network);
        let mut plain = vec![f32::NAN; p.len()];
        let loss = worker.gradient(&p, batch, &mut plain);
        let (_, clipped) = clipped(&mut worker, &p, batch, 0.5, n);
        (loss, plain, clipped)
    };
    let (fast, twin) = (run(Kernels::Fast), run(Kernels::Reference));
    assert!((fast.0 - twin.0).abs() < 1e-4, "{shape}: loss {} ≠ {}", fast.0, twin.0);
    for (name, a, b) in [("batch", fast.1, twin.1), ("clipped", fast.2, twin.2)] {
        let difference: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        assert!(
            length(&difference) < 1e-4 * (length(&b) + 1e-3),
            "{shape} {layers:?}: {name} differs"
        );
    }
}

/// Shapes at the edges of the kernels: more tiles than a mask has bits, more rows than are
/// searched for blank ones, the smallest image, one channel more or less than a block.
#[test]
fn fast_kernels_match_the_im2col_twin_at_the_edges() {
    let edges = [(20, 300, 5, 3), (10, 270, 3, 6), (90, 12, 5, 5), (6, 6, 5, 4), (4, 4, 3, 11)];
    for (rows, cols, kernel, channels) in edges {
        let layers = [
            Layer::conv(channels, kernel),
            Layer::max_pool(2),
            Layer::Relu,
            Layer::Linear { outputs: 7 },
        ];
        for planes in [1, 3] {
            compare_with_twin(Shape::new(planes, rows, cols), &layers, 3, 5);
        }
    }
}

/// Whole models along their gradient g: the loss must change by h·‖g‖². One direction through
/// all parameters crosses few kinks, and each by little.
#[test]
fn whole_models_match_a_finite_difference_along_their_gradient() {
    for (name, layers) in models() {
        let (network, mut worker) = worker(&layers, Kernels::Fast);
        let data = random_split(64, Shape::new(1, 28, 28), 10, 11);
        let samples = all(&data);
        let batch = Batch { data: &data, samples: &samples };
        let p = network.initial_parameters(&mut stream(2, Purpose::ModelInit, 0, 0));
        let mut gradient = vec![0.0; p.len()];
        worker.gradient(&p, batch, &mut gradient);
        let size = length(&gradient);
        let h = 3e-4 / size;
        let mut unused = vec![0.0; p.len()];
        let mut loss_at = |step: f64| {
            let moved: Vec<f32> =
                p.iter().zip(&gradient).map(|(w, g)| w + (step * f64::from(*g)) as f32).collect();
            f64::from(worker.gradient(&moved, batch, &mut unused))
        };
        let slope = (loss_at(h) - loss_at(-h)) / (2.0 * h);
        assert!((slope / size.powi(2) - 1.0).abs() < 0.02, "{name}: {slope} ≠ {}", size.powi(2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if long() { 500 } else { 60 },
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The fused kernels against im2col over random shapes: two convolutions, so that the input
    /// gradient is exercised with several channels.
    #[test]
    fn fast_kernels_match_the_im2col_twin(
        planes in 1usize..4,
        rows in 12usize..30,
        cols in 12usize..30,
        channels in (1usize..13, 1usize..13),
        kernels in (prop::bool::ANY, prop::bool::ANY),
        n in 1usize..6,
        seed in 0u64..1_000_000,
    ) {
        let size = |five| if five { 5 } else { 3 };
        let mut layers = vec![
            Layer::conv(channels.0, size(kernels.0)),
            Layer::max_pool(2),
            Layer::Relu,
        ];
        let inner = (rows.min(cols) + 1 - size(kernels.0)) / 2;
        if inner > size(kernels.1) {
            layers.extend([
                Layer::conv(channels.1, size(kernels.1)),
                Layer::max_pool(2),
                Layer::Relu,
            ]);
        }
        layers.extend([Layer::GroupNorm { groups: 1 }, Layer::Linear { outputs: 7 }]);
        compare_with_twin(Shape::new(planes, rows, cols), &layers, n, seed);
    }

    /// Clipping many samples at once against a loop over batches of one.
    #[test]
    fn per_sample_path_matches_a_loop_of_single_samples(
        n in 1usize..12,
        clip_norm in 0.05f64..4.0,
        seed in 0u64..1_000_000,
    ) {
        let (network, mut worker) = worker(&cnn(Norm::Group, 10), Kernels::Fast);
        let p = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
        let data = random_split(n, Shape::new(1, 28, 28), 10, seed);
        let samples = all(&data);
        let batch = Batch { data: &data, samples: &samples };
        let (report, clipped) = clipped(&mut worker, &p, batch, clip_norm, n);
        let mut sum = vec![0f64; p.len()];
        let mut gradient = vec![0.0; p.len()];
        let mut count = 0;
        for sample in samples.chunks(1) {
            worker.gradient(&p, Batch { data: &data, samples: sample }, &mut gradient);
            count += usize::from(length(&gradient) > clip_norm);
            // 2⁻¹⁰ of it is the margin that clipping leaves for rounding.
            let factor = ((1.0 - 1.0 / 1024.0) * clip_norm / length(&gradient)).min(1.0);
            for (sum, &g) in sum.iter_mut().zip(&gradient) {
                *sum += factor * f64::from(g) / n as f64;
            }
        }
        prop_assert_eq!(report.clipped, count);
        prop_assert!(length(&clipped) <= clip_norm);
        let difference: Vec<f32> =
            clipped.iter().zip(&sum).map(|(&a, &b)| (f64::from(a) - b) as f32).collect();
        prop_assert!(length(&difference) < 5e-5 * length(&clipped) + 1e-7);
    }
}

fn long() -> bool {
    std::env::var_os("LAPA_TEST_LONG").is_some()
}

#[test]
fn a_larger_batch_first_does_not_change_a_smaller_one_after() {
    let (network, mut used) = worker(&cnn(Norm::Batch, 10), Kernels::Fast);
    let p = network.initial_parameters(&mut stream(1, Purpose::ModelInit, 0, 0));
    let data = random_split(40, Shape::new(1, 28, 28), 10, 9);
    let (mut first, mut second) = (vec![0.0; p.len()], vec![0.0; p.len()]);
    used.gradient(&p, Batch { data: &data, samples: &all(&data) }, &mut first);
    used.gradient(&p, Batch { data: &data, samples: &[3, 1, 4] }, &mut first);
    let (_, mut fresh) = worker(&cnn(Norm::Batch, 10), Kernels::Fast);
    fresh.gradient(&p, Batch { data: &data, samples: &[3, 1, 4] }, &mut second);
    assert_eq!(first, second);
}

/// A sample whose gradient is not finite counts as the zero vector, whatever its neighbors are:
/// the rest of the batch is what it is without that sample, over the same denominator.
#[test]
fn a_sample_whose_gradient_is_not_finite_counts_as_zero() {
    for kernels in [Kernels::Fast, Kernels::Reference] {
        for norm in [Norm::Group, Norm::None] {
            let (network, mut worker) = worker(&cnn(norm, 10), kernels);
            let mut p = network.initial_parameters(&mut stream(3, Purpose::ModelInit, 0, 0));
            let mut data = random_split(6, Shape::new(1, 28, 28), 10, 5);
            // Weights that overflow on the one sample that is not black.
            let pixels = 28 * 28;
            let mut images = vec![0u8; data.values.len()];
            images[2 * pixels..3 * pixels].fill(255);
            data.values = images.into();
            let first = network.tensors()[0].range.clone();
            p[first].iter_mut().for_each(|w| *w *= 1e38);
            let mut of =
                |samples: &[u32]| clipped(&mut worker, &p, Batch { data: &data, samples }, 1.0, 4);
            let ((report, whole), (none, rest)) = (of(&[0, 1, 2, 3, 4, 5]), of(&[0, 1, 3, 4, 5]));
            assert_eq!((report.dropped, none.dropped), (1, 0), "{kernels:?} {norm:?}");
            let difference: Vec<f32> = whole.iter().zip(&rest).map(|(a, b)| a - b).collect();
            assert!(length(&difference) <= 1e-6 * length(&rest), "{kernels:?} {norm:?}");
        }
    }
}

/// An empty batch has the zero gradient, and the denominator is the caller's.
#[test]
fn the_denominator_is_public_and_an_empty_batch_is_zero() {
    let (network, mut worker) = worker(&cnn(Norm::Group, 10), Kernels::Fast);
    let p = network.initial_parameters(&mut stream(3, Purpose::ModelInit, 0, 0));
    let data = random_split(4, Shape::new(1, 28, 28), 10, 5);
    let batch = Batch { data: &data, samples: &all(&data) };
    let (_, by_two) = clipped(&mut worker, &p, batch, 0.5, 2);
    let (_, by_eight) = clipped(&mut worker, &p, batch, 0.5, 8);
    for (two, eight) in by_two.iter().zip(&by_eight) {
        assert!((two - 4.0 * eight).abs() <= 1e-6 * two.abs().max(1e-3));
    }
    let batch = Batch { data: &data, samples: &[] };
    let (report, empty) = clipped(&mut worker, &p, batch, 0.5, 2);
    assert_eq!((report.clipped, report.dropped), (0, 0));
    assert!(empty.iter().all(|&g| g == 0.0));
}
