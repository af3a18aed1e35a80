//! Time of a step of DDPG, and its growth (Section IV-D).

use std::hint::black_box;
use std::ops::ControlFlow;

use lapa::config::DdpgConfig;
use lapa_control::optimize::ddpg::Settings as Ddpg;
use lapa_control::optimize::{self, Optimizer};
use lapa_control::phases::PhaseError;
use lapa_control::power::{NoiseRule, Objective, example};
use lapa_report::plot::{Figure, Panels, Series};
use serde::Serialize;

use super::Seen;
use super::chapter::{Chapter, Drawing};
use crate::report::Table;

/// Steps of DDPG that are timed at each point.
const EPISODES: u32 = 4;
const STEPS: u32 = 100;

/// The least of so many times counts: others on the machine only add to them.
const REPEATS: u32 = 3;

/// Sizes of the paper: devices, rounds, and the width of the hidden layers.
const DEVICES: usize = 15;
const ROUNDS: usize = 200;
const HIDDEN: u32 = 64;

/// Measured times.
#[derive(Clone, Debug, Serialize)]
pub struct Complexity {
    /// Growth with each size, the others as in the paper.
    pub growth: Vec<Growth>,
}

/// Times while one size grows.
#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// Name of the size.
    pub size: &'static str,
    /// Each value of it.
    pub points: Vec<Timing>,
    /// The exponent of the best power law through the times of a step.
    pub exponent: f64,
}

/// Times at one size.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The size.
    pub value: usize,
    /// W: parameters of actor and critic.
    pub parameters: usize,
    /// Microseconds of a step of DDPG: an action, its evaluation and an update.
    pub step_us: f64,
    /// Microseconds of the evaluation alone.
    pub evaluation_us: f64,
}

/// Measures all sizes. `on_point` hears of each and may break off; then there is no result.
pub fn measure(
    on_point: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<Complexity>, PhaseError> {
    let sizes: [(&str, [usize; 4]); 3] = [
        ("devices K", [15, 30, 60, 120]),
        ("rounds T", [100, 200, 400, 800]),
        ("hidden units", [32, 64, 128, 256]),
    ];
    let mut growth = Vec::new();
    for (size, values) in sizes {
        let mut points = Vec::new();
        for value in values {
            if on_point().is_break() {
                return Ok(None);
            }
            let (mut devices, mut rounds, mut hidden) = (DEVICES, ROUNDS, HIDDEN);
            match size {
                "devices K" => devices = value,
                "rounds T" => rounds = value,
                _ => hidden = value as u32,
            }
            points.push(timing(value, devices, rounds, hidden)?);
        }
        let exponent = exponent(&points);
        growth.push(Growth { size, points, exponent });
    }
    Ok(Some(Complexity { growth }))
}

fn timing(value: usize, devices: usize, rounds: usize, hidden: u32) -> Result<Timing, PhaseError> {
    let mut problem = example(devices, rounds, NoiseRule::PerDevice);
    let amplitudes = problem.limits().equal();
    let (mut evaluation_us, mut step_us) = (f64::INFINITY, f64::INFINITY);
    let config = DdpgConfig { episodes: EPISODES, steps: STEPS, hidden, ..DdpgConfig::default() };
    for _ in 0..REPEATS {
        let start = lapa::clock::now();
        for _ in 0..STEPS {
            black_box(problem.evaluate(black_box(&amplitudes))?);
        }
        evaluation_us = evaluation_us.min(1e6 * start.elapsed().as_secs_f64() / f64::from(STEPS));
        let mut ddpg = optimize::Ddpg::new(Ddpg::from(config))?;
        let start = lapa::clock::now();
        ddpg.optimize(&mut problem, 0, &mut |_| ControlFlow::Continue(()))?;
        let steps = f64::from(EPISODES * STEPS);
        step_us = step_us.min(1e6 * start.elapsed().as_secs_f64() / steps);
    }
    let parameters = parameters(devices, hidden as usize);
    Ok(Timing { value, parameters, step_us, evaluation_us })
}

/// Parameters of an actor and a critic with two hidden layers; the state has K + 2 numbers.
fn parameters(devices: usize, hidden: usize) -> usize {
    let network = |inputs: usize, outputs: usize| {
        (inputs + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * outputs
    };
    network(devices + 2, devices) + network(2 * devices + 2, 1)
}

/// Slope of the times of a step over the sizes, both as logarithms, by least squares.
fn exponent(points: &[Timing]) -> f64 {
    let n = points.len() as f64;
    let x: Vec<f64> = points.iter().map(|point| (point.value as f64).ln()).collect();
    let y: Vec<f64> = points.iter().map(|point| point.step_us.ln()).collect();
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let both: f64 = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    both / x.iter().map(|x| (x - mean_x).powi(2)).sum::<f64>()
}

pub fn chapter(seen: &Seen) -> Chapter {
    let growth = seen.complexity.iter().flat_map(|complexity| &complexity.growth);
    let mut panels = Panels::new("Time per DDPG step").columns(3).share_y();
    let headers = ["Size", ">value", ">W", ">step (µs)", ">evaluation (µs)", ">exponent"];
    let mut table =
        Table::new("Measured on one core of the machine that made this page.", &headers);
    for growth in growth {
        let line = |part: fn(&Timing) -> f64| {
            growth.points.iter().map(move |point| (point.value as f64, part(point)))
        };
        let figure = Figure::new(growth.size, growth.size, "Microseconds").log_x().log_y();
        panels = panels.panel(
            figure
                .line(Series::new("DDPG step", line(|point| point.step_us)))
                .line(Series::new("evaluation of P1", line(|point| point.evaluation_us))),
        );
        for point in &growth.points {
            table.row([
                growth.size.to_owned(),
                point.value.to_string(),
                point.parameters.to_string(),
                format!("{:.0}", point.step_us),
                format!("{:.1}", point.evaluation_us),
                format!("{:.2}", growth.exponent),
            ]);
        }
    }
    Chapter::new(
        "Complexity",
        "The paper states O(W + N·W + α·T_th) per step: networks of W parameters, a batch of N, \
         and the environment. Here a step evaluates P1 on a recorded trace, so the last term is \
         small; an environment that trains costs a whole run per step. Exponents are slopes of log \
         time against log size.",
    )
    .picture(
        "complexity",
        "Slopes: nearly flat in T, gentle in K, and steeper in the width of the networks, because \
         W grows with its square.",
        Drawing::Panels(panels),
    )
    .table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_the_agent() {
        // By hand: 17·64+64 + 64·64+64 + 64·15+15 for the actor, 32·64+64 + 64·64+64 + 64+1.
        assert_eq!(parameters(15, 64), 1152 + 4160 + 975 + 2112 + 4160 + 65);
    }

    #[test]
    fn the_exponent_of_a_power_law_is_found() {
        let point = |value: usize| Timing {
            value,
            parameters: 0,
            step_us: 3.0 * (value as f64).powf(1.5),
            evaluation_us: 0.0,
        };
        assert!((exponent(&[10, 20, 40, 80].map(point)) - 1.5).abs() < 1e-12);
    }
}
