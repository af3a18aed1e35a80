//! Errors as Python exceptions, with the same texts.

use lapa::budget::PrivacyError;
use lapa::config::ConfigError as BadConfig;
use lapa::data::DataError as BadData;
use lapa::error::FederationError;
use lapa::remote::RemoteError;
use lapa::run::RunError;
use lapa_control::phases::PhaseError;
use lapa_privacy::ledger::LedgerError as BadLedger;
use lapa_report::run::ShowError;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(lapa, LapaError, PyException, "Base class of all errors of lapa.");
create_exception!(lapa, ConfigError, LapaError, "Invalid configuration.");
create_exception!(lapa, DataError, LapaError, "Data set that is missing or invalid.");
create_exception!(
    lapa,
    LedgerError,
    LapaError,
    "Ledger that cannot be read or written, or that refuses a run."
);
create_exception!(
    lapa,
    Refused,
    LapaError,
    "Refusal of a device: its budget is exhausted, or the request exceeds it."
);

/// The error and its causes, where a cause says more than the error that wraps it.
fn text(error: &dyn std::error::Error) -> String {
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

/// What an error of ours is in Python.
pub trait Raise: std::error::Error + Sized {
    /// Which exception it is.
    fn kind(&self) -> Kind {
        Kind::Other
    }

    /// The exception.
    fn raise(self) -> PyErr {
        let text = text(&self);
        match self.kind() {
            Kind::Config => ConfigError::new_err(text),
            Kind::Data => DataError::new_err(text),
            Kind::Ledger => LedgerError::new_err(text),
            Kind::Refused => Refused::new_err(text),
            Kind::Other => LapaError::new_err(text),
        }
    }
}

/// The exceptions there are.
pub enum Kind {
    Config,
    Data,
    Ledger,
    Refused,
    Other,
}

impl Raise for BadConfig {
    fn kind(&self) -> Kind {
        Kind::Config
    }
}

impl Raise for BadData {
    fn kind(&self) -> Kind {
        Kind::Data
    }
}

impl Raise for BadLedger {
    fn kind(&self) -> Kind {
        Kind::Ledger
    }
}

impl Raise for PrivacyError {
    fn kind(&self) -> Kind {
        match self {
            Self::Ledger(_) | Self::NotRecorded | Self::LedgerBehind { .. } => Kind::Ledger,
            Self::InitialSigma { .. } => Kind::Config,
            _ => Kind::Other,
        }
    }
}

impl Raise for FederationError {
    fn kind(&self) -> Kind {
        match self {
            Self::Privacy(error) => error.kind(),
            Self::Partition(_)
            | Self::Model { .. }
            | Self::Links(_)
            | Self::NoSampleGradients
            | Self::OtherImages { .. }
            | Self::PowersNotChosen { .. } => Kind::Config,
            _ => Kind::Other,
        }
    }
}

impl Raise for RunError {
    fn kind(&self) -> Kind {
        match self {
            Self::Config(_) | Self::Changed { .. } => Kind::Config,
            Self::OtherData { .. } => Kind::Data,
            Self::Federation(error) => error.kind(),
            Self::Privacy(error) => error.kind(),
            Self::Ledger { .. } | Self::NoLedger { .. } | Self::Forgotten { .. } => Kind::Ledger,
            _ => Kind::Other,
        }
    }
}

impl Raise for ShowError {
    fn kind(&self) -> Kind {
        match self {
            Self::Run(error) => error.kind(),
            Self::Table(_) | Self::Plot(_) => Kind::Other,
        }
    }
}

impl Raise for RemoteError {
    fn kind(&self) -> Kind {
        match self {
            Self::Config { .. } | Self::Devices(_) => Kind::Config,
            Self::Records(_) => Kind::Data,
            Self::Refused(_) => Kind::Refused,
            Self::LostLedger { .. } | Self::SeveralAccounts { .. } => Kind::Ledger,
            Self::Privacy(error) => error.kind(),
            Self::Federation(error) => error.kind(),
            Self::Run(error) => error.kind(),
            _ => Kind::Other,
        }
    }
}

impl Raise for PhaseError {
    fn kind(&self) -> Kind {
        match self {
            Self::Run(error) => error.kind(),
            _ => Kind::Other,
        }
    }
}

impl Raise for lapa_privacy::AccountError {}
impl Raise for lapa_privacy::Overspent {
    fn kind(&self) -> Kind {
        Kind::Refused
    }
}
impl Raise for lapa_privacy::allocate::AllocateError {}
impl Raise for lapa_privacy::mechanism::ClipError {}
impl Raise for lapa_privacy::mechanism::SigmaError {}
impl Raise for lapa_privacy::mechanism::EntropyError {}
impl Raise for lapa::radio::LinkError {
    fn kind(&self) -> Kind {
        Kind::Config
    }
}
