//! `cargo xtask bench-python`: what the Python package costs beside the program.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::bench_peers::Format;
use crate::{TaskResult, process, python};

/// Every script here is one measurement; it takes `--format text` or `--format json`.
const FOLDER: &str = "bench/python";

/// Options of the measurements.
#[derive(Args)]
pub struct Options {
    /// Only the measurement of this name, as `package`.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Format of the results.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Builds what is measured and runs the scripts. They find the program in `LAPA_BINARY` and the
/// wheel in `LAPA_WHEEL`.
pub fn run(options: &Options) -> TaskResult {
    let Some(python) = python::environment()? else { return Ok(ExitCode::FAILURE) };
    let scripts = scripts(options.only.as_deref())?;
    let lapa = process::build_lapa(true)?;
    let wheel = python::build(&python, "release", |_| ())?;
    python::install(&python, &wheel)?;
    let format = match options.format {
        Format::Text => "text",
        Format::Json => "json",
    };
    for script in scripts {
        let mut measure = Command::new(&python);
        measure.current_dir(process::root()).arg(&script).args(["--format", format]);
        measure.env("LAPA_BINARY", &lapa).env("LAPA_WHEEL", &wheel);
        let status = process::run(&mut measure)?;
        if !status.success() {
            return Ok(process::exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn scripts(only: Option<&str>) -> Result<Vec<PathBuf>, String> {
    let folder = process::root().join(FOLDER);
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("cannot read {FOLDER}: {error}"))?;
    let mut scripts: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "py"))
        .filter(|path| only.is_none_or(|name| path.file_stem().is_some_and(|stem| stem == name)))
        .collect();
    scripts.sort();
    if scripts.is_empty() {
        return Err(format!("no measurement {} in {FOLDER}", only.unwrap_or_default()));
    }
    Ok(scripts)
}
