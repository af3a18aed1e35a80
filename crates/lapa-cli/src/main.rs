//! The `lapa` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    lapa_cli::main(std::env::args_os())
}
