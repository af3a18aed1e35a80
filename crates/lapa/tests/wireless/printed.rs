//! Forms as the paper prints them, each by its key, against the printed formula.

use lapa::observe::NoiseMode;
use lapa_privacy::accountant::gdp;

use super::channel::release;
use super::noise_control::arrives_beside;
use super::runs::{contents, create, finish, resume, stop_after};
use super::*;

const PAPER: [&str; 4] =
    ["profile=paper", "privacy.epsilon=8", "privacy.allocator=lapa", "transmit.uplink=analog"];

/// Eq. (19): CN(0, σ²), of which a real coordinate carries σ²/2. The claim counts σ², the proof what
/// is there: μ² = Σ(2C)²/(σ²/2). Chi-square over 7850 coordinates, α = 10⁻⁶ on either side.
#[test]
fn complex_noise_has_half_of_its_variance_on_the_real_part() {
    let complex = ["profile=paper", "privacy.epsilon=8", "privacy.noise=complex-gaussian"];
    let (errors, device) = arrives_beside(&["profile=paper"], &complex);
    let real = device.sigma_required.powi(2) / 2.0;
    assert_close(device.sigma_artificial.powi(2), real, 1e-12);
    assert_chi_square(errors.iter().map(|e| e * e / real).sum(), COORDINATES, "real part");

    let mut recording = Recording::new(&[&complex[..], &["privacy.allocator=uniform"]].concat());
    recording.rounds(6);
    let spent = recording.federation.privacy().unwrap();
    let clip = recording.federation.experiment().learn.clip_norm.unwrap();
    let worst = (0..4).map(|device| -> f64 {
        let sigmas = recording.history(device);
        sigmas.iter().map(|entry| (2.0 * clip / release(entry).sigma_artificial).powi(2)).sum()
    });
    let proven = gdp::epsilon(worst.fold(0.0, f64::max).sqrt(), 1e-5).unwrap();
    assert_close(spent.epsilon_provable, proven, 1e-9);
    assert_close(spent.epsilon_claimed_total, 8.0, 1e-9);
}

/// Section II-B prints ŝ_k = s_k + σ/(p_k‖h_k‖): variance c²/SNR on a coordinate.
#[test]
fn the_full_variance_is_twice_that_of_the_real_part() {
    let full = ["transmit.uplink=analog", "transmit.analog.variance=full", "learn.clip=device"];
    let (errors, device) = arrives_beside(&["learn.clip=device"], &full);
    let clip = experiment(&full).learn.clip_norm.unwrap();
    let scale_squared = clip * clip / COORDINATES as f64;
    let printed = scale_squared / ratio(device.sinr_db);
    assert_close(device.sigma_channel.powi(2), printed, 1e-9);
    assert_chi_square(errors.iter().map(|e| e * e / printed).sum(), COORDINATES, "full variance");
}

/// A fixed scale c² = C²/q + σ_c², σ_c five times the largest noise of round 1: the receiver's noise is
/// c√ν in every round, whatever artificial noise is added.
#[test]
fn a_fixed_scale_keeps_the_noise_of_the_channel_constant() {
    for noise in ["always", "top-up", "switch"] {
        let (recording, records) = fixed(noise, "5");
        let clip = recording.federation.experiment().learn.clip_norm.unwrap();
        let room = 5.0 * first_noise(&records);
        let mut more = 0;
        for record in &records {
            for device in devices(record) {
                let scale_squared = clip * clip / COORDINATES as f64 + room * room;
                let nu = 0.5 / ratio(device.sinr_db);
                assert_close(device.sigma_channel.powi(2), scale_squared * nu, 1e-9);
                let counted = device.sigma_artificial.powi(2) + device.sigma_channel.powi(2);
                assert!(counted.sqrt() >= device.sigma_required * (1.0 - 1e-9), "{noise}");
                more += u32::from(device.sigma_required > 1.1 * room / 5.0);
            }
        }
        assert!(more > 0, "{noise}: later rounds ask for more than round 1");
        assert!(!recording.warnings.iter().any(|warning| warning.contains("room")));
    }
}

