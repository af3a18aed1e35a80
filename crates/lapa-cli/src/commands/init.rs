//! `lapa init`: a commented configuration to start from.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::failure::{CommandResult, Failure};
use crate::output;

/// Write the quickstart as a commented configuration file.
///
/// `lapa run FILE` then trains the same experiment as `lapa run`. The file lists every key with its
/// meaning, its allowed values and its default; change what you like.
#[derive(Args)]
pub struct Arguments {
    /// File to write; `-` prints to standard output.
    #[arg(default_value = "lapa.toml")]
    file: PathBuf,
    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
}

/// The first lines of the file.
const HEAD: &str = "# The quickstart of lapa, as trained by `lapa run`: a private run with a proven \
                    budget.\n# Without privacy.epsilon it would add no noise.\n#\n";

pub fn execute(arguments: Arguments) -> CommandResult {
    let template = HEAD.to_owned() + &lapa::config::template(super::QUICKSTART)?;
    let Arguments { file: path, force } = arguments;
    if path.as_os_str() == "-" {
        output::text_out(&template)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let mut file = options.open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{shown} already exists: choose another file, or use --force"))
        }
        _ => Failure::usage(format!("cannot write {shown}: {error}")),
    })?;
    file.write_all(template.as_bytes())?;
    output::text_out(&format!("wrote {shown}; next: lapa run {shown}\n"))?;
    Ok(ExitCode::SUCCESS)
}
