//! Sums of clipped gradients against data sets and models that are built to break them.

use std::sync::Arc;

use lapa::config::Norm;
use lapa::data::Split;
use lapa::model::{
    BLOCK, Batch, Blocks, Clipped, Kernels, Network, SampleClip, Shape, Worker, cifar_cnn, cnn,
    cnn_tanh, logistic, mlp, resnet8,
};
use lapa::seed::{Purpose, stream};
use rand::RngExt;

/// Every sample added in f64.
const ONE: Blocks<'_> = Blocks::Each(1);

/// Sum of the clipped gradients of a batch.
fn sum(
    worker: &mut Worker,
    parameters: &[f32],
    batch: Batch<'_>,
    norm: f64,
    blocks: Blocks<'_>,
) -> (Clipped, Vec<f64>) {
    let mut sum = vec![f64::NAN; parameters.len()];
    let clip = SampleClip { norm, denominator: 1.0, blocks };
    (worker.clipped_gradient(parameters, batch, clip, &mut sum), sum)
}

fn length(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    length(a.iter().zip(b).map(|(a, b)| a - b))
}

/// Records that bring a sum of rounded numbers to a power of two, and then move it by 0.6 units of
/// the last place each: below the power they count as one unit, above it as none. One record
/// decides which, and in f32 all the others follow.
struct Drift {
    data: Split,
    parameters: Vec<f32>,
    network: Arc<Network>,
}

impl Drift {
    /// Black images of one pixel, and a layer of three outputs. Records of class 0 have gradients
    /// of the size of `small`, and those of class 1 are clipped to C = 1. A white image of
    /// class 0 has a gradient of zero.
    fn new(records: usize, small: f32) -> Self {
        let network = Network::new(Shape::new(1, 1, 1), &logistic(3)).unwrap();
        let mut parameters = vec![0.0; network.parameter_count()];
        let last = parameters.len();
        parameters[0] = 1e6;
        // Softmax gives class 0 nearly all.
        parameters[last - 2..].fill((small / (1.0 - 2.0 * small)).ln());
        let (images, labels) = (vec![0u8; records], vec![0; records]);
        let data = Split { values: images.into(), labels, shape: Shape::new(1, 1, 1) };
        Self { data, parameters, network: Arc::new(network) }
    }

    /// The sum of `large` records of class 1, then records of class 0.
    fn sum(&mut self, large: usize, block: usize) -> Vec<f64> {
        self.data.labels.fill(0);
        self.data.labels[..large].fill(1);
        self.sum_from(0, Blocks::Each(block))
    }

    /// The sum of the records from `first` on.
    fn sum_from(&self, first: u32, blocks: Blocks<'_>) -> Vec<f64> {
        let samples: Vec<u32> = (first..self.data.labels.len() as u32).collect();
        let batch = Batch { data: &self.data, samples: &samples };
        sum(&mut Worker::new(self.network.clone()), &self.parameters, batch, 1.0, blocks).1
    }
}

/// A Poisson batch has a record, a zero in its place, or neither. The last two are one sum to the
/// bit, and the first differs from them by no more than C, also where all later records would be
/// rounded otherwise in blocks by their place in the batch.
#[test]
fn a_record_that_is_not_drawn_moves_no_other_block() {
    const PLACES: usize = 1 << 16;
    // In blocks by place in the batch, small records follow 22 large ones, which reach 15.5, or 23,
    // which pass 16, where they are rounded with twice the unit: the first record decides.
    let mut drift = Drift::new(PLACES, 0.512 / (1 << 19) as f32);
    for (place, label) in drift.data.labels.iter_mut().enumerate() {
        *label = u8::from(place % BLOCK <= 22);
    }
    let ends = |first: usize| -> Vec<usize> {
        (BLOCK - first..PLACES).step_by(BLOCK).chain([PLACES - first]).collect()
    };
    let drawn = drift.sum_from(0, Blocks::Ends(&ends(0)));
    let left_out = drift.sum_from(1, Blocks::Ends(&ends(1)));
    let by_place =
        distance(&drift.sum_from(0, Blocks::Each(BLOCK)), &drift.sum_from(1, Blocks::Each(BLOCK)));
    let mut images = vec![0u8; drift.data.len()];
    images[0] = 255;
    drift.data.values = images.into();
    drift.data.labels[0] = 0;
    let zero = drift.sum_from(0, Blocks::Ends(&ends(0)));
    assert_eq!(zero, left_out);
    let moved = distance(&drawn, &left_out);
    assert!((0.998..=1.0).contains(&moved), "{moved}");
    assert!((by_place - moved).abs() > 0.01, "{by_place} and {moved}");
}

/// Members of a block beyond the first 64 are added one by one, so that a long block is no worse.
#[test]
fn a_record_that_is_not_drawn_moves_at_most_one_other_out_of_a_long_block() {
    let mut drift = Drift::new(1 << 14, 0.512 / (1 << 19) as f32);
    for (place, label) in drift.data.labels.iter_mut().enumerate() {
        *label = u8::from(place < 24);
    }
    let (drawn, left_out) =
        (drift.sum_from(0, Blocks::Ends(&[])), drift.sum_from(1, Blocks::Ends(&[])));
    let moved = distance(&drawn, &left_out);
    assert!((0.998..=1.0).contains(&moved), "{moved}");
}

/// As many records of class 1 as keep the coordinate of class 1 below 2¹⁴.
const BELOW: usize = 23_193;
const RECORDS: usize = 60_000;

