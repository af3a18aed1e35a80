//! Training before the first round, on public digits drawn by code.
//!
//! Not in the paper. Nothing of a device is used, so no privacy is spent; the model that the base
//! station sends in round 1 is a function of the seed alone.

use std::sync::Arc;

use rand::RngExt;

use super::{Batch, Network, Shape, Worker};
use crate::data;
use crate::seed::{Purpose, stream};

/// Digits to train on.
const IMAGES: usize = 10_000;
/// Steps of momentum SGD, of this batch, learning rate and momentum.
const STEPS: u64 = 1_000;
const BATCH: usize = 64;
const LEARNING_RATE: f32 = 0.02;
const MOMENTUM: f32 = 0.9;

/// Shape and classes of digits: data of another shape cannot start from them.
pub(crate) const DIGITS: (Shape, usize) = (Shape::new(1, 28, 28), 10);

/// Trains `parameters` on digits. One thread: the order of sums is part of the result.
pub(crate) fn pretrain(network: &Arc<Network>, parameters: &mut [f32], seed: u64) {
    let digits = data::digits(IMAGES, 1).train;
    let mut worker = Worker::new(network.clone());
    let mut gradient = vec![0.0; parameters.len()];
    let mut velocity = vec![0.0; parameters.len()];
    for step in 0..STEPS {
        let mut rng = stream(seed, Purpose::Pretrain, step, 0);
        let samples: Vec<u32> = (0..BATCH).map(|_| rng.random_range(0..IMAGES as u32)).collect();
        let batch = Batch { data: &digits, samples: &samples };
        worker.gradient(parameters, batch, &mut gradient);
        for ((w, v), g) in parameters.iter_mut().zip(&mut velocity).zip(&gradient) {
            *v = MOMENTUM * *v + g;
            *w -= LEARNING_RATE * *v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Experiment, Override};
    use crate::data::Dataset;
    use crate::error::FederationError;
    use crate::simulation::Simulation;

    /// Digits that are not among those of the start.
    fn images() -> Dataset {
        let mut images = data::digits(IMAGES + 600, 100);
        let others: Vec<u32> = (IMAGES as u32..images.train.len() as u32).collect();
        images.train = images.train.select(&others);
        images
    }

    /// Steps so small that the model after round 1 is the one before it. The simulation is given
    /// synthetic images in the name of another data set.
    fn simulation(changes: &[&str]) -> Simulation {
        let text = "
            data.name = 'mnist'
            model = { name = 'mlp', start = 'digits' }
            run = { rounds = 1, seed = 3, threads = 1 }
            learn = { learning_rate = 1e-12, momentum = 0 }
            partition.mix = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
        ";
        let changes: Vec<_> =
            changes.iter().map(|change| Override::parse(change).unwrap()).collect();
        Simulation::new(Experiment::from_toml(text, "test", &changes).unwrap(), images()).unwrap()
    }

    fn after_a_round(changes: &[&str]) -> (f64, Vec<f32>) {
        let mut simulation = simulation(changes);
        let record = simulation.next_round().unwrap();
        (record.accuracy.unwrap(), simulation.model().parameters.clone())
    }

    #[test]
    fn the_first_model_knows_digits_and_no_device() {
        let (accuracy, model) = after_a_round(&[]);
        let (untrained, _) = after_a_round(&["model.start=random"]);
        assert!(accuracy > 0.8 && untrained < 0.4, "{accuracy} {untrained}");
        // Other devices with other data, other threads: the same model. Another seed: another one.
        let others = ["partition.mix.iid=4", "partition.mix.non_iid=0", "run.threads=2"];
        let near = |other: &[f32]| model.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near(&after_a_round(&others).1));
        assert!(!near(&after_a_round(&["run.seed=4"]).1));
    }

    #[test]
    fn an_average_of_models_starts_there_too() {
        let (accuracy, _) = after_a_round(&["learn.averaging=0.99"]);
        assert!(accuracy > 0.8, "{accuracy}");
    }

    #[test]
    fn digits_are_refused_where_they_are_private_or_do_not_fit() {
        let text = "data.name = 'synthetic'\nmodel.start = 'digits'";
        let error = Experiment::from_toml(text, "f.toml", &[]).unwrap_err();
        assert!(error.to_string().contains("would not be public"), "{error}");

        let experiment = Experiment::from_toml("model.start = 'digits'", "f.toml", &[]).unwrap();
        let mut small = images();
        small.classes = 7;
        let error = Simulation::new(experiment, small).err().unwrap();
        assert!(matches!(error, FederationError::OtherImages { classes: 7, .. }), "{error}");
    }
}
