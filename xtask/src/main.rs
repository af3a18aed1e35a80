//! Tasks of this workspace: `cargo xtask --help`.

mod bench_accounting;
mod bench_ddpg;
mod bench_peers;
mod bench_published;
mod bench_python;
mod browser;
mod containerfile;
mod dist;
mod edges;
mod generate;
mod house;
mod lint;
mod modules;
mod peers_env;
mod process;
mod published;
mod python;
mod table;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Result of every task: the exit code to pass on, or a message for the user.
type TaskResult = Result<ExitCode, String>;

/// Tasks of the lapa workspace.
///
/// Before proposing a change: `cargo xtask test`, then `cargo xtask lint`; both together are
/// `.ci/run`. After changing a command-line flag or a configuration key: `cargo xtask gen`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch the data sets, then run every test of the workspace.
    ///
    /// Runs `cargo test --workspace` (unit, integration and documentation tests; examples are
    /// built), the tests of the program beside all others, and passes on output and exit code. Without a network the data sets may be
    /// missing: the tests that need them then say so and skip. Afterwards headless Chromium opens
    /// a report, and fails on anything on its console; root on Debian gets one by apt-get, others
    /// without one get a notice. Last, the Python package is built in a virtual environment (in the
    /// user's cache folder, or where LAPA_PYTHON_VENV says) and pytest runs its tests; this needs
    /// Python 3.11 or newer, which root on Debian gets by apt-get, and a network at the first time.
    Test {
        /// Also run the long tests: whole training runs, minutes instead of seconds.
        #[arg(long)]
        long: bool,
        /// Only build the Python package and run its tests.
        #[arg(long)]
        python: bool,
    },
    /// Check format, clippy, documentation, dependencies and the house rules.
    ///
    /// Runs every check even when one fails, and lists the failures at the end. `cargo deny` is
    /// used when it is installed.
    Lint,
    /// Regenerate the committed files that are made from the program.
    ///
    /// docs/config.schema.json from `lapa config schema`, docs/cli.md from the `--help` of every
    /// subcommand, docs/modules.md from the documentation of the source files.
    Gen {
        /// Write nothing; fail when a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Make the files of a release: program, wheel, bill of materials, checksums.
    ///
    /// Writes lapa-VERSION-ARCH-linux.tar.gz (program, completions, man pages, licenses), the wheel,
    /// lapa-VERSION.cdx.json (CycloneDX) and SHA256SUMS. Compiles without a network in
    /// target/dist-build, so `cargo fetch` comes first. The wheel needs the virtual environment of
    /// `cargo xtask test --python`, whose packages are downloaded at the first time. Files bear the
    /// time of the last commit. A library that not every Linux has, or a path of this machine in a
    /// file, is an error. Needs git, and readelf of binutils.
    Dist(dist::Options),
    /// Compare the speed of our gradients with PyTorch's, in turns on one core.
    ///
    /// Needs Python 3.11 or newer. The first run makes a virtual environment (in the user's cache
    /// folder, or where LAPA_PEERS_VENV says) and installs the PyTorch pinned in
    /// bench/peers/requirements.txt, a download of up to a few gigabytes; pip's own PIP_*
    /// variables apply. Every figure is the median of the ratios of the single pairs, with the
    /// smallest and the largest. The exit code says only whether the comparison ran.
    ///
    /// With --accounting: our accountants and those of dp-accounting (bench/peers/accounting.txt)
    /// instead, without PyTorch. With --ddpg: our DDPG and that of stable-baselines3
    /// (bench/peers/ddpg.txt).
    ///
    /// With --published: the tasks of experiments/published, which others have printed results of.
    /// Our runs and, where they can be installed, those of Flower and pfl-research
    /// (bench/peers/published_*.txt) in a virtual environment of its own (or where
    /// LAPA_PUBLISHED_VENV says), on all cores. Takes up to half an hour; the table is Markdown.
    BenchPeers(bench_peers::Options),
    /// Measure the Python package: `lapa.run` beside the program, import time, size of the wheel.
    ///
    /// Builds a release wheel and a release program, then runs the scripts of bench/python in a
    /// virtual environment. Ratios are medians over pairs in turns, with the smallest and the
    /// largest. The exit code says only whether the measurements were made.
    BenchPython(bench_python::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test { long, python: true } => python::run(long),
        Task::Test { long, python: false } => test::run(long),
        Task::Lint => lint::run(),
        Task::Gen { check } => generate::run(check),
        Task::Dist(options) => dist::run(&options),
        Task::BenchPeers(options) => bench_peers::run(&options),
        Task::BenchPython(options) => bench_python::run(&options),
    };
    outcome.unwrap_or_else(|message| {
        eprintln!("error: {message}");
        ExitCode::FAILURE
    })
}
