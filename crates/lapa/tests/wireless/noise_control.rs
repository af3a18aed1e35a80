//! Channel noise in place of artificial noise: who adds how much, what that costs, and what is
//! reported of it.

use std::fs;

use lapa::error::FederationError;
use lapa::observe::{DeviceRecord, NoiseMode, read_metrics};
use lapa::optimize::PowerChoice;
use lapa::run::{SwitchingRound, UnderNoised, read_summary};
use lapa_privacy::FilterKind;

use super::channel::{ANALOG, release, renyi};
use super::runs::{contents, create, finish, kill_in_round_three, resume, stop_after};
use super::*;

const PAPER: [&[&str]; 2] = [
    &["profile=paper", "privacy.epsilon=8", "privacy.allocator=lapa"],
    &["profile=paper", "privacy.epsilon=8", "privacy.allocator=uniform"],
];

const CERTIFIED: [&[&str]; 4] = [
    &["privacy.epsilon=2", "learn.sampling=fixed"],
    &[
        "privacy.epsilon=1",
        "privacy.allocator=lapa",
        "learn.sampling=full",
        "learn.batch_fraction=1",
    ],
    &["privacy.epsilon=4"],
    &["privacy.epsilon=4", "privacy.allocator=lapa"],
];

const ROUNDS: u32 = 6;

/// A run over channels that change every round, and what the test must know of it.
struct Case {
    changes: Vec<String>,
    /// κ
    trust: f64,
    clip: f64,
    batch_fraction: f64,
    poisson: bool,
}

impl Case {
    fn new(kind: &[&str], trust: f64) -> Self {
        let changes = [kind, &ANALOG, &["radio.redraw_every=1"]].concat();
        let experiment = experiment(&changes);
        let mut changes: Vec<String> = changes.iter().map(|&change| change.into()).collect();
        changes.push(format!("privacy.channel_trust={trust}"));
        Self {
            changes,
            trust,
            clip: experiment.learn.clip_norm.unwrap(),
            batch_fraction: experiment.learn.batch_fraction,
            poisson: experiment.learn.sampling == lapa::config::BatchSampling::Poisson,
        }
    }

    fn with(mut self, change: &str) -> Self {
        self.changes.push(change.into());
        self
    }

    /// κ·c₀²ν: what counts of the receiver's noise on an update without artificial noise, with
    /// c₀² = C²/q, and (1 + 1/b̄)C²/q for Poisson batches.
    fn counted(&self, device: &DeviceRecord) -> f64 {
        let batch = self.batch_fraction * f64::from(device.samples);
        let spread = if self.poisson { 1.0 + 1.0 / batch } else { 1.0 };
        let scale_squared = spread * self.clip * self.clip / COORDINATES as f64;
        self.trust * scale_squared / (2.0 * ratio(device.sinr_db))
    }

    fn flags(&self) -> Vec<&str> {
        self.changes.iter().map(String::as_str).collect()
    }

    fn record(&self) -> (Recording, Vec<RoundRecord>) {
        let mut recording = Recording::new(&self.flags());
        let records = recording.rounds(ROUNDS);
        (recording, records)
    }

    /// With the noise power at which the channel suffices by `ratios`, one for each of what is
    /// decided, about as often as not: SNRs go by one over it.
    fn halfway(self, ratios: impl Fn(&Self, &RoundRecord) -> Vec<f64>) -> Self {
        let noise = experiment(&self.flags()).radio.noise_power_w;
        let (_, records) = self.record();
        let mut factors: Vec<f64> = records.iter().flat_map(|r| ratios(&self, r)).collect();
        factors.sort_by(f64::total_cmp);
        let power = noise * factors[factors.len() / 2] * (1.0 + 1e-6);
        self.with(&format!("radio.noise_power_w={power:e}"))
    }

    /// By how much louder the channel must be for each device.
    fn each(&self, record: &RoundRecord) -> Vec<f64> {
        let louder = |device: &DeviceRecord| device.sigma_required.powi(2) / self.counted(device);
        devices(record).iter().map(louder).collect()
    }

    /// By how much louder it must be for all of them in the sum.
    fn together(&self, record: &RoundRecord) -> Vec<f64> {
        let (channel, required) = self.sums(record);
        vec![(required / channel).powi(2)]
    }

    fn sums(&self, record: &RoundRecord) -> (f64, f64) {
        let channel = devices(record).iter().map(|device| self.counted(device).sqrt()).sum();
        (channel, devices(record).iter().map(|device| device.sigma_required).sum())
    }
}

