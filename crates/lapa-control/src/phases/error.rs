//! Errors of a run and of the pilot and choice before it.

use std::path::PathBuf;

use lapa::blame::{Blame, Kind};
use lapa::config::{ConfigError, MOST_FITTED, PilotTooLarge};
use lapa::error::FederationError;
use lapa::files::FileError;
use lapa::model::Shape;
use lapa::optimize::ddpg::SavedError;
use lapa::optimize::{LimitsError, ObjectiveError, OptimizeError};
use lapa::radio::Threshold;
use lapa::simulation::Cancelled;
use lapa_privacy::OutOfRange;
use lapa_privacy::ledger::LedgerError;
use lapa_report::run::ShowError;

use crate::bound::BoundError;
use crate::power::{CostError, ProblemError, TraceError};

/// Error of a run, of its pilot, or of its choice of powers.
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
         {} in {classes}: use control.pilot = \"private\", which is charged",
        shape.of_image()
    )]
    OtherImages {
        /// Shape of an image.
        shape: Shape,
        /// Classes.
        classes: usize,
    },
    /// Powers do not matter.
    #[error(
        "transmit.uplink has no channel noise that powers could change: use transmit.uplink = \"analog\""
    )]
    NoAmplitudes,
    /// A pilot that memory should not hold.
    #[error(transparent)]
    TooLong(#[from] PilotTooLarge),
    /// More powers than a configuration holds.
    #[error(
        "powers are fitted to each of {devices} devices: expected at most {MOST_FITTED}, whose powers take \
         7 MB of the 8 MiB that a configuration may have; use fewer devices"
    )]
    TooManyPowers {
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
    /// A pilot on private data in memory, whose budget the run does not share.
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
    /// A threshold that no device ever passes.
    #[error(
        "no device passes {threshold} in any round of a pilot run at equal power, so there is nothing \
         to optimize powers for; the best has an SINR of {best_sinr_db:.1} dB and a symbol error rate \
         of {best_ser:.2e} (`lapa link` shows all)"
    )]
    NobodyPasses {
        /// The threshold.
        threshold: Threshold,
        /// The best SINR of a device, in dB.
        best_sinr_db: f64,
        /// The least symbol error rate of a device.
        best_ser: f64,
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
    Federation(FederationError),
    /// The configuration in a pilot's folder is damaged.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The ledger of a pilot cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
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
    Optimize(OptimizeError),
    /// A choice cannot be costed.
    #[error(transparent)]
    Cost(CostError),
    /// The listener broke off.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A run in memory has no place for the ledger of its pilot.
    #[error("cannot make a folder for the pilot's ledger: {0}")]
    NoPlace(#[source] std::io::Error),
    /// Parameters of an optimizer without meaning.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// An agent cannot be read or written.
    #[error(transparent)]
    Agent(#[from] SavedError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Blame for PhaseError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Run(error) => error.is_usage(),
            Self::Federation(error) => error.is_usage(),
            Self::Optimize(_)
            | Self::Objective(_)
            | Self::Observe(_)
            | Self::Show(_)
            | Self::Agent(_)
            | Self::Cancelled(_)
            | Self::Ledger(_)
            | Self::NoPlace(_)
            | Self::File(_) => false,
            _ => true,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Run(error) => error.kind(),
            Self::Federation(error) => error.kind(),
            Self::Config(error) => error.kind(),
            Self::Ledger(error) => error.kind(),
            _ => Kind::Other,
        }
    }

    fn config(&self) -> Option<&ConfigError> {
        match self {
            Self::Run(error) => error.config(),
            Self::Config(error) => Some(error),
            _ => None,
        }
    }
}

/// Errors of parts that a listener may break off, too.
macro_rules! parts {
    ($($error:ident: $variant:ident;)*) => {
        $(impl From<$error> for PhaseError {
            fn from(error: $error) -> Self {
                match error {
                    $error::Cancelled(cancelled) => cancelled.into(),
                    other => Self::$variant(other),
                }
            }
        })*
    };
}

parts! {
    OptimizeError: Optimize;
    CostError: Cost;
    FederationError: Federation;
}

impl From<ShowError> for PhaseError {
    fn from(error: ShowError) -> Self {
        match error {
            ShowError::Run(error) => Self::Run(error),
            error => Self::Show(error),
        }
    }
}
