//! Results of a sweep: `sweep.json`, `sweep.parquet`.

use std::collections::BTreeMap;
use std::path::Path;

use lapa::atomic::write_json;
use lapa::observe::{ObserveError, number};
use lapa_report::table::{TableError, write_table};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Grid, Setting, Sweep};
use crate::cell::{Cell, Finished};
use crate::execute::Executed;
use crate::statistics::Estimate;

/// All that a sweep found. No timings: the same sweep gives the same bytes.
#[derive(Clone, Debug, Serialize)]
pub struct SweepResults {
    /// Keys and values.
    #[serde(rename = "keys")]
    pub grid: Grid,
    /// Seeds of every point.
    pub seeds: Vec<u64>,
    /// The points, in the order of the grid.
    pub points: Vec<Point>,
}

/// A point of the grid.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Its value of each key.
    pub values: Map<String, Value>,
    /// Result over the seeds whose cells finished; `None` if no cell did.
    pub result: Option<PointResult>,
    /// Gain in final accuracy over the first point, seed by seed; `None` at the first point.
    pub over_first: Option<Gain>,
    /// One for each seed.
    pub cells: Vec<CellRow>,
}

/// Paired differences of final accuracies, fractions: where both points have a settled accuracy, of
/// the means of the last five evaluations, else after the last round.
#[derive(Clone, Debug, Serialize)]
pub struct Gain {
    /// The mean, and Student's interval for it.
    pub mean: Estimate,
    /// Seeds that finished at both points.
    pub seeds: Vec<u64>,
    /// The difference of each.
    pub values: Vec<f64>,
}

/// Result of the cells of a point: means with 95 % intervals, and the worst ε.
#[derive(Clone, Debug, Serialize)]
pub struct PointResult {
    /// Test accuracy after the last round, a fraction.
    pub accuracy_final: Estimate,
    /// Mean test accuracy of the last five evaluations; `None` if a cell lacks it.
    pub accuracy_last5: Option<Estimate>,
    /// Mean test loss after the last round.
    pub loss_final: Estimate,
    /// The largest over the seeds.
    #[serde(with = "number")]
    pub epsilon_provable: f64,
    /// The largest over the seeds.
    #[serde(with = "number")]
    pub epsilon_claimed_total: f64,
    /// δ of both.
    pub delta: f64,
    /// Bytes the devices sent.
    pub uplink_bytes: Estimate,
    /// Energy that the devices radiated, at most.
    pub energy_j: Estimate,
    /// The accuracy over the rounds.
    pub rounds: Vec<RoundAccuracy>,
}

/// The accuracy after a round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundAccuracy {
    /// Round, from 1.
    pub round: u32,
    /// Over the seeds.
    pub accuracy: Estimate,
}

/// A cell of a point.
#[derive(Clone, Debug, Serialize)]
pub struct CellRow {
    /// Its seed.
    pub seed: u64,
    /// Its name in the folder of cells.
    pub cell: String,
    /// Its result; `None` if it failed.
    pub result: Option<CellResult>,
    /// Reason of its failure.
    pub error: Option<String>,
}

/// Result of a cell.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CellResult {
    /// Test accuracy after the last round, a fraction.
    pub accuracy_final: f64,
    /// Test accuracy, the mean of the last five evaluations; `None` unless these lie in the last fifth
    /// of the rounds.
    pub accuracy_last5: Option<f64>,
    /// Mean test loss after the last round.
    pub loss_final: f64,
    /// Proven ε of the worst device.
    #[serde(with = "number")]
    pub epsilon_provable: f64,
    /// ε by the paper's arithmetic.
    #[serde(with = "number")]
    pub epsilon_claimed_total: f64,
    /// δ of both.
    pub delta: f64,
    /// Bytes the devices sent.
    pub uplink_bytes: u64,
    /// Energy that the devices radiated, at most.
    pub energy_j: f64,
}

/// Columns of a cell's result in the table.
const RESULT: [&str; 8] = [
    "accuracy_final",
    "accuracy_last5",
    "loss_final",
    "epsilon_provable",
    "epsilon_claimed_total",
    "delta",
    "uplink_bytes",
    "energy_j",
];

impl SweepResults {
    /// Results of the cells of a sweep.
    pub fn new(sweep: &Sweep, executed: &Executed) -> Self {
        let (cells, seeds) = (sweep.cells(), sweep.seeds().collect::<Vec<_>>());
        // By name, since equal cells run once.
        let failures: BTreeMap<&str, &String> =
            executed.failures.iter().map(|(cell, why)| (cells[*cell].id(), why)).collect();
        let point = |(settings, cells): (Vec<&Setting>, &[Cell])| {
            let values = settings.iter().map(|s| (s.change().path().to_owned(), s.value().clone()));
            let row = |(cell, &seed): (&Cell, &u64)| CellRow {
                seed,
                cell: cell.id().into(),
                result: executed.results.get(cell).map(CellResult::of),
                error: failures.get(cell.id()).map(|why| why.to_string()),
            };
            Point {
                values: values.collect(),
                result: PointResult::of(&executed.results.finished(cells)),
                over_first: None,
                cells: cells.iter().zip(&seeds).map(row).collect(),
            }
        };
        let points = sweep.grid().points().zip(cells.chunks(seeds.len().max(1))).map(point);
        let mut points: Vec<Point> = points.collect();
        if let [first, others @ ..] = &mut points[..] {
            others.iter_mut().for_each(|point| point.over_first = Gain::of(point, first));
        }
        Self { grid: sweep.grid().clone(), points, seeds }
    }

