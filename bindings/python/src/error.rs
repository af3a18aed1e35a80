//! Errors as Python exceptions, with the same texts.

use lapa::blame::{Blame, Kind, chain};
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

/// An error of ours as a Python exception.
pub trait Raise: Blame + Sized {
    /// The exception.
    fn raise(self) -> PyErr {
        let text = chain(&self);
        match self.kind() {
            Kind::Config => ConfigError::new_err(text),
            Kind::Data => DataError::new_err(text),
            Kind::Ledger => LedgerError::new_err(text),
            Kind::Refused => Refused::new_err(text),
            Kind::Other => LapaError::new_err(text),
        }
    }
}

impl<E: Blame> Raise for E {}
