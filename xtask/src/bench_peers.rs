//! `cargo xtask bench-peers`: our gradients and PyTorch's, measured in turns.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::table::{self, Row};
use crate::{
    TaskResult, bench_accounting, bench_ddpg, bench_published, peers_env, process, published,
};

/// Samples of a round in `peers.py`: 15 devices of 400.
const ROUND_SAMPLES: f64 = 6000.0;

/// Options of the comparison.
#[derive(Args)]
pub struct Options {
    /// Pairs of measurements; the machine's own variation needs at least 7.
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = clap::value_parser!(u32).range(7..))]
    pairs: u32,
    /// Length of one measurement in seconds, at least 0.7.
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = seconds)]
    seconds: f64,
    /// Also compare a whole federated round (15 devices, 400 samples each) on two threads.
    #[arg(long)]
    round: bool,
    /// Compare our accountants with dp-accounting instead; PyTorch is not needed.
    #[arg(long, conflicts_with_all = ["round", "seconds"])]
    accounting: bool,
    /// Compare our DDPG with that of stable-baselines3 instead.
    #[arg(long, conflicts_with_all = ["round", "accounting"])]
    ddpg: bool,
    /// Run tasks that others have printed instead, with us, Flower and pfl-research.
    #[arg(long, conflicts_with_all = ["round", "accounting", "ddpg", "pairs", "seconds"])]
    published: bool,
    /// Run this published task alone.
    #[arg(long, value_enum, value_name = "TASK", requires = "published")]
    only: Option<published::Name>,
    /// Run a few rounds of the published tasks: a trial of the command, no measurement.
    #[arg(long, requires = "published")]
    quick: bool,
    /// Format of the result.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// A table.
    Text,
    /// One JSON object.
    Json,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.7..=60.0).contains(&value) => Ok(value),
        _ => Err("allowed: a number from 0.7 to 60".into()),
    }
}

/// Runs the comparison and prints it.
pub fn run(options: &Options) -> TaskResult {
    if options.accounting {
        return bench_accounting::run(options.pairs, options.format);
    }
    if options.ddpg {
        return bench_ddpg::run(options.pairs, options.seconds, options.format);
    }
    if options.published {
        return bench_published::run(options.only, options.quick, options.format);
    }
    let python = peers_env::python("requirements.txt")?;
    let lapa = process::build_lapa(true)?;
    let core = pinned_core();
    match core {
        Some(core) => eprintln!("both sides run on core {core}"),
        None => eprintln!("notice: no `taskset` here; the measurements are not pinned to a core"),
    }

    let images = mnist(&lapa)?;
    let mut worker = Worker::start(&python, "peers.py", &[&images], core)?;
    let about = worker.ask("about")?;
    let mut rows = gradient_rows(&mut worker, &lapa, core, options)?;
    rows.extend(model_rows(&mut worker, &lapa, core, options)?);
    drop(worker);
    if options.round {
        rows.push(round_row(&python, &images, &lapa, options)?);
    }

    let torch = about["torch"].as_str().unwrap_or("?");
    let title = format!("PyTorch {torch}, {} pairs", options.pairs);
    let conditions = json!({
        "torch": about["torch"], "pairs": options.pairs, "seconds": options.seconds, "core": core,
    });
    table::print(options.format, &title, &rows, conditions);
    Ok(ExitCode::SUCCESS)
}

/// The folder of MNIST: all sides compute on the same images.
pub fn mnist(lapa: &Path) -> Result<PathBuf, String> {
    let data =
        process::output(Command::new(lapa).args(["data", "get", "mnist", "--format", "json"]))?;
    let data: Value = serde_json::from_str(&data).map_err(|error| error.to_string())?;
    let folder = data["folder"].as_str().ok_or("`lapa data get mnist` named no folder")?;
    Ok(folder.into())
}

