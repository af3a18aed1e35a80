//! LAPA against a separately written reference, and what holds for every allocator.

mod gains;

use std::f64::consts::PI;
use std::fs;
use std::path::Path;

use lapa_privacy::OutOfRange;
use lapa_privacy::allocate::lapa::angle::{deviation, leave_one_out_deviation};
use lapa_privacy::allocate::lapa::pid::Noisy;
use lapa_privacy::allocate::{
    AllocateError, Allocator, AllocatorState, Arb, ArbConfig, Ask, Costs, DeviceTranscript, Lapa,
    LapaConfig, OptimalSplit, PidError, Schedule, Split, Transcript, Uniform,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use serde_json::Value;

const PAPER: LapaConfig = LapaConfig {
    proportional: 0.5,
    integral: 0.5,
    window: 5,
    error: PidError::Relative,
    schedule: Schedule::Formula,
    split: Split::Formula,
    decay: 5.0,
};
/// As the text has it, with an error that may be large.
const TEXT: LapaConfig =
    LapaConfig { error: PidError::Raw, schedule: Schedule::Text, split: Split::Text, ..PAPER };

/// One device's part of a transcript, owned.
#[derive(Clone, Debug)]
struct Sent {
    device: u32,
    weight: f64,
    gradient: Vec<f32>,
    sigma: f64,
}

/// Calls `learn` with the transcript of `sent`; the global gradient is their weighted sum.
fn with_transcript(round: u32, sent: &[Sent], learn: impl FnOnce(&Transcript<'_>)) {
    let mut global = vec![0.0; sent.first().map_or(0, |first| first.gradient.len())];
    for one in sent {
        for (sum, value) in global.iter_mut().zip(&one.gradient) {
            *sum += one.weight as f32 * value;
        }
    }
    let devices: Vec<_> = sent.iter().map(view).collect();
    learn(&Transcript { round, devices: &devices, global: &global });
}

fn view(sent: &Sent) -> DeviceTranscript<'_> {
    let &Sent { device, weight, ref gradient, sigma } = sent;
    DeviceTranscript { device, weight, gradient, sigma }
}

fn ask(device: u32, left: f64) -> Ask {
    Ask { device, left, weight: 0.25, sensitivity: 1.0 }
}

/// A standard normal number by Box and Muller.
fn normal(rng: &mut ChaCha12Rng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

/// Every allocator, with a total or capacity of 8 over `rounds` of `devices`.
fn all(rounds: u32, devices: u32) -> Vec<(&'static str, bool, Box<dyn Allocator>)> {
    let debiased = LapaConfig { error: PidError::Debiased, ..PAPER };
    vec![
        ("uniform", true, Box::new(Uniform::paper(8.0, rounds, devices).unwrap())),
        ("arb", true, Box::new(Arb::paper(8.0, rounds, devices, ArbConfig::default()).unwrap())),
        ("lapa", true, Box::new(Lapa::paper(8.0, rounds, devices, PAPER).unwrap())),
        ("optimal-split", true, Box::new(OptimalSplit::paper(8.0, rounds, devices).unwrap())),
        ("uniform", false, Box::new(Uniform::certified(rounds).unwrap())),
        ("arb", false, Box::new(Arb::certified(rounds, ArbConfig::default()).unwrap())),
        ("lapa", false, Box::new(Lapa::certified(rounds, devices, debiased).unwrap())),
        ("lapa", true, Box::new(Lapa::paper(8.0, rounds, devices, TEXT).unwrap())),
        ("lapa", false, Box::new(Lapa::certified(rounds, devices, TEXT).unwrap())),
    ]
}

// The reference.

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn maybe_numbers(value: &Value) -> Vec<Option<f64>> {
    value.as_array().unwrap().iter().map(Value::as_f64).collect()
}

fn near(what: &str, ours: Option<f64>, expected: Option<f64>) {
    let fine = match (ours, expected) {
        // An arccosine near 0 or π has half the digits of its cosine.
        (Some(a), Some(b)) => (a - b).abs() <= 1e-11 * b.abs().max(1e-3),
        (a, b) => a == b,
    };
    assert!(fine, "{what}: {ours:?}, expected {expected:?}");
}

fn sent(device: &Value) -> Sent {
    Sent {
        device: device["device"].as_u64().unwrap() as u32,
        weight: device["weight"].as_f64().unwrap(),
        gradient: numbers(&device["gradient"]).iter().map(|&x| x as f32).collect(),
        sigma: device["sigma"].as_f64().unwrap(),
    }
}

#[test]
fn lapa_matches_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/lapa.json");
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(cases.len(), 13);
    for (number, case) in cases.iter().enumerate() {
        replay(number, case);
    }
}

fn replay(number: usize, case: &Value) {
    let setting = |name: &str| case[name].as_f64().unwrap();
    let config = LapaConfig {
        proportional: setting("proportional"),
        integral: setting("integral"),
        window: setting("window") as u32,
        error: serde_json::from_value(case["error"].clone()).unwrap(),
        schedule: serde_json::from_value(case["schedule"].clone()).unwrap(),
        split: serde_json::from_value(case["split"].clone()).unwrap(),
        decay: setting("decay"),
    };
    let rounds = case["rounds"].as_array().unwrap();
    let (count, devices) = (rounds.len() as u32, setting("devices") as u32);
    let mut lapa = match case["basis"].as_str().unwrap() {
        "paper" => Lapa::paper(setting("total"), count, devices, config).unwrap(),
        _ => Lapa::certified(count, devices, config).unwrap(),
    };
    for (round, expected) in (1..).zip(rounds) {
        let at = |what: &str| format!("case {number}, round {round}, {what}");
        let decision = &expected["decision"];
        let asks: Vec<Ask> = numbers(&decision["present"])
            .iter()
            .zip(numbers(&decision["left"]))
            .map(|(&device, left)| ask(device as u32, left))
            .collect();
        let ours = lapa.allocate(round, &asks);
        near(&at("round budget"), ours.round_budget, decision["round_budget"].as_f64());
        near(&at("error"), ours.pid_error, decision["pid_error"].as_f64());
        let angles = maybe_numbers(&decision["angles"]);
        assert_eq!(ours.by_device.len(), asks.len());
        assert_eq!(ours.angles.len(), angles.len());
        for (i, cost) in numbers(&decision["shares"]).into_iter().enumerate() {
            near(&at("cost"), Some(ours.by_device[i]), Some(cost));
            near(&at("angle"), ours.angles[i], angles[i]);
        }
        let received: Vec<Sent> =
            expected["received"].as_array().unwrap().iter().map(sent).collect();
        let global: Vec<f32> = numbers(&expected["global"]).iter().map(|&x| x as f32).collect();
        let devices: Vec<_> = received.iter().map(view).collect();
        let transcript = Transcript { round, devices: &devices, global: &global };
        let left_out = expected["left_out"].as_u64().unwrap_or(0) as usize;
        lapa.observe_leaving_out(&transcript, left_out);
        check_memory(&lapa, &expected["after"], &config, at);
    }
}

/// e, ϑ̃ and f of every device after a round.
fn check_memory(lapa: &Lapa, after: &Value, config: &LapaConfig, at: impl Fn(&str) -> String) {
    let memory = serde_json::to_value(lapa.state().scalars).unwrap();
    near(&at("error after"), memory["pid_error"].as_f64(), after["pid_error"].as_f64());
    let f = maybe_numbers(&after["f"]);
    for (k, expected) in maybe_numbers(&after["angles"]).into_iter().enumerate() {
        let angle = memory["angles"][&k.to_string()]["angle"].as_f64();
        near(&at("angle after"), angle, expected);
        near(
            &at("f after"),
            angle.map(|angle| config.split.contribution(angle, config.decay)),
            f[k],
        );
    }
}

/// The error shows the gradient that is left out, never the current one; a binomial count over 3000
/// draws within 4.9 standard deviations, α = 10⁻⁶.
#[test]
fn each_older_gradient_is_left_out_equally_often() {
    let config = LapaConfig { window: 2, integral: 0.0, error: PidError::Raw, ..PAPER };
    let mut rng = rng(1);
    let mut counts = [0u32; 2];
    for _ in 0..3000 {
        let mut lapa = Lapa::certified(9, 1, config).unwrap();
        for (round, value) in (1..).zip([1.0, 3.0, 8.0]) {
            let one = Sent { device: 0, weight: 1.0, gradient: vec![value], sigma: 0.0 };
            with_transcript(round, &[one], |transcript| lapa.observe(transcript, &mut rng));
        }
        // 3 and 8, or 1 and 8 are left: e is half their distance.
        let error = lapa.allocate(4, &[ask(0, 1.0)]).pid_error.unwrap();
        counts[[2.5, 3.5].iter().position(|&e| e == error).unwrap()] += 1;
    }
    assert!((f64::from(counts[0]) - 1500.0).abs() < 4.9 * 750f64.sqrt(), "{counts:?}");
}

/// 15 devices with the same gradient under noise of 10 times its norm: the printed angle is
/// arccos(1/√15) whatever the gradients are, the other one finds them.
#[test]
fn angles_under_heavy_noise() {
    let (devices, q, sigma) = (15u32, 40_000, 0.05);
    let mut rng = rng(3);
    let sent: Vec<Sent> = (0..devices)
        .map(|device| {
            let gradient =
                (0..q).map(|_| (1.0 / 200.0 + sigma * normal(&mut rng)) as f32).collect();
            Sent { device, weight: 1.0 / f64::from(devices), gradient, sigma }
        })
        .collect();
    with_transcript(1, &sent, |transcript| {
        let first = &transcript.devices[0];
        let printed = deviation(transcript.global, first.gradient).unwrap();
        assert!((printed - (1.0 / f64::from(devices).sqrt()).acos()).abs() < 0.05, "{printed}");
        let variance = sigma * sigma / f64::from(devices);
        let global = Noisy { gradient: transcript.global, variance };
        let cosines: Vec<f64> = transcript
            .devices
            .iter()
            .filter_map(|device| {
                let local = Noisy { gradient: device.gradient, variance: sigma * sigma };
                Some(leave_one_out_deviation(global, local, device.weight)?.cos())
            })
            .collect();
        let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
        assert!(cosines.len() >= 10 && mean > 0.8, "{cosines:?}");
    });
}

// Properties of all allocators.

/// Random rounds: who takes part with which weights, gradients and noise.
fn random_rounds() -> impl Strategy<Value = Vec<Vec<Sent>>> {
    let value = prop_oneof![Just(0.0f32), -3.0f32..3.0, -1e30f32..1e30];
    let device = (0.0f64..1.0, prop::collection::vec(value, 3), 0.0f64..2.0, any::<bool>());
    let round = prop::collection::vec(device, 5).prop_map(|devices| {
        (0..)
            .zip(devices)
            .filter(|(_, (.., present))| *present)
            .map(|(device, (weight, gradient, sigma, _))| Sent { device, weight, gradient, sigma })
            .collect()
    });
    prop::collection::vec(round, 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn never_past_the_total(run in random_rounds(), seed in any::<u64>()) {
        for (name, paper, mut allocator) in all(run.len() as u32, 5) {
            let mut rng = rng(seed);
            let (mut total, mut left) = (0.0, [8.0; 5]);
            for (round, sent) in (1..).zip(&run) {
                let asks: Vec<Ask> = sent
                    .iter()
                    .map(|one| Ask { weight: one.weight, ..ask(one.device, left[one.device as usize]) })
                    .collect();
                let Costs { by_device: costs, round_budget, .. } = allocator.allocate(round, &asks);
                prop_assert_eq!(costs.len(), asks.len());
                prop_assert_eq!(round_budget.is_some(), paper);
                if let Some(budget) = round_budget {
                    prop_assert!(costs.iter().sum::<f64>() <= budget * (1.0 + 1e-12));
                    total += budget;
                }
                for (cost, ask) in costs.iter().zip(&asks) {
                    prop_assert!(cost.is_finite() && *cost >= 0.0, "{}: {}", name, cost);
                    prop_assert!(paper || *cost <= ask.left, "{}: {} of {}", name, cost, ask.left);
                    left[ask.device as usize] -= cost;
                }
                with_transcript(round, sent, |transcript| allocator.observe(transcript, &mut rng));
            }
            prop_assert!(total <= 8.0 * (1.0 + 1e-12), "{}: {}", name, total);
        }
    }

    /// Restored from a checkpoint after any round, an allocator decides the same to the last bit.
    #[test]
    fn restored_decisions_are_identical(run in random_rounds(), stop in 0u32..13) {
        for index in 0..9 {
            let fresh = || all(run.len() as u32, 5).swap_remove(index).2;
            let mut both = [fresh(), fresh()];
            let asks: Vec<Ask> = (0..5).map(|device| ask(device, 3.0)).collect();
            for (round, sent) in (1..).zip(&run) {
                if round == stop + 1 {
                    let state = serde_json::to_string(&both[0].state()).unwrap();
                    let state: AllocatorState = serde_json::from_str(&state).unwrap();
                    both[1].restore(state).unwrap();
                }
                let [ours, theirs] = both.each_mut().map(|one| one.allocate(round, &asks));
                if round > stop {
                    prop_assert_eq!(ours, theirs);
                }
                let learners = if round > stop { &mut both[..] } else { &mut both[..1] };
                for one in learners {
                    let mut rng = rng(round.into());
                    with_transcript(round, sent, |transcript| one.observe(transcript, &mut rng));
                }
            }
            if run.len() as u32 > stop {
                prop_assert_eq!(both[0].state(), both[1].state());
            }
        }
    }
}

/// Zeros, one device, opposite and orthogonal gradients, a steep f: every cost is a number.
#[test]
fn no_nan_at_the_edges() {
    let one = |device, gradient: [f32; 2]| Sent {
        device,
        weight: 0.5,
        gradient: gradient.into(),
        sigma: 0.0,
    };
    let rounds = [
        vec![one(0, [0.0, 0.0]), one(1, [0.0, 0.0])],
        vec![one(0, [1.0, 0.0])],
        vec![one(0, [1.0, 0.0]), one(1, [-1.0, 0.0])],
        vec![one(0, [1.0, 0.0]), one(1, [0.0, 1.0])],
        vec![one(0, [1.0, 0.0]), one(1, [0.0, 0.0])],
        vec![],
        vec![one(1, [f32::MAX, f32::MAX])],
    ];
    let mut allocators = all(rounds.len() as u32, 2);
    for decay in [1e-300, 1e300] {
        let steep =
            LapaConfig { proportional: f64::MAX, error: PidError::Raw, window: 2, decay, ..PAPER };
        let certified = Lapa::certified(rounds.len() as u32, 2, steep).unwrap();
        let paper = Lapa::paper(8.0, rounds.len() as u32, 2, steep).unwrap();
        allocators.push(("lapa", false, Box::new(certified)));
        allocators.push(("lapa", true, Box::new(paper)));
    }
    for (name, _, mut allocator) in allocators {
        for (round, sent) in (1..).zip(&rounds) {
            let asks = [ask(0, 1.0), ask(1, 0.0), ask(0, -1.0), ask(1, f64::NAN)];
            for cost in allocator.allocate(round, &asks).by_device {
                assert!(cost.is_finite() && cost >= 0.0, "{name}, round {round}: {cost}");
            }
            assert!(allocator.allocate(round, &[]).by_device.is_empty());
            with_transcript(round, sent, |transcript| allocator.observe(transcript, &mut rng(0)));
            let state = allocator.state();
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<AllocatorState>(&text).unwrap(), state);
        }
    }
}

/// A device alone has no others to be compared with, even if its weight is no 32-bit number.
#[test]
fn one_device_has_no_leave_one_out_angle() {
    let mut lapa = Lapa::certified(9, 1, PAPER).unwrap();
    let one = Sent { device: 0, weight: 1.0 / 3.0, gradient: vec![0.1, 0.7, -3.3], sigma: 0.0 };
    with_transcript(1, &[one], |transcript| lapa.observe(transcript, &mut rng(0)));
    assert_eq!(lapa.allocate(2, &[ask(0, 1.0)]).angles, [None]);
}

// Refusals.

#[test]
fn settings_without_meaning_are_refused() {
    let name = |result: Result<Lapa, AllocateError>| match result.unwrap_err() {
        AllocateError::Parameter(OutOfRange { name, .. }) => name,
        other => panic!("{other}"),
    };
    let lapa = Lapa::paper;
    for total in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(name(lapa(total, 9, 4, PAPER)), "total_epsilon");
        assert!(Uniform::paper(total, 9, 4).is_err());
        assert!(Arb::paper(total, 9, 4, ArbConfig::default()).is_err());
        assert!(OptimalSplit::paper(total, 9, 4).is_err());
    }
    for step in [0.5, 11.0, f64::NAN] {
        assert!(Arb::certified(9, ArbConfig { step }).is_err());
    }
    assert_eq!(name(lapa(8.0, 0, 4, PAPER)), "rounds");
    assert_eq!(name(lapa(8.0, 9, 0, PAPER)), "devices");
    assert_eq!(name(lapa(8.0, 9, 4, LapaConfig { decay: 0.0, ..PAPER })), "decay");
    let config =
        |proportional, integral, window| LapaConfig { proportional, integral, window, ..PAPER };
    assert_eq!(name(lapa(8.0, 9, 4, config(-0.1, 0.5, 5))), "proportional");
    assert_eq!(name(lapa(8.0, 9, 4, config(0.5, f64::NAN, 5))), "integral");
    assert_eq!(
        lapa(8.0, 9, 4, config(0.5, 0.5, 1)).unwrap_err().to_string(),
        "window = 1: expected at least 2"
    );
}

