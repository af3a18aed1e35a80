//! `lapa config`: check a file, print the schema.

use std::path::PathBuf;

use clap::Subcommand;

use crate::failure::CommandResult;
use crate::output::{self, Format};

/// Check a configuration file, or print the configuration schema.
#[derive(Subcommand)]
pub enum Command {
    /// Check a file and print it with all defaults filled in.
    Check {
        /// Configuration file.
        file: PathBuf,
        /// Set a key, as `section.key=value`; repeatable.
        #[arg(short = 'c', value_name = "KEY=VALUE")]
        change: Vec<String>,
        /// Output format: TOML (text) or JSON.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print the JSON Schema of the configuration, for editors and programs.
    Schema {
        /// Output format; the schema is JSON either way.
        #[arg(long, value_enum, default_value_t = Format::Json)]
        format: Format,
    },
}

pub fn execute(command: Command) -> CommandResult {
    match command {
        Command::Check { file, change, format } => {
            let experiment = super::experiment(Some(&file), &change)?;
            output::print(format, &experiment.to_json(), || {
                let (file, text) = (file.display(), experiment.to_toml());
                format!("# {file}: valid. With all defaults filled in:\n\n{text}")
            })
        }
        Command::Schema { .. } => {
            output::print(Format::Json, &lapa::config::json_schema(), String::new)
        }
    }
}
