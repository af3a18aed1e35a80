//! Training before the first round, on public digits drawn by code.
//!
//! Not in the paper. Nothing of a device is used, so no privacy is spent; the model that the base
//! station sends in round 1 is a function of the seed alone.

use std::convert::Infallible;

use rand::RngExt;

use super::{Federation, FederationError};
use crate::config::{Experiment, Start};
use crate::data;
use crate::model::Batch;
use crate::seed::{Purpose, stream};

/// Digits to train on.
const IMAGES: usize = 10_000;
/// Steps of momentum SGD, of this batch, learning rate and momentum.
const STEPS: u64 = 1_000;
const BATCH: usize = 64;
const LEARNING_RATE: f32 = 0.02;
const MOMENTUM: f32 = 0.9;

/// Fails where digits do not fit the data.
pub(super) fn check(
    experiment: &Experiment,
    (rows, cols, classes): (usize, usize, usize),
) -> Result<(), FederationError> {
    match experiment.model.start {
        Start::Digits if (rows, cols, classes) != (28, 28, 10) => {
            Err(FederationError::OtherImages { rows, cols, classes })
        }
        _ => Ok(()),
    }
}

impl Federation {
    /// Before round 1: trains the model on digits, if it is to start from there.
    pub(crate) fn pretrain(&mut self) {
        if self.round > 0 || self.experiment.model.start == Start::Random {
            return;
        }
        let digits = data::digits(IMAGES, 1).train;
        let (seed, start) = (self.experiment.run.seed, &self.model.parameters);
        // One thread: the order of sums is part of the result.
        let trained: Result<Vec<Vec<f32>>, Infallible> = self.crew.for_each(&[1], |learner, _| {
            let mut parameters = start.clone();
            let (mut gradient, mut velocity) =
                (vec![0.0; parameters.len()], vec![0.0; parameters.len()]);
            for step in 0..STEPS {
                let mut rng = stream(seed, Purpose::Pretrain, step, 0);
                let samples: Vec<u32> =
                    (0..BATCH).map(|_| rng.random_range(0..IMAGES as u32)).collect();
                let batch = Batch { data: &digits, samples: &samples };
                learner.worker().gradient(&parameters, batch, &mut gradient);
                for ((w, v), g) in parameters.iter_mut().zip(&mut velocity).zip(&gradient) {
                    *v = MOMENTUM * *v + g;
                    *w -= LEARNING_RATE * *v;
                }
            }
            Ok(parameters)
        });
        let Ok(mut trained) = trained;
        self.model.parameters = trained.swap_remove(0);
        if !self.model.average.is_empty() {
            self.model.average.clone_from(&self.model.parameters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Override;
    use crate::data::Dataset;

    /// Digits that are not among those of the start.
    fn images() -> Dataset {
        let mut images = data::digits(IMAGES + 600, 100);
        let (first, pixels) = (IMAGES, images.train.rows * images.train.cols);
        std::sync::Arc::make_mut(&mut images.train.images).drain(..first * pixels);
        images.train.labels.drain(..first);
        images
    }

    /// Steps so small that the model after round 1 is the one before it. The federation is given
    /// synthetic images in the name of another data set.
    fn federation(changes: &[&str]) -> Federation {
        let text = "
            data.name = 'mnist'
            model = { name = 'mlp', start = 'digits' }
            run = { rounds = 1, seed = 3, threads = 1 }
            learn = { learning_rate = 1e-12, momentum = 0 }
            partition.mix = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
        ";
        let changes: Vec<_> =
            changes.iter().map(|change| Override::parse(change).unwrap()).collect();
        Federation::new(Experiment::from_toml(text, "test", &changes).unwrap(), images()).unwrap()
    }

    fn after_a_round(changes: &[&str]) -> (f64, Vec<f32>) {
        let mut federation = federation(changes);
        let record = federation.next_round().unwrap();
        (record.accuracy.unwrap(), federation.model().parameters.clone())
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
        let error = Federation::new(experiment, small).err().unwrap();
        assert!(matches!(error, FederationError::OtherImages { classes: 7, .. }), "{error}");
    }
}
