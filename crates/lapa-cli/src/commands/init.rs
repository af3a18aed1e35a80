//! `lapa init`: a commented configuration to start from.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::output;

/// Write a commented configuration file with every key and its default.
///
/// Change what you like, then `lapa run FILE`.
#[derive(Args)]
pub struct Arguments {
    /// The file to write; `-` prints it.
    #[arg(default_value = "lapa.toml")]
    file: PathBuf,
    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
}

pub fn execute(arguments: Arguments) -> Outcome {
    let template = lapa::config::template();
    let Arguments { file: path, force } = arguments;
    if path.as_os_str() == "-" {
        output::text_out(&template)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let mut file = options.open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{shown} exists already: name another file, or use --force"))
        }
        _ => Failure::usage(format!("cannot write {shown}: {error}")),
    })?;
    file.write_all(template.as_bytes()).map_err(Failure::failed)?;
    output::text_out(&format!("wrote {shown}; next: lapa run {shown}\n"))?;
    Ok(ExitCode::SUCCESS)
}