/// Every kind of run with every share of the noise that counts.
fn cases(kinds: &[&[&str]]) -> Vec<Case> {
    let each = |kind| [0.4, 1.0].map(|trust| Case::new(kind, trust));
    kinds.iter().flat_map(|kind| each(kind)).collect()
}

fn sound() -> Vec<Case> {
    cases(&[&PAPER[..], &CERTIFIED].concat())
}

/// √(σ_a² + κσ_c²)
fn total(device: &DeviceRecord, trust: f64) -> f64 {
    (device.sigma_artificial.powi(2) + trust * device.sigma_channel.powi(2)).sqrt()
}

/// The word for a round's noise, from its devices.
fn mode(record: &RoundRecord) -> NoiseMode {
    let (mut none, mut all) = (true, true);
    for device in devices(record) {
        none &= device.sigma_artificial == 0.0;
        all &= device.sigma_artificial == device.sigma_required;
    }
    match (none, all) {
        (true, _) => NoiseMode::Channel,
        (false, true) => NoiseMode::Artificial,
        (false, false) => NoiseMode::Mixed,
    }
}

/// Under-noised devices of a round: how many, and the worst factor.
fn under_noised(record: &RoundRecord, trust: f64) -> (u32, Option<f64>) {
    let factors = devices(record).iter().map(|device| device.sigma_required / total(device, trust));
    let short: Vec<f64> = factors.filter(|&factor| factor > 1.0 + 1e-9).collect();
    (short.len() as u32, short.into_iter().reduce(f64::max))
}

#[test]
fn always_adds_what_is_required() {
    for case in sound().into_iter().chain(cases(&[&["privacy.epsilon=8"]])) {
        let case = case.halfway(Case::each);
        let (_, records) = case.record();
        for record in &records {
            assert_eq!(record.noise_mode, Some(NoiseMode::Artificial));
            assert_eq!((record.under_noised, record.under_noising), (0, None));
            for device in devices(record) {
                assert!(device.sigma_required > 0.0);
                assert_eq!(device.sigma_artificial, device.sigma_required, "{:?}", case.changes);
            }
        }
    }
    let mut silent = federation(&ANALOG);
    let record = silent.next_round().unwrap();
    assert_eq!((record.noise_mode, record.under_noised, record.under_noising), (None, 0, None));
    assert!(devices(&record).iter().all(|device| device.sigma_required == 0.0));
}

/// All or nothing, device by device, round by round.
#[test]
fn a_device_switches_when_its_own_channel_suffices() {
    for case in sound() {
        let case = case.halfway(Case::each).with("control.noise=switch");
        let (_, records) = case.record();
        let what = &case.changes;
        let mut quiet = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        for record in &records {
            assert_eq!((record.under_noised, record.under_noising), (0, None), "{what:?}");
            assert_eq!(record.noise_mode, Some(mode(record)), "{what:?}");
            for device in devices(record) {
                let suffices = case.counted(device) >= device.sigma_required.powi(2);
                let expected = if suffices { 0.0 } else { device.sigma_required };
                assert_eq!(device.sigma_artificial, expected, "{what:?}: {device:?}");
                assert!(total(device, case.trust) >= device.sigma_required * (1.0 - 1e-12));
                quiet[device.device as usize].push(suffices);
            }
        }
        let all = quiet.concat();
        assert!(all.contains(&true) && all.contains(&false), "{what:?}: {quiet:?}");
        let returns = |rounds: &Vec<bool>| rounds.windows(2).any(|pair| pair[0] && !pair[1]);
        assert!(quiet.iter().any(returns), "{what:?}: noise never comes back, {quiet:?}");
    }
}

/// Exactly what the channel leaves wanting.
#[test]
fn topping_up_makes_what_is_required() {
    for case in sound() {
        let case = case.halfway(Case::each).with("control.noise=top-up");
        let (_, records) = case.record();
        let what = &case.changes;
        let (mut parts, mut none) = (0, 0);
        for record in &records {
            assert_eq!((record.under_noised, record.under_noising), (0, None), "{what:?}");
            assert_eq!(record.noise_mode, Some(mode(record)), "{what:?}");
            for device in devices(record) {
                let (required, total) = (device.sigma_required, total(device, case.trust));
                assert!(total >= required * (1.0 - 1e-12), "{what:?}: {device:?}");
                if device.sigma_artificial > 0.0 {
                    assert_close(total, required, 1e-9);
                    assert!(device.sigma_artificial < required);
                    parts += 1;
                } else {
                    assert!(case.counted(device) >= required * required, "{what:?}");
                    none += 1;
                }
            }
        }
        assert!(parts > 0 && none > 0, "{what:?}: {parts} with noise, {none} without");
    }
}

