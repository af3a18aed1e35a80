//! Clips that do not hold.

use lapa::config::{BatchSampling, Clip};
use lapa::seed::{Purpose, stream};
use lapa_audit::AuditError;
use lapa_audit::mechanism::{Device, DeviceReleases, Neighbors, Releases};
use lapa_privacy::ClipUnit;
use lapa_privacy::sampler::add_gaussian;

use super::*;

#[test]
fn no_clipping_is_caught() {
    let declared = sound();
    let mut damaged = declared.clone();
    damaged.learn.clip_norm = Some(1e6);
    assert_refuted(&audit(&releases(&damaged), &declared, true));
}

/// The noise is for 2C/n, but the mean of the batch is clipped as a whole and moves by 2C.
#[test]
fn a_device_level_clip_that_is_claimed_as_per_sample_is_caught() {
    let declared = sound();
    let mut damaged = declared.clone();
    damaged.learn.clip = Clip::Device;
    assert_refuted(&audit(&releases(&damaged), &declared, true));
    // Its twin has noise for 2C, and draws fixed batches, which the claim does not count on.
    for sampling in [BatchSampling::Full, BatchSampling::Fixed] {
        let mut honest = damaged.clone();
        honest.batches.sampling = sampling;
        if sampling == BatchSampling::Fixed {
            honest.learn.batch_fraction = 0.25;
        }
        for release in &mut honest.releases {
            release.clip = ClipUnit::Device;
            release.sigma_artificial *= f64::from(RECORDS);
        }
        let finding = audit(&releases(&honest), &honest, true);
        assert_passes(&finding);
    }
}

/// Compares a norm that is not a number, finds it not too long, and clips nothing.
struct NanDisablesTheClip {
    device: Device,
    /// Treatment of coordinates that are not numbers, after the clip.
    instead: f32,
}

impl Releases for NanDisablesTheClip {
    fn vectors(&self, with: bool, draw: u64) -> Result<Vec<f32>, AuditError> {
        let mut rng = stream(2, Purpose::Audit, with.into(), draw);
        let mut released = Vec::new();
        for release in &self.device.releases {
            let mut gradient = if with { [f32::NAN, 50.0, 0.0, 0.0, 0.0, 0.0] } else { [0.0; 6] };
            let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
            let factor = if norm > 1.0 { 1.0 / norm } else { 1.0 };
            for value in &mut gradient {
                *value *= factor / release.denominator as f32;
                *value = if value.is_nan() { self.instead } else { *value };
            }
            add_gaussian(&mut gradient, release.sigma_artificial, &mut rng).unwrap();
            released.extend(gradient);
        }
        Ok(released)
    }
}

#[test]
fn a_nan_that_disables_the_clip_is_caught() {
    let device = sound();
    let twin = DeviceReleases::new(device.clone(), Neighbors::NotFinite, 1).unwrap();
    let test = Distinguisher::energy(&twin);
    for instead in [f32::NAN, 0.0] {
        let damaged = NanDisablesTheClip { device: device.clone(), instead };
        assert_refuted(&audit_by(&test, &damaged, true));
    }
    // The code that runs takes such a record for one of zero gradient: the two inputs are the same.
    let finding = audit_by(&test, &twin, true);
    assert_passes(&finding);
    assert_eq!((finding.epsilon_lower, finding.epsilon_lower_gdp), (Some(0.0), Some(0.0)));
}
