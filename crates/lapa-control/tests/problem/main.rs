//! P1 on a trace, against a slow twin that follows the definitions.

#[path = "../common/mod.rs"]
mod common;
mod twin;

use std::ops::ControlFlow;

use common::{FORMS, Kind, RULES, is_feasible, limits, problem, trace};
use lapa::config::BoundForm;
use lapa::optimize::{Limits, Objective, ObjectiveError, closed_form};
use lapa_control::power::{
    CostError, NoiseRule, Problem, ProblemError, Trace, TraceArrays, TraceError, privacy_cost,
    privacy_cost_until,
};
use lapa_privacy::accountant::{Accountant, Rdp, gdp};
use lapa_privacy::{Adjacency, ClipUnit, Mechanism, NoiseKind, Release, Sampling};
use proptest::prelude::*;
use rand::RngExt;
use twin::twin;

fn any_kind() -> impl Strategy<Value = Kind> {
    let within = prop_oneof![Just(0.0), 0.01f64..4.0];
    (1usize..6, 1usize..40, any::<bool>(), 0.1..=1f64, 0.01..=1f64, 0.1f64..20.0, within).prop_map(
        |(devices, rounds, fading, sends, least_trust, required, within)| Kind {
            devices,
            rounds,
            fading,
            sends,
            least_trust,
            required,
            within,
        },
    )
}

/// Allowed amplitudes with powers over some decades.
fn draw(limits: &Limits, seed: u64) -> Vec<f64> {
    let mut rng = common::rng(seed);
    let mut point: Vec<f64> =
        (0..limits.devices()).map(|_| 10f64.powf(rng.random_range(-1.5..0.3))).collect();
    limits.project(&mut point);
    point
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-10 * a.abs().max(b.abs())
}

proptest! {
    #[test]
    fn objective_switching_rounds_and_noise_are_the_twins(
        kind in any_kind(),
        seed in 0u64..1000,
        a in 0.8f64..1.05,
    ) {
        let trace = trace(seed, kind);
        let limits = limits(kind.devices);
        let point = draw(&limits, seed);
        for (rule, form) in RULES.into_iter().flat_map(|rule| FORMS.map(|form| (rule, form))) {
            let mut problem = Problem::new(trace.clone(), rule, form, a, limits.clone()).unwrap();
            let (fast, noise) = (problem.evaluate(&point).unwrap(), problem.noise(&point).unwrap());
            let slow = twin(&trace, rule, form, a, &point);
            prop_assert!(close(fast.objective, slow.objective), "{rule:?} {form:?}");
            prop_assert_eq!(fast.switching_round, slow.switching_round, "{:?}", rule);
            let (fast_worst, slow_worst) = (fast.worst_under_noising, slow.under_noising);
            prop_assert!((fast_worst / slow_worst - 1.0).abs() < 1e-9, "{rule:?}");
            for at in 0..noise.artificial.len() {
                // A square root near 0 loses half the digits.
                prop_assert!((noise.artificial[at] - slow.artificial[at]).abs() < 1e-7);
                prop_assert!(close(noise.channel[at], slow.channel[at]));
            }
        }
    }

    /// In each round what TopUp adds is at most what the others add, for every κ from 0 to 1; so it
    /// loses to neither, and with κ = 0 it is Always.
    #[test]
    fn topping_up_never_loses_and_never_leaves_too_little(
        kind in any_kind(),
        seed in 0u64..1000,
        trust in 0.0..=1f64,
    ) {
        let mut arrays = trace(seed, kind).arrays().clone();
        for (k, share) in arrays.trust.iter_mut().enumerate() {
            *share = if k % 3 == 2 { 0.0 } else { trust };
        }
        let trace = Trace::new(arrays).unwrap();
        let point = draw(&limits(kind.devices), seed);
        for form in FORMS {
            let of = |rule| problem(&trace, rule, form).evaluate(&point).unwrap().objective;
            let best = of(NoiseRule::TopUp) * (1.0 - 1e-12);
            prop_assert!(best <= of(NoiseRule::PerDevice));
            prop_assert!(of(NoiseRule::PerDevice) * (1.0 - 1e-12) <= of(NoiseRule::Always));
        }
        for rule in [NoiseRule::Always, NoiseRule::PerDevice, NoiseRule::TopUp] {
            let slow = twin(&trace, rule, BoundForm::Corrected, 0.99, &point);
            prop_assert!(slow.under_noising <= 1.0 + 1e-9);
            let problem = &mut problem(&trace, rule, BoundForm::Corrected);
            prop_assert!(problem.evaluate(&point).unwrap().worst_under_noising <= 1.0 + 1e-9);
            let noise = problem.noise(&point).unwrap();
            for at in 0..noise.artificial.len() {
                if trace.arrays().weights[at] > 0.0 {
                    let share = trace.arrays().trust[at % kind.devices];
                    let counted =
                        noise.artificial[at].powi(2) + share * noise.channel[at].powi(2);
                    let required = trace.arrays().sigma_required[at].powi(2);
                    prop_assert!(required <= counted * (1.0 + 1e-9), "{rule:?}");
                }
            }
        }
    }

    #[test]
    fn no_draw_beats_the_closed_form_under_always(
        kind in any_kind(),
        seed in 0u64..1000,
        each in 0.3f64..4.0,
    ) {
        let trace = trace(seed, kind);
        let most = kind.devices as f64;
        let limits = Limits::new(kind.devices, 0.1 * most, most, each).unwrap();
        for form in FORMS {
            let rule = NoiseRule::Always;
            let mut problem = Problem::new(trace.clone(), rule, form, 0.99, limits.clone()).unwrap();
            let chosen = closed_form(problem.limits(), &problem.channel_terms());
            prop_assert!(is_feasible(&limits, &chosen));
            let least = problem.evaluate(&chosen).unwrap().objective;
            for draw_number in 0..100 {
                let other = problem.evaluate(&draw(&limits, seed + draw_number)).unwrap();
                prop_assert!(other.objective >= least * (1.0 - 1e-12));
            }
        }
    }
}

