//! Errors sorted: the caller's fault or a failure, and what it is about. Programs and bindings
//! ask here for exit codes and exceptions.

use std::error::Error;

use lapa_privacy::ledger::LedgerError;
use lapa_wireless::uplink::UplinkError;

use crate::budget::PrivacyError;
use crate::config::ConfigError;
use crate::data::DataError;
use crate::error::FederationError;
use crate::files::FileError;
use crate::model::ModelError;
use crate::optimize::ObjectiveError;
use crate::optimize::ddpg::{AgentError, SavedError};
use crate::partition::PartitionError;
use crate::radio::{LinkError, RadioError};
use crate::remote::RemoteError;
use crate::run::RunError;
use crate::simulation::ExactLossError;

/// The blame for an error.
pub trait Blame: Error {
    /// True for bad usage or configuration, false for a failure.
    fn is_usage(&self) -> bool {
        false
    }

    /// The subject of the error.
    fn kind(&self) -> Kind {
        Kind::Other
    }

    /// The error of a configuration that this one stands for, which knows its place in a file.
    fn config(&self) -> Option<&ConfigError> {
        None
    }
}

/// The subject of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The configuration.
    Config,
    /// The data set.
    Data,
    /// The ledger.
    Ledger,
    /// A budget, which refuses.
    Refused,
    /// Anything else.
    Other,
}

/// The error and its causes, where a cause says more than the error that wraps it.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl Blame for ConfigError {
    fn is_usage(&self) -> bool {
        true
    }

    fn kind(&self) -> Kind {
        Kind::Config
    }

    fn config(&self) -> Option<&ConfigError> {
        Some(self)
    }
}

/// Errors that are all alike: bad usage or not, and their subject.
macro_rules! alike {
    ($($error:ty: $is_usage:literal, $kind:ident;)*) => {
        $(impl Blame for $error {
            fn is_usage(&self) -> bool {
                $is_usage
            }

            fn kind(&self) -> Kind {
                Kind::$kind
            }
        })*
    };
}

alike! {
    PartitionError: true, Other;
    LinkError: true, Config;
    ModelError: true, Config;
    UplinkError: true, Config;
    ObjectiveError: false, Other;
    AgentError: false, Other;
    FileError: false, Other;
    std::io::Error: false, Other;
    serde_json::Error: false, Other;
    lapa_privacy::Overspent: false, Refused;
    lapa_privacy::AccountError: false, Other;
    lapa_privacy::OutOfRange: false, Other;
    lapa_privacy::allocate::AllocateError: false, Other;
    lapa_privacy::sampler::ClipError: false, Other;
    lapa_privacy::sampler::EntropyError: false, Other;
}

impl Blame for DataError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Features { .. })
    }

    fn kind(&self) -> Kind {
        if self.is_usage() { Kind::Config } else { Kind::Data }
    }
}

impl Blame for LedgerError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::NotALedger { .. } | Self::NotAFile(_))
    }

    fn kind(&self) -> Kind {
        Kind::Ledger
    }
}

impl Blame for SavedError {
    fn is_usage(&self) -> bool {
        !matches!(self, Self::File(_))
    }
}

impl Blame for ExactLossError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::NotASimulation)
    }
}

impl Blame for PrivacyError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::InitialSigma { .. })
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Ledger(_) | Self::NotRecorded | Self::LedgerBehind { .. } => Kind::Ledger,
            Self::InitialSigma { .. } => Kind::Config,
            _ => Kind::Other,
        }
    }
}

impl Blame for RadioError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Links(_))
    }

    fn kind(&self) -> Kind {
        if self.is_usage() { Kind::Config } else { Kind::Other }
    }
}

impl Blame for FederationError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Privacy(error) => error.is_usage(),
            Self::Data(error) => error.is_usage(),
            Self::Partition(_) | Self::Model { .. } | Self::TooLarge(_) => true,
            Self::Radio(error) => error.is_usage(),
            _ => false,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Privacy(error) => error.kind(),
            Self::Data(error) => error.kind(),
            Self::Radio(error) => error.kind(),
            Self::Partition(_)
            | Self::Model { .. }
            | Self::NoSampleGradients
            | Self::OtherImages { .. }
            | Self::FixedSchedule
            | Self::TrustedUplink
            | Self::PowersNotChosen { .. } => Kind::Config,
            _ => Kind::Other,
        }
    }
}

impl Blame for RunError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Federation(error) => error.is_usage(),
            Self::Config(_) | Self::Exists(_) | Self::NoName(_) | Self::NotARun(_) => true,
            _ => false,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Config(_) | Self::Changed(_) => Kind::Config,
            Self::OtherData(_) => Kind::Data,
            Self::Federation(error) => error.kind(),
            Self::Privacy(error) => error.kind(),
            Self::Ledger { .. } | Self::NoLedger { .. } | Self::Forgotten { .. } => Kind::Ledger,
            _ => Kind::Other,
        }
    }

    fn config(&self) -> Option<&ConfigError> {
        match self {
            Self::Config(error) => Some(error),
            _ => None,
        }
    }
}

impl Blame for RemoteError {
    fn kind(&self) -> Kind {
        match self {
            Self::Config { .. } | Self::Devices(_) => Kind::Config,
            Self::Records(_) => Kind::Data,
            Self::Refused(_) => Kind::Refused,
            Self::Ledger(_) => Kind::Ledger,
            Self::Privacy(error) => error.kind(),
            Self::Federation(error) => error.kind(),
            Self::Run(error) => error.kind(),
            _ => Kind::Other,
        }
    }
}
