//! Batches that are not as declared.

use lapa_privacy::accountant::Pld;
use lapa_privacy::{Budget, Mechanism, calibrate};

use super::*;

/// Poisson batches of a tenth, with noise that makes ε = 1 of them.
fn sampled() -> Device {
    let rate = 0.1;
    let template = Mechanism::poisson(rate, 1.0, Adjacency::ZeroOut);
    let budget = Budget::new(CLAIM.epsilon_provable, CLAIM.delta).unwrap();
    let noise = calibrate::noise_multiplier(budget, template, ROUNDS as u32, Pld::default).unwrap();
    let denominator = rate * f64::from(RECORDS);
    let mut device = sound();
    device.learn.batch_fraction = rate;
    device.batches.sampling = BatchSampling::Poisson;
    for release in &mut device.releases {
        release.adjacency = Adjacency::ZeroOut;
        release.sampling = Sampling::Poisson { rate };
        release.denominator = denominator;
        release.sigma_artificial = noise / denominator;
    }
    device
}

/// All records instead of a tenth, divided as declared. Caught without any assumption, since the
/// claim is not one about plain Gaussian noise.
#[test]
fn a_wrong_sampling_rate_is_caught() {
    let declared = sampled();
    assert_passes(&audit(&releases(&declared), &declared, false));
    let mut damaged = declared.clone();
    damaged.learn.batch_fraction = 1.0;
    damaged.batches.public_samples = 10;
    assert_refuted(&audit(&releases(&damaged), &declared, false));
}