/// One device, three rounds, numbers that can be followed by hand.
#[test]
fn a_small_trace_by_hand() {
    let arrays = TraceArrays {
        weights: vec![1.0; 3],
        sigma_required: vec![3.0, 1.0, 2.0],
        nu_at_watt: vec![1.0; 3],
        quiet_scale_squared: vec![2.0],
        trust: vec![1.0],
        noise_within_scale: 0.0,
    };
    let trace = Trace::new(arrays).unwrap();
    let limits = Limits::new(1, 0.1, 4.0, 4.0).unwrap();
    let of = |rule, form| {
        let mut problem = Problem::new(trace.clone(), rule, form, 0.5, limits.clone()).unwrap();
        let evaluation = problem.evaluate(&[1.0]).unwrap();
        (evaluation.objective, evaluation.switching_round[0])
    };
    // ν = 1 and c₀²ν = 2: rounds 1 and 3 need noise, so T_th = 3. Variances 2σ² + 2: 20, 4, 10.
    assert_eq!(of(NoiseRule::PerDevice, BoundForm::Corrected), (5.0 + 2.0 + 10.0, 3));
    assert_eq!(of(NoiseRule::Always, BoundForm::Corrected), (17.0, 3));
    // σ² + 2: 11, 3, 6.
    assert_eq!(of(NoiseRule::Sum, BoundForm::Printed), (11.0 + 1.5 + 1.5, 3));
    // σ_art² = 3.5, 0, 1; variances 9, 2, 4.
    assert_eq!(of(NoiseRule::TopUp, BoundForm::Corrected), (2.25 + 1.0 + 4.0, 3));
    assert_eq!(of(NoiseRule::TopUp, BoundForm::Printed), (5.5 + 1.0 + 0.75, 3));
    // At a quarter of a watt c₀²ν = 8: only round 1 needs noise. ν = 4; variances 53, 8, 8.
    let mut problem =
        Problem::new(trace, NoiseRule::PerDevice, BoundForm::Corrected, 0.5, limits).unwrap();
    let evaluation = problem.evaluate(&[0.5]).unwrap();
    assert_eq!((evaluation.objective, evaluation.switching_round[0]), (13.25 + 4.0 + 8.0, 1));
}

