//! Speed of the networks for color images.

use std::hint::black_box;
use std::sync::Arc;

use lapa::config::Norm;
use lapa::data::Split;
use lapa::model::{
    BLOCK, Batch, Blocks, Layer, Network, SampleClip, Shape, Worker, cifar_cnn, resnet8,
};
use lapa::seed::{Purpose, stream};

use super::{Bench, median, turns};
use crate::failure::Failure;

/// Samples of a gradient, as `COLORS` in bench/peers/peers.py.
const BATCH: usize = 100;
const CLASSES: usize = 10;

/// Samples per second of the plain and of the per-sample gradient of `cifar-cnn` and `resnet-8`, on
/// images without meaning.
pub fn measure(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let shape = Shape::new(3, 32, 32);
    // Multiplicative hashing: bytes without a pattern that matters here.
    let byte = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 24) as u8;
    let bytes: Vec<u8> = (0..BATCH * shape.len()).map(byte).collect();
    let labels = (0..BATCH).map(|i| (i % CLASSES) as u8).collect();
    let data = Split { values: bytes.into(), labels, shape };
    let models = [("cifar_cnn", cifar_cnn(CLASSES)), ("resnet_8", resnet8(Norm::Group, CLASSES))];
    for (name, layers) in models {
        let [plain, per_sample] = times(bench, &data, &layers)?;
        bench.add(format!("{name}_samples_per_s"), BATCH as f64 / plain);
        bench.add(format!("{name}_per_sample_samples_per_s"), BATCH as f64 / per_sample);
    }
    Ok(())
}

/// Seconds of a plain and of a per-sample gradient.
fn times(bench: &Bench<'_>, data: &Split, layers: &[Layer]) -> Result<[f64; 2], Failure> {
    let samples: Vec<u32> = (0..BATCH as u32).collect();
    let batch = Batch { data, samples: &samples };
    let network = Network::new(data.shape, layers).map(Arc::new)?;
    let p = network.initial_parameters(&mut stream(0, Purpose::ModelInit, 0, 0));
    let [mut plain, mut per_sample] = [(); 2].map(|()| Worker::new(network.clone()));
    let (mut gradient, mut sum) = (vec![0f32; p.len()], vec![0f64; p.len()]);
    let clip = SampleClip { norm: 1.0, denominator: BATCH as f64, blocks: Blocks::Each(BLOCK) };
    let runs: [&mut dyn FnMut(); 2] =
        [&mut || _ = black_box(plain.gradient(&p, batch, &mut gradient)), &mut || {
            _ = black_box(per_sample.clipped_gradient(&p, batch, clip, &mut sum))
        }];
    Ok(turns(bench.budget, runs).map(median))
}
