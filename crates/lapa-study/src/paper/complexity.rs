//! Time of a step of DDPG and of a whole search, and their growth (Section IV-D, eqs. (37), (38)).

use std::hint::black_box;
use std::ops::ControlFlow;

use lapa::optimize::{Ddpg, DdpgConfig, Objective, Optimizer};
use lapa_control::phases::{Live, PhaseError};
use lapa_control::power::{NoiseRule, example};
use lapa_report::plot::{Figure, Panels, Series};
use serde::Serialize;

use super::chapter::{Chapter, Drawing};
use super::curve::{Base, FIRST_SEED, base};
use super::{Curve, Evidence, Settings};
use crate::report::Table;

const BASE: Base = base!("paper/power.toml");

/// Samples of the digits that a training environment draws.
const DIGITS: usize = 10_000;

/// Repetitions, of which the fastest counts: other load on the machine only adds time.
const REPEATS: u32 = 3;

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
    /// The exponent of the best power law through the times of a step, or of a search where its length
    /// grows.
    pub exponent: f64,
}

/// Times at one size.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The size.
    pub value: usize,
    /// W: parameters of actor and critic.
    pub parameters: usize,
    /// E·T_RL: steps of the search that was timed.
    pub steps: u32,
    /// Microseconds of a step of DDPG: an action, its evaluation and an update.
    pub step_us: f64,
    /// Microseconds of the evaluation alone.
    pub evaluation_us: f64,
}

impl Timing {
    /// Microseconds of the whole search.
    fn search_us(&self) -> f64 {
        f64::from(self.steps) * self.step_us
    }
}

/// Sizes of a search. Those of the paper, where it has them, are the default.
#[derive(Clone, Copy)]
struct Sizes {
    devices: usize,
    rounds: usize,
    hidden: u32,
    batch: u32,
    steps: u32,
    /// Every step trains a federation, as in the paper's Section IV-C.
    trains: bool,
}

const PAPER: Sizes =
    Sizes { devices: 15, rounds: 200, hidden: 64, batch: 64, steps: 400, trains: false };

/// Name of the size whose times are those of whole searches.
const SEARCH: &str = "steps E·T_RL";

