//! Optimizers on functions with known minima, and on P1.

mod common;

use std::convert::Infallible;
use std::ops::ControlFlow;

use common::{FORMS, Kind, RULES, is_feasible, limits, problem, rng, trace};
use lapa::config::BoundForm;
use lapa::optimize::cma_es::{Minimum, Start, minimize};
use lapa::optimize::{
    CmaEs, DdpgConfig, Evaluation, Given, Known, Limits, Objective, ObjectiveError, OptimizeError,
    Optimizer, Optimizers, Optimum, PowerChoice, Progress, RandomSearch,
};
use lapa::seed::Stream;
use lapa_control::power::{NoiseRule, Problem};
use rand::RngExt;

fn run(optimizer: &mut dyn Optimizer, objective: &mut dyn Objective, seed: u64) -> Optimum {
    optimizer.optimize(objective, seed, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn closed_form(problem: &Problem) -> Known {
    Known::closed_form(problem.limits(), &problem.channel_terms())
}

fn cma_es(objective: &mut dyn Objective, seed: u64) -> Optimum {
    run(&mut CmaEs { evaluations: 15_000 }, objective, seed)
}

/// Minimizes with restarts up to 2 steps from the start in each direction.
fn least<E>(
    f: &mut dyn FnMut(&[f64]) -> Result<f64, E>,
    at: &[f64],
    step: f64,
    evaluations: u64,
    seed: u64,
) -> Result<Minimum, E> {
    let start = Start { at: at.to_vec(), step };
    let mut near = |rng: &mut Stream| {
        let at = at.iter().map(|x| x + 2.0 * step * rng.random_range(-1.0..1.0)).collect();
        Start { at, step }
    };
    minimize(f, &start, &mut near, evaluations, &mut rng(seed))
}

type Function = fn(&[f64]) -> f64;

fn sphere(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum()
}

/// Axes that differ by a factor of 1000, rotated in pairs.
fn ellipsoid(x: &[f64]) -> f64 {
    let half = x.len() / 2;
    (0..half)
        .map(|i| {
            let (sum, difference) = (x[i] + x[i + half], x[i] - x[i + half]);
            sum * sum + 1e6f64.powf(i as f64 / (half - 1) as f64) * difference * difference
        })
        .sum()
}

fn rosenbrock(x: &[f64]) -> f64 {
    x.windows(2).map(|x| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2)).sum()
}

#[test]
fn cma_es_finds_known_minima() {
    let functions: [(Function, f64, usize, u64); 4] = [
        (sphere, 0.0, 10, 3_000),
        (ellipsoid, 0.0, 10, 10_000),
        (rosenbrock, 1.0, 10, 20_000),
        // With a diagonal covariance.
        (sphere, 0.0, 200, 40_000),
    ];
    for (function, optimum, n, evaluations) in functions {
        for seed in 0..3 {
            let start = vec![3.0; n];
            let mut calls = 0;
            let mut f = |x: &[f64]| {
                calls += 1;
                Ok::<_, Infallible>(function(x))
            };
            let found = least(&mut f, &start, 0.5, evaluations, seed).unwrap();
            assert!(found.value < 1e-10, "n = {n}, seed {seed}: {}", found.value);
            assert_eq!(found.value, function(&found.at));
            assert!(found.at.iter().all(|x| (x - optimum).abs() < 1e-4));
            assert_eq!((found.evaluations, calls), (evaluations, evaluations));
        }
    }
}

/// A function with a minimum next to every integer, the deepest at 0 (Rastrigin): a single run from
/// here ends elsewhere, later runs with larger populations do not.
#[test]
fn restarts_leave_local_minima() {
    let rastrigin = |x: &[f64]| {
        let part = |x: &f64| x * x + 10.0 * (1.0 - (std::f64::consts::TAU * x).cos());
        x.iter().map(part).sum::<f64>()
    };
    let mut f = |x: &[f64]| Ok::<_, Infallible>(rastrigin(x));
    let start = [2.2, -3.1, 1.4, 3.3];
    let first = least(&mut f, &start, 0.5, 1_000, 1).unwrap();
    let last = least(&mut f, &start, 0.5, 40_000, 1).unwrap();
    assert!(first.value > 0.9, "{}", first.value);
    assert!(last.value < 1e-9, "{}", last.value);
}

#[test]
fn strange_functions_end() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1e308] {
        for n in [1, 3, 60] {
            let mut f = |_: &[f64]| Ok::<_, Infallible>(value);
            let found = least(&mut f, &vec![1.0; n], 1.0, 500, 0).unwrap();
            assert_eq!(found.evaluations, 500);
            assert!(!found.value.is_nan());
        }
    }
    let mut calls = 0;
    let mut f = |_: &[f64]| {
        calls += 1;
        if calls == 7 { Err("no more") } else { Ok(1.0) }
    };
    assert_eq!(least(&mut f, &[0.0; 3], 1.0, 500, 0).unwrap_err(), "no more");
    assert_eq!(calls, 7);
}

