//! `lapa config`: check a file, print the schema.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Outcome;
use crate::output::{self, Format};

/// Check a configuration file, or print the schema of all of them.
#[derive(Subcommand)]
pub enum Command {
    /// Check a file and print it with every default filled in.
    Check {
        /// The configuration file.
        file: PathBuf,
        /// Change a key, as `section.key=value`; may be given several times.
        #[arg(short = 'c', value_name = "KEY=VALUE")]
        change: Vec<String>,
        /// How the resolved configuration is printed: TOML or JSON.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print the JSON schema of the configuration, for editors and programs.
    Schema {
        /// The schema is JSON in either case.
        #[arg(long, value_enum, default_value_t = Format::Json)]
        format: Format,
    },
}

pub fn execute(command: Command) -> Outcome {
    match command {
        Command::Check { file, change, format } => {
            let experiment = super::experiment(Some(&file), &change)?;
            match format {
                Format::Json => output::json(&experiment.to_json())?,
                Format::Text => output::text_out(&format!(
                    "# {}: correct. With every default filled in:\n\n{}",
                    file.display(),
                    experiment.to_toml()
                ))?,
            }
        }
        Command::Schema { .. } => output::json(&lapa::config::json_schema())?,
    }
    Ok(ExitCode::SUCCESS)
}