/// The charge is the cost of just the recorded noise, is no more than the share, and keeps to
/// the budget.
#[test]
fn releases_cost_what_they_have_and_no_more_than_their_share() {
    for noise in ["switch", "top-up"] {
        for case in sound() {
            let case = case.halfway(Case::each).with(&format!("control.noise={noise}"));
            let (recording, records) = case.record();
            let what = &case.changes;
            let delta = recording.federation.experiment().delta();
            let rate = recording.federation.experiment().learn.learning_rate;
            for device in 0..4 {
                let filter = recording.federation.books().declared(device).cloned();
                let mut spent = 0.0;
                for recorded in recording.history(device) {
                    let record = &records[recorded.round as usize - 1];
                    let shown = devices(record).iter().find(|d| d.device == device).unwrap();
                    let release = release(&recorded);
                    assert_eq!(release.sigma_artificial, shown.sigma_artificial);
                    assert_eq!(release.sigma_channel, shown.sigma_channel);
                    assert_eq!(release.kappa, case.trust);
                    let (samples, sigma) = (f64::from(shown.samples), total(shown, case.trust));
                    let batch = case.batch_fraction * samples;
                    let cost = match filter.as_ref().map(|filter| filter.kind()) {
                        // Provable: Δ = 2C. Claimed: ε = (2λC/|D|)·√(2 ln(1.25/δ))/σ, at most ε_k.
                        None => {
                            let classic = (2.0 * (1.25 / delta).ln()).sqrt();
                            let claimed = 2.0 * rate * case.clip / samples * classic / sigma;
                            assert_close(shown.epsilon, claimed, 1e-9);
                            assert!(claimed <= recorded.granted * (1.0 + 1e-12), "{what:?}");
                            (2.0 * case.clip / sigma).powi(2)
                        }
                        Some(FilterKind::Gdp) => (2.0 * case.clip / batch.round() / sigma).powi(2),
                        Some(FilterKind::Renyi { order }) => {
                            let z = sigma / (case.clip / batch);
                            renyi(order, case.batch_fraction, z)
                        }
                        Some(FilterKind::Plan { .. }) => panic!("{what:?}: no plan is asked for"),
                    };
                    // Simpson's rule is right to far less than this.
                    assert_close(recorded.cost, cost, 1e-6);
                    if filter.is_some() {
                        assert!(recorded.cost <= recorded.granted, "{what:?}: {recorded:?}");
                        let exact = shown.sigma_artificial > 0.0 && noise == "top-up";
                        if exact {
                            assert_close(recorded.cost, recorded.granted, 1e-6);
                        }
                    }
                    spent += recorded.cost;
                }
                if let Some(filter) = filter {
                    assert!(spent <= filter.capacity(), "{what:?}");
                    let budget = filter.budget().epsilon();
                    let within = |d: &&DeviceRecord| d.device == device;
                    let readings = records.iter().flat_map(devices).filter(within);
                    assert!(readings.map(|d| d.spent_provable).fold(0.0, f64::max) <= budget);
                }
            }
        }
    }
}

/// By the sum all devices switch at once, and some are left with too little.
#[test]
fn the_sum_switches_all_and_says_who_has_too_little() {
    for case in cases(&PAPER) {
        let switch = ["control.noise=switch", "control.switch.rule=sum"];
        let case = case.halfway(Case::together).with(switch[0]).with(switch[1]);
        let (_, records) = case.record();
        let what = &case.changes;
        let mut short = 0;
        for record in &records {
            let (channel, required) = case.sums(record);
            let expected = match channel >= required {
                true => NoiseMode::Channel,
                false => NoiseMode::Artificial,
            };
            assert_eq!(record.noise_mode, Some(expected), "{what:?}: {channel} of {required}");
            assert_eq!(mode(record), expected, "{what:?}");
            let (count, worst) = under_noised(record, case.trust);
            assert_eq!(record.under_noised, count, "{what:?}");
            assert_eq!(record.under_noising.is_some(), worst.is_some());
            if let (Some(found), Some(worst)) = (record.under_noising, worst) {
                assert_close(found, worst, 1e-12);
            }
            short += count;
        }
        let modes: Vec<_> = records.iter().filter_map(|record| record.noise_mode).collect();
        for mode in [NoiseMode::Artificial, NoiseMode::Channel] {
            assert!(modes.contains(&mode), "{what:?}: {modes:?}");
        }
        assert!(short > 0, "{what:?}: the sum leaves nobody short");
    }
}

