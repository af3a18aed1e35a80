//! DDPG against PyTorch's updates, tasks with known optima, and P1 by other optimizers.

#[path = "../common/feasible.rs"]
mod feasible;
mod saved;

use std::ops::ControlFlow;

use feasible::is_feasible;

use lapa::config::BoundForm;
use lapa::files::FileError;
use lapa::optimize::ddpg::{
    Agent, AgentError, Batch, DdpgVariant, Learning, Parameters, Replay, SavedError, Sizes,
};
use lapa::optimize::{
    CmaEs, Ddpg, DdpgConfig, Evaluation, Limits, Objective, ObjectiveError, OptimizeError,
    Optimizer, Progress, RandomSearch,
};
use lapa::seed::{Purpose, Stream, stream};
use lapa_control::power::{NoiseRule, Problem, Trace, TraceArrays};
use rand::RngExt;
use rand_distr::StandardNormal;
use serde::Deserialize;

const LEARNING: Learning =
    Learning { discount: 0.0, soft_update: 0.005, actor_rate: 1e-3, critic_rate: 1e-3 };

fn rng(seed: u64) -> Stream {
    stream(seed, Purpose::Power, 4, 99)
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// `vectors/ddpg.json`, by `vectors/ddpg.py`.
#[derive(Deserialize)]
struct Vectors {
    states: usize,
    actions: usize,
    hidden: usize,
    discount: f64,
    soft_update: f64,
    actor_rate: f64,
    critic_rate: f64,
    initial: Parameters,
    updates: Vec<Update>,
}

#[derive(Deserialize)]
struct Update {
    batch: Batch,
    critic_loss: f64,
    actor_loss: Option<f64>,
    after: Parameters,
}

#[test]
fn updates_agree_with_pytorch() {
    agrees_with_pytorch(include_str!("../vectors/ddpg.json"));
}

#[test]
fn updates_of_td3_agree_with_pytorch() {
    agrees_with_pytorch(include_str!("../vectors/td3.json"));
}

/// PyTorch computes in double, we in single precision; an update moves parameters by 1e-2.
fn agrees_with_pytorch(vectors: &str) {
    let vectors: Vectors = serde_json::from_str(vectors).unwrap();
    let Vectors { states, actions, hidden, discount, soft_update, actor_rate, critic_rate, .. } =
        vectors;
    let sizes = Sizes { states, actions, hidden };
    let learning = Learning { discount, soft_update, actor_rate, critic_rate };
    let mut agent = Agent::with_parameters(sizes, learning, vectors.initial).unwrap();
    for update in vectors.updates {
        let losses = agent.update(&update.batch);
        assert!((losses.critic - update.critic_loss).abs() < 1e-6 * (1.0 + update.critic_loss));
        assert_eq!(losses.actor.is_some(), update.actor_loss.is_some());
        let off = losses.actor.unwrap_or_default() - update.actor_loss.unwrap_or_default();
        assert!(off.abs() < 1e-6);
        let (ours, theirs) = (agent.parameters(), update.after);
        let twins = [&ours, &theirs].map(|p| p.twin.clone().unwrap_or_default());
        let [[twin, twin_target], [their_twin, their_twin_target]] = twins;
        for (name, ours, theirs) in [
            ("critic", ours.critic, theirs.critic),
            ("actor", ours.actor, theirs.actor),
            ("critic_target", ours.critic_target, theirs.critic_target),
            ("actor_target", ours.actor_target, theirs.actor_target),
            ("twin", twin, their_twin),
            ("twin_target", twin_target, their_twin_target),
        ] {
            assert_eq!(ours.len(), theirs.len(), "{name}");
            for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
                assert!((a - b).abs() < 1e-6, "{name}[{i}]: {a}, PyTorch {b}");
            }
        }
    }
}

fn explored(action: &[f32], deviation: f32, rng: &mut Stream) -> Vec<f32> {
    let noise = action.iter().map(|a| a + deviation * rng.sample::<f32, _>(StandardNormal));
    noise.map(|a| a.clamp(-1.0, 1.0)).collect()
}

/// r = −Σ(a_k − b_k)² in five dimensions: the best action is b.
#[test]
fn a_quadratic_bandit_is_solved() {
    let best = [-0.6, -0.2, 0.0, 0.3, 0.8];
    let mut rng = rng(1);
    let sizes = Sizes { states: 1, actions: 5, hidden: 64 };
    let mut agent = Agent::new(sizes, LEARNING, &mut rng).unwrap();
    let mut replay = Replay::new(1, 5, 10_000);
    let mut batch = Batch::default();
    for _ in 0..4000 {
        let action = explored(agent.act(&[1.0]), 0.2, &mut rng);
        let reward = -action.iter().zip(best).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        replay.push(&[1.0], &action, reward, &[1.0]);
        replay.sample(64, &mut rng, &mut batch);
        agent.update(&batch);
    }
    let action = agent.act(&[1.0]);
    assert!(action.iter().zip(best).all(|(a, b)| (a - b).abs() < 0.05), "{action:?}");
}