/// Channel noise alone: the closed form is the minimum, also where P_0 binds.
#[test]
fn cma_es_agrees_with_the_closed_form() {
    for (seed, each) in [(1, 4.0), (2, 1.5), (3, 4.0)] {
        let trace = trace(seed, Kind::default()).scaled(0.0).unwrap();
        let limits = Limits::new(15, 1.5, 15.0, each).unwrap();
        for form in FORMS {
            let mut problem =
                Problem::new(trace.clone(), NoiseRule::Always, form, 0.99, limits.clone()).unwrap();
            let exact = run(&mut closed_form(&problem), &mut problem, 0);
            let found = cma_es(&mut problem, seed);
            let ratio = found.evaluation.objective / exact.evaluation.objective;
            assert!((1.0 - 1e-12..1.0 + 1e-3).contains(&ratio), "{ratio}");
            let equal =
                run(&mut Known::equal(problem.limits()), &mut problem, 0).evaluation.objective;
            assert!(equal > 1.05 * exact.evaluation.objective);
        }
    }
}

#[test]
fn the_closed_form_beats_random_draws() {
    for seed in 0..3 {
        let trace = trace(seed, Kind { fading: true, ..Kind::default() });
        let mut problem = problem(&trace, NoiseRule::Always, BoundForm::Corrected);
        let exact = run(&mut closed_form(&problem), &mut problem, 0);
        let random = run(&mut RandomSearch { evaluations: 10_000 }, &mut problem, seed);
        assert!(exact.evaluation.objective < random.evaluation.objective);
    }
}

/// P1's loophole: its privacy constraint is a sum over devices, so a minimum of J leaves some
/// of them with too little noise, and gets below what is possible with each device protected.
#[test]
fn the_sum_rule_is_exploited_and_the_others_cannot_be() {
    for seed in 0..3 {
        let trace = trace(seed, Kind { required: 4.0, ..Kind::default() });
        let best = |rule| cma_es(&mut problem(&trace, rule, BoundForm::Corrected), seed).evaluation;
        let (sum, honest) = (best(NoiseRule::Sum), best(NoiseRule::PerDevice));
        assert!(sum.objective < honest.objective, "{} {}", sum.objective, honest.objective);
        assert!(sum.worst_under_noising > 2.0, "{}", sum.worst_under_noising);
        assert!(honest.worst_under_noising <= 1.0 + 1e-9);
        let topped_up = best(NoiseRule::TopUp);
        assert!(topped_up.worst_under_noising <= 1.0 + 1e-9);
        assert!(topped_up.objective <= honest.objective);
    }
}

/// The least objective with powers on a grid, by dynamic programming over the devices: with each
/// device by itself, J is a sum of functions of one power each.
fn least_on_a_grid(problem: &mut Problem) -> f64 {
    const STEP_W: f64 = 0.01;
    let devices = problem.limits().devices();
    let steps = |power: f64| (power / STEP_W + 1e-6) as usize;
    let (total, each) =
        (steps(problem.limits().most_total_w()), steps(problem.limits().most_each_w()));
    let mut at = |amplitudes: &[f64]| problem.evaluate(amplitudes).unwrap().objective;
    let (ones, all_ones) = (vec![1.0; devices], at(&vec![1.0; devices]));
    // After some devices, the least objective with so much power in all.
    let mut least = vec![all_ones; total + 1];
    for device in 0..devices {
        let gain: Vec<f64> = (1..=each)
            .map(|step| {
                let mut amplitudes = ones.clone();
                amplitudes[device] = (step as f64 * STEP_W).sqrt();
                at(&amplitudes) - all_ones
            })
            .collect();
        let best = |power: usize| {
            let choices = (1..=power.min(each)).map(|own| least[power - own] + gain[own - 1]);
            choices.fold(f64::INFINITY, f64::min)
        };
        least = (0..=total).map(best).collect();
    }
    least[total]
}

/// Distance of CMA-ES from the best where J has jumps.
#[test]
fn cma_es_ends_close_to_the_global_optimum() {
    for seed in 0..4 {
        let trace = trace(seed, Kind { rounds: 60, ..Kind::default() });
        for (rule, slack) in [(NoiseRule::PerDevice, 1.02), (NoiseRule::TopUp, 1.0001)] {
            let mut problem = problem(&trace, rule, BoundForm::Corrected);
            let least = least_on_a_grid(&mut problem);
            let found = cma_es(&mut problem, seed).evaluation.objective;
            assert!(found < slack * least, "{rule:?}, seed {seed}: {}", found / least);
        }
    }
}

