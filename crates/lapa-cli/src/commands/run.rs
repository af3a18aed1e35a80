//! `lapa run`: train, show progress, leave a run folder.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use lapa::observe::DeviceRecords;
use lapa::privatize::{PrivacySummary, round_up};
use lapa::run::{Outcome as RunOutcome, Run, RunError, RunEvent, RunFolder, Summary};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, table};
use crate::progress::{Mode, RoundProgress};

/// Train a model across devices and leave a run folder.
///
/// Without CONFIG the built-in quickstart runs: the paper's CNN on MNIST across 15 devices, or on
/// synthetic digits where MNIST cannot be had. Ctrl-C stops after the round; --resume goes on.
///
/// Examples:
///   lapa run
///   lapa run my.toml -c learn.learning_rate=0.05 --seed 3
///   lapa run -c data.name=fashion-mnist --out runs/fashion
///   lapa run --resume runs/fashion
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    /// Worker threads, 0 for one per core; short for -c run.threads=N. Results do not depend
    /// on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: Option<u32>,
    /// The run's folder, which must not exist yet [default: runs/NAME-N].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with an interrupted run.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "change", "seed", "out"])]
    resume: Option<PathBuf>,
    /// Print no progress.
    #[arg(long)]
    quiet: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Set by Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub fn execute(arguments: Arguments) -> Outcome {
    let mode = Mode::choose(arguments.quiet);
    let run = match &arguments.resume {
        Some(folder) => resume(folder, &arguments, mode)?,
        None => create(&arguments, mode)?,
    };
    stop_on_interrupt()?;
    let folder = run.folder().to_path_buf();
    let mut progress: Option<RoundProgress> = None;
    let (mut rounds, mut links) = (0, String::new());
    let outcome = run.execute(&mut |event| {
        match &event {
            RunEvent::Started { federation, .. } => rounds = federation.experiment().run.rounds,
            RunEvent::Round(record) if record.round == rounds => {
                links = link_table(&record.devices);
            }
            _ => {}
        }
        show(event, mode, &mut progress);
        match INTERRUPTED.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if let Some(progress) = &mut progress {
        progress.finish();
    }
    match outcome {
        RunOutcome::Finished(summary) => {
            finished(&summary, &links, &folder, arguments.format)?;
            Ok(ExitCode::SUCCESS)
        }
        RunOutcome::Stopped { round } => {
            stopped(round, &folder, arguments.format)?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn stop_on_interrupt() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        // A second Ctrl-C does not wait for the round.
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        eprintln!("\nstopping after this round");
    })
    .map_err(Failure::failed)
}

fn create(arguments: &Arguments, mode: Mode) -> Result<Run, Failure> {
    // Before anything takes time.
    if let Some(out) = arguments.out.as_deref().filter(|out| !lapa::run::is_free(out)) {
        return Err(RunError::Exists(out.into()).into());
    }
    let threads = arguments.threads.map(|threads| format!("run.threads={threads}"));
    let (experiment, data) = arguments.source.prepare(threads, mode)?;
    if let Some(out) = &arguments.out {
        return Ok(Run::create(experiment, data, out)?);
    }
    let name = match &arguments.source.config {
        Some(file) => file.file_stem().unwrap_or_default().to_owned(),
        None => "quickstart".into(),
    };
    Ok(Run::create_numbered(experiment, data, &Path::new("runs").join(name))?)
}

fn resume(path: &Path, arguments: &Arguments, mode: Mode) -> Result<Run, Failure> {
    let folder = RunFolder::open(path)?;
    let mut experiment = folder.experiment()?;
    if let Some(threads) = arguments.threads {
        experiment.run.threads = threads as usize;
    }
    let data = super::load_data(&experiment.data.name, mode)?;
    Ok(Run::resume(folder, experiment, data)?)
}

fn show(event: RunEvent<'_>, mode: Mode, progress: &mut Option<RoundProgress>) {
    match event {
        RunEvent::Started { folder, done, federation } => {
            let experiment = federation.experiment();
            let data = federation.data();
            let name = String::from(data.name.clone());
            mode.notice(&format!(
                "{} devices, {name} ({}), {} parameters, {} rounds, seed {}, {} threads\nfolder: {}",
                federation.partition().devices.len(),
                data.source,
                federation.network().parameter_count(),
                experiment.run.rounds,
                experiment.run.seed,
                federation.threads(),
                folder.display(),
            ));
            if done > 0 {
                mode.notice(&format!("resuming after round {done}"));
            }
            let bar = progress.insert(RoundProgress::new(mode, experiment.run.rounds));
            bar.start(done);
        }
        RunEvent::Warning(text) => match progress {
            Some(progress) => progress.say(&format!("warning: {text}")),
            None => eprintln!("warning: {text}"),
        },
        RunEvent::Round(record) => {
            if let Some(progress) = progress {
                progress.round(record);
            }
        }
        RunEvent::Checkpoint { .. } => {}
        RunEvent::Finishing => {
            if let Some(progress) = progress {
                progress.finish();
            }
        }
    }
}

/// The links of the last round, for all devices up to a screenful; nothing without radio.
fn link_table(devices: &DeviceRecords) -> String {
    const MOST_ROWS: usize = 30;
    let summary = devices.summary();
    let db = |db: f64| format!("{db:.1}");
    let (Some(sinr), Some(ser)) = (summary.sinr_db, summary.ser) else { return String::new() };
    if sinr.min.is_infinite() && sinr.min > 0.0 {
        return String::new();
    }
    let rows = match devices {
        DeviceRecords::List(list) if list.len() <= MOST_ROWS => list.as_slice(),
        _ => &[],
    };
    if rows.is_empty() {
        return format!(
            "links: SINR {} to {} dB, median {}; symbol error rate {:.1e} to {:.1e}, median {:.1e}; \
             {} devices sent in the last round\n",
            db(sinr.min),
            db(sinr.max),
            db(sinr.median),
            ser.min,
            ser.max,
            ser.median,
            summary.count,
        );
    }
    let header = [">device", ">SINR dB", ">SER", "sends", ">weight", ">σ artificial", ">σ channel"];
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|device| {
            vec![
                device.device.to_string(),
                db(device.sinr_db),
                format!("{:.1e}", device.ser),
                if device.selected { "yes" } else { "no" }.into(),
                format!("{:.3}", device.weight),
                format!("{:.2e}", device.sigma_artificial),
                format!("{:.2e}", device.sigma_channel),
            ]
        })
        .collect();
    format!("links in the last round (`lapa link` tells more):\n{}", table(&header, &rows))
}

fn finished(summary: &Summary, links: &str, folder: &Path, format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        let mut value = serde_json::to_value(summary).map_err(Failure::failed)?;
        value["folder"] = json!(folder);
        value["peak_memory_mb"] = json!(peak_memory_mb());
        return output::json(&value);
    }
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let percent = summary.accuracy.map_or("–".into(), |a| format!("{:.2} %", 100.0 * a));
    let loss = summary.loss.map_or("–".into(), |loss| format!("{loss:.4}"));
    output::text_out(&format!(
        "\n{links}accuracy {percent} on the test set, loss {loss}, after {} rounds in {:.1} s\n\
         sent {:.1} MB up, {:.1} MB down by {} devices{}\n\
         {}\n\
         everything is in {}: plots/accuracy.svg, metrics.jsonl, model.safetensors\n",
        summary.rounds,
        summary.seconds,
        megabytes(summary.uplink_bytes),
        megabytes(summary.downlink_bytes),
        summary.devices,
        air(summary),
        privacy(&summary.privacy),
        folder.display(),
    ))
}

