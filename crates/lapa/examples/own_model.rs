//! One's own model: a list of layers, trained across devices.
//!
//! ```sh
//! cargo run --release --example own_model -p lapa
//! ```
//!
//! Any list of layers becomes a network over one flat parameter vector. A federation trains it as
//! `lapa run` trains the built-in ones. What lies beneath, parameters and a batch in, a gradient
//! out, is `lapa::model::Worker`.

use std::error::Error;

use lapa::config::Experiment;
use lapa::data::{self, DataName};
use lapa::model::{Layer, Network};
use lapa::simulation::Setup;

/// Everything but the model. Samples are clipped one by one (the default), so no batch norm.
const EXPERIMENT: &str = r#"
    data.name = "synthetic"
    run = { rounds = 150, seed = 1, evaluate_every = 25 }
    partition.mix = { iid = 4, non_iid = 4, iid_samples = [800, 1200], non_iid_samples = [400, 800] }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // Digits drawn by code: no files, no network. The closure would hear of a download.
    let digits = data::load(&DataName::Synthetic, &mut |_| {})?;

    // The model. Softmax cross-entropy always closes it, so the last layer's outputs are the
    // classes. Convolution, pooling and relu in this order run as one fused kernel; other orders
    // work too. Group norm, unlike batch norm, treats every sample by itself.
    let layers = [
        Layer::conv(8, 3),
        Layer::max_pool(2),
        Layer::Relu,
        Layer::GroupNorm { groups: 4 },
        Layer::Linear { outputs: 32 },
        Layer::Tanh,
        Layer::Linear { outputs: digits.classes },
    ];
    // Layers that do not fit together are an error that names the layer and its input.
    let network = Network::new(digits.train.shape, &layers)?;
    for tensor in network.tensors() {
        println!("{:16} {:?}", tensor.name, tensor.shape);
    }
    println!("{} parameters\n", network.parameter_count());

    let experiment = Experiment::from_toml(EXPERIMENT, "own_model", &[])?;
    let rounds = experiment.run.rounds;
    let mut federation = Setup::with_network(experiment, digits, network)?.in_memory()?;
    for _ in 0..rounds {
        let record = federation.next_round()?;
        if let (Some(accuracy), Some(loss)) = (record.accuracy, record.loss) {
            println!("round {:3}: {:5.2} %, loss {loss:.3}", record.round, 100.0 * accuracy);
        }
    }
    Ok(())
}
