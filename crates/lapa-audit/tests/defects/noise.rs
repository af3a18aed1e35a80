//! Too little noise.

use super::*;

#[test]
fn half_the_noise_is_caught() {
    let declared = sound();
    let mut damaged = declared.clone();
    damaged.releases.iter_mut().for_each(|release| release.sigma_artificial /= 2.0);
    assert_refuted(&audit(&releases(&damaged), &declared, true));
}

/// σ = Δs·√(2 ln(1.25/δ))/ε with Δs = 2λC/|D_k| (the paper's eq. (18)): with λ = 1 it would be sound
/// for one release of clipped samples.
#[test]
fn the_printed_sensitivity_with_the_learning_rate_in_it_is_caught() {
    let with_rate = |learning_rate: f64| {
        let mut device = sound();
        device.releases.truncate(1);
        let release = &mut device.releases[0];
        release.learning_rate = learning_rate;
        release.sigma_artificial = release.claimed_sigma(1.0, CLAIM.delta);
        audit(&releases(&device), &device, true)
    };
    assert_refuted(&with_rate(0.1));
    assert_passes(&with_rate(1.0));
}

/// 1 and 1 are required of two devices, the channel has 0.1 and 1.9, and in the sum that suffices
/// (the paper's eq. (23)): no artificial noise. The first device has a tenth of what it needs.
#[test]
fn the_under_noised_device_of_the_sum_rule_is_caught() {
    let on_channel = |share: f64| {
        let mut device = sound();
        for release in &mut device.releases {
            release.sigma_channel = share * release.sigma_artificial;
            release.kappa = 1.0;
            release.sigma_artificial = 0.0;
        }
        audit(&releases(&device), &device, true)
    };
    assert_refuted(&on_channel(0.1));
    assert_passes(&on_channel(1.9));
    // By each device's own channel, the first one adds all that it needs.
    let mut own = sound();
    for release in &mut own.releases {
        release.sigma_channel = 0.1 * release.sigma_artificial;
        release.kappa = 1.0;
    }
    assert_passes(&audit(&releases(&own), &own, true));
}
