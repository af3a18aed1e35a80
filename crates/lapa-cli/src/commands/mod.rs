//! The commands, one file each.

mod account;
mod audit;
mod bench;
mod bound;
mod completions;
mod config;
mod data;
mod explain;
mod flower;
mod init;
mod link;
mod model;
mod partition;
mod power;
mod report;
mod reproduce;
mod run;
mod study;
mod sweep;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use lapa::config::{ConfigError, Data, Experiment, Override, PartitionSpec};
use lapa::data::{DataError, DataName, Dataset, Inputs, Values};
use lapa::files::Folder;
use lapa_study::execute::Datasets;

use crate::failure::{CommandResult, Failure};
use crate::output::say;
use crate::progress::{FetchProgress, Mode};

/// Train models across wireless devices under differential privacy.
///
/// `lapa run` trains the built-in quickstart. `lapa init` writes the quickstart as a commented file;
/// edit it and train it with `lapa run FILE`. `lapa explain RUN` says what the ε of a run means.
/// Words and symbols: docs/glossary.md.
///
/// Exit codes: 0 success, 1 failure, 2 bad usage or configuration.
#[derive(Parser)]
#[command(name = "lapa", version)]
pub struct Lapa {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Init(init::Arguments),
    #[command(subcommand)]
    Config(config::Command),
    #[command(subcommand)]
    Data(data::Command),
    #[command(subcommand)]
    Model(model::Command),
    Partition(partition::Arguments),
    Link(link::Arguments),
    Power(power::Arguments),
    Bound(bound::Arguments),
    Sweep(sweep::Arguments),
    Reproduce(reproduce::Arguments),
    Account(account::Arguments),
    Audit(audit::Arguments),
    Report(report::Arguments),
    Explain(explain::Arguments),
    #[command(subcommand)]
    Flower(flower::Command),
    Bench(bench::Arguments),
    Completions(completions::Arguments),
}

impl Lapa {
    /// Runs the command.
    pub fn execute(self) -> CommandResult {
        match self.command {
            Command::Run(arguments) => run::execute(arguments),
            Command::Init(arguments) => init::execute(arguments),
            Command::Config(command) => config::execute(command),
            Command::Data(command) => data::execute(command),
            Command::Model(command) => model::execute(command),
            Command::Partition(arguments) => partition::execute(arguments),
            Command::Link(arguments) => link::execute(arguments),
            Command::Power(arguments) => power::execute(arguments),
            Command::Bound(arguments) => bound::execute(arguments),
            Command::Sweep(arguments) => sweep::execute(arguments),
            Command::Reproduce(arguments) => reproduce::execute(arguments),
            Command::Account(arguments) => account::execute(arguments),
            Command::Audit(arguments) => audit::execute(arguments),
            Command::Report(arguments) => report::execute(arguments),
            Command::Explain(arguments) => explain::execute(arguments),
            Command::Flower(command) => flower::execute(command),
            Command::Bench(arguments) => bench::execute(arguments),
            Command::Completions(arguments) => completions::execute(arguments),
        }
    }
}

/// The experiment of `run` without a file.
pub const QUICKSTART: &str = include_str!("quickstart.toml");

/// Reads a configuration file, or takes the quickstart, and applies `-c` flags.
fn experiment(file: Option<&Path>, flags: &[String]) -> Result<Experiment, Failure> {
    let (text, name) = configuration(file)?;
    Ok(Experiment::from_toml(&text, &name, &overrides(flags)?)?)
}

/// The text of a configuration file, or of the quickstart, and what it is called.
fn configuration(file: Option<&Path>) -> Result<(String, String), Failure> {
    Ok(match file {
        None => (QUICKSTART.to_owned(), "quickstart".to_owned()),
        Some(path) => {
            let name = path.display().to_string();
            let unreadable = |error| Failure::usage(format!("cannot read {name}: {error}"));
            (lapa::config::read_file(path).map_err(unreadable)?, name)
        }
    })
}

fn overrides(flags: &[String]) -> Result<Vec<Override>, ConfigError> {
    flags.iter().map(|flag| Override::parse(flag)).collect()
}

/// Opens the folder of `--out`; makes it if it is not there, private to its owner.
fn create_folder(out: &Path) -> Result<Folder, Failure> {
    Folder::create(out).map_err(|error| {
        Failure::usage(format!("--out {}: cannot create the folder: {error}", out.display()))
    })
}

/// Loads a data set, with progress.
fn load_data(inputs: &Inputs, mode: Mode) -> Result<Dataset, DataError> {
    let mut progress = FetchProgress::new(mode);
    inputs.load(&mut |event| progress.show(event))
}

/// Digits that need no file.
const SYNTHETIC: Data = Data::named(DataName::Synthetic);