#[test]
fn optima_are_feasible_reproducible_and_what_they_say() {
    let trace = trace(4, Kind { devices: 6, rounds: 30, ..Kind::default() });
    let optimizers = Optimizers {
        cma_es: CmaEs { evaluations: 1_000 },
        ddpg: DdpgConfig { episodes: 3, steps: 100, ..DdpgConfig::default() },
    };
    for rule in RULES {
        let mut problem = problem(&trace, rule, BoundForm::Corrected);
        for &choice in PowerChoice::METHODS {
            let given = Given {
                limits: problem.limits(),
                channel_terms: &problem.channel_terms(),
                optimizers: &optimizers,
            };
            let optimizer = &mut *optimizers.get(choice).unwrap().build(given).unwrap();
            assert_eq!(optimizer.name(), choice.to_string());
            let found = run(optimizer, &mut problem, 7);
            let again = run(optimizer, &mut problem, 7);
            assert_eq!(found.amplitudes, again.amplitudes);
            assert_eq!(found.curve, again.curve);
            assert!(is_feasible(&limits(6), &found.amplitudes));
            let evaluation = problem.evaluate(&found.amplitudes).unwrap();
            assert_eq!(found.evaluation, evaluation);
            assert_eq!(found.curve.last(), Some(&(found.evaluations, evaluation.objective)));
            assert!(found.curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1));
            let draws = !["equal", "full", "closed-form"].contains(&optimizer.name());
            let other = run(optimizer, &mut problem, 8);
            assert_eq!(found.amplitudes != other.amplitudes, draws, "{}", optimizer.name());
        }
    }
}

#[test]
fn a_thousand_devices_are_optimized() {
    let kind = Kind { devices: 1000, rounds: 20, ..Kind::default() };
    let trace = trace(6, kind).scaled(0.0).unwrap();
    let mut problem = problem(&trace, NoiseRule::Always, BoundForm::Corrected);
    let least = run(&mut closed_form(&problem), &mut problem, 0).evaluation.objective;
    let equal = run(&mut Known::equal(problem.limits()), &mut problem, 0).evaluation.objective;
    let found = run(&mut CmaEs { evaluations: 30_000 }, &mut problem, 0).evaluation.objective;
    // At least half of what there is to gain.
    assert!(found - least < 0.5 * (equal - least), "{least} {found} {equal}");
}

/// Always ∞, or an error.
struct Hopeless(Limits, bool);

impl Objective for Hopeless {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn rounds(&self) -> u32 {
        1
    }

    fn evaluate(&mut self, amplitudes: &[f64]) -> Result<Evaluation, ObjectiveError> {
        assert!(is_feasible(&self.0, amplitudes));
        if self.1 {
            return Err(ObjectiveError::Training("the pilot is out of fuel".into()));
        }
        let (objective, worst_under_noising) = (f64::INFINITY, 1.0);
        Ok(Evaluation { objective, switching_round: vec![0; 3], worst_under_noising })
    }
}

#[test]
fn there_may_be_no_optimum() {
    let go = &mut |_: Progress| ControlFlow::Continue(());
    let mut search = CmaEs { evaluations: 400 };
    let nothing = search.optimize(&mut Hopeless(limits(3), false), 0, go).unwrap_err();
    let text = "cma-es: none of 400 power allocations has a finite objective";
    assert_eq!(nothing.to_string(), text);
    let failed = search.optimize(&mut Hopeless(limits(3), true), 0, go).unwrap_err();
    assert!(failed.to_string().contains("out of fuel"));
    assert!(matches!(
        RandomSearch { evaluations: 0 }.optimize(&mut Hopeless(limits(3), false), 0, go),
        Err(OptimizeError::NothingFinite { optimizer: "random-search", evaluations: 0 })
    ));
}

#[test]
fn a_listener_may_break_off_and_is_told_the_truth() {
    let trace = trace(4, Kind { devices: 5, rounds: 30, ..Kind::default() });
    let mut problem = problem(&trace, NoiseRule::PerDevice, BoundForm::Corrected);
    let mut seen = 0;
    let mut best = f64::INFINITY;
    let stopped = CmaEs { evaluations: 1_000 }.optimize(&mut problem, 0, &mut |progress| {
        seen += 1;
        assert_eq!((progress.evaluations, progress.of), (seen, 1_000));
        assert!(progress.best <= best);
        best = progress.best;
        if seen == 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(OptimizeError::Cancelled(_))));
    assert_eq!(seen, 100);
}
