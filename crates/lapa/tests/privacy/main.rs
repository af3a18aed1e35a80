//! Privacy in the rounds: noise as declared, budgets kept, nothing said that is not so.

#[path = "../common/mod.rs"]
mod common;
mod ledger;

use common::{devices, experiment, federation};
use lapa::simulation::Setup;
use lapa_privacy::accountant::{Accountant, Pld, Rdp, gdp};
use lapa_privacy::ledger::Ledger;
use lapa_privacy::{Adjacency, Event, Mechanism};

/// The step of one round, under noise that drowns the gradient, is normal with the
/// variance ΣG_k²σ_k² that the record declares. Chi-square over 7850 coordinates, α = 10⁻⁶
/// (Laurent & Massart 2000, Lemma 1).
#[test]
fn the_model_moves_by_the_declared_noise() {
    for changes in [
        &["profile=paper", "privacy.initial_sigma=500", "learn.learning_rate=0.5"][..],
        &["privacy.initial_sigma=2", "learn.averaging=0"],
        &["privacy.initial_sigma=2", "learn.averaging=0", "privacy.noise=discrete-gaussian"],
    ] {
        let mut federation = federation(changes);
        let rate = federation.experiment().learn.learning_rate;
        let before = federation.model().parameters.clone();
        let record = federation.next_round().unwrap();
        let variance: f64 =
            devices(&record).iter().map(|d| (d.weight * d.sigma_artificial).powi(2)).sum();
        let after = &federation.model().parameters;
        let n = before.len() as f64;
        let moved = before.iter().zip(after).map(|(b, a)| f64::from(b - a) / rate);
        let squares: f64 = moved.map(|g| g * g / variance).sum();
        let t = (1e6f64).ln();
        assert!(squares < n + 2.0 * (n * t).sqrt() + 2.0 * t, "{changes:?}: {squares} of {n}");
        assert!(squares > n - 2.0 * (n * t).sqrt(), "{changes:?}: {squares} of {n}");
    }
}

/// σ₀ is that of a device of mean size in round 1: σ_k = σ₀·n̄/n_k on both bases.
#[test]
fn initial_sigma_is_that_of_a_device_of_mean_size() {
    for changes in [
        &["privacy.initial_sigma=0.2"][..],
        &["privacy.initial_sigma=0.2", "privacy.allocator=lapa"],
        &["privacy.initial_sigma=0.2", "learn.sampling=full", "learn.batch_fraction=1"],
        &["profile=paper", "privacy.initial_sigma=0.2"],
        &["profile=paper", "privacy.initial_sigma=0.2", "privacy.allocator=uniform"],
    ] {
        let record = federation(changes).next_round().unwrap();
        let list = devices(&record);
        let mean = list.iter().map(|d| f64::from(d.samples)).sum::<f64>() / list.len() as f64;
        for device in list {
            let expected = 0.2 * mean / f64::from(device.samples);
            let ratio = device.sigma_artificial / expected;
            assert!((ratio - 1.0).abs() < 1e-6, "{changes:?}: {ratio}");
        }
    }
}

/// No budget is passed in any round, and what was recorded is worth no more than the odometer
/// says, by accountants that the filters do not use.
#[test]
fn budgets_hold_and_the_ledger_agrees() {
    for (epsilon, changes) in [
        (8.0, &["privacy.allocator=uniform"][..]),
        (0.5, &["privacy.allocator=uniform", "privacy.adjacency=replace-one"]),
        (2.0, &["privacy.allocator=lapa", "run.participation=0.5"]),
        (2.0, &["privacy.allocator=arb", "privacy.adjacency=add-remove"]),
        (1.0, &["privacy.allocator=lapa", "learn.sampling=fixed"]),
        (1.0, &["privacy.allocator=lapa", "learn.sampling=full", "learn.batch_fraction=1"]),
        (1.0, &["privacy.allocator=arb", "privacy.noise=discrete-gaussian"]),
    ] {
        let budget = format!("privacy.epsilon={epsilon}");
        let changes: Vec<&str> = changes.iter().copied().chain([budget.as_str()]).collect();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        let setup = Setup::new(experiment(&changes), common::data()).unwrap();
        let mut federation = setup.record_in(Ledger::open(&path).unwrap(), "run").unwrap();
        let mut spent = [0.0; 4];
        for _ in 0..6 {
            let record = federation.next_round().unwrap();
            for device in devices(&record) {
                assert!(device.spent_provable <= epsilon, "{changes:?}");
                assert!(device.spent_provable >= spent[device.device as usize], "{changes:?}");
                spent[device.device as usize] = device.spent_provable;
            }
        }
        let privacy = federation.privacy().unwrap();
        assert_eq!(privacy.epsilon_provable, epsilon);
        assert!(privacy.epsilon_spent <= epsilon && privacy.epsilon_spent > 0.3 * epsilon);
        let ledger = Ledger::open_read_only(&path).unwrap();
        for device in 0..4 {
            let history = ledger.history("run", device).unwrap();
            let cost = cost(history.iter().map(|recorded| &recorded.event));
            assert!(cost <= epsilon * (1.0 + 1e-9), "{changes:?}: {cost}");
        }
    }
}