/// A mass on a line: position and velocity, pushed by an action.
mod mass {
    pub const STEP: f64 = 0.3;
    pub const DISCOUNT: f64 = 0.9;
    /// Weight of a² in the cost; less would want actions beyond ±1.
    const EFFORT: f64 = 0.5;

    pub fn step([x, v]: [f64; 2], a: f64) -> [f64; 2] {
        [x + STEP * v, v + STEP * a]
    }

    pub fn cost([x, v]: [f64; 2], a: f64) -> f64 {
        x * x + 0.2 * v * v + EFFORT * a * a
    }

    /// Σ γ^t cost_t, by a policy.
    pub fn cost_from(mut state: [f64; 2], mut policy: impl FnMut([f64; 2]) -> f64) -> f64 {
        let (mut sum, mut weight) = (0.0, 1.0);
        for _ in 0..150 {
            let a = policy(state);
            sum += weight * cost(state, a);
            state = step(state, a);
            weight *= DISCOUNT;
        }
        sum
    }

    /// The gain (k_x, k_v) of the best policy a = −k_x·x − k_v·v, by the discounted Riccati
    /// recursion for P = [[p, q], [q, r]].
    pub fn best_gain() -> [f64; 2] {
        let (mut p, mut q, mut r) = (0.0, 0.0, 0.0);
        let mut gain = [0.0; 2];
        for _ in 0..1000 {
            // The best a minimizes EFFORT·a² + γ·s'ᵀPs' with s' = As + Ba, B = (0, STEP).
            let curvature = EFFORT + DISCOUNT * STEP * STEP * r;
            gain = [DISCOUNT * STEP * q / curvature, DISCOUNT * STEP * (STEP * q + r) / curvature];
            // With M = A − B·gain: P = Q + EFFORT·gain·gainᵀ + γMᵀPM.
            let m = [[1.0, STEP], [-STEP * gain[0], 1.0 - STEP * gain[1]]];
            let form = |i: usize, j: usize| {
                let (a, c) = ([m[0][i], m[1][i]], [m[0][j], m[1][j]]);
                a[0] * c[0] * p + (a[0] * c[1] + a[1] * c[0]) * q + a[1] * c[1] * r
            };
            let new = |i: usize, j: usize, own: f64| {
                own + EFFORT * gain[i] * gain[j] + DISCOUNT * form(i, j)
            };
            (p, q, r) = (new(0, 0, 1.0), new(0, 1, 0.0), new(1, 1, 0.2));
        }
        gain
    }
}

/// The linear-quadratic regulator: the learned policy costs at most 10 % more than the best one,
/// from starts where that one keeps within the bounds of actions.
#[test]
fn a_mass_is_brought_to_rest_at_nearly_the_least_cost() {
    let mut rng = rng(2);
    let sizes = Sizes { states: 2, actions: 1, hidden: 64 };
    let learning = Learning { discount: mass::DISCOUNT, soft_update: 0.05, ..LEARNING };
    let mut agent = Agent::new(sizes, learning, &mut rng).unwrap();
    let mut replay = Replay::new(2, 1, 100_000);
    let mut batch = Batch::default();
    let single = |state: [f64; 2]| state.map(|x| x as f32);
    let mut state = [0.0; 2];
    const STEPS: u32 = 12_000;
    for step in 0..STEPS {
        if step % 10 == 0 {
            state = [rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)];
        }
        let warm_up = step < 1000;
        let deviation = 0.3 - 0.25 * step as f32 / STEPS as f32;
        let action = if warm_up {
            vec![rng.random_range(-1.0..1.0)]
        } else {
            explored(agent.act(&single(state)), deviation, &mut rng)
        };
        let a = f64::from(action[0]);
        let next = mass::step(state, a);
        let reward = -mass::cost(state, a) as f32;
        replay.push(&single(state), &action, reward, &single(next));
        state = next;
        if !warm_up {
            replay.sample(64, &mut rng, &mut batch);
            agent.update(&batch);
        }
    }
    let gain = mass::best_gain();
    let (mut ours, mut least) = (0.0, 0.0);
    for start in [[0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5], [0.4, 0.3], [-0.4, 0.5]] {
        least += mass::cost_from(start, |[x, v]| {
            let a = -gain[0] * x - gain[1] * v;
            assert!(a.abs() <= 1.0);
            a
        });
        ours += mass::cost_from(start, |state| f64::from(agent.act(&single(state))[0]));
    }
    assert!(ours >= least * (1.0 - 1e-6), "nothing beats the optimum: {ours} {least}");
    assert!(ours <= 1.1 * least, "{ours}, least {least}");
}