    /// The cells that failed, with their points.
    pub fn failures(&self) -> impl Iterator<Item = (&Point, &CellRow)> {
        let cells = self.points.iter().flat_map(|p| p.cells.iter().map(move |cell| (p, cell)));
        cells.filter(|(_, cell)| cell.result.is_none())
    }

    /// Writes `sweep.json` and `sweep.parquet` into `folder`.
    pub fn write(&self, folder: &Path) -> Result<(), TableError> {
        let path = folder.join("sweep.json");
        let failed = |source, path| ObserveError::Io { path, action: "write", source };
        write_json(&path, self).map_err(|source| failed(source, path))?;
        let keys = self.grid.keys().iter().map(|key| key.name());
        let names = keys.chain(["seed"]).chain(RESULT).chain(["cell"]).map(str::to_owned);
        let rows = self.points.iter().flat_map(|p| p.cells.iter().map(move |cell| row(p, cell)));
        let (names, rows): (Vec<_>, Vec<_>) = (names.collect(), rows.collect());
        write_table(&names, &rows, &folder.join("sweep.parquet"))
    }
}

/// A row of the table.
fn row(point: &Point, cell: &CellRow) -> Vec<Value> {
    let result = serde_json::to_value(cell.result).unwrap_or_default();
    let mut row: Vec<Value> = point.values.values().cloned().collect();
    row.push(cell.seed.into());
    row.extend(RESULT.map(|name| result.get(name).cloned().unwrap_or_default()));
    row.push(cell.cell.clone().into());
    row
}

impl Gain {
    /// Gain of `point` over `over`; `None` if no seed finished at both.
    fn of(point: &Point, over: &Point) -> Option<Self> {
        let settled =
            |point: &Point| point.result.as_ref().is_some_and(|r| r.accuracy_last5.is_some());
        let settled = settled(point) && settled(over);
        let accuracy = |cell: &CellRow| {
            let result = cell.result?;
            if settled { result.accuracy_last5 } else { Some(result.accuracy_final) }
        };
        let pair =
            |(of, over): (&CellRow, &CellRow)| Some((of.seed, accuracy(of)? - accuracy(over)?));
        let pairs = point.cells.iter().zip(&over.cells).filter_map(pair);
        let (seeds, values): (Vec<u64>, Vec<f64>) = pairs.unzip();
        (!values.is_empty()).then(|| Self { mean: Estimate::of(&values), seeds, values })
    }
}

impl PointResult {
    /// Result of these cells; `None` without a cell.
    fn of(cells: &[&Finished]) -> Option<Self> {
        if cells.is_empty() {
            return None;
        }
        let results: Vec<CellResult> = cells.iter().map(|cell| CellResult::of(cell)).collect();
        let each = |value: fn(&CellResult) -> f64| results.iter().map(value).collect::<Vec<_>>();
        let worst = |value| each(value).into_iter().fold(0.0, f64::max);
        let last5: Option<Vec<f64>> = results.iter().map(|cell| cell.accuracy_last5).collect();
        Some(Self {
            accuracy_final: fractions(&each(|cell| cell.accuracy_final)),
            accuracy_last5: last5.map(|values| fractions(&values)),
            loss_final: Estimate::of(&each(|cell| cell.loss_final)).within(0.0, f64::INFINITY),
            epsilon_provable: worst(|cell| cell.epsilon_provable),
            epsilon_claimed_total: worst(|cell| cell.epsilon_claimed_total),
            delta: worst(|cell| cell.delta),
            uplink_bytes: Estimate::of(&each(|cell| cell.uplink_bytes as f64)),
            energy_j: Estimate::of(&each(|cell| cell.energy_j)),
            rounds: rounds(cells),
        })
    }
}

/// The mean of fractions; its interval is one of fractions, too.
fn fractions(values: &[f64]) -> Estimate {
    Estimate::of(values).within(0.0, 1.0)
}

/// The accuracy after each round in which it was evaluated.
fn rounds(cells: &[&Finished]) -> Vec<RoundAccuracy> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (round, accuracy) in cells.iter().flat_map(|cell| cell.evaluations()) {
        rounds.entry(round).or_default().push(accuracy);
    }
    let mean =
        |(round, values): (u32, Vec<f64>)| RoundAccuracy { round, accuracy: fractions(&values) };
    rounds.into_iter().map(mean).collect()
}

impl CellResult {
    fn of(finished: &Finished) -> Self {
        let summary = &finished.summary;
        Self {
            accuracy_final: finished.final_accuracy(),
            accuracy_last5: finished.settled_accuracy(),
            loss_final: finished.final_loss(),
            epsilon_provable: summary.privacy.epsilon_provable,
            epsilon_claimed_total: summary.privacy.epsilon_claimed_total,
            delta: summary.privacy.delta,
            uplink_bytes: summary.uplink_bytes,
            energy_j: summary.energy_j,
        }
    }
}