/// A size that grows: its name, its values, and the sizes of a search with a value of it.
type Axis = (&'static str, [usize; 4], fn(usize) -> Sizes);

const AXES: [Axis; 6] = [
    ("devices K", [15, 30, 60, 120], |devices| Sizes { devices, ..PAPER }),
    ("rounds T", [100, 200, 400, 800], |rounds| Sizes { rounds, ..PAPER }),
    ("hidden units", [32, 64, 128, 256], |hidden| Sizes { hidden: hidden as u32, ..PAPER }),
    ("batch N", [32, 64, 128, 256], |batch| Sizes { batch: batch as u32, ..PAPER }),
    (SEARCH, [100, 200, 400, 800], |steps| Sizes { steps: steps as u32, ..PAPER }),
    ("rounds T, training", [5, 10, 20, 40], |rounds| Sizes {
        rounds,
        steps: 4,
        trains: true,
        ..PAPER
    }),
];

/// Measures all sizes. `on_point` hears of each and may break off; then there is no result.
pub fn measure(
    on_point: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<Complexity>, PhaseError> {
    let mut growth = Vec::new();
    for (size, values, sizes) in AXES {
        let mut points = Vec::new();
        for value in values {
            if on_point().is_break() {
                return Ok(None);
            }
            points.push(timing(value, sizes(value))?);
        }
        let time = if size == SEARCH { Timing::search_us } else { |point: &Timing| point.step_us };
        let exponent = exponent(&points, time);
        growth.push(Growth { size, points, exponent });
    }
    Ok(Some(Complexity { growth }))
}

fn timing(value: usize, sizes: Sizes) -> Result<Timing, PhaseError> {
    let Sizes { devices, rounds, hidden, batch, steps, trains } = sizes;
    let mut objective: Box<dyn Objective> = if trains {
        Box::new(training(rounds)?)
    } else {
        Box::new(example(devices, rounds, NoiseRule::PerDevice))
    };
    let amplitudes = objective.limits().equal();
    let (mut evaluation_us, mut step_us) = (f64::INFINITY, f64::INFINITY);
    let config = DdpgConfig { episodes: 1, steps, hidden, batch, ..DdpgConfig::default() };
    for _ in 0..REPEATS {
        let mean =
            |start: std::time::Instant| 1e6 * start.elapsed().as_secs_f64() / f64::from(steps);
        let start = lapa::clock::now();
        for _ in 0..steps {
            black_box(objective.evaluate(black_box(&amplitudes))?);
        }
        evaluation_us = evaluation_us.min(mean(start));
        let mut ddpg = Ddpg::new(config)?;
        let start = lapa::clock::now();
        ddpg.optimize(&mut *objective, 0, &mut |_| ControlFlow::Continue(()))?;
        step_us = step_us.min(mean(start));
    }
    let parameters = parameters(devices, hidden as usize);
    Ok(Timing { value, parameters, steps, step_us, evaluation_us })
}

/// The environment of the paper's power figure, trained for some rounds at every step.
fn training(rounds: usize) -> Result<Live, PhaseError> {
    let curve = Curve::new("training", BASE)
        .with(format!("run.rounds={rounds}"))
        .with("run.threads=1")
        .with("partition.mix.iid_samples=[150,550]")
        .with("partition.mix.non_iid_samples=[150,550]")
        .with("control.pilot=synthetic")
        .with("control.pilots=1");
    let settings = Settings::new(FIRST_SEED, 1);
    // Unwrap safety: the configuration is built in, and a test makes this environment.
    let cells = curve.cells(settings).expect("a built-in configuration");
    Live::new(cells[0].experiment(), &lapa::data::digits(DIGITS, 1000))
}

/// Parameters of an actor and a critic with two hidden layers; the state has K + 2 numbers.
fn parameters(devices: usize, hidden: usize) -> usize {
    let network = |inputs: usize, outputs: usize| {
        (inputs + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * outputs
    };
    network(devices + 2, devices) + network(2 * devices + 2, 1)
}

/// Slope of the times over the sizes, both as logarithms, by least squares.
fn exponent(points: &[Timing], time: fn(&Timing) -> f64) -> f64 {
    let n = points.len() as f64;
    let x: Vec<f64> = points.iter().map(|point| (point.value as f64).ln()).collect();
    let y: Vec<f64> = points.iter().map(|point| time(point).ln()).collect();
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let both: f64 = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    both / x.iter().map(|x| (x - mean_x).powi(2)).sum::<f64>()
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let growth = evidence.complexity.iter().flat_map(|complexity| &complexity.growth);
    let mut panels = Panels::new("Time per DDPG step").columns(3);
    let headers =
        ["Size", ">value", ">W", ">step (µs)", ">evaluation (µs)", ">search (ms)", ">exponent"];
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
                format!("{:.0}", point.search_us() / 1e3),
                format!("{:.2}", growth.exponent),
            ]);
        }
    }
    Chapter::new(
        "Complexity",
        "The paper states O(W + N·W + α·T_th) per step, eq. (37): networks of W parameters, a batch of \
         N, and an environment that trains, at α per round; and E·T_RL times that for a search, eq. \
         (38). By default a step evaluates P1 on a recorded trace, so its last term is small. In the \
         last row every step trains on digits, one thread, 15 devices. Exponents are slopes of log time \
         against log size: of a step, and of the search where its length grows.",
    )
    .picture(
        "complexity",
        "Slopes: flat in T on a trace, gentle in K, steeper in the width of the networks, because W grows \
         with its square; below 1 in N, since large batches use the processor better; about 1 in \
         E·T_RL, and in T where every step trains.",
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
            steps: 0,
            step_us: 3.0 * (value as f64).powf(1.5),
            evaluation_us: 0.0,
        };
        assert!(
            (exponent(&[10, 20, 40, 80].map(point), |point| point.step_us) - 1.5).abs() < 1e-12
        );
    }

    #[test]
    fn the_training_environment_is_made() {
        let live = training(1).unwrap();
        assert_eq!((live.rounds(), live.limits().devices()), (1, PAPER.devices));
    }
}
