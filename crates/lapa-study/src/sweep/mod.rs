//! Sweeps: one experiment under every combination of some keys' values, over several seeds.

mod error;
mod grid;
mod outcome;
mod plots;

use lapa::config::{ConfigError, Entropy, Experiment, ObserveDevices, Override};

pub use error::SweepError;
pub use grid::{Grid, Key, Setting};
pub use outcome::{CellResult, CellRow, Gain, Point, PointResult, RoundAccuracy, SweepResults};
pub use plots::Plots;

use crate::cell::Cell;

/// Cells that a sweep has at most.
pub const MOST_CELLS: usize = 100_000;
/// Records of devices that a cell keeps until its end, at most.
pub const MOST_RECORDS: u64 = lapa::config::MOST_CELLS;

/// A grid, and the experiment at each of its points.
#[derive(Clone, Debug)]
pub struct Sweep {
    grid: Grid,
    seeds: u32,
    experiments: Vec<Experiment>,
}

impl Sweep {
    /// `make` gives the experiment with some keys set. Every point is run with `seeds` seeds, which
    /// count from the experiment's own.
    pub fn new(
        grid: Grid,
        seeds: u32,
        make: impl Fn(&[Override]) -> Result<Experiment, ConfigError>,
    ) -> Result<Self, SweepError> {
        let cells = grid.len().saturating_mul(seeds as usize);
        if cells > MOST_CELLS {
            return Err(SweepError::TooMany { cells, points: grid.len(), seeds });
        }
        let mut experiments = Vec::new();
        for point in grid.points() {
            let overrides: Vec<Override> =
                point.iter().map(|setting| setting.change().clone()).collect();
            let experiment = make(&overrides)?;
            check(&experiment, seeds)?;
            experiments.push(experiment);
        }
        Ok(Self { grid, seeds, experiments })
    }

    /// The grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The experiment at each point, with the first seed. For changes that no key makes, such as
    /// other data where the ones asked for cannot be had.
    pub fn experiments_mut(&mut self) -> &mut [Experiment] {
        &mut self.experiments
    }

    /// The seeds, in order.
    pub fn seeds(&self) -> impl Iterator<Item = u64> {
        // Points differ in keys of the grid, and the seed is not one of them.
        let first = self.experiments.first().map_or(0, |experiment| experiment.run.seed);
        (0..u64::from(self.seeds)).map(move |step| first + step)
    }

    /// The cells: for each point in order, one for each seed.
    pub fn cells(&self) -> Vec<Cell> {
        let with_seed = |experiment: &Experiment, seed| {
            let mut experiment = experiment.clone();
            experiment.run.seed = seed;
            Cell::new(experiment)
        };
        let of_point = |experiment| self.seeds().map(move |seed| with_seed(experiment, seed));
        self.experiments.iter().flat_map(of_point).collect()
    }
}

/// Refuses what is no simulation, what memory should not hold, and seeds that cannot be written.
fn check(experiment: &Experiment, seeds: u32) -> Result<(), SweepError> {
    if let Some(ledger) = &experiment.run.ledger {
        return Err(SweepError::Ledger(ledger.clone()));
    }
    if experiment.run.entropy == Entropy::Os {
        return Err(SweepError::Entropy);
    }
    let (rounds, devices) = (experiment.run.rounds, experiment.partition.scheme.devices());
    let records = experiment.run.participation * f64::from(rounds) * f64::from(devices);
    if experiment.observe.devices == ObserveDevices::List && records > MOST_RECORDS as f64 {
        return Err(SweepError::TooLong { rounds, devices });
    }
    // TOML has no larger number.
    match experiment.run.seed.checked_add(u64::from(seeds)) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(SweepError::Seeds { first: experiment.run.seed, seeds }),
    }
}