/// The aggregate's error in round 1, on one device: what arrives less the gradient itself.
fn arrives(changes: &[&str]) -> (Vec<f64>, DeviceRecord) {
    arrives_beside(&[], changes)
}

/// The same, where the gradient itself is that of `plain`.
pub(super) fn arrives_beside(plain: &[&str], changes: &[&str]) -> (Vec<f64>, DeviceRecord) {
    let one = ["partition.mix.iid=1", "partition.mix.non_iid=0", "learn.sampling=fixed"];
    let moved = |changes: &[&str]| -> (Vec<f64>, RoundRecord) {
        let mut federation = federation(&[&one[..], changes].concat());
        let rate = federation.experiment().learn.learning_rate;
        let before = federation.model().parameters.clone();
        let record = federation.next_round().unwrap();
        let after = &federation.model().parameters;
        let step = |(b, a): (&f32, &f32)| (f64::from(*b) - f64::from(*a)) / rate;
        (before.iter().zip(after).map(step).collect(), record)
    };
    let (gradient, _) = moved(plain);
    let (arrived, record) = moved(changes);
    let errors = arrived.iter().zip(gradient).map(|(a, g)| a - g).collect();
    (errors, devices(&record)[0].clone())
}

/// The noise on what arrives has variance σ_a² + σ_c², and what of it is not the channel's has σ_a²:
/// the channel's part is that of a run without artificial noise, times the ratio of the scales.
/// Chi-square over 7850 coordinates, α = 10⁻⁶ on either side.
#[test]
fn the_noise_that_arrives_is_that_of_the_record() {
    let (plain, quiet) = arrives(&ANALOG);
    let noise = experiment(&ANALOG).radio.noise_power_w;
    let private = [&ANALOG[..], &["privacy.epsilon=2", "privacy.channel_trust=0.4"]].concat();
    let (_, asked) = arrives(&private);
    let needed = asked.sigma_required.powi(2) / (0.4 * quiet.sigma_channel.powi(2));
    // The channel's part of what is required; above 1 it is enough.
    for (part, switched) in [(0.01, false), (0.5, false), (0.9, false), (2.0, true)] {
        let louder = part * needed;
        let power = format!("radio.noise_power_w={:e}", noise * louder);
        for control in ["control.noise=top-up", "control.noise=switch"] {
            let (errors, device) = arrives(&[&private[..], &[&*power, control]].concat());
            assert_eq!(device.sigma_artificial == 0.0, switched, "{control}, {part}");
            let variance = device.sigma_artificial.powi(2) + device.sigma_channel.powi(2);
            let squares = errors.iter().map(|error| error * error / variance).sum();
            assert_chi_square(squares, COORDINATES, &format!("{control}, {part}: all noise"));
            // The same draws of the channel, at another scale.
            let scale = device.sigma_channel / quiet.sigma_channel;
            let artificial = errors.iter().zip(&plain).map(|(all, channel)| all - scale * channel);
            if switched {
                let most = artificial.map(f64::abs).fold(0.0, f64::max);
                assert!(most < 1e-4 * device.sigma_channel, "{control}: {most} beside the channel");
            } else {
                let squares = artificial.map(|a| (a / device.sigma_artificial).powi(2)).sum();
                let what = format!("{control}, {part}: artificial noise");
                assert_chi_square(squares, COORDINATES, &what);
            }
        }
    }
}

/// T_th of each device from the rounds' records.
fn last_noisy_rounds(records: &[RoundRecord]) -> Vec<Option<u32>> {
    let mut rounds = vec![None; 4];
    for record in records {
        for device in devices(record).iter().filter(|device| device.selected) {
            let noisy = if device.sigma_artificial > 0.0 { record.round } else { 0 };
            let last = &mut rounds[device.device as usize];
            *last = Some(last.unwrap_or(0).max(noisy));
        }
    }
    rounds
}