/// The least that RDP, PLD or GDP prove at δ = 10⁻⁵.
fn cost<'a>(events: impl Iterator<Item = &'a Event> + Clone) -> f64 {
    let total = |mut accountant: Box<dyn Accountant>| -> Option<f64> {
        for event in events.clone() {
            accountant.compose(&event.mechanism().unwrap(), 1).ok()?;
        }
        accountant.epsilon(1e-5).ok()
    };
    let accountants: [Box<dyn Accountant>; 3] =
        [Box::<Rdp>::default(), Box::<Pld>::default(), Box::new(gdp::Gdp::new())];
    accountants.into_iter().filter_map(total).fold(f64::INFINITY, f64::min)
}

/// On the paper's basis the claims add up to ε^T and the proof is for Δ = 2C: μ² by hand.
#[test]
fn the_paper_s_claim_and_what_can_be_proved() {
    let mut federation =
        federation(&["profile=paper", "privacy.epsilon=8", "privacy.allocator=uniform"]);
    let mut mu_squared = [0.0f64; 4];
    for _ in 0..6 {
        let record = federation.next_round().unwrap();
        for device in devices(&record) {
            // C = 5 by default.
            mu_squared[device.device as usize] += (10.0 / device.sigma_artificial).powi(2);
            assert!((device.epsilon - 8.0 / 24.0).abs() < 1e-12);
        }
    }
    let worst = mu_squared.iter().fold(0.0f64, |a, &b| a.max(b));
    let privacy = federation.privacy().unwrap();
    assert!(
        (privacy.epsilon_claimed_total - 8.0).abs() < 1e-9,
        "{}",
        privacy.epsilon_claimed_total
    );
    let exact = gdp::epsilon(worst.sqrt(), 1e-5).unwrap();
    assert!((privacy.epsilon_provable / exact - 1.0).abs() < 1e-9);
    assert!(privacy.epsilon_provable > 1000.0 && privacy.privacy.contains("times that"));
}

/// Nothing but the noisy gradient leaves a device: with noise, batch norm takes its statistics from
/// the base station's own images, and no raw value enters the records of a real release.
#[test]
fn real_releases_record_only_what_the_base_station_sees() {
    let changes = ["privacy.epsilon=1", "run.entropy=os"];
    let mut unrecorded = federation(&changes);
    assert!(unrecorded.next_round().unwrap_err().to_string().contains("need a ledger in a file"));
    let place = tempfile::tempdir().unwrap();
    let recorded = |name: &str| {
        let ledger = Ledger::open(&place.path().join(name)).unwrap();
        Setup::new(experiment(&changes), common::data()).unwrap().record_in(ledger, name).unwrap()
    };
    let mut federation = recorded("a");
    let record = federation.next_round().unwrap();
    for device in devices(&record) {
        assert_eq!((device.gradient_norm, device.clipped), (None, None));
    }
    let text = serde_json::to_string(&record).unwrap();
    assert!(!text.contains("gradient_norm") && !text.contains("clipped"));
    let parameters = federation.network().parameter_count() as u64;
    assert_eq!(record.uplink_bytes, 4 * parameters * devices(&record).len() as u64);
    // The same seed, and other noise.
    let mut again = recorded("b");
    again.next_round().unwrap();
    assert_ne!(again.model().parameters, federation.model().parameters);
}

/// Without noise ε is infinite from the first round on, claimed and provable.
#[test]
fn no_noise_is_infinite() {
    let mut federation = federation(&[]);
    let record = federation.next_round().unwrap();
    for device in devices(&record) {
        assert_eq!(device.sigma_artificial, 0.0);
        assert_eq!(
            [device.epsilon, device.spent_claimed, device.spent_provable],
            [f64::INFINITY; 3]
        );
    }
    assert_eq!(federation.privacy().unwrap().epsilon_provable, f64::INFINITY);
}

/// Under add-remove adjacency the number of records is private: weights and batches know only n̂.
#[test]
fn add_remove_hides_the_number_of_records() {
    let mut federation = federation(&["privacy.epsilon=1", "privacy.adjacency=add-remove"]);
    let record = federation.next_round().unwrap();
    for device in devices(&record) {
        assert_eq!((device.samples, device.weight), (90, 0.25));
    }
    let Some(filter) = federation.books().declared(0) else { panic!("a filter") };
    let mechanism = federation.books().release(0).mechanism();
    assert_eq!(filter.budget().epsilon(), 1.0);
    // No noise yet in the declaration; the release of a round has it.
    assert_eq!(mechanism.unwrap(), Mechanism::NonPrivate);
    assert_eq!(federation.books().release(0).adjacency, Adjacency::AddRemove);
}