/// A state of another allocator, or with numbers that none could have, changes nothing.
#[test]
fn states_that_do_not_fit_are_refused() {
    for (name, _, mut allocator) in all(9, 2) {
        for (other, _, from) in all(9, 2) {
            assert_eq!(allocator.restore(from.state()).is_ok(), name == other);
        }
    }
    let mut lapa = Lapa::paper(8.0, 9, 2, PAPER).unwrap();
    let sent = [0, 1].map(|device| Sent {
        device,
        weight: 0.5,
        gradient: vec![1.0, device as f32],
        sigma: 0.1,
    });
    for round in 1..=3 {
        lapa.allocate(round, &[ask(0, 0.0)]);
        with_transcript(round, &sent, |transcript| lapa.observe(transcript, &mut rng(0)));
    }
    let good = serde_json::to_value(lapa.state()).unwrap();
    for (pointer, value) in [
        ("/scalars/allocated", "-1"),
        ("/scalars/allocated", "8.5"),
        ("/scalars/pid_error", "-0.5"),
        ("/scalars/angles", r#"{"2": {"angle": 1, "rounds": 1}}"#),
        ("/scalars/angles/0/angle", "3.2"),
        ("/scalars/angles/0/rounds", "0"),
        ("/scalars/window/1/one", "-1"),
        ("/scalars/window", "[]"),
        ("/scalars/variances", "[1]"),
        ("/scalars/variances/0", "-1"),
        ("/vectors", "[[1, 2]]"),
        ("/vectors/0", "[1]"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = serde_json::from_str(value).unwrap();
        let refused = lapa.restore(serde_json::from_value(bad).unwrap());
        assert!(matches!(refused, Err(AllocateError::Parameter { .. })), "{pointer}: {value}");
    }
    let mut bad = lapa.state();
    bad.vectors[1][0] = f32::NAN;
    assert!(lapa.restore(bad).is_err());
    assert!(lapa.state().scalars["allocator"] == "lapa");
    assert_eq!(serde_json::to_value(lapa.state()).unwrap(), good);
}
