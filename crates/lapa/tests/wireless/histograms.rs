//! Label histograms: what they cost, what is said of them, and what the base station has of them.

use lapa_privacy::{Event, FilterKind, Histogram};

use super::*;

const RULE: &str = "aggregate.rule=wasserstein";

/// First release of a device, which must be its histogram.
fn histogram(history: &[Entry]) -> (&Histogram, f64) {
    match &history[0] {
        Entry { round: 0, event: Event::Histogram(histogram), cost, .. } => (histogram, *cost),
        other => panic!("{other:?}"),
    }
}

fn labels(federation: &Simulation) -> Vec<Vec<f64>> {
    federation.weighting().labels().unwrap().to_vec()
}

fn exact_labels(federation: &Simulation) -> Vec<Vec<f64>> {
    let counts = |counts: &[u32]| counts.iter().map(|&count| f64::from(count)).collect();
    federation
        .records()
        .dealt()
        .unwrap()
        .devices
        .iter()
        .map(|device| counts(&device.label_counts))
        .collect()
}

/// σ by hand from the filter's share: αΔ²/(2σ²) is that share of
/// B = ε − ln(1−1/α) + ln(δα)/(α−1), or Δ²/σ² that of μ²; Δ is √2 where a record is replaced.
#[test]
fn a_noisy_histogram_costs_its_share_of_the_budget() {
    for (changes, share, sensitivity) in [
        (&["privacy.epsilon=8"][..], 0.02, 1.0),
        (&["privacy.epsilon=1", "privacy.allocator=lapa"], 0.02, 1.0),
        (&["privacy.epsilon=8", "aggregate.wasserstein.noisy.budget_fraction=0.3"], 0.3, 1.0),
        (&["privacy.epsilon=2", "privacy.adjacency=add-remove"], 0.02, 1.0),
        (&["privacy.epsilon=2", "learn.sampling=fixed"], 0.02, 2f64.sqrt()),
        (
            &["privacy.epsilon=2", "learn.sampling=full", "learn.batch_fraction=1"],
            0.02,
            2f64.sqrt(),
        ),
        (&["privacy.epsilon=4", "privacy.noise=discrete-gaussian"], 0.02, 1.0),
        (&["privacy.epsilon=4", "transmit.uplink=analog"], 0.02, 1.0),
    ] {
        let mut recording = Recording::new(&[changes, &[RULE]].concat());
        let epsilon =
            recording.federation.experiment().privacy.as_ref().unwrap().epsilon().unwrap();
        let records = recording.rounds(6);
        for device in 0..4 {
            let filter = recording.federation.books().declared(device).unwrap().clone();
            let (sigma, capacity) = match filter.kind() {
                FilterKind::Renyi { order } => {
                    let capacity =
                        epsilon - (1.0 - 1.0 / order).ln() + (1e-5 * order).ln() / (order - 1.0);
                    let sigma = sensitivity * (order / (2.0 * share * capacity)).sqrt();
                    (sigma, capacity)
                }
                FilterKind::Gdp => {
                    let mu = filter.capacity().sqrt();
                    // δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) is the declared one.
                    let delta = tail(epsilon / mu - mu / 2.0)
                        - epsilon.exp() * tail(epsilon / mu + mu / 2.0);
                    assert_close(delta, 1e-5, 1e-4);
                    (sensitivity / mu / share.sqrt(), mu * mu)
                }
                FilterKind::Plan { .. } => panic!("{changes:?}: a plan has no room for it"),
            };
            assert_close(filter.capacity(), capacity, 1e-9);
            let history = recording.history(device);
            // An allocator may leave a device out of a round.
            assert!((2..=7).contains(&history.len()), "{changes:?}");
            let (histogram, cost) = histogram(&history);
            assert_close(histogram.sigma, sigma, 1e-6);
            // Never less noise than the share pays for.
            assert!(cost <= share * filter.capacity() && histogram.sigma >= sigma * (1.0 - 1e-9));
            assert_close(cost, share * capacity, 1e-6);
            let spent: f64 = history.iter().map(|recorded| recorded.cost).sum();
            assert!(spent <= filter.capacity() && spent > 0.9 * capacity, "{changes:?}");
        }
        for device in records.iter().flat_map(devices) {
            assert!(device.spent_provable <= epsilon);
        }
        let privacy = recording.federation.privacy().unwrap();
        assert_eq!(privacy.epsilon_provable, epsilon);
        assert!(privacy.epsilon_spent <= epsilon && privacy.epsilon_spent > 0.8 * epsilon);
        assert_eq!(privacy.epsilon_without_channel, privacy.epsilon_spent);
        let told = "Labels: each device sent a label histogram once, with noise; the guarantee includes it.";
        assert!(privacy.privacy.contains(told), "{}", privacy.privacy);
    }
}

