//! Damaged mechanisms, each with its sound twin, at a claim of ε = 1. No configuration reaches them.

mod clip;
mod noise;
mod sampling;
mod transcript;

use lapa::config::{BatchSampling, Clip, Experiment, Learn, Update};
use lapa::device::Batches;
use lapa_audit::mechanism::{
    Bounds, Device, DeviceReleases, Distinguisher, Neighbors, Releases, draw,
};
use lapa_audit::{Attack, Finding, Statement, Verdict};
use lapa_privacy::accountant::gdp;
use lapa_privacy::{Adjacency, ClipUnit, NoiseKind, Release, Sampling};

/// The claim of every mechanism here.
const CLAIM: Statement =
    Statement { epsilon_claimed_total: 1.0, epsilon_provable: 1.0, delta: 1e-5 };
/// Draws per input.
const DRAWS: u64 = 5000;
/// 1 − the confidence of bounds and verdicts; seeds are fixed.
const ALPHA: f64 = 0.01;
/// Releases of a run.
const ROUNDS: usize = 5;
/// Records of a device.
const RECORDS: u32 = 100;

fn learn() -> Learn {
    Learn {
        update: Update::Gradient,
        local_epochs: 1,
        sampling: BatchSampling::Full,
        batch_fraction: 1.0,
        learning_rate: 0.1,
        momentum: 0.0,
        averaging: 0.0,
        weight_decay: 0.0,
        clip: Clip::Sample,
        clip_norm: Some(1.0),
    }
}

/// A release of all records, clipped per sample to 1, with noise of σ.
fn release(sigma_artificial: f64) -> Release {
    Release {
        clip: ClipUnit::Sample,
        clip_norm: 1.0,
        denominator: RECORDS.into(),
        records: RECORDS,
        learning_rate: 0.1,
        adjacency: Adjacency::ReplaceOne,
        sampling: Sampling::Full,
        noise: NoiseKind::Gaussian,
        sigma_artificial,
        sigma_channel: 0.0,
        kappa: 0.0,
        shared_channel: false,
    }
}

/// A device whose releases are worth ε = 1 exactly: μ²= ROUNDS·(Δ/σ)² with Δ = 2C/n.
fn sound() -> Device {
    let mu = gdp::mu(CLAIM.epsilon_provable, CLAIM.delta).unwrap();
    let sigma = 2.0 / f64::from(RECORDS) * (ROUNDS as f64).sqrt() / mu;
    Device {
        learn: learn(),
        batches: Batches {
            sampling: BatchSampling::Full,
            public_samples: RECORDS,
            zero_if_not_finite: true,
            keeps_places: true,
        },
        grid: None,
        releases: vec![release(sigma); ROUNDS],
    }
}

fn releases(device: &Device) -> DeviceReleases {
    DeviceReleases::new(device.clone(), Neighbors::Longest, 1).unwrap()
}

/// The finding on a mechanism, tested as `declared` says that it is. `gaussian`: whether the claim
/// is about plain Gaussian noise.
fn audit(audited: &dyn Releases, declared: &Device, gaussian: bool) -> Finding {
    let test = Distinguisher::new(&releases(declared)).unwrap();
    audit_by(&test, audited, gaussian)
}

fn audit_by(test: &Distinguisher, audited: &dyn Releases, gaussian: bool) -> Finding {
    let scores = draw(audited, test, DRAWS, &mut |_| Ok(())).unwrap();
    let bounds = Bounds::new(&scores, CLAIM.delta, ALPHA / 2.0);
    Finding::new(Attack::Mechanism, &CLAIM, 1.0 - ALPHA)
        .judge(bounds.epsilon_lower, gaussian.then_some(bounds.epsilon_lower_gdp))
}

fn assert_refuted(finding: &Finding) {
    assert_eq!(finding.verdict, Verdict::Refuted, "{finding:?}");
}

fn assert_passes(finding: &Finding) {
    assert_eq!(finding.verdict, Verdict::NotRefuted, "{finding:?}");
}

/// The sound twin of most: and the bounds are not far from the truth.
#[test]
fn the_sound_mechanism_passes() {
    let device = sound();
    let finding = audit(&releases(&device), &device, true);
    assert_passes(&finding);
    assert!(finding.epsilon_lower_gdp.unwrap() > 0.6, "{finding:?}");
    // Nothing of the default configuration differs from what is declared here.
    assert_eq!(Experiment::default().delta(), CLAIM.delta);
}