#[test]
fn one_record_moves_a_sum_of_60_000_by_no_more_than_two_norms() {
    let mut drift = Drift::new(RECORDS, 0.6 / 1024.0);
    let (single, nothing) = (drift.sum(1, 1), drift.sum(0, 1));
    let alone = distance(&single, &nothing);
    for block in [BLOCK, 1] {
        for large in BELOW - 3..BELOW + 3 {
            let (one, other) = (drift.sum(large, block), drift.sum(large + 1, block));
            let moved = distance(&one, &other);
            assert!(moved <= 2.0, "{large} records, blocks of {block}: {moved}");
            assert!((moved - alone).abs() < 1e-3, "{moved} instead of {alone}");
        }
    }
}

/// The same records, summed in f32 in their order: the data set is what the test above needs.
#[test]
fn the_same_records_drift_in_single_precision() {
    let mut drift = Drift::new(1, 0.6 / 1024.0);
    let of = |gradient: Vec<f64>| gradient[gradient.len() - 2] as f32;
    let (small, large) = (of(drift.sum(0, 1)), of(drift.sum(1, 1)));
    let naive = |count: usize| {
        let records = (0..RECORDS).map(|i| if i < count { large } else { small });
        records.fold(0f32, |sum, g| sum + g)
    };
    let moved = (BELOW - 20..BELOW + 20).map(|count| (naive(count + 1) - naive(count)).abs());
    assert!(moved.fold(0.0, f32::max) > 20.0);
}

/// Every sample's part of the sum is the same to the bit in any batch and place: summed one by one
/// in f64, a batch is the sum of batches of one.
#[test]
fn a_sample_counts_the_same_in_every_batch() {
    for kernels in [Kernels::Fast, Kernels::Reference] {
        let wide = [cifar_cnn(10), cnn_tanh(Norm::None, 10), resnet8(Norm::Group, 10)];
        let narrow = [cnn(Norm::Group, 10), cnn(Norm::None, 10), mlp(10), logistic(10)];
        for layers in narrow.into_iter().chain(wide) {
            let network = Network::with_kernels(Shape::new(1, 28, 28), &layers, kernels).unwrap();
            let mut rng = stream(4, Purpose::SyntheticData, 0, 0);
            let parameters = network.initial_parameters(&mut stream(4, Purpose::ModelInit, 0, 0));
            let mut worker = Worker::new(Arc::new(network));
            let images: Vec<u8> = (0..97 * 784).map(|_| rng.random()).collect();
            let labels = (0..97).map(|i| i % 10).collect();
            let data = Split { values: images.into(), labels, shape: Shape::new(1, 28, 28) };
            let samples: Vec<u32> = (0..97).map(|i| i * 31 % 97).collect();
            let whole = Batch { data: &data, samples: &samples };
            let (_, together) = sum(&mut worker, &parameters, whole, 0.5, ONE);
            let mut single = vec![0.0; parameters.len()];
            for sample in samples.chunks(1) {
                let batch = Batch { data: &data, samples: sample };
                let (_, one) = sum(&mut worker, &parameters, batch, 0.5, ONE);
                single.iter_mut().zip(one).for_each(|(sum, g)| *sum += g);
            }
            assert_eq!(together, single, "{layers:?} {kernels:?}");
            let (_, blocks) = sum(&mut worker, &parameters, whole, 0.5, Blocks::Each(BLOCK));
            assert!(distance(&blocks, &together) < 1e-5 * length(together));
        }
    }
}

/// A model that a base station may send: activations of the last hidden layer are huge, and the
/// label is all but certain, so that deltas are tiny. Squared in f32 they would be 0, and the
/// gradient would pass unclipped.
#[test]
fn no_model_gets_a_gradient_past_the_clip() {
    for layers in [cnn(Norm::Group, 10), cnn(Norm::None, 10), mlp(10), logistic(10)] {
        for kernels in [Kernels::Fast, Kernels::Reference] {
            let network = Network::with_kernels(Shape::new(1, 28, 28), &layers, kernels).unwrap();
            let network = Arc::new(network);
            let mut longest = 0f64;
            for hidden in [1.0, 1e6, 1e12, 1e15, 1e17, 1.8e18, 1.8e19, 1e30, 3e38f32] {
                for certain in [0.0, 10.0, 40.0, 52.02, 70.0, 88.0, 100.0] {
                    for clip_norm in [1e-6, 1e-4, 1e-3, 1.0] {
                        let moved = hostile(&network, hidden, certain, clip_norm);
                        longest = longest.max(moved / clip_norm);
                        assert!(
                            moved <= clip_norm,
                            "{layers:?} {kernels:?}: activations {hidden:e}, logit {certain}, \
                             C = {clip_norm:e}: {moved:e}"
                        );
                    }
                }
            }
            assert!(longest > 0.99, "{layers:?} {kernels:?}: nothing was clipped");
        }
    }
}

/// The norm of the clipped gradient of one record.
fn hostile(network: &Arc<Network>, hidden: f32, certain: f32, clip_norm: f64) -> f64 {
    let mut parameters = network.initial_parameters(&mut stream(6, Purpose::ModelInit, 0, 0));
    let tensors: Vec<_> =
        network.tensors().iter().filter(|tensor| tensor.name.contains("linear")).collect();
    let [before @ .., weight, bias] = &tensors[..] else { panic!("no last layer") };
    parameters[weight.range.clone()].fill(0.0);
    parameters[bias.range.clone()].fill(0.0);
    parameters[bias.range.start] = certain;
    if let Some(bias) = before.last() {
        parameters[bias.range.clone()].fill(hidden);
    }
    let data =
        Split { values: vec![7u8; 28 * 28].into(), labels: vec![0], shape: Shape::new(1, 28, 28) };
    let batch = Batch { data: &data, samples: &[0] };
    length(
        sum(&mut Worker::new(network.clone()), &parameters, batch, clip_norm, Blocks::Each(BLOCK))
            .1,
    )
}