#[test]
fn the_sum_rule_leaves_one_device_with_too_little() {
    // The channels add σ = 0.1 and 1.9 where 1 and 1 is required.
    let arrays = TraceArrays {
        weights: vec![0.5, 0.5],
        sigma_required: vec![1.0, 1.0],
        nu_at_watt: vec![0.01, 3.61],
        quiet_scale_squared: vec![1.0, 1.0],
        trust: vec![1.0, 1.0],
        noise_within_scale: 0.0,
    };
    let trace = Trace::new(arrays).unwrap();
    let of = |rule, amplitudes: &[f64]| {
        problem(&trace, rule, BoundForm::Corrected).evaluate(amplitudes).unwrap()
    };
    let sum = of(NoiseRule::Sum, &[1.0, 0.999]);
    assert_eq!(sum.switching_round, [0, 0]);
    assert!((sum.worst_under_noising - 10.0).abs() < 1e-9);
    let honest = of(NoiseRule::PerDevice, &[1.0, 0.999]);
    assert_eq!((honest.switching_round, honest.worst_under_noising), (vec![1, 0], 1.0));
}

#[test]
fn a_device_without_power_makes_the_objective_infinite_unless_it_never_sends() {
    let mut arrays = trace(3, Kind { devices: 4, rounds: 20, ..Kind::default() }).arrays().clone();
    for round in 0..20 {
        arrays.weights[round * 4 + 2] = 0.0;
    }
    for trust in [0.0, 0.7] {
        arrays.trust.fill(trust);
        let trace = Trace::new(arrays.clone()).unwrap();
        for (rule, form) in RULES.into_iter().flat_map(|rule| FORMS.map(|form| (rule, form))) {
            let mut problem = problem(&trace, rule, form);
            let silent = problem.evaluate(&[1.0, 1.0, 0.0, 0.5]).unwrap();
            assert!(silent.objective.is_finite() && silent.objective > 0.0);
            assert_eq!(
                silent.objective,
                problem.evaluate(&[1.0, 1.0, 0.7, 0.5]).unwrap().objective
            );
            let mute = problem.evaluate(&[1.0, 0.0, 1.0, 0.5]).unwrap();
            assert_eq!(mute.objective, f64::INFINITY);
            assert!(mute.worst_under_noising >= 1.0);
            let noise = problem.noise(&[1.0, 0.0, 1.0, 0.5]).unwrap();
            assert!(noise.artificial.iter().chain(&noise.channel).all(|sigma| *sigma >= 0.0));
            assert_eq!(closed_form(problem.limits(), &problem.channel_terms())[2], 0.0);
            if trust == 0.0 && !matches!(rule, NoiseRule::Sum | NoiseRule::SumLatched) {
                // Nothing may be counted: artificial noise in every round that asks for it.
                let last = problem.evaluate(&[1.0; 4]).unwrap().switching_round;
                assert!(last[0] >= 18 && mute.switching_round[1] >= 18, "{rule:?} {last:?}");
            }
        }
    }
}

#[test]
fn more_required_noise_is_never_cheaper_and_scaling_is_checked() {
    let trace = trace(5, Kind::default());
    let mut previous = 0.0;
    for factor in [0.0, 0.5, 1.0, 3.0] {
        let scaled = trace.scaled(factor).unwrap();
        let value = problem(&scaled, NoiseRule::TopUp, BoundForm::Corrected)
            .evaluate(&limits(15).equal())
            .unwrap()
            .objective;
        assert!(value >= previous);
        previous = value;
    }
    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(trace.scaled(factor), Err(TraceError::Factor(_))));
    }
    assert!(matches!(trace.scaled(1e40), Err(TraceError::Value { name: "sigma_required", .. })));
}