/// A release with more noise than the scale has room for has its own, or it would break eq. (5): the
/// run warns once.
#[test]
fn noise_beyond_a_fixed_scale_is_scaled_down_and_said() {
    let (recording, records) = fixed("always", "1");
    let clip = recording.federation.experiment().learn.clip_norm.unwrap();
    let first = first_noise(&records);
    let mut beyond = 0;
    for record in &records {
        for device in devices(record) {
            let most = device.sigma_artificial.max(first);
            let scale_squared = clip * clip / COORDINATES as f64 + most * most;
            let nu = 0.5 / ratio(device.sinr_db);
            assert_close(device.sigma_channel.powi(2), scale_squared * nu, 1e-9);
            beyond += u32::from(device.sigma_artificial > first);
        }
    }
    assert!(beyond > 1);
    let said = recording.warnings.iter().filter(|warning| warning.contains("transmit.fixed.room"));
    assert_eq!(said.count(), 1);
}

/// Six rounds of LAPA with a fixed scale that has `room`.
fn fixed(noise: &str, room: &str) -> (Recording, Vec<RoundRecord>) {
    let (noise, room) = (format!("control.noise={noise}"), format!("transmit.fixed.room={room}"));
    let radio = ["transmit.access=orthogonal", "transmit.scale=fixed", &room, &noise];
    let changes = [&PAPER[..], &radio, &["privacy.channel_trust=1"]].concat();
    let mut recording = Recording::new(&changes);
    let records = recording.rounds(6);
    (recording, records)
}

/// The largest required noise of round 1.
fn first_noise(records: &[RoundRecord]) -> f64 {
    devices(&records[0]).iter().map(|d| d.sigma_required).fold(0.0, f64::max)
}

/// Scale 1: whatever artificial noise there is room for, the receiver's noise is √ν.
#[test]
fn a_scale_of_one_sends_coordinates_as_they_are() {
    let radio = ["transmit.uplink=analog", "transmit.scale=unit"];
    let privacy = ["profile=paper", "privacy.allocator=lapa", "privacy.initial_sigma=0.2"];
    let mut recording = Recording::new(&[&privacy[..], &radio].concat());
    let mut quiet = 0;
    for record in &recording.rounds(4) {
        for device in devices(record) {
            let clip = recording.federation.experiment().learn.clip_norm.unwrap();
            let own = clip * clip / COORDINATES as f64 + device.sigma_artificial.powi(2);
            let nu = 0.5 / ratio(device.sinr_db);
            assert_close(device.sigma_channel.powi(2), own.max(1.0) * nu, 1e-9);
            quiet += u32::from(own < 1.0);
        }
    }
    assert!(quiet >= 4, "round 1 at least");
}

