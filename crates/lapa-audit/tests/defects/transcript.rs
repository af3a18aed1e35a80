//! Noise that is not as the ledger says, in what was received.

use lapa::seed::{Purpose, stream};
use lapa_audit::ledger::{Checks, ReceivedUpdate};
use lapa_privacy::sampler::release_gaussian;

use super::*;

const COORDINATES: usize = 5000;
const DEVICES: u32 = 3;

/// An upload; its noise is from a stream of (seed, round, device).
fn send(sigma: f64, stream_of: (u64, u64)) -> Vec<f32> {
    // Gradients that are large in a few coordinates.
    let gradient: Vec<f64> =
        (0..COORDINATES).map(|i| if i % 10 == 0 { 0.3 } else { 1e-3 }).collect();
    let mut rng = stream(3, Purpose::Noise, stream_of.0, stream_of.1);
    let mut sent = Vec::new();
    release_gaussian(&gradient, sigma, &mut rng, &mut sent).unwrap();
    sent
}

/// The checks on a transcript whose noise has the standard deviation `sigma` and is drawn from the
/// stream that `stream_of` names, while 0.1 is declared.
fn checks(sigma: f64, stream_of: impl Fn(u32, u32) -> (u64, u64)) -> Checks {
    let mut checks = Checks::new();
    for round in 1..=4 {
        let sent: Vec<Vec<f32>> =
            (0..DEVICES).map(|device| send(sigma, stream_of(round, device))).collect();
        let heard: Vec<ReceivedUpdate<'_>> = (0..)
            .zip(&sent)
            .map(|(device, sent)| ReceivedUpdate { device, gradient: sent, sigma: 0.1 })
            .collect();
        checks.observe(round, &heard);
    }
    checks
}

fn p_values(checks: &Checks) -> [f64; 3] {
    [checks.noise, checks.devices, checks.rounds].map(|worst| worst.corrected())
}

/// True for each family of tests that contradicts the ledger: less noise, two devices, two rounds.
fn contradicts(checks: &Checks) -> [bool; 3] {
    p_values(checks).map(|p_value| p_value <= ALPHA / 4.0)
}

fn own(round: u32, device: u32) -> (u64, u64) {
    (round.into(), device.into())
}

#[test]
fn an_honest_transcript_passes() {
    let honest = checks(0.1, own);
    assert_eq!(contradicts(&honest), [false; 3], "{:?}", p_values(&honest));
}

#[test]
fn half_the_noise_shows_in_the_transcript() {
    assert!(contradicts(&checks(0.05, own))[0]);
}

#[test]
fn noise_that_is_drawn_once_and_reused_is_caught() {
    let reused = checks(0.1, |_, device| (0, device.into()));
    assert_eq!(contradicts(&reused), [false, false, true], "{:?}", p_values(&reused));
}

#[test]
fn seeds_that_two_devices_share_are_caught() {
    let shared = checks(0.1, |round, device| (round.into(), device.min(1).into()));
    assert_eq!(contradicts(&shared), [false, true, false], "{:?}", p_values(&shared));
    assert_eq!((shared.devices.place.1, shared.devices.place.2), (1, 2));
}