/// What the radio cost.
fn air(summary: &Summary) -> String {
    let silent = match summary.outages {
        0 => String::new(),
        outages => format!("; told {outages} times not to send, for a bad link"),
    };
    match summary.airtime_s {
        0.0 => silent,
        seconds => format!("; {seconds:.2} s on the air, {:.3} J{silent}", summary.energy_j),
    }
}

/// The figures and what they mean, wrapped.
fn privacy(summary: &PrivacySummary) -> String {
    let figures = format!(
        "privacy: ε provable {}, spent (ex post) {}{}, claimed by the paper's formulas {}; δ {:e}",
        round_up(summary.epsilon_provable),
        round_up(summary.epsilon_spent),
        match summary.epsilon_without_channel > summary.epsilon_spent {
            true => format!(
                " ({} if no channel noise is counted)",
                round_up(summary.epsilon_without_channel)
            ),
            false => String::new(),
        },
        round_up(summary.epsilon_claimed),
        summary.delta,
    );
    let mut text = figures + "\n ";
    let mut width = 1;
    for word in summary.privacy.split(' ') {
        if width + word.chars().count() >= 98 {
            text += "\n ";
            width = 1;
        }
        text += " ";
        text += word;
        width += word.chars().count() + 1;
    }
    text
}

fn stopped(round: u32, folder: &Path, format: Format) -> Result<(), Failure> {
    let folder = folder.display().to_string();
    let command = format!("lapa run --resume {folder}");
    match format {
        Format::Json => output::json(
            &json!({ "stopped": true, "round": round, "folder": folder, "resume": command }),
        ),
        Format::Text => {
            output::text_out(&format!("\nstopped after round {round}; go on with: {command}\n"))
        }
    }
}

/// The most memory this process has held, where the system tells (Linux).
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1e3)
}
