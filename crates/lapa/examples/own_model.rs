//! One's own model: a list of layers, trained by hand.
//!
//! ```sh
//! cargo run --release --example own_model -p lapa
//! ```
//!
//! `lapa run` trains the built-in models across devices. This example shows the engine beneath it:
//! any list of layers becomes a network over one flat parameter vector, and a worker turns
//! parameters and a batch into a gradient. What happens to parameters and gradient is up to the
//! caller; here it is plain stochastic gradient descent on one machine.

use std::error::Error;
use std::sync::Arc;

use lapa::data::{self, DataName, Split};
use lapa::model::{Batch, Layer, Network, Shape, Worker};
use lapa::seed::{Purpose, stream};
use rand::seq::index;

const SEED: u64 = 1;
const STEPS: u64 = 300;
const BATCH: usize = 64;
const LEARNING_RATE: f32 = 0.1;
/// Test images evaluated at once; bounds the worker's memory.
const EVALUATION_BLOCK: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    // Digits drawn by code: no files, no network. The closure would hear of a download.
    let digits = data::load(&DataName::Synthetic, &mut |_| {})?;

    // The model. Softmax cross-entropy always closes it, so the last layer's outputs are the
    // classes. Convolution, pooling and relu in this order run as one fused kernel; other orders
    // work too. Group norm, unlike batch norm, treats every sample by itself.
    let layers = [
        Layer::Conv { channels: 8, kernel: 3 },
        Layer::MaxPool,
        Layer::Relu,
        Layer::GroupNorm { groups: 4 },
        Layer::Linear { outputs: 32 },
        Layer::Tanh,
        Layer::Linear { outputs: digits.classes },
    ];
    // Layers that do not fit together are an error that names the layer and its input.
    let shape = Shape::new(1, digits.train.rows, digits.train.cols);
    let network = Arc::new(Network::new(shape, &layers)?);
    for tensor in network.tensors() {
        println!("{:16} {:?}", tensor.name, tensor.shape);
    }
    println!("{} parameters\n", network.parameter_count());

    // Every random choice comes from (seed, purpose, round, device), so each run is the same.
    let mut parameters = network.initial_parameters(&mut stream(SEED, Purpose::ModelInit, 0, 0));
    let mut gradient = vec![0.0; network.parameter_count()];
    // One worker per thread: it holds the activations and grows to the largest batch it has seen.
    let mut worker = Worker::new(network);

    for step in 0..STEPS {
        if step % 50 == 0 {
            report(&mut worker, &parameters, &digits.test, step);
        }
        let mut rng = stream(SEED, Purpose::Batch, step, 0);
        let samples: Vec<u32> = index::sample(&mut rng, digits.train.len(), BATCH)
            .into_iter()
            .map(|sample| sample as u32)
            .collect();
        let batch = Batch { data: &digits.train, samples: &samples };
        // For per-sample clipping there is `clipped_gradient`, with the clipping norm C.
        worker.gradient(&parameters, batch, &mut gradient);
        for (w, g) in parameters.iter_mut().zip(&gradient) {
            *w -= LEARNING_RATE * g;
        }
    }
    report(&mut worker, &parameters, &digits.test, STEPS);
    Ok(())
}

/// Prints accuracy and mean loss on the test set.
fn report(worker: &mut Worker, parameters: &[f32], test: &Split, step: u64) {
    let samples: Vec<u32> = (0..test.len() as u32).collect();
    let (mut correct, mut loss) = (0, 0.0);
    for samples in samples.chunks(EVALUATION_BLOCK) {
        // No batch norm, hence no statistics to evaluate with.
        let part = worker.evaluate(parameters, &[], Batch { data: test, samples });
        correct += part.correct;
        loss += part.loss_sum;
    }
    let count = test.len() as f64;
    println!(
        "step {step:3}: accuracy {:5.2} %, loss {:.3}",
        100.0 * correct as f64 / count,
        loss / count
    );
}