/// 15 devices within the limits of the default configuration, SNRs over 30 dB at equal power,
/// required noise that falls to an eighth.
fn power_problem(seed: u64, rule: NoiseRule) -> Problem {
    const DEVICES: usize = 15;
    const ROUNDS: usize = 150;
    let mut rng = rng(seed);
    let most = DEVICES as f64 * 0.075;
    let limits = Limits::new(DEVICES, 0.01 * most, most, 0.3).unwrap();
    let uniform = |rng: &mut Stream| 0.5 + rng.random::<f64>();
    let weights: Vec<f64> = (0..DEVICES).map(|_| uniform(&mut rng)).collect();
    let total: f64 = weights.iter().sum();
    let needs: Vec<f64> = (0..DEVICES).map(|_| 0.3 * uniform(&mut rng)).collect();
    let noises: Vec<f64> = (0..DEVICES)
        .map(|k| {
            let decibels = 30.0 * (k as f64 + rng.random::<f64>()) / DEVICES as f64 - 10.0;
            0.075 * 10f64.powf(-decibels / 10.0)
        })
        .collect();
    let cell = |value: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..ROUNDS * DEVICES).map(|at| value(at / DEVICES, at % DEVICES)).collect()
    };
    let arrays = TraceArrays {
        weights: cell(&|_, k| weights[k] / total),
        sigma_required: cell(&|t, k| needs[k] * (-2.0 * t as f64 / ROUNDS as f64).exp()),
        nu_at_watt: cell(&|_, k| noises[k]),
        quiet_scale_squared: vec![0.09; DEVICES],
        trust: vec![1.0; DEVICES],
        noise_within_scale: 0.0,
    };
    Problem::new(Trace::new(arrays).unwrap(), rule, BoundForm::Corrected, 0.997, limits).unwrap()
}

/// Within 5 % of what CMA-ES finds; equal power and as many random draws are further away.
#[test]
fn power_is_nearly_the_best() {
    for (seed, rule) in [(0, NoiseRule::PerDevice), (1, NoiseRule::TopUp)] {
        let mut problem = power_problem(seed, rule);
        let found = Ddpg::new(DdpgConfig::default())
            .unwrap()
            .optimize(&mut problem, seed, &mut go_on)
            .unwrap();
        let evaluations = found.evaluations as u32;
        let least = (0..2)
            .map(|seed| {
                let mut cma_es = CmaEs { evaluations };
                cma_es.optimize(&mut problem, seed, &mut go_on).unwrap().evaluation.objective
            })
            .fold(f64::INFINITY, f64::min);
        let random = RandomSearch { evaluations }.optimize(&mut problem, seed, &mut go_on).unwrap();
        let equal = problem.evaluate(&problem.limits().equal()).unwrap();
        let ours = found.evaluation.objective;
        assert!(ours <= 1.05 * least, "{rule:?}: {} times the least", ours / least);
        assert!(ours < random.evaluation.objective && ours < equal.objective, "{rule:?}");
        assert!(is_feasible(problem.limits(), &found.amplitudes));
        assert_eq!(problem.evaluate(&found.amplitudes).unwrap(), found.evaluation);
    }
}

fn small(hidden: u32, batch: u32) -> DdpgConfig {
    DdpgConfig { episodes: 4, steps: 60, hidden, batch, ..DdpgConfig::default() }
}

/// Both sizes: one that fits a thread, one that is split.
#[test]
fn the_same_seed_gives_the_same_bits_on_one_and_two_threads() {
    for settings in [small(16, 16), small(128, 160)] {
        let run = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut ddpg = Ddpg::new(settings).unwrap();
                let mut problem = power_problem(0, NoiseRule::PerDevice);
                let found = ddpg.optimize(&mut problem, seed, &mut go_on).unwrap();
                (found.amplitudes, found.curve, ddpg.agent().unwrap().parameters())
            })
        };
        let one = run(1, 5);
        assert_eq!(one, run(2, 5));
        assert_ne!(one, run(2, 6));
    }
}