fn gradient_rows(
    worker: &mut Worker,
    lapa: &Path,
    core: Option<u32>,
    options: &Options,
) -> Result<Vec<Row>, String> {
    let seconds = options.seconds.to_string();
    let arguments = ["--only", "gradient", "--threads", "1", "--seconds", &seconds];
    let mut rows = [
        "gradient, batch norm / PyTorch default",
        "gradient, batch norm / PyTorch channels_last",
        "per-sample clipped, group norm / vmap",
        "our plain gradient / our per-sample clipped",
    ]
    .map(|name| Row { name, pairs: Vec::new() });

    for pair in 0..options.pairs {
        eprintln!("pair {} of {}", pair + 1, options.pairs);
        // Every other pair starts with the other side, so that a slow drift favors neither.
        let ours_first = pair % 2 == 1;
        let before = ours_first.then(|| our_figures(lapa, &arguments, core)).transpose()?;
        let default = worker.figure("batch", options.seconds, "samples_per_s")?;
        let channels_last = worker.figure("channels_last", options.seconds, "samples_per_s")?;
        let vmap = worker.figure("vmap", options.seconds, "samples_per_s")?;
        let ours = match before {
            Some(ours) => ours,
            None => our_figures(lapa, &arguments, core)?,
        };
        let batch_norm = number(&ours, "gradient_batch_norm_samples_per_s")?;
        let group_norm = number(&ours, "gradient_group_norm_samples_per_s")?;
        let per_sample = number(&ours, "gradient_per_sample_samples_per_s")?;
        let measured = [
            (batch_norm, default),
            (batch_norm, channels_last),
            (per_sample, vmap),
            (group_norm, per_sample),
        ];
        for (row, figures) in rows.iter_mut().zip(measured) {
            row.pairs.push(figures);
        }
    }
    Ok(rows.into())
}

/// The networks for color images, plain and per sample.
fn model_rows(
    worker: &mut Worker,
    lapa: &Path,
    core: Option<u32>,
    options: &Options,
) -> Result<Vec<Row>, String> {
    let seconds = options.seconds.to_string();
    let arguments = ["--only", "models", "--threads", "1", "--seconds", &seconds];
    let modes = [
        ("cifar-cnn", "cifar_cnn", "cifar-cnn, gradient / PyTorch channels_last"),
        ("cifar-cnn-vmap", "cifar_cnn_per_sample", "cifar-cnn, per-sample clipped / vmap"),
        ("resnet-8", "resnet_8", "resnet-8, gradient / PyTorch channels_last"),
        ("resnet-8-vmap", "resnet_8_per_sample", "resnet-8, per-sample clipped / vmap"),
    ];
    let mut rows = modes.map(|(_, _, name)| Row { name, pairs: Vec::new() });
    for pair in 0..options.pairs {
        eprintln!("networks for color images, pair {} of {}", pair + 1, options.pairs);
        let ours = our_figures(lapa, &arguments, core)?;
        for ((mode, key, _), row) in modes.iter().zip(&mut rows) {
            let peer = worker.figure(mode, options.seconds, "samples_per_s")?;
            row.pairs.push((number(&ours, &format!("{key}_samples_per_s"))?, peer));
        }
    }
    Ok(rows.into())
}

/// Samples per second of whole rounds, two threads on each side and no pinning. PyTorch's devices
/// have 400 samples each, ours between 300 and 500.
fn round_row(python: &Path, images: &Path, lapa: &Path, options: &Options) -> Result<Row, String> {
    let mut worker = Worker::start(python, "peers.py", &[images], None)?;
    let seconds = options.seconds.to_string();
    let arguments = ["--only", "round", "--threads", "2", "--seconds", &seconds];
    let mut pairs = Vec::new();
    for pair in 0..options.pairs {
        eprintln!("round, pair {} of {}", pair + 1, options.pairs);
        let peer = worker.figure("round", options.seconds, "seconds")?;
        let ours = our_figures(lapa, &arguments, None)?;
        let ours = number(&ours, "round_samples")? / number(&ours, "round_seconds")?;
        pairs.push((ours, ROUND_SAMPLES / peer));
    }
    Ok(Row { name: "federated round, two threads / channels_last", pairs })
}

