//! `lapa bound`: the constants of the convergence bound, and the bound against a run.

mod report;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use clap::Args;
use lapa::config::{Entropy, ObserveDevices, PilotTooLarge};
use lapa::observe::{DeviceRecords, RoundRecord};
use lapa::optimize::PowerChoice;
use lapa::run::RunError;
use lapa::simulation::{Event, ExactLoss, ExactLossError, Simulation};
use lapa_control::bound::{DeviceNoise, Estimates, Point, curvature, outside_theorem};
use lapa_control::phases::PhaseError;

use crate::failure::{CommandResult, Failure};
use crate::output::{self, PlotFolder, Printing};
use crate::progress::{Mode, Steps, patiently};
use report::Report;

/// Estimate the constants of the convergence bound and compare the bound with a run
///
/// Trains the experiment in memory as a pilot and evaluates the exact loss and gradient of every
/// device at about ten rounds. This is not private, so it works in simulations only. Prints the
/// estimates next to the values in [control], the condition on the learning rate, and the bound of
/// the paper's Theorem 1, as printed and corrected, next to the loss of the pilot. Draws bound.svg
/// and bound.png.
///
///   L             smoothness: largest ratio of gradient change to parameter change
///   μ             convexity: smallest ‖∇F‖² / 2(F − F*), with F* the lowest loss of the pilot
///   δ             dissimilarity: δ² is the largest mean ‖∇F_k‖² of the devices over ‖∇F‖²
///   A             contraction: a round without noise leaves at most A(F − F*); must be below 1
///   initial       bound term of the initial gap
///   channel       bound term of the channel noise
///   artificial    bound term of the artificial (privacy) noise
///
/// F weights the devices by their average weights in the run. The full gradients of all devices add
/// up to ∇F, so δ = 1 suffices for them; a third bound uses δ = 1. The loss of most models is not
/// strongly convex, so the constants are estimates without a guarantee. That of model.name = "logistic"
/// with model.features and learn.weight_decay is: then L and μ hold for all records, and the bounds use
/// them. Warnings list the assumptions of the theorem that the experiment violates.
///
/// Examples:
///   lapa bound -c run.rounds=60
///   lapa bound my.toml -c learn.momentum=0 -c learn.batch_fraction=1 --out plots
///   lapa bound my.toml --samples 5000 --format json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    #[command(flatten)]
    plots: PlotFolder,
    /// Most samples per device, evenly spaced.
    #[arg(long, value_name = "N", default_value = "500")]
    samples: NonZeroUsize,
    #[command(flatten)]
    printing: Printing,
}

/// Into as many parts the run is divided; the constants are estimated between them.
const PARTS: u32 = 10;
/// Most bytes of models and gradients along the run: 8 GiB.
const MOST_BYTES: u64 = 8 << 30;
/// Points at which the largest curvature is sought, and power iterations at each.
const CURVATURES: usize = 3;
const ITERATIONS: u32 = 6;

pub fn execute(arguments: Arguments) -> CommandResult {
    let mode = Mode::choose(arguments.printing.quiet);
    let (mut experiment, data) = arguments.source.prepare(None, mode)?;
    if experiment.run.entropy == Entropy::Os {
        // Before anything takes time.
        return Err(ExactLossError::NotASimulation.into());
    }
    let (rounds, devices) = (experiment.run.rounds, experiment.partition.scheme.devices());
    PilotTooLarge::check(rounds, devices).map_err(PhaseError::from)?;
    let folder = &arguments.plots.out;
    super::create_folder(folder)?;
    // The bound needs every device.
    experiment.observe.devices = ObserveDevices::List;
    if experiment.control.needs_pilot() {
        // Nothing is optimized here.
        experiment.control.power = PowerChoice::Equal;
    }
    let mut federation =
        patiently(mode, "partitioning the samples", || Simulation::new(experiment, data))
            .map_err(RunError::from)?;
    check_size(&federation)?;
    let pilot = Pilot::run(&mut federation, mode)?;
    mode.notice("estimating the constants …");
    let (points, estimates) = pilot.estimate(&federation, arguments.samples)?;
    let warnings = outside_theorem(federation.experiment());
    warnings.iter().for_each(|warning| mode.notice(&format!("warning: {warning}")));
    let report = Report::new(&federation, pilot.rounds, &points, estimates, warnings)?;
    let plots = report.draw(&folder.join("bound"))?;
    output::print(arguments.printing.format, &report.json(&plots)?, || report.text(&plots))
}