#[test]
fn public_histograms_cost_nothing_and_it_is_said() {
    for changes in [&["privacy.epsilon=8"][..], &["profile=paper", "privacy.epsilon=8"]] {
        let public = ["aggregate.wasserstein.histograms=public", RULE];
        let mut recording = Recording::new(&[changes, &public].concat());
        recording.rounds(2);
        for device in 0..4 {
            let history = recording.history(device);
            assert!(history.iter().all(|recorded| matches!(recorded.event, Event::Release(_))));
            assert_eq!(history.len(), 2);
        }
        assert_eq!(labels(&recording.federation), exact_labels(&recording.federation));
        let privacy = recording.federation.privacy().unwrap();
        assert!(privacy.epsilon_provable.is_finite());
        assert!(privacy.privacy.contains("Labels: declared public"), "{}", privacy.privacy);
    }
}

#[test]
fn exact_histograms_prove_nothing_and_it_is_said() {
    let mut recording = Recording::new(&["profile=paper", "privacy.epsilon=8", RULE]);
    for record in recording.rounds(2) {
        for device in devices(&record) {
            assert_eq!(device.spent_provable, f64::INFINITY);
            assert!(device.spent_claimed.is_finite() && device.sigma_artificial > 0.0);
        }
    }
    for device in 0..4 {
        let history = recording.history(device);
        let (histogram, cost) = histogram(&history);
        assert_eq!((histogram.sigma, cost), (0.0, f64::INFINITY));
    }
    assert_eq!(labels(&recording.federation), exact_labels(&recording.federation));
    let privacy = recording.federation.privacy().unwrap();
    assert_eq!(privacy.epsilon_provable, f64::INFINITY);
    assert!(privacy.epsilon_claimed_total <= 8.0 * 2.0 / 6.0 + 1e-9);
    let told = "Labels: the label histograms were sent without noise, so nothing is proven for them and \
                ε is infinite.";
    assert!(privacy.privacy.contains(told), "{}", privacy.privacy);
    // Without noise on the updates there is nothing to prove anyway.
    let mut bare = federation(&[RULE]);
    bare.next_round().unwrap();
    let privacy = bare.privacy().unwrap();
    assert_eq!(privacy.epsilon_provable, f64::INFINITY);
    assert!(privacy.privacy.contains("nothing is proven"), "{}", privacy.privacy);
}

/// Counts arrive with the noise of the record: chi-square over 40 counts, α = 10⁻⁶.
#[test]
fn noise_on_the_counts_is_that_of_the_record() {
    let collected = |changes: &[&str]| {
        let mut recording = Recording::new(&[changes, &[RULE, "privacy.epsilon=8"]].concat());
        recording.rounds(1);
        (labels(&recording.federation), recording)
    };
    for changes in [&[][..], &["privacy.noise=discrete-gaussian"]] {
        let (counts, recording) = collected(changes);
        let mut squares = 0.0;
        for (device, (noisy, exact)) in
            (0..).zip(counts.iter().zip(exact_labels(&recording.federation)))
        {
            let history = recording.history(device);
            let sigma = histogram(&history).0.sigma;
            squares += noisy.iter().zip(exact).map(|(n, e)| ((n - e) / sigma).powi(2)).sum::<f64>();
        }
        assert_chi_square(squares, 40, &format!("{changes:?}"));
        assert_eq!(collected(changes).0, counts);
        assert_ne!(collected(&[changes, &["run.seed=4"]].concat()).0, counts);
        let whole = counts.iter().flatten().all(|count| count.fract() == 0.0);
        assert_eq!(whole, !changes.is_empty());
    }
    let os = ["run.entropy=os"];
    assert_ne!(collected(&os).0, collected(&os).0);
}
