//! The compiled half of the Python package `lapa`.

mod account;
mod allocator;
mod convert;
mod device;
mod error;
mod ledger;
mod link;
mod noise;
mod run;
mod station;

use std::ffi::OsString;
use std::process::ExitCode;

use pyo3::prelude::*;

/// The command line: `lapa` with these arguments, of which the first is its own name. Returns the
/// exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| lapa_cli::main(arguments));
    (0..=u8::MAX).find(|&number| ExitCode::from(number) == code).unwrap_or(1)
}

#[pymodule]
fn _lapa(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("LapaError", py.get_type::<error::LapaError>())?;
    module.add("ConfigError", py.get_type::<error::ConfigError>())?;
    module.add("DataError", py.get_type::<error::DataError>())?;
    module.add("LedgerError", py.get_type::<error::LedgerError>())?;
    module.add("Refused", py.get_type::<error::Refused>())?;
    module.add_class::<account::Filter>()?;
    module.add_class::<allocator::Allocator>()?;
    module.add_class::<device::Device>()?;
    module.add_class::<ledger::Ledger>()?;
    module.add_class::<run::RunResult>()?;
    module.add_class::<station::BaseStation>()?;
    module.add_function(wrap_pyfunction!(account::account, module)?)?;
    module.add_function(wrap_pyfunction!(account::calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(link::link, module)?)?;
    module.add_function(wrap_pyfunction!(noise::clip_and_noise, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    Ok(())
}