#[test]
fn a_second_search_repeats_the_first() {
    let mut ddpg = Ddpg::new(small(16, 16)).unwrap();
    let mut problem = power_problem(0, NoiseRule::PerDevice);
    let first = ddpg.optimize(&mut problem, 3, &mut go_on).unwrap();
    let second = ddpg.optimize(&mut problem, 3, &mut go_on).unwrap();
    assert_eq!((first.amplitudes, first.curve), (second.amplitudes, second.curve));
}

/// The result is what the trained actor proposes, though other powers were better on the way.
#[test]
fn the_printed_variant_ends_with_its_actor() {
    let variant = DdpgVariant::Printed;
    let (discount, soft_update) = (0.99, 0.001);
    let config = DdpgConfig { variant, discount, soft_update, ..small(16, 16) };
    let mut ddpg = Ddpg::new(config).unwrap();
    let mut problem = power_problem(0, NoiseRule::PerDevice);
    let optimum = ddpg.optimize(&mut problem, 3, &mut go_on).unwrap();
    assert!(is_feasible(problem.limits(), &optimum.amplitudes));
    assert_eq!(Some(optimum.evaluation.objective), ddpg.policy_objective());
    assert_eq!(problem.evaluate(&optimum.amplitudes).unwrap(), optimum.evaluation);
    let least = optimum.curve.last().unwrap().1;
    assert!(optimum.evaluation.objective >= least);
    let again = ddpg.optimize(&mut problem, 3, &mut go_on).unwrap();
    assert_eq!(again.amplitudes, optimum.amplitudes);
    let tuned = Ddpg::new(small(16, 16)).unwrap().optimize(&mut problem, 3, &mut go_on).unwrap();
    assert_ne!(tuned.amplitudes, optimum.amplitudes);
}

/// Eqs. (29) to (36) as a plain loop with updates of its own agent: the printed search asks for the
/// same powers in the same order, and its result is the last of them. A cliff makes some steps worse
/// than ten times L_equal, of which no more counts.
#[test]
fn the_printed_search_is_the_plain_loop() {
    const SEED: u64 = 3;
    let limits = Limits::new(2, 0.02, 2.0, 4.0).unwrap();
    let objective = |p: &[f64]| {
        let cliff = if p[0] > 1.05 { 1e3 } else { 0.0 };
        cliff + 1.0 / (p[0] * p[0]) + 0.2 / (p[1] * p[1])
    };
    let variant = DdpgVariant::Printed;
    let (episodes, steps, hidden, batch) = (3, 20, 8, 4);
    let config = DdpgConfig { variant, episodes, steps, hidden, batch, ..DdpgConfig::default() };
    let config = DdpgConfig { discount: 0.99, soft_update: 0.001, ..config };
    let mut asked: Vec<Vec<f64>> = Vec::new();
    let judge = |p: &[f64]| {
        asked.push(p.to_vec());
        objective(p)
    };
    let mut problem = Judge(limits.clone(), judge);
    Ddpg::new(config).unwrap().optimize(&mut problem, SEED, &mut go_on).unwrap();

    let equal = limits.equal();
    let worst = 10.0 * objective(&equal);
    assert!(asked.iter().any(|p| objective(p) > worst));
    // T_th is 5 of 10 rounds, √P_0 is 2.
    let state_of = |p: &[f64]| [p[0] / 2.0, p[1] / 2.0, 0.5, objective(p).min(worst)];
    let state_of = |p: &[f64]| state_of(p).map(|value| value as f32);
    let amplitudes = |action: &[f32]| {
        let mut p: Vec<f64> = action.iter().map(|&a| 2.0 * (f64::from(a) + 1.0) / 2.0).collect();
        limits.project(&mut p);
        p
    };
    let same = |asked: &[f64], p: &[f64]| asked.iter().zip(p).all(|(a, b)| (a - b).abs() < 1e-4);
    let random = |what_for| stream(SEED, Purpose::Power, 4, what_for);
    let sizes = Sizes { states: 4, actions: 2, hidden: 8 };
    let mut agent = Agent::new(sizes, config.learning(), &mut random(0)).unwrap();
    let (mut noise, mut draws) = (random(1), random(2));
    let (mut replay, mut batch) = (Replay::new(4, 2, 60), Batch::default());
    assert!(same(&asked[0], &equal));
    let mut state = state_of(&equal);
    for step in 0..60 {
        if step % 20 == 0 {
            state = state_of(&equal);
        }
        let action = explored(agent.act(&state), 0.1, &mut noise);
        let p = amplitudes(&action);
        assert!(same(&asked[1 + step], &p), "step {step}: {:?} {p:?}", asked[1 + step]);
        let next = state_of(&p);
        replay.push(&state, &action, -next[3], &next);
        if replay.len() >= 4 {
            replay.sample(4, &mut draws, &mut batch);
            agent.update(&batch);
        }
        state = next;
    }
    assert_eq!(asked.len(), 62);
    assert!(same(&asked[61], &amplitudes(agent.act(&state))));
}

