//! `lapa flower`: LAPA on Flower, which is the Python package's part.

use std::ffi::OsString;
#[cfg(not(unix))]
use std::process::ExitCode;
use std::process::{Command as Process, Stdio};

use clap::{Args, Subcommand};

use crate::failure::{CommandResult, Failure};

/// Run LAPA on Flower, a real federation (needs the Python package).
#[derive(Subcommand)]
pub enum Command {
    Up(Arguments),
}

/// Run a federation on this machine: a SuperLink and SuperNodes on loopback
///
/// Runs `python3 -m lapa.flower up ARGUMENTS` with the first Python on the search path. It shows the
/// log of the run and stops every process at the end of the run or on Ctrl-C. Arguments:
///
///   [CONFIG] [-c KEY=VALUE]   the configuration, as for `lapa run`
///   --nodes N, --rounds N     number of devices, number of rounds
///   --secure                  TLS, and nodes with registered keys
///   --seeded                  noise from the seed instead of the operating system
///   --app DIR                 your own Flower app
///   --folder DIR              folder for the ledgers and the model
///   --timeout S               most seconds that a round may take
///
/// Details: `python3 -m lapa.flower up --help`. Example: lapa flower up --nodes 5 --secure
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Arguments for `lapa.flower up`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// Exit code 3 or 4 if a package is missing; quick, since nothing is imported. A folder of that name
/// where we are does not count.
const CHECK: &str = "import sys; from importlib.util import find_spec; sys.path.pop(0)\n\
                     sys.exit(3 if find_spec('lapa') is None else 4 * (find_spec('flwr') is None))";

pub fn execute(command: Command) -> CommandResult {
    let Command::Up(Arguments { arguments }) = command;
    let mut check = Process::new(PYTHON);
    check.args(["-c", CHECK]).stdin(Stdio::null());
    let status = check.status().map_err(|error| {
        Failure::usage(format!(
            "`lapa flower` needs Python, but `{PYTHON}` does not start: {error}"
        ))
    })?;
    match status.code() {
        Some(0) => {}
        Some(3 | 4) => {
            return Err(Failure::usage(format!(
                "`lapa flower` needs the Python package, but `{PYTHON}` does not have it: install it \
                 from a clone with `pip install './bindings/python[flower]'`, or activate the \
                 environment that has it"
            )));
        }
        _ => return Err(Failure::usage(format!("`{PYTHON}` does not work: {status}"))),
    }
    let mut python = Process::new(PYTHON);
    python.args(["-m", "lapa.flower", "up"]).args(arguments);
    run(python)
}

/// Becomes the program, so that signals reach it alone.
#[cfg(unix)]
fn run(mut program: Process) -> CommandResult {
    use std::os::unix::process::CommandExt;
    Err(program.exec().into())
}

/// Runs the program and passes on its exit code.
#[cfg(not(unix))]
fn run(mut program: Process) -> CommandResult {
    let status = program.status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
