//! A method under one condition: a configuration, some changes, and as many cells as seeds.

use lapa::config::{ConfigError, Experiment, Override};

use crate::cell::Cell;

/// Seeds and rounds of a reproduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seeds, from 0 on.
    pub seeds: u32,
    /// Fewer rounds and steps: a look, not a judgment.
    pub quick: bool,
}

/// Rounds of a quick look.
const QUICK_ROUNDS: u32 = 30;
/// DDPG's episodes in a quick look.
const QUICK_EPISODES: u32 = 20;

impl Settings {
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
    /// As in the legend.
    pub name: String,
    base: Base,
    changes: Vec<String>,
}

impl Curve {
    /// A curve of `base` as it is.
    pub fn new(name: impl Into<String>, base: Base) -> Self {
        Self { name: name.into(), base, changes: Vec::new() }
    }

    /// Changes a key: `section.key=value`.
    pub fn with(mut self, change: impl Into<String>) -> Self {
        self.changes.push(change.into());
        self
    }

    /// Its cells, one for each seed.
    pub fn cells(&self, settings: Settings) -> Result<Vec<Cell>, ConfigError> {
        let cell = |seed: u32| {
            let mut changes = [self.changes.clone(), settings.changes()].concat();
            changes.push(format!("run.seed={seed}"));
            let overrides: Vec<Override> =
                changes.iter().map(|change| Override::parse(change)).collect::<Result<_, _>>()?;
            Experiment::from_toml(self.base.text, self.base.file, &overrides).map(Cell::new)
        };
        (0..settings.seeds).map(cell).collect()
    }
}

/// The cells of some curves, in their order.
pub fn cells(
    curves: impl IntoIterator<Item = Curve>,
    settings: Settings,
) -> Result<Vec<Cell>, ConfigError> {
    let cells = curves.into_iter().map(|curve| curve.cells(settings));
    Ok(cells.collect::<Result<Vec<_>, _>>()?.concat())
}