/// Eq. (23) with one T_th: channels that change every round cross the sum both ways, and a latched
/// switch stays, also after an interruption.
#[test]
fn a_latched_switch_never_returns() {
    let of = |rule: &str| {
        let changes = ["privacy.channel_trust=1", "control.noise=switch", "radio.redraw_every=1"];
        let radio = ["transmit.access=orthogonal", "run.rounds=12"];
        let rule = format!("control.switch.rule={rule}");
        let all = [&PAPER[..], &changes, &radio].concat();
        all.into_iter().map(str::to_owned).chain([rule]).collect::<Vec<String>>()
    };
    let run = |rule: &str, noise: f64| -> Vec<(NoiseMode, f64)> {
        let mut changes = of(rule);
        changes.push(format!("radio.noise_power_w={noise:e}"));
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let required = |record| devices(record).iter().map(|device| device.sigma_required).sum();
        let records = Recording::new(&changes).rounds(12);
        records.iter().map(|record| (record.noise_mode.unwrap(), required(record))).collect()
    };
    let suffices = |(mode, _): &(NoiseMode, f64)| *mode == NoiseMode::Channel;
    // The first noise power at which the sum crosses, and crosses back, and the latch crosses at all.
    let powers = (0..60).map(|step| 1e-14 * 1.2f64.powi(step));
    let both = powers.map(|noise| (noise, run("sum", noise), run("sum-latched", noise)));
    let crosses = |rounds: &[(NoiseMode, f64)]| rounds.iter().position(suffices);
    let (noise, first, latched, switch) = both
        .into_iter()
        .find_map(|(noise, sum, latched)| {
            let first = crosses(&sum).filter(|&at| at > 0 && !sum[at..].iter().all(suffices))?;
            let switch = crosses(&latched)?;
            Some((noise, first, latched, switch))
        })
        .unwrap();
    assert!(latched[switch..].len() > 1 && latched[switch..].iter().all(suffices), "{latched:?}");
    // The latch waits for a fall.
    assert!(switch >= first && latched[switch].1 <= latched[switch - 1].1, "{latched:?}");

    let place = TempDir::new().unwrap();
    let mut changes = of("sum-latched");
    changes.push(format!("radio.noise_power_w={noise:e}"));
    changes.push("run.checkpoint_every=1".into());
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    let (whole, broken) = (place.path().join("whole"), place.path().join("broken"));
    finish(create(&changes, &whole));
    stop_after(create(&changes, &broken), switch as u32 + 1);
    finish(resume(&broken));
    assert_eq!(contents(&whole), contents(&broken));
}

/// Sections II-B and IV-A: the paper counts the receiver's noise over NOMA with perfect cancellation.
/// Its claim does so here, with a warning; the proof counts artificial noise alone.
#[test]
fn noise_that_devices_share_is_claimed_and_not_proven() {
    let changes = ["privacy.channel_trust=1", "radio.noise_power_w=1e-6", "control.noise=switch"];
    let changes = [&PAPER[..], &changes].concat();
    let mut recording = Recording::new(&changes);
    let records = recording.rounds(6);
    assert!(recording.warnings.iter().any(|warning| warning.contains("over NOMA")));
    assert_eq!(records[5].noise_mode, Some(NoiseMode::Channel));
    assert_eq!(records[5].under_noised, 0, "as the paper counts");
    let spent = recording.federation.privacy().unwrap();
    assert_eq!(spent.epsilon_provable, f64::INFINITY);
    assert!(spent.epsilon_claimed_total <= 8.0 * (1.0 + 1e-9));
    for entry in recording.history(0) {
        assert!(release(&entry).shared_channel && entry.cost == f64::INFINITY);
    }
    let orthogonal = [&changes[..], &["transmit.access=orthogonal"]].concat();
    let mut own = Recording::new(&orthogonal);
    own.rounds(6);
    assert!(own.federation.privacy().unwrap().epsilon_provable.is_finite());
}

/// Runs that differ in the training seed alone have the same devices and links, and other noise.
#[test]
fn a_training_seed_changes_noise_and_neither_devices_nor_links() {
    let changes = ["privacy.epsilon=4", "transmit.uplink=analog", "radio.redraw_every=1"];
    let of = |more: &str| {
        let mut federation = federation(&[&changes[..], &[more]].concat());
        let record = federation.next_round().unwrap();
        let links: Vec<_> = devices(&record).iter().map(|d| (d.samples, d.sinr_db)).collect();
        (
            federation.records().dealt().unwrap().clone(),
            links,
            federation.model().parameters.clone(),
        )
    };
    let (plain, same, other) =
        (of("run.seed=3"), of("run.training_seed=3"), of("run.training_seed=4"));
    assert_eq!(plain, same);
    assert_eq!((&plain.0, &plain.1), (&other.0, &other.1));
    assert_ne!(plain.2, other.2);
}