/// The switch in summary.json follows from the rounds; it is the same after any
/// interruption, and with quantiles in place of the devices.
#[test]
fn summaries_tell_when_artificial_noise_ended() {
    let sum = ["control.noise=switch", "control.switch.rule=sum"];
    for (kind, control) in [
        (PAPER[0], &sum[..]),
        (PAPER[1], &["control.noise=switch"]),
        (CERTIFIED[0], &["control.noise=top-up"]),
        (CERTIFIED[3], &["control.noise=switch"]),
        (CERTIFIED[2], &["control.noise=always"]),
    ] {
        let case = Case::new(kind, 1.0);
        let by_sum = control.len() == 2;
        let case = case.halfway(if by_sum { Case::together } else { Case::each });
        let changes = [&case.flags()[..], control].concat();
        let place = TempDir::new().unwrap();
        let [whole, stopped, killed, brief] =
            ["whole", "stopped", "killed", "brief"].map(|name| place.path().join(name));
        finish(create(&changes, &whole));
        let records = read_metrics(&whole.join("metrics.jsonl")).unwrap();
        let summary = read_summary(&whole).unwrap().unwrap();
        let each = last_noisy_rounds(&records);
        let (expected, written) = match control[0] {
            "control.noise=always" => (None, serde_json::Value::Null),
            _ if by_sum => {
                let last = each.iter().copied().max().unwrap().unwrap();
                (Some(SwitchingRound::All(last)), last.into())
            }
            _ => (Some(SwitchingRound::Each(each.clone())), serde_json::json!(each)),
        };
        assert_eq!(summary.switching_round, expected, "{control:?}");
        let text = fs::read_to_string(whole.join("summary.json")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["switching_round"], written, "{control:?}");
        let short = records.iter().map(|record| under_noised(record, case.trust));
        let count: u64 = short.clone().map(|(count, _)| u64::from(count)).sum();
        let worst = short.filter_map(|(_, worst)| worst).reduce(f64::max);
        let UnderNoised { device_rounds, worst_factor } = summary.under_noised;
        assert_eq!((device_rounds, device_rounds > 0), (count, by_sum), "{control:?}");
        assert_eq!(worst_factor.is_some(), worst.is_some());
        if let (Some(found), Some(worst)) = (worst_factor, worst) {
            assert_close(found, worst, 1e-12);
        }

        // If the channel was all there was, nothing is left without it.
        let bare = records.iter().flat_map(devices).any(|device| device.sigma_artificial == 0.0);
        assert_eq!(bare, control[0] != "control.noise=always", "{control:?}");
        let without = summary.privacy.epsilon_without_channel;
        assert_eq!(without.is_infinite(), bare, "{control:?}");
        assert!(summary.privacy.epsilon_spent.is_finite());
        let expected = contents(&whole);
        stop_after(create(&changes, &stopped), 2);
        stop_after(resume(&stopped), 3);
        finish(resume(&stopped));
        assert_eq!(contents(&stopped), expected, "{control:?}: stopped");
        let changes = [&changes[..], &["observe.devices=summary"]].concat();
        finish(create(&changes, &brief));
        kill_in_round_three(create(&changes, &killed));
        finish(resume(&killed));
        assert_eq!(contents(&killed), contents(&brief), "{control:?}: killed");
        assert_eq!(contents(&brief).2, expected.2, "{control:?}: summaries");
    }
}

/// A device that is never heard has no T_th.
#[test]
fn devices_that_never_send_have_no_switching_round() {
    let case = Case::new(PAPER[1], 1.0).with("control.noise=top-up");
    let case = case.with("transmit.power_w=[0.1, 0, 0.1, 0.1]");
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    finish(create(&case.flags(), &path));
    let Some(SwitchingRound::Each(each)) = read_summary(&path).unwrap().unwrap().switching_round
    else {
        panic!("one for each device")
    };
    assert_eq!(each.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, true]);
    let records = read_metrics(&path.join("metrics.jsonl")).unwrap();
    assert_eq!(each, last_noisy_rounds(&records));
}

#[test]
fn powers_that_nobody_chose_are_refused() {
    for (name, choice) in [
        ("closed-form", PowerChoice::ClosedForm),
        ("cma-es", PowerChoice::CmaEs),
        ("ddpg", PowerChoice::Ddpg),
    ] {
        let power = format!("control.power={name}");
        let changes = [&ANALOG[..], &["privacy.epsilon=8", &*power]].concat();
        let error = Simulation::new(experiment(&changes), data()).err().unwrap();
        assert!(matches!(error, FederationError::PowersNotChosen { power } if power == choice));
        assert_eq!(
            error.to_string(),
            format!(
                "control.power = \"{name}\" has powers chosen after a pilot run, which a single \
                 run does not have: use lapa_control::Job, or set control.power = \"file\""
            )
        );
    }
}