/// Source of an experiment: a file or the quickstart, and flags.
#[derive(Args)]
struct Source {
    /// Configuration file (TOML); `lapa init` writes one.
    config: Option<PathBuf>,
    /// Set a key, as `section.key=value`; repeatable.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    change: Vec<String>,
    /// Seed of every random choice; same as -c run.seed=N.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Source {
    /// The experiment alone: no data are read.
    fn experiment(&self) -> Result<Experiment, Failure> {
        experiment(self.config.as_deref(), &self.changes().collect::<Vec<_>>())
    }

    /// Name of the results, unless --out says.
    fn name(&self) -> String {
        match &self.config {
            Some(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            None => "quickstart".into(),
        }
    }

    fn changes(&self) -> impl Iterator<Item = String> {
        let seed = self.seed.map(|seed| format!("run.seed={seed}"));
        self.change.iter().cloned().chain(seed)
    }

    /// Reads the experiment, with `change` on top, and loads its data. Without a file it is the
    /// quickstart, which falls back to synthetic digits unless a flag names the data set.
    fn prepare(
        &self,
        change: Option<String>,
        mode: Mode,
    ) -> Result<(Experiment, Dataset), Failure> {
        let changes: Vec<String> = self.changes().chain(change).collect();
        let mut experiment = experiment(self.config.as_deref(), &changes)?;
        let mut data = self.load(std::slice::from_mut(&mut experiment), &changes, mode)?;
        // Unwrap safety: `load` has put it there.
        let data = data.remove(&experiment.inputs()).unwrap();
        Ok((experiment, data))
    }

    /// Loads the data of some experiments of this source. Those of the quickstart make do with what
    /// there is, unless one of the `changes` says what is meant.
    fn load(
        &self,
        experiments: &mut [Experiment],
        changes: &[String],
        mode: Mode,
    ) -> Result<Datasets, Failure> {
        let quickstart = self.config.is_none();
        let may_replace = quickstart && !sets(changes, "data.name");
        let (mut data, mut replaced, mut notices) = (Datasets::new(), false, Vec::new());
        for experiment in experiments {
            if replaced {
                experiment.data = SYNTHETIC;
            }
            let is_loaded = data.contains_key(&experiment.inputs());
            if !is_loaded {
                let loaded = match load_data(&experiment.inputs(), mode) {
                    Err(error) if may_replace => {
                        say(&format!("notice: {error}"));
                        say("notice: using the built-in synthetic digits instead");
                        (replaced, experiment.data) = (true, SYNTHETIC);
                        load_data(&experiment.inputs(), mode)?
                    }
                    result => result?,
                };
                if let Some(notice) = unscaled(&loaded) {
                    mode.notice(&notice);
                }
                data.insert(experiment.inputs(), loaded);
            }
            if quickstart {
                let images = data[&experiment.inputs()].train.len();
                for notice in fit_sizes(&mut experiment.partition, changes, images) {
                    if !notices.contains(&notice) {
                        mode.notice(&notice);
                        notices.push(notice);
                    }
                }
            }
        }
        Ok(data)
    }
}

/// Largest value of a sample from which on steps of a usual learning rate are too long.
const LARGE: f32 = 100.0;

/// A notice where the public test set has values that training hardly learns from.
fn unscaled(data: &Dataset) -> Option<String> {
    let Values::Floats(floats) = &data.test.values else { return None };
    let largest = floats.iter().copied().map(f32::abs).fold(0.0, f32::max);
    (largest > LARGE).then(|| {
        format!(
            "notice: values reach {largest}, and a model learns from values near 1: declare data.mean and data.std, \
             one number or one for each column"
        )
    })
}

/// Training images of MNIST, for which the quickstart's devices have their sizes.
const MNIST_IMAGES: usize = 60_000;

/// Gives the quickstart's devices the same share of a smaller training set, unless a flag sets
/// their sizes. Returns what to say about it.
fn fit_sizes(spec: &mut PartitionSpec, changes: &[String], images: usize) -> Vec<String> {
    let mut notices = Vec::new();
    if images >= MNIST_IMAGES {
        return notices;
    }
    let fit = |samples: u32| (samples as usize * images / MNIST_IMAGES).max(1) as u32;
    for (key, range) in spec.scheme.sizes_mut() {
        let key = &format!("partition.{key}");
        if !sets(changes, key) {
            *range = range.map(fit);
            let [min, max] = range;
            notices
                .push(format!("notice: {key} = [{min}, {max}], to fit {images} training images"));
        }
    }
    notices
}

/// True if a flag `key=…` sets `key`: then it is meant, and never replaced.
fn sets(changes: &[String], key: &str) -> bool {
    changes.iter().any(|change| change.split('=').next().is_some_and(|name| name.trim() == key))
}
