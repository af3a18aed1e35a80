//! Noise of the channel as privacy: recorded as it is, counted as declared, never beyond the budget.

use lapa_privacy::{Event, FilterKind, Release};

use super::*;

pub(super) const ANALOG: [&str; 2] = ["transmit.uplink=analog", "transmit.access=orthogonal"];

pub(super) fn release(recorded: &Entry) -> &Release {
    match &recorded.event {
        Event::Release(release) => release,
        other => panic!("{other:?}"),
    }
}

/// Rényi divergence of order α of (1−q)·N(0, z²) + q·N(1, z²) from N(0, z²), by integration:
/// ln E[((1−q) + q·e^{(2x−1)/(2z²)})^α]/(α−1).
pub(super) fn renyi(order: f64, rate: f64, z: f64) -> f64 {
    let moment = integral(-14.0, 14.0 + order / z, |t| {
        let x = t * z;
        let ratio = (1.0 - rate) + rate * ((2.0 * x - 1.0) / (2.0 * z * z)).exp();
        normal_density(t) * ratio.powf(order)
    });
    moment.ln() / (order - 1.0)
}

/// Releases of each kind of run, with κ = 1.
const KINDS: [&[&str]; 4] = [
    &["privacy.epsilon=2", "learn.sampling=fixed"],
    &[
        "privacy.epsilon=1",
        "privacy.allocator=lapa",
        "learn.sampling=full",
        "learn.batch_fraction=1",
    ],
    &["privacy.epsilon=4", "privacy.allocator=lapa"],
    &["privacy.epsilon=1", "privacy.allocator=arb", "radio.redraw_every=1"],
];

/// c² = B²/q + σ_a² with B² = C² (and (1 + 1/b̄)C² for Poisson batches), σ_c = c·√(1/(2·SNR)).
#[test]
fn the_recorded_noise_of_the_channel_is_that_of_the_link() {
    for kind in KINDS {
        for trust in [0.0, 0.4, 1.0] {
            let trusted = format!("privacy.channel_trust={trust}");
            let mut recording = Recording::new(&[kind, &ANALOG, &[&*trusted]].concat());
            let records = recording.rounds(3);
            let learn = recording.federation.experiment().learn.clone();
            let clip = learn.clip_norm.unwrap();
            for device in 0..4 {
                for recorded in recording.history(device) {
                    let record = &records[recorded.round as usize - 1];
                    let shown = devices(record).iter().find(|d| d.device == device).unwrap();
                    let release = release(&recorded);
                    assert_eq!(release.sigma_artificial, shown.sigma_artificial);
                    assert_eq!(
                        (release.sigma_channel, release.kappa),
                        (shown.sigma_channel, trust)
                    );
                    let batch = learn.batch_fraction * f64::from(shown.samples);
                    let bound = match kind.iter().any(|key| key.starts_with("learn.sampling")) {
                        true => clip * clip,
                        false => clip * clip * (1.0 + 1.0 / batch),
                    };
                    let square = bound / COORDINATES as f64 + shown.sigma_artificial.powi(2);
                    let expected = (square / (2.0 * ratio(shown.sinr_db))).sqrt();
                    assert_close(shown.sigma_channel, expected, 1e-9);
                }
            }
        }
    }
}