/// Figures that `lapa bench` prints as JSON.
pub fn our_figures(lapa: &Path, arguments: &[&str], core: Option<u32>) -> Result<Value, String> {
    let mut command = pinned(lapa, core);
    let text = process::output(command.args(["bench", "--format", "json"]).args(arguments))?;
    serde_json::from_str(&text).map_err(|error| format!("`lapa bench` printed no JSON: {error}"))
}

/// The positive number of that name.
pub fn number(figures: &Value, key: &str) -> Result<f64, String> {
    let value = figures[key].as_f64().filter(|value| *value > 0.0);
    value.ok_or_else(|| format!("no positive number `{key}` in {figures}"))
}

/// The Python process of a script in `bench/peers`: a command in, a line of JSON out.
pub struct Worker {
    script: &'static str,
    process: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts the script with these arguments, on one core if asked for.
    pub fn start(
        python: &Path,
        script: &'static str,
        arguments: &[&Path],
        core: Option<u32>,
    ) -> Result<Self, String> {
        let mut process = pinned(python, core)
            .arg(process::root().join("bench/peers").join(script))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", python.display()))?;
        let commands = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("standard output is piped"));
        Ok(Self { script, process, commands, answers })
    }

    /// The answer to one command.
    pub fn ask(&mut self, command: &str) -> Result<Value, String> {
        let script = self.script;
        let failed = |what: &dyn std::fmt::Display| format!("{script}, `{command}`: {what}");
        let commands = self.commands.as_mut().expect("open until dropped");
        writeln!(commands, "{command}").map_err(|error| failed(&error))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| failed(&error))?;
        let answer: Value =
            serde_json::from_str(&line).map_err(|_| failed(&"it ended without an answer"))?;
        match answer["error"].as_str() {
            Some(error) => Err(failed(&error)),
            None => Ok(answer),
        }
    }

    fn figure(&mut self, mode: &str, seconds: f64, key: &str) -> Result<f64, String> {
        number(&self.ask(&format!("{mode} {seconds}"))?, key)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its input ends the process; wait, so that it does not disturb what follows.
        self.commands = None;
        let _ = self.process.wait();
    }
}

/// The program, on one core when there is one to pin to.
fn pinned(program: &Path, core: Option<u32>) -> Command {
    match core {
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["--cpu-list", &core.to_string()]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// The last core we may use (the first is the busiest with interrupts), if `taskset` is there.
pub fn pinned_core() -> Option<u32> {
    process::output(Command::new("taskset").arg("--version")).ok()?;
    last_core(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The last core in the `Cpus_allowed_list` line of a Linux process status, e.g. `0-3,8`.
fn last_core(status: &str) -> Option<u32> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_allowed_core_is_read() {
        assert_eq!(last_core("Name:\tx\nCpus_allowed_list:\t0-3,8\n"), Some(8));
        assert_eq!(last_core("Cpus_allowed_list:\t0-1\n"), Some(1));
        assert_eq!(last_core("Cpus_allowed_list:\t5\n"), Some(5));
        assert_eq!(last_core("Name:\tx\n"), None);
    }

    #[test]
    fn a_missing_figure_is_named() {
        let error = number(&json!({"a": 1.0, "b": 0.0}), "b").unwrap_err();
        assert!(error.contains("`b`"), "{error}");
        assert_eq!(number(&json!({"a": 2.5}), "a"), Ok(2.5));
    }

    #[test]
    fn measurements_must_be_long_enough() {
        assert_eq!(seconds("0.7"), Ok(0.7));
        assert!(seconds("0.5").is_err() && seconds("x").is_err() && seconds("NaN").is_err());
    }
}
