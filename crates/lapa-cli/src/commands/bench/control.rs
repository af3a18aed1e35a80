//! Speed of transmit power optimization.

use std::hint::black_box;

use lapa::optimize::Objective;
use lapa::optimize::ddpg::{Agent, Batch, Learning, Replay, Sizes};
use lapa::seed::{Purpose, Stream, stream};
use lapa_control::power::{NoiseRule, example};
use lapa_privacy::sampler::add_gaussian;

use super::{Bench, median};
use crate::failure::Failure;

/// Sizes of P1 with 15 devices, as `bench/peers/ddpg.py`.
const ACTIONS: usize = 15;
const STATES: usize = ACTIONS + 2;
const EPISODE: usize = 200;

/// Microseconds of one evaluation of P1 over 200 rounds, and steps of DDPG per second: an action, a
/// step of a trivial environment and an update.
pub fn measure(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let budget = bench.budget;
    for (rule, name) in RULES {
        for devices in [15, 1000] {
            let mut problem = example(devices, EPISODE, rule);
            let amplitudes = problem.limits().equal();
            let mut times = Vec::new();
            let start = lapa::clock::now();
            while times.len() < 7 || start.elapsed() < budget / 8 {
                let repeats = 15_000 / devices;
                let start = lapa::clock::now();
                for _ in 0..repeats {
                    black_box(problem.evaluate(black_box(&amplitudes))?);
                }
                times.push(1e6 * start.elapsed().as_secs_f64() / repeats as f64);
            }
            bench.add(format!("p1_{name}_{devices}_us"), median(times));
        }
    }
    for (hidden, batch) in [(64, 64), (256, 256)] {
        let mut training = Training::new(hidden, batch)?;
        training.steps(2 * batch);
        let mut rates = Vec::new();
        let start = lapa::clock::now();
        while rates.len() < 3 || start.elapsed() < budget {
            const STEPS: usize = 100;
            let start = lapa::clock::now();
            training.steps(STEPS);
            rates.push(STEPS as f64 / start.elapsed().as_secs_f64());
        }
        bench.add(format!("ddpg_{hidden}_steps_per_s"), median(rates));
    }
    Ok(())
}

const RULES: [(NoiseRule, &str); 4] = [
    (NoiseRule::Always, "always"),
    (NoiseRule::Sum, "sum"),
    (NoiseRule::PerDevice, "per_device"),
    (NoiseRule::TopUp, "top_up"),
];

/// An agent that learns the quadratic −Σ(a_k − b_k)²; the state has the last action and reward.
struct Training {
    agent: Agent,
    replay: Replay,
    rng: Stream,
    batch_size: usize,
    batch: Batch,
    state: Vec<f32>,
    done: usize,
}

impl Training {
    fn new(hidden: usize, batch_size: usize) -> Result<Self, Failure> {
        let mut rng = stream(0, Purpose::Power, 4, 0);
        let sizes = Sizes { states: STATES, actions: ACTIONS, hidden };
        // Those of stable-baselines3.
        let learning =
            Learning { discount: 0.99, soft_update: 0.005, actor_rate: 1e-3, critic_rate: 1e-3 };
        Ok(Self {
            agent: Agent::new(sizes, learning, &mut rng)?,
            replay: Replay::new(STATES, ACTIONS, 100_000),
            rng,
            batch_size,
            batch: Batch::default(),
            state: vec![0.0; STATES],
            done: 0,
        })
    }

    fn steps(&mut self, count: usize) {
        let mut action = [0.0; ACTIONS];
        let mut next = [0.0; STATES];
        for _ in 0..count {
            action.copy_from_slice(self.agent.act(&self.state));
            // A constant that is allowed.
            let _ = add_gaussian(&mut action, 0.1, &mut self.rng);
            let mut reward = 0.0;
            for (k, a) in action.iter_mut().enumerate() {
                *a = a.clamp(-1.0, 1.0);
                let best = k as f32 / (ACTIONS - 1) as f32 - 0.5;
                reward -= (*a - best) * (*a - best);
            }
            next[..ACTIONS].copy_from_slice(&action);
            next[STATES - 1] = reward;
            self.replay.push(&self.state, &action, reward, &next);
            self.state.copy_from_slice(&next);
            self.done += 1;
            if self.done.is_multiple_of(EPISODE) {
                self.state.fill(0.0);
            }
            if self.replay.len() >= self.batch_size {
                self.replay.sample(self.batch_size, &mut self.rng, &mut self.batch);
                self.agent.update(&self.batch);
            }
        }
    }
}
