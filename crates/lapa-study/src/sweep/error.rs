//! Errors of a sweep.

use std::path::PathBuf;

use lapa::blame::Blame;
use lapa::config::ConfigError;

use super::{MOST_CELLS, MOST_RECORDS};

/// Invalid sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A key or value that no configuration may have.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No key.
    #[error(
        "a sweep needs a grid: give --grid KEY=A,B,C, for example --grid privacy.epsilon=1,2,4"
    )]
    NoGrid,
    /// A mistake in one flag.
    #[error("--grid {flag}: {mistake}")]
    Flag {
        /// The text after `--grid`.
        flag: String,
        /// The mistake in words.
        mistake: String,
    },
    /// More cells than anyone waits for.
    #[error(
        "the grid has {points} points with {seeds} seeds each, which makes {cells} runs; the limit is \
         {MOST_CELLS}: use fewer values or fewer --seeds"
    )]
    TooMany {
        /// Cells.
        cells: usize,
        /// Points of the grid.
        points: usize,
        /// Seeds of each.
        seeds: u32,
    },
    /// More records than memory should hold.
    #[error(
        "run.rounds = {rounds} with {devices} devices: a run in a sweep keeps a record per \
         device and round, at most {MOST_RECORDS}: use fewer, or observe.devices = \"summary\""
    )]
    TooLong {
        /// Rounds.
        rounds: u32,
        /// Devices.
        devices: u32,
    },
    /// A ledger, which cells would share.
    #[error(
        "run.ledger = \"{}\": the runs of a sweep are simulations in memory; they would share \
         that budget but record nothing in it: remove run.ledger, or use `lapa run`",
        .0.display()
    )]
    Ledger(PathBuf),
    /// Noise that no seed repeats.
    #[error(
        "run.entropy = \"os\": the runs of a sweep are cached by a hash of their configuration \
         and must be repeatable, which this noise is not: use \"seed\", or `lapa run`"
    )]
    Entropy,
    /// Seeds beyond what a configuration can hold.
    #[error("{seeds} seeds from run.seed = {first}: the largest possible seed is {}", i64::MAX)]
    Seeds {
        /// The first.
        first: u64,
        /// Number of seeds.
        seeds: u32,
    },
}

impl Blame for SweepError {
    fn is_usage(&self) -> bool {
        true
    }

    fn config(&self) -> Option<&ConfigError> {
        match self {
            Self::Config(error) => Some(error),
            _ => None,
        }
    }
}