/// Refuses a model of which the estimates would keep more than memory should hold.
fn check_size(federation: &Simulation) -> Result<(), Failure> {
    let parameters = federation.network().parameter_count() as u64;
    // At each mark the model twice, and its gradient in 64 bits.
    let needed = parameters.saturating_mul(u64::from(PARTS + 1) * 16);
    if needed <= MOST_BYTES {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the model has {parameters} parameters: its models and gradients along the run need \
         {needed} bytes; the limit is {MOST_BYTES}"
    )))
}

/// A run in memory, with its models at some rounds.
struct Pilot {
    /// The noise of the devices in each round.
    rounds: Vec<Vec<DeviceNoise>>,
    /// Mean aggregation weight of each device over the rounds with a step.
    weights: Vec<f64>,
    models: Vec<(u32, Vec<f32>)>,
}

impl Pilot {
    fn run(simulation: &mut Simulation, mode: Mode) -> Result<Self, Failure> {
        let rounds = simulation.experiment().run.rounds;
        let parts = PARTS.min(rounds);
        let marks: Vec<u32> = (0..=parts)
            .map(|part| (u64::from(part) * u64::from(rounds) / u64::from(parts)) as u32)
            .collect();
        let mut weights = vec![0.0; simulation.records().devices()];
        let mut models = vec![(0, simulation.model().parameters.clone())];
        let mut progress = Steps::new(mode);
        progress.rounds(0, rounds);
        let mut list = Vec::new();
        let run = simulation.run(&mut |simulation, event| {
            match event {
                Event::Warning(warning) => progress.say(&format!("warning: {warning}")),
                Event::Round(record) => {
                    progress.round(record, rounds);
                    list.push(noises(record, &mut weights));
                    if marks.contains(&record.round) {
                        models.push((record.round, simulation.model().parameters.clone()));
                    }
                }
            }
            ControlFlow::Continue(())
        });
        run.map_err(RunError::from)?;
        progress.finish();
        let steps = list.iter().filter(|devices| !devices.is_empty()).count();
        if steps == 0 {
            return Err(Failure::usage("no device transmitted in any round, so there is no bound"));
        }
        weights.iter_mut().for_each(|weight| *weight /= steps as f64);
        Ok(Self { rounds: list, weights, models })
    }

    fn estimate(
        &self,
        federation: &Simulation,
        samples: NonZeroUsize,
    ) -> Result<(Vec<Point>, Estimates), Failure> {
        let at =
            |parameters: &[f32]| federation.exact_loss(parameters, &self.weights, Some(samples));
        let point = |(round, parameters): &(u32, Vec<f32>)| {
            let ExactLoss { loss, gradient, local_squares, .. } = at(parameters)?;
            Ok(Point {
                round: *round,
                parameters: parameters.clone(),
                loss,
                gradient,
                local_squares,
            })
        };
        let points: Vec<Point> =
            self.models.iter().map(point).collect::<Result<_, ExactLossError>>()?;
        let curvature = |place: usize| {
            let point = &points[place * (points.len() - 1) / (CURVATURES - 1)];
            curvature(point, ITERATIONS, |parameters| at(parameters).map(|study| study.gradient))
        };
        let curvatures: Vec<_> = (0..CURVATURES).map(curvature).collect::<Result<_, _>>()?;
        let estimates = Estimates::from_pilot(&points, &curvatures)?;
        Ok((points, estimates))
    }
}

/// The devices that sent in a round; their weights are added to `weights`.
fn noises(record: &RoundRecord, weights: &mut [f64]) -> Vec<DeviceNoise> {
    let DeviceRecords::List(devices) = &record.devices else { return Vec::new() };
    let sent = devices.iter().filter(|device| device.selected);
    sent.map(|device| {
        weights[device.device as usize] += device.weight;
        DeviceNoise {
            weight: device.weight,
            artificial: device.sigma_artificial.powi(2),
            channel: device.sigma_channel.powi(2),
        }
    })
    .collect()
}
