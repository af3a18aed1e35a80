//! Evaluation on test images.

use lapa::config::{Experiment, Override};
use lapa::data::{Dataset, digits};
use lapa::partition::partition;
use lapa::simulation::{Setup, Simulation};

use super::*;

/// A federation whose CNN has batch norm.
fn with_batch_norm(change: &str) -> Experiment {
    let text = "
        data.name = 'synthetic'
        profile = 'paper'
        run = { rounds = 1, seed = 3, threads = 1 }
        partition.mix = { iid = 1, non_iid = 1, iid_samples = 60, non_iid_samples = 60 }
    ";
    Experiment::from_toml(text, "test", &[Override::parse(change).unwrap()]).unwrap()
}

/// Mean and mean square of each channel before batch norm, by a worker over `samples` at once.
fn statistics_of(experiment: &Experiment, split: &Split, samples: &[u32]) -> Vec<f32> {
    let network =
        Arc::new(lapa::model::network(&experiment.model, Shape::new(1, 28, 28), 10).unwrap());
    let parameters = network.initial_parameters(&mut stream(3, Purpose::ModelInit, 0, 0));
    let mut worker = Worker::new(network);
    worker.batch_statistics(&parameters, Batch { data: split, samples }).to_vec()
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert!(found.len() == 40 && found.len() == expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

/// Statistics are those of the training images that no device holds, whatever the test images are.
#[test]
fn batch_norm_statistics_come_from_images_on_no_device() {
    let experiment = with_batch_norm("run.seed=3");
    let data = digits(500, 80);
    let dealt = partition(&*experiment.partition.scheme, &data.train.labels, 10, 3).unwrap();
    let held: Vec<u32> = dealt.devices.iter().flat_map(|device| device.samples.clone()).collect();
    let unheld: Vec<u32> = (0..500).filter(|number| !held.contains(number)).collect();
    let expected = statistics_of(&experiment, &data.train, &unheld);
    let other = Dataset { test: digits(400, 1).train, ..data.clone() };
    for data in [data, other] {
        let mut simulation = Simulation::new(experiment.clone(), data).unwrap();
        simulation.evaluate().unwrap();
        assert_near(&simulation.model().statistics, &expected);
    }
}

/// Statistics of test images, the same for every deal, if records were dealt by someone else: an image
/// on no device may be private. Accuracy is that of the other test images.
#[test]
fn batch_norm_statistics_do_not_depend_on_records_that_were_dealt() {
    let experiment = with_batch_norm("run.seed=3");
    let data = digits(500, 80);
    let evaluated = |seed: u64, missing: usize| {
        let scheme = &*experiment.partition.scheme;
        let mut dealt = partition(scheme, &data.train.labels, 10, seed).unwrap();
        let sizes: Vec<u32> = dealt.devices.iter().map(|d| d.samples.len() as u32).collect();
        dealt.devices[0].samples.truncate(60 - missing);
        let network = lapa::model::network(&experiment.model, Shape::new(1, 28, 28), 10).unwrap();
        let (experiment, data) = (experiment.clone(), data.clone());
        let setup = Setup::with_records(experiment, data, network, dealt, &sizes).unwrap();
        let mut simulation = setup.in_memory().unwrap();
        let (accuracy, _) = simulation.evaluate().unwrap();
        (simulation.model().statistics.clone(), accuracy)
    };
    let (statistics, accuracy) = evaluated(3, 0);
    assert_eq!(evaluated(3, 1).0, statistics);
    assert_eq!(evaluated(4, 20).0, statistics);
    assert!((accuracy * 72.0).fract().min(1.0 - (accuracy * 72.0).fract()) < 1e-9, "{accuracy}");
}

/// Logits give the loss that evaluation sums, whatever the worker did before.
#[test]
fn logits_are_those_that_evaluation_judges() {
    let network = Arc::new(Network::new(Shape::new(1, 28, 28), &cnn(Norm::Batch, 10)).unwrap());
    let parameters = network.initial_parameters(&mut stream(6, Purpose::ModelInit, 0, 0));
    let data = random_split(30, Shape::new(1, 28, 28), 10, 6);
    let samples: Vec<u32> = (0..30).collect();
    let [large, small] = [&samples[..], &samples[4..9]].map(|s| Batch { data: &data, samples: s });
    let mut worker = Worker::new(network);
    let statistics = worker.batch_statistics(&parameters, large).to_vec();
    let expected = worker.evaluate(&parameters, &statistics, small).loss_sum;
    worker.evaluate(&parameters, &statistics, large);
    let logits = worker.logits(&parameters, &statistics, small);
    assert_eq!(logits.len(), 5 * 10);
    let mut loss = 0.0;
    for (z, &sample) in logits.chunks_exact(10).zip(small.samples) {
        let sum: f64 = z.iter().map(|&z| f64::from(z).exp()).sum();
        loss += sum.ln() - f64::from(z[usize::from(data.labels[sample as usize])]);
    }
    assert!((loss - expected).abs() < 1e-4, "{loss} {expected}");
}

/// Images that take turns in memory are judged as if they were there at once, to the bit.
#[test]
fn large_images_are_evaluated_in_turns_with_the_same_sums() {
    let network = Network::new(Shape::new(1, 300, 280), &cnn(Norm::Group, 10)).unwrap();
    assert!(network.footprint().samples_within(1 << 26) < 12);
    let network = Arc::new(network);
    let parameters = network.initial_parameters(&mut stream(7, Purpose::ModelInit, 0, 0));
    let data = random_split(12, Shape::new(1, 300, 280), 10, 7);
    let samples = all(&data);
    let batch = Batch { data: &data, samples: &samples };
    let mut worker = Worker::new(network);
    let together = worker.logits(&parameters, &[], batch).to_vec();
    let evaluation = worker.evaluate(&parameters, &[], batch);
    let (mut correct, mut loss) = (0, 0.0);
    for (sample, logits) in samples.chunks(1).zip(together.chunks_exact(10)) {
        let alone = Batch { data: &data, samples: sample };
        let one = worker.evaluate(&parameters, &[], alone);
        correct += one.correct;
        loss += one.loss_sum;
        assert_eq!(worker.logits(&parameters, &[], alone), logits);
    }
    assert_eq!((evaluation.correct, evaluation.loss_sum.to_bits()), (correct, f64::to_bits(loss)));
}
