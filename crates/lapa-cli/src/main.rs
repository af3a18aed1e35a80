//! The `lapa` command line: one file per command.

mod commands;
mod failure;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Lapa::parse().execute() {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
