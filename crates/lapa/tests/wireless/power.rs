//! E|p·s|² ≤ p²: what is sent as amplitudes keeps to its power, whatever the data.

use lapa::budget::power_scale;
use lapa_privacy::{ClipUnit, Release, Sampling};

use super::*;

/// The mean of |s|² over the coordinates and the artificial noise, for a gradient of this norm.
fn mean_power(norm: f64, release: &Release, steps: u32) -> f64 {
    let q = COORDINATES as f64;
    let scale = power_scale(release, steps, 1.0, COORDINATES).unwrap();
    (norm * norm / q + release.sigma_artificial.powi(2)) / (scale * scale)
}

/// With a clipping norm so small that every sample is clipped, on devices with one label, whose
/// gradients point nearly the same way: as close to the bound as gradients come. Of Poisson batches
/// only the mean is bounded: it is not 5 standard deviations above 1 (α = 3·10⁻⁷, by the central
/// limit theorem over 30 rounds).
#[test]
fn updates_keep_to_their_power() {
    let close = [
        "partition.mix.labels=1",
        "partition.mix.non_iid_samples=[30, 45]",
        "learn.clip_norm=1e-3",
        "learn.learning_rate=1e-3",
    ];
    for (changes, steps, always) in [
        (&["learn.clip=device"][..], 1, true),
        (&["learn.clip=device", "learn.update=epoch"], 4, true),
        (&["learn.clip=sample"], 1, true),
        (&["learn.clip=sample", "learn.update=epoch"], 4, true),
        (&["learn.clip=sample", "learn.update=epoch", "learn.local_epochs=2"], 8, true),
        (&["learn.sampling=full", "learn.batch_fraction=1"], 1, true),
        // Batches of about 15 to 30 samples and of about 1: only their mean is bounded.
        (&["learn.sampling=poisson"], 1, false),
        (&["learn.sampling=poisson", "learn.batch_fraction=0.015"], 1, false),
        (&["privacy.epsilon=8"], 1, false),
        (&["privacy.epsilon=8", "learn.sampling=fixed"], 1, true),
        (&["profile=paper", "privacy.epsilon=8"], 1, true),
    ] {
        let mut federation = federation(&[&close[..], changes].concat());
        let clip = 1e-3f64;
        let mut powers = vec![Vec::new(); 4];
        for _ in 0..30 {
            let record = federation.next_round().unwrap();
            for device in devices(&record) {
                let mut release = federation.books().release(device.device).clone();
                release.sigma_artificial = device.sigma_artificial;
                let norm = device.gradient_norm.unwrap();
                let sent = if release.clip == ClipUnit::Device { norm.min(clip) } else { norm };
                powers[device.device as usize].push(mean_power(sent, &release, steps));
            }
        }
        let all: Vec<f64> = powers.concat();
        for powers in powers {
            let n = powers.len() as f64;
            let mean = powers.iter().sum::<f64>() / n;
            let variance = powers.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let least = mean - 5.0 * (variance / n).sqrt();
            assert!(least <= 1.0, "{changes:?}: {mean}");
        }
        if always {
            // Where noise is nearly all of it, the root of the scale rounds either way.
            assert!(all.iter().all(|&power| power <= 1.0 + 1e-12), "{changes:?}");
        }
        let largest = all.into_iter().fold(0.0, f64::max);
        assert!(largest > 0.1, "{changes:?}: {largest} is far from the bound");
    }
}

/// The worst case by hand: samples whose clipped gradients are all the same vector of norm C.
#[test]
fn the_scale_is_that_of_the_worst_gradient() {
    let release = federation(&["privacy.epsilon=8"]).books().release(0).clone();
    let release = Release { clip_norm: 3.0, ..release };
    let q = COORDINATES as f64;
    let scale =
        |release: &Release, steps: u32| power_scale(release, steps, 1.0, COORDINATES).unwrap();
    for sigma in [0.0, 1e-4, 0.02, 5.0] {
        let noisy = Release { sigma_artificial: sigma, ..release.clone() };
        let device = Release { clip: ClipUnit::Device, ..noisy.clone() };
        let fixed = Release { sampling: Sampling::Fixed, ..noisy.clone() };
        for steps in [1, 10] {
            assert_close(scale(&device, steps).powi(2), 9.0 / q + sigma * sigma, 1e-12);
            let sum = 3.0 * f64::from(steps);
            assert_close(scale(&fixed, steps).powi(2), sum * sum / q + sigma * sigma, 1e-12);
        }
        // b of n samples, each with chance r: E[b²] = (n·r)² + n·r·(1 − r), divided by (n·r)².
        for (n, rate) in [(100.0, 0.25), (60.0, 0.01), (1000.0, 1.0)] {
            let expected: f64 = n * rate;
            let moment = 1.0 + (1.0 - rate) / expected;
            let poisson = Release {
                sampling: Sampling::Poisson { rate },
                denominator: expected,
                ..noisy.clone()
            };
            let power = (moment * 9.0 / q + sigma * sigma) / scale(&poisson, 1).powi(2);
            assert!(power <= 1.0 && power > 1.0 / (1.0 + rate / expected) - 1e-12, "{power}");
        }
    }
}
