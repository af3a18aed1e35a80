//! Why a sweep cannot be.

use std::path::PathBuf;

use lapa::config::ConfigError;

use super::{MOST_CELLS, MOST_RECORDS};

/// A sweep that cannot be.
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
    /// A key without values, or with an empty one.
    #[error("--grid {flag}: a value is empty; write --grid KEY=A,B,C")]
    Empty {
        /// What stands after the flag.
        flag: String,
    },
    /// A key twice.
    #[error("--grid {flag}: `{key}` is in the grid already; give all its values in one flag")]
    KeyTwice {
        /// What stands after the flag.
        flag: String,
        /// The key.
        key: String,
    },
    /// A value twice.
    #[error("--grid {flag}: the value {value} is given twice")]
    ValueTwice {
        /// What stands after the flag.
        flag: String,
        /// The value.
        value: String,
    },
    /// A key that flags of their own set.
    #[error("--grid {flag}: `{key}` cannot be in a grid; use {instead}")]
    Reserved {
        /// What stands after the flag.
        flag: String,
        /// The key.
        key: String,
        /// The flag to use.
        instead: &'static str,
    },
    /// More cells than anyone waits for.
    #[error(
        "the grid has {points} points, with {seeds} seeds each {cells} cells; at most {MOST_CELLS} \
         are allowed: use fewer values or --seeds"
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
        "run.rounds = {rounds} with {devices} devices: a cell keeps a record of each \
         device in each round, at most {MOST_RECORDS}: use fewer, or observe.devices = \"summary\""
    )]
    TooLong {
        /// Rounds.
        rounds: u32,
        /// Devices.
        devices: u32,
    },
    /// A ledger, which cells would share.
    #[error(
        "run.ledger = \"{}\": cells of a sweep are simulations in memory; they would share that \
         budget and record nothing in it: leave run.ledger out, or use `lapa run`",
        .0.display()
    )]
    Ledger(PathBuf),
    /// Noise that no seed repeats.
    #[error(
        "run.entropy = \"os\": cells of a sweep are kept by a hash of their configuration and \
         must be repeatable, and such noise is not: use \"seed\", or `lapa run`"
    )]
    Entropy,
    /// Seeds beyond what a configuration can hold.
    #[error("{seeds} seeds from run.seed = {first} on: the largest seed is {}", i64::MAX)]
    Seeds {
        /// The first.
        first: u64,
        /// How many.
        seeds: u32,
    },
}