/// Judges by a closure.
struct Judge<F>(Limits, F);

impl<F: FnMut(&[f64]) -> f64> Objective for Judge<F> {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn rounds(&self) -> u32 {
        10
    }

    fn evaluate(&mut self, amplitudes: &[f64]) -> Result<Evaluation, ObjectiveError> {
        let objective = (self.1)(amplitudes);
        let switching_round = vec![5; amplitudes.len()];
        Ok(Evaluation { objective, switching_round, worst_under_noising: 1.0 })
    }
}

fn three_devices() -> Limits {
    Limits::new(3, 0.1, 1.0, 0.8).unwrap()
}

#[test]
fn infinite_objectives_are_no_obstacle_and_no_result() {
    let mut seen = 0;
    let mut half = Judge(three_devices(), |p: &[f64]| {
        seen += 1;
        if p[0] < p[1] { f64::INFINITY } else { p[1] + p[2] }
    });
    let settings = small(16, 16);
    let found = Ddpg::new(settings).unwrap().optimize(&mut half, 1, &mut go_on).unwrap();
    assert!(found.evaluation.objective.is_finite() && found.amplitudes[0] >= found.amplitudes[1]);
    assert_eq!(found.evaluations, 4 * 60 + 2);
    assert_eq!(seen, found.evaluations);
    assert_eq!(found.curve.last(), Some(&(242, found.evaluation.objective)));
    for worth in [f64::INFINITY, f64::NAN] {
        let mut none = Judge(three_devices(), |_: &[f64]| worth);
        let error = Ddpg::new(settings).unwrap().optimize(&mut none, 1, &mut go_on).unwrap_err();
        assert!(matches!(error, OptimizeError::NothingFinite { evaluations: 242, .. }), "{error}");
    }
    let mut free = Judge(three_devices(), |_: &[f64]| 0.0);
    let found = Ddpg::new(settings).unwrap().optimize(&mut free, 1, &mut go_on).unwrap();
    assert_eq!(found.evaluation.objective, 0.0);
}

#[test]
fn a_listener_stops_the_search() {
    let mut judge = Judge(three_devices(), |p: &[f64]| p[0]);
    let mut calls = 0;
    let error = Ddpg::new(small(8, 8)).unwrap().optimize(&mut judge, 1, &mut |progress| {
        calls += 1;
        assert_eq!((progress.evaluations, progress.of), (calls, 242));
        if calls < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(matches!(error, Err(OptimizeError::Cancelled(_))));
    assert_eq!(calls, 20);
}

#[test]
fn bad_settings_and_agents_are_named() {
    let bad = DdpgConfig { batch: 0, ..DdpgConfig::default() };
    assert_eq!(
        Ddpg::new(bad).err().unwrap().to_string(),
        "control.ddpg.batch = 0: expected an integer from 1 to 1048576"
    );
    for discount in [-0.1, 1.0, f64::NAN] {
        let error = Ddpg::new(DdpgConfig { discount, ..DdpgConfig::default() }).err().unwrap();
        assert_eq!(error.name, "control.ddpg.discount");
    }
    let sizes = Sizes { states: 5, actions: 0, hidden: 4 };
    let error = Agent::new(sizes, LEARNING, &mut rng(1)).err().unwrap();
    assert_eq!(error, AgentError::Size { name: "actions", value: 0 });
    let agent = |states, actions| {
        Agent::new(Sizes { states, actions, hidden: 4 }, LEARNING, &mut rng(1)).unwrap()
    };
    assert!(Ddpg::with_agent(small(8, 8), &agent(5, 4)).is_err());
    let mut judge = Judge(three_devices(), |p: &[f64]| p[0]);
    let mut other = Ddpg::with_agent(small(8, 8), &agent(6, 4)).unwrap();
    let error = other.optimize(&mut judge, 1, &mut go_on).unwrap_err();
    assert_eq!(error.to_string(), "4 amplitudes for 3 devices");
    let mut parameters = agent(5, 3).parameters();
    parameters.critic.pop();
    let sizes = Sizes { states: 5, actions: 3, hidden: 4 };
    let error = Agent::with_parameters(sizes, LEARNING, parameters).err().unwrap();
    assert!(error.to_string().starts_with("critic: "), "{error}");
}
