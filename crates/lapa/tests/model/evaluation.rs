//! Evaluation on test images.

use super::*;

/// The stages before batch norm are computed once for statistics and evaluation: to the bit what
/// two whole passes give.
#[test]
fn evaluation_after_statistics_is_that_of_a_whole_pass() {
    let network = Arc::new(Network::new(Shape::new(1, 28, 28), &cnn(Norm::Batch, 10)).unwrap());
    let parameters = network.initial_parameters(&mut stream(5, Purpose::ModelInit, 0, 0));
    let data = random_split(40, 28, 28, 10, 5);
    let samples: Vec<u32> = (0..40).collect();
    let [first, second] =
        [&samples[..25], &samples[25..]].map(|s| Batch { data: &data, samples: s });
    let mut worker = Worker::new(network.clone());
    let statistics = worker.batch_statistics(&parameters, first).to_vec();
    let inputs = worker.before_statistics(first).to_vec();
    // Another batch in between leaves other values behind.
    worker.batch_statistics(&parameters, second);
    let rest = worker.evaluate_rest(&inputs, &parameters, &statistics, first);
    let whole = Worker::new(network).evaluate(&parameters, &statistics, first);
    assert_eq!((rest.correct, rest.loss_sum.to_bits()), (whole.correct, whole.loss_sum.to_bits()));
}

/// Logits give the loss that evaluation sums, whatever the worker did before.
#[test]
fn logits_are_those_that_evaluation_judges() {
    let network = Arc::new(Network::new(Shape::new(1, 28, 28), &cnn(Norm::Batch, 10)).unwrap());
    let parameters = network.initial_parameters(&mut stream(6, Purpose::ModelInit, 0, 0));
    let data = random_split(30, 28, 28, 10, 6);
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
    let data = random_split(12, 300, 280, 10, 7);
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
