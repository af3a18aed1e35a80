//! Errors of a staged run.

use std::path::PathBuf;

use lapa::blame::{Blame, Kind};
use lapa::config::ConfigError;
use lapa::optimize::ddpg::SavedError;
use lapa::optimize::{LimitsError, ObjectiveError, OptimizeError};
use lapa_privacy::OutOfRange;
use lapa_report::run::ShowError;

use crate::bound::BoundError;
use crate::power::{CostError, ProblemError, TraceError};

/// Error of a staged run: of its pilot, its choice of powers, or the run itself.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    /// A pilot or run failed.
    #[error(transparent)]
    Run(#[from] lapa::run::RunError),
    /// The table or the plots of a pilot or run cannot be written.
    #[error(transparent)]
    Show(ShowError),
    /// A pilot of another experiment is in the place of this one's.
    #[error(
        "{} holds the pilot run of another experiment (other noise control, seed, data, budget or \
         power limits): choose another folder",
        .0.display()
    )]
    OtherPilot(PathBuf),
    /// The pilot cannot train on synthetic digits.
    #[error(
        "control.pilot = \"synthetic\" draws images of 28×28 in 10 classes, but the data set has \
         {rows}×{cols} in {classes}: use control.pilot = \"private\", which is charged"
    )]
    OtherImages {
        /// Rows of an image.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// Classes.
        classes: usize,
    },
    /// Powers do not matter.
    #[error(
        "transmit.uplink has no channel noise that powers could change: use transmit.uplink = \"analog\""
    )]
    NoAmplitudes,
    /// A pilot that memory should not hold.
    #[error(
        "`run.rounds` = {rounds} with {devices} devices: a pilot run records each round \
         and device; the limit is {} records, and this makes {}",
        super::MOST_CELLS,
        u64::from(*rounds) * u64::from(*devices)
    )]
    TooLong {
        /// Rounds.
        rounds: u32,
        /// Devices.
        devices: u32,
    },
    /// A run without privacy.
    #[error(
        "no [privacy] section: no noise is required, so there is nothing to optimize powers for"
    )]
    NoNoise,
    /// A pilot that records quantiles instead of devices.
    #[error("round {0} of the pilot run lists no devices: set observe.devices = \"list\"")]
    NoDevices(u32),
    /// A pilot that records a device that there is not.
    #[error(
        "round {round} of the pilot run lists device {device}: expected a number below {devices}"
    )]
    Device {
        /// The round.
        round: u32,
        /// The device.
        device: u32,
        /// Devices of the experiment.
        devices: usize,
    },
    /// A pilot on private data without a place for its ledger.
    #[error(
        "control.pilot = \"private\" needs a ledger in a run folder, but this is a run in \
         memory: use control.pilot = \"synthetic\""
    )]
    NoFolder,
    /// A pilot on private data whose releases are not on record.
    #[error(
        "{} is a pilot run on private data, but {} lacks some of its releases: its cost cannot be \
         charged, so it cannot be used",
        pilot.display(),
        ledger.display()
    )]
    NotCharged {
        /// The pilot.
        pilot: PathBuf,
        /// Ledger that lacks them.
        ledger: PathBuf,
    },
    /// Nothing that powers could change.
    #[error(
        "the objective at full power is {0}: no device transmits in the pilot run, or there is no \
         noise"
    )]
    NothingToFit(f64),
    /// Metrics of the pilot cannot be read.
    #[error(transparent)]
    Observe(#[from] lapa::observe::ObserveError),
    /// Training could not be set up, or failed.
    #[error(transparent)]
    Training(Box<dyn std::error::Error + Send + Sync>),
    /// The pilot left numbers without meaning.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The power limits leave no choice.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The problem cannot be stated.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The constants of the bound have no meaning.
    #[error("[control]: {0}")]
    Bound(#[from] BoundError),
    /// Powers cannot be judged.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// Nothing was found.
    #[error(transparent)]
    Optimize(#[from] OptimizeError),
    /// A choice cannot be costed.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// Parameters of an optimizer without meaning.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// An agent cannot be read or written.
    #[error(transparent)]
    Agent(#[from] SavedError),
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Blame for PhaseError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Run(error) => error.is_usage(),
            Self::Optimize(_)
            | Self::Objective(_)
            | Self::Training(_)
            | Self::Observe(_)
            | Self::Show(_)
            | Self::Agent(_)
            | Self::Io { .. } => false,
            _ => true,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Run(error) => error.kind(),
            _ => Kind::Other,
        }
    }

    fn config(&self) -> Option<&ConfigError> {
        match self {
            Self::Run(error) => error.config(),
            _ => None,
        }
    }
}

impl From<ShowError> for PhaseError {
    fn from(error: ShowError) -> Self {
        match error {
            ShowError::Run(error) => Self::Run(error),
            error => Self::Show(error),
        }
    }
}

impl PhaseError {
    /// An error of the engine.
    pub(super) fn training(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Training(Box::new(error))
    }

    /// An error of the file system.
    pub(super) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.into(), source }
    }
}