/// Costs by hand from σ² = σ_a² + κσ_c²; the budget holds; what is spent without the channel is
/// more.
#[test]
fn trusted_noise_lowers_the_cost_and_keeps_the_budget() {
    for kind in KINDS {
        for trust in [0.4, 1.0] {
            let trusted = format!("privacy.channel_trust={trust}");
            let mut recording = Recording::new(&[kind, &ANALOG, &[&*trusted]].concat());
            let (learn, epsilon) = {
                let experiment = recording.federation.experiment();
                (experiment.learn.clone(), experiment.privacy.as_ref().unwrap().epsilon().unwrap())
            };
            let records = recording.rounds(6);
            for device in records.iter().flat_map(devices) {
                assert!(device.spent_provable <= epsilon, "{kind:?}");
            }
            for device in 0..4 {
                let filter = recording.federation.books().declared(device).unwrap().clone();
                let samples = f64::from(devices(&records[0])[device as usize].samples);
                let history = recording.history(device);
                // An allocator may leave a device out.
                assert!((1..=6).contains(&history.len()), "{kind:?}");
                let mut spent = 0.0;
                for recorded in &history {
                    let release = release(recorded);
                    let sigma = (release.sigma_artificial.powi(2)
                        + trust * release.sigma_channel.powi(2))
                    .sqrt();
                    let cost = match filter.kind() {
                        FilterKind::Gdp => {
                            let batch = (learn.batch_fraction * samples).round();
                            (2.0 * learn.clip_norm.unwrap() / batch / sigma).powi(2)
                        }
                        FilterKind::Renyi { order } => {
                            let batch = learn.batch_fraction * samples;
                            let z = sigma / (learn.clip_norm.unwrap() / batch);
                            renyi(order, learn.batch_fraction, z)
                        }
                        FilterKind::Plan { .. } => panic!("{kind:?}: no plan is asked for"),
                    };
                    // Simpson's rule is right to far less than this.
                    assert_close(recorded.cost, cost, 1e-6);
                    spent += recorded.cost;
                }
                assert!(spent <= filter.capacity(), "{kind:?}");
            }
            let privacy = recording.federation.privacy().unwrap();
            assert_eq!(privacy.epsilon_provable, epsilon);
            assert!(privacy.epsilon_spent <= epsilon, "{kind:?}");
            assert!(privacy.epsilon_without_channel > privacy.epsilon_spent, "{kind:?}");
            let told = match trust {
                1.0 => "Assumption: the full variance of the receiver noise is counted".into(),
                _ => format!(
                    "Assumption: the fraction {trust} of the variance of the receiver noise"
                ),
            };
            assert!(privacy.privacy.contains(&told), "{}", privacy.privacy);
        }
    }
}

/// With κ = 0 the channel is free noise: an analog run costs what the ideal one costs.
#[test]
fn untrusted_noise_changes_no_cost() {
    // These releases do not depend on what was received.
    for kind in [
        &["privacy.epsilon=2", "learn.sampling=fixed"][..],
        &["privacy.epsilon=8"],
        &["privacy.epsilon=2", "privacy.noise=discrete-gaussian"],
        &["profile=paper", "privacy.epsilon=8", "privacy.allocator=uniform"],
    ] {
        let run = |more: &[&str]| {
            let mut recording = Recording::new(&[kind, more].concat());
            recording.rounds(6);
            recording
        };
        let (mut ideal, mut analog) = (run(&[]), run(&ANALOG));
        for device in 0..4 {
            let (ideal, analog) = (ideal.history(device), analog.history(device));
            assert_eq!(ideal.len(), 6);
            for (ideal, analog) in ideal.iter().zip(&analog) {
                assert_eq!((ideal.granted, ideal.cost), (analog.granted, analog.cost), "{kind:?}");
                let (plain, heard) = (release(ideal), release(analog));
                assert!(heard.sigma_channel > 0.0 && plain.sigma_channel == 0.0);
                assert_eq!(heard.kappa, 0.0);
                assert_eq!(&Release { sigma_channel: 0.0, ..heard.clone() }, plain);
            }
        }
        let (ideal, analog) =
            (ideal.federation.privacy().unwrap(), analog.federation.privacy().unwrap());
        assert_eq!(ideal, analog, "{kind:?}");
        assert_eq!(analog.epsilon_without_channel, analog.epsilon_spent);
        assert!(!analog.privacy.contains("receiver noise"));
    }
}

/// On the paper's basis nothing is enforced, and what is proved counts κσ_c² too: with Δ = 2C,
/// μ² = Σ(2C)²/(σ_a² + κσ_c²).
#[test]
fn on_the_papers_basis_what_is_proved_counts_it() {
    let paper = ["profile=paper", "privacy.epsilon=8", "privacy.channel_trust=1"];
    let mut recording = Recording::new(&[&paper[..], &ANALOG].concat());
    recording.rounds(3);
    let (mut most, mut without) = (0.0f64, 0.0f64);
    for device in 0..4 {
        let history = recording.history(device);
        let sum = |kappa: f64| -> f64 {
            let mu_squared = |recorded: &Entry| {
                let release = release(recorded);
                let counted = kappa * release.sigma_channel.powi(2);
                (2.0 * release.clip_norm).powi(2) / (release.sigma_artificial.powi(2) + counted)
            };
            history.iter().map(mu_squared).sum()
        };
        (most, without) = (most.max(sum(1.0)), without.max(sum(0.0)));
    }
    let privacy = recording.federation.privacy().unwrap();
    let epsilon =
        |mu_squared: f64| lapa_privacy::accountant::gdp::epsilon(mu_squared.sqrt(), 1e-5).unwrap();
    assert_close(privacy.epsilon_provable, epsilon(most), 1e-9);
    assert_close(privacy.epsilon_without_channel, epsilon(without), 1e-9);
    assert!(privacy.epsilon_without_channel > privacy.epsilon_provable);
}