#[test]
fn bad_numbers_are_refused_by_name() {
    let good = trace(1, Kind { devices: 3, rounds: 4, ..Kind::default() }).arrays().clone();
    let refused = |change: &dyn Fn(&mut TraceArrays)| {
        let mut arrays = good.clone();
        change(&mut arrays);
        Trace::new(arrays).unwrap_err()
    };
    assert!(matches!(refused(&|a| a.weights.clear()), TraceError::Empty { rounds: 0, devices: 3 }));
    assert!(matches!(refused(&|a| a.quiet_scale_squared.clear()), TraceError::Empty { .. }));
    assert!(matches!(
        refused(&|a| a.weights.push(0.0)),
        TraceError::Length { name: "weights", given: 13, expected: 12 }
    ));
    assert!(matches!(refused(&|a| a.trust.push(0.0)), TraceError::Length { name: "trust", .. }));
    assert_eq!(
        refused(&|a| a.trust[1] = 1.5).to_string(),
        "trust[1] = 1.5: expected a number from 0 to 1"
    );
    assert!(matches!(refused(&|a| a.weights[7] = f64::NAN), TraceError::Value { index: 7, .. }));
    assert!(matches!(refused(&|a| a.nu_at_watt[0] = -1.0), TraceError::Value { .. }));

    let trace = Trace::new(good).unwrap();
    let new = |contraction, devices| {
        let (rule, form) = (NoiseRule::TopUp, BoundForm::Corrected);
        Problem::new(trace.clone(), rule, form, contraction, limits(devices)).map(|_| ())
    };
    assert!(matches!(new(0.9, 4), Err(ProblemError::Devices { trace: 3, limits: 4 })));
    for contraction in [0.0, -0.5, f64::NAN, f64::INFINITY, 1e30] {
        assert!(matches!(new(contraction, 3), Err(ProblemError::Contraction { .. })));
    }
    assert!(new(1.5, 3).is_ok());
    let mut problem = problem(&trace, NoiseRule::Sum, BoundForm::Corrected);
    assert!(matches!(
        problem.evaluate(&[1.0]),
        Err(ObjectiveError::Length { given: 1, devices: 3 })
    ));
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = problem.evaluate(&[1.0, value, 1.0]);
        assert!(matches!(refused, Err(ObjectiveError::Amplitude { device: 1, .. })));
        assert!(problem.noise(&[1.0, value, 1.0]).is_err());
    }
}

fn release() -> Release {
    Release {
        clip: ClipUnit::Sample,
        clip_norm: 1.0,
        denominator: 10.0,
        records: 100,
        learning_rate: 0.1,
        adjacency: Adjacency::ReplaceOne,
        sampling: Sampling::Full,
        noise: NoiseKind::Gaussian,
        sigma_artificial: 0.0,
        sigma_channel: 0.0,
        kappa: 0.0,
        shared_channel: false,
    }
}

/// The worst device's ε by the formula μ² = Σ(Δ/σ)², with the twin's noise.
#[test]
fn the_privacy_of_a_choice_is_that_of_its_noise() {
    let kind = Kind { devices: 4, rounds: 30, least_trust: 0.3, required: 6.0, ..Kind::default() };
    let trace = trace(8, kind);
    let point = draw(&limits(4), 8);
    let (delta, sensitivity) = (1e-5, 0.2);
    for rule in RULES {
        let problem = problem(&trace, rule, BoundForm::Corrected);
        let cost = privacy_cost(&problem, &point, &vec![release(); 4], delta).unwrap();
        let slow = twin(&trace, rule, BoundForm::Corrected, 0.99, &point);
        let expected = |counted: bool| {
            let mut worst = 0f64;
            for device in 0..4 {
                let mut mu_squared = 0.0;
                for at in (0..30).map(|round| round * 4 + device) {
                    let kappa = if counted { trace.arrays().trust[device] } else { 0.0 };
                    let variance = slow.artificial[at].powi(2) + kappa * slow.channel[at].powi(2);
                    if trace.arrays().weights[at] > 0.0 {
                        mu_squared += sensitivity * sensitivity / variance;
                    }
                }
                worst = worst.max(gdp::epsilon(f64::sqrt(mu_squared), delta).unwrap());
            }
            worst
        };
        let relative = cost.counted / expected(true) - 1.0;
        assert!(relative.abs() < 1e-9, "{rule:?} {relative}");
        match rule {
            NoiseRule::Always => {
                let exact = expected(false);
                assert!((cost.artificial_only / exact - 1.0).abs() < 1e-9);
                assert!(cost.counted < cost.artificial_only);
            }
            _ => assert_eq!(cost.artificial_only, f64::INFINITY, "{rule:?}"),
        }
    }
}

