//! `lapa init`: a commented configuration to start from.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::output;

/// Write a commented configuration file with every key: the experiment of `lapa run`.
///
/// The file says what the built-in quickstart says, so that `lapa run FILE` trains the same. Change
/// what you like; each key has its meaning, what it allows, and its default where that is another.
#[derive(Args)]
pub struct Arguments {
    /// The file to write; `-` prints it.
    #[arg(default_value = "lapa.toml")]
    file: PathBuf,
    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
}

/// The first lines of the file.
const HEAD: &str = "# The quickstart of lapa, as `lapa run` trains it: a private run whose budget is \
                    proved.\n# Without privacy.epsilon it would add no noise.\n#\n";

pub fn execute(arguments: Arguments) -> Outcome {
    let template = HEAD.to_owned() + &lapa::config::template(super::QUICKSTART)?;
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
