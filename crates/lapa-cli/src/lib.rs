//! The `lapa` command line: one file per command.

// They panic when nobody reads; `output` does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod failure;
mod output;
mod progress;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

pub use commands::QUICKSTART;

/// Runs the program with these arguments, of which the first is its own name. Prints output;
/// invalid flags end the process with exit code 2.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match commands::Lapa::parse_from(arguments).execute() {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
