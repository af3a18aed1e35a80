//! A method under one condition: a configuration, some changes, and as many cells as seeds.

use std::ops::Range;

use lapa::config::{ConfigError, Experiment, Override};
use lapa::optimize::PowerChoice;
use serde_json::Value;

use super::reading::{self, Reading};
use crate::cell::Cell;

/// Seeds, rounds and reading of a reproduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The first seed.
    pub first_seed: u64,
    /// Seeds of the main reading.
    pub seeds: u32,
    /// Fewer rounds and steps: a look, not a judgment.
    pub quick: bool,
    /// Reading of what the paper leaves open.
    pub reading: &'static Reading,
}

/// The first seed of the paper's figures: those below were used to choose what the paper leaves open.
pub const FIRST_SEED: u64 = 100;
/// Seeds of a reading other than the main one, at most.
pub const MAP_SEEDS: u32 = 10;
/// Rounds of a quick look.
const QUICK_ROUNDS: u32 = 30;
/// DDPG's episodes in a quick look.
const QUICK_EPISODES: u32 = 20;

impl Settings {
    /// The main reading with `seeds` seeds from the first one on.
    pub fn new(first_seed: u64, seeds: u32) -> Self {
        Self { first_seed, seeds, quick: false, reading: reading::main() }
    }

    /// A quick look.
    pub fn quick(first_seed: u64) -> Self {
        Self { quick: true, ..Self::new(first_seed, 1) }
    }

    /// The same under a reading.
    pub fn under(self, reading: &'static Reading) -> Self {
        Self { reading, ..self }
    }

    /// Number of seeds of the reading.
    pub fn number_of_seeds(self) -> u32 {
        if self.reading.is_main() { self.seeds } else { self.seeds.min(MAP_SEEDS) }
    }

    /// The seeds.
    fn seeds(self) -> Range<u64> {
        self.first_seed..self.first_seed + u64::from(self.number_of_seeds())
    }

    /// Changes that a quick look makes to every configuration.
    fn changes(self) -> Vec<String> {
        if !self.quick {
            return Vec::new();
        }
        vec![
            format!("run.rounds={QUICK_ROUNDS}"),
            format!("control.ddpg.episodes={QUICK_EPISODES}"),
        ]
    }
}

/// A configuration file of `experiments/`, built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its path in the project.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The configuration file `experiments/$file`, built in.
macro_rules! base {
    ($file:literal) => {
        $crate::paper::curve::Base {
            file: concat!("experiments/", $file),
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/", $file)),
        }
    };
}
pub(crate) use base;

/// A named method under one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    pub(super) base: Base,
    pub(super) changes: Vec<String>,
    pub(super) over_rounds: bool,
}

impl Curve {
    /// A curve of `base` as it is.
    pub fn new(name: impl Into<String>, base: Base) -> Self {
        Self { name: name.into(), base, changes: Vec::new(), over_rounds: false }
    }

    /// Evaluates its cells over all rounds under every reading, not only at the end.
    pub fn over_rounds(self) -> Self {
        Self { over_rounds: true, ..self }
    }

    /// Changes a key: `section.key=value`.
    pub fn with(mut self, change: impl Into<String>) -> Self {
        self.changes.push(change.into());
        self
    }

    /// Its configuration with more changes.
    fn experiment<'a>(
        &'a self,
        before: &'a [String],
        after: &'a [String],
    ) -> Result<Experiment, ConfigError> {
        let changes = before.iter().chain(&self.changes).chain(after);
        let overrides: Vec<Override> =
            changes.map(|change| Override::parse(change)).collect::<Result<_, _>>()?;
        Experiment::from_toml(self.base.text, self.base.file, &overrides)
    }

    /// The changes of a reading, without parameters of choices that the curve does not make.
    fn read(&self, reading: &Reading) -> Result<Vec<String>, ConfigError> {
        let mut changes: Vec<String> = Vec::new();
        for change in reading.changes() {
            let known = self.experiment(&changes, &[])?;
            if is_read(&known, Override::parse(change)?.path()) {
                changes.push(change.to_owned());
            }
        }
        Ok(changes)
    }

    /// Its cells, one for each seed. What sets the curve apart comes after the reading's changes.
    pub fn cells(&self, settings: Settings) -> Result<Vec<Cell>, ConfigError> {
        let reading = self.read(settings.reading)?;
        // Only the figures, which have the main reading, show all rounds.
        let is_late = !settings.reading.is_main() && !self.over_rounds;
        let cell = |seed| {
            let last = [settings.changes(), vec![format!("run.seed={seed}")]].concat();
            let cell = Cell::new(self.experiment(&reading, &last)?);
            Ok(if is_late { cell.evaluated_late() } else { cell })
        };
        settings.seeds().map(cell).collect()
    }
}

/// True if an experiment has the table of a key, and makes the choice that the key is about: keys of
/// DDPG and of pilots are written whether or not powers are fitted.
fn is_read(experiment: &Experiment, key: &str) -> bool {
    let (table, _) = key.rsplit_once('.').unwrap_or_default();
    let table = format!("/{}", table.replace('.', "/"));
    let control = &experiment.control;
    let chosen = match key {
        key if key.starts_with("control.ddpg.") => control.power == PowerChoice::Ddpg,
        key if key.starts_with("control.pilot") => control.needs_pilot(),
        _ => true,
    };
    chosen && experiment.to_json().pointer(&table).is_some_and(Value::is_object)
}

/// The cells of some curves, in their order.
pub fn cells(
    curves: impl IntoIterator<Item = Curve>,
    settings: Settings,
) -> Result<Vec<Cell>, ConfigError> {
    let cells = curves.into_iter().map(|curve| curve.cells(settings));
    Ok(cells.collect::<Result<Vec<_>, _>>()?.concat())
}