#[test]
fn samples_are_costed_by_renyi_divergences_and_what_has_no_theorem_is_refused() {
    let mut arrays =
        trace(2, Kind { devices: 2, rounds: 12, sends: 1.0, ..Kind::default() }).arrays().clone();
    arrays.sigma_required.fill(0.1);
    let always = |arrays: &TraceArrays| {
        problem(&Trace::new(arrays.clone()).unwrap(), NoiseRule::Always, BoundForm::Corrected)
    };
    let (adjacency, sampling) = (Adjacency::ZeroOut, Sampling::Poisson { rate: 0.1 });
    let sampled = Release { adjacency, sampling, ..release() };
    let cost =
        privacy_cost(&always(&arrays), &[1.0, 1.0], &vec![sampled.clone(); 2], 1e-5).unwrap();
    let mut rdp = Rdp::default();
    rdp.compose(&Mechanism::poisson(0.1, 1.0, Adjacency::ZeroOut), 12).unwrap();
    assert!((cost.artificial_only / rdp.epsilon(1e-5).unwrap() - 1.0).abs() < 1e-9);
    assert!(cost.counted < cost.artificial_only);

    let problem = always(&arrays);
    let of = |releases: &[Release]| privacy_cost(&problem, &[1.0, 1.0], releases, 1e-5);
    assert!(matches!(of(&[release()]), Err(CostError::Releases { given: 1, devices: 2 })));
    let discrete = Release { noise: NoiseKind::DiscreteGaussian, ..release() };
    assert!(matches!(of(&vec![discrete.clone(); 2]), Err(CostError::Discrete { device: 0 })));
    let replaced = Release { adjacency: Adjacency::ReplaceOne, ..sampled };
    assert!(matches!(of(&vec![replaced; 2]), Err(CostError::Account { device: 0, .. })));
    let device = Release { clip_norm: -1.0, ..release() };
    assert!(matches!(of(&[release(), device]), Err(CostError::Event { device: 1, .. })));
    assert!(privacy_cost(&problem, &[1.0, 0.0], &vec![release(); 2], 1e-5).is_err());
    arrays.trust.fill(0.0);
    let alone = privacy_cost(&always(&arrays), &[1.0, 1.0], &vec![discrete; 2], 1e-5).unwrap();
    assert_eq!(alone.counted, alone.artificial_only);
}

/// Thousands of devices take a while, and the user may stop.
#[test]
fn costs_of_many_devices_can_be_broken_off() {
    let trace = trace(2, Kind { devices: 9, rounds: 3, ..Kind::default() });
    let problem = problem(&trace, NoiseRule::Always, BoundForm::Corrected);
    let (amplitudes, mut asked) = (problem.limits().equal(), 0);
    let cost = privacy_cost_until(&problem, &amplitudes, &vec![release(); 9], 1e-5, &mut || {
        asked += 1;
        if asked == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(cost, Err(CostError::Cancelled(_))));
    assert_eq!(asked, 4);
}

/// experiments/control says: the channel's noise on an update without artificial noise is of the
/// size of the noise that is required at first.
#[test]
fn the_scenario_has_two_noises_of_one_size() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/control/config.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let experiment = lapa::config::Experiment::from_toml(&text, path, &[]).unwrap();
    let devices: Vec<u32> = (0..15).collect();
    let links = lapa::radio::Links::new(experiment.setting()).unwrap().draw(1, &devices).unwrap();
    assert!(links.iter().all(|link| link.power.0 == 0.075));
    // C/√q·√ν with the paper's CNN and clip.
    let mut channel: Vec<f64> =
        links.iter().map(|link| 5.0 / 21_880f64.sqrt() * (0.5 / link.snr).sqrt()).collect();
    channel.sort_by(f64::total_cmp);
    let ratio = channel[7] / experiment.initial_sigma().unwrap();
    assert!((0.3..=0.7).contains(&ratio), "{ratio}");
}
