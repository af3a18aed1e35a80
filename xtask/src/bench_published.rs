//! `cargo xtask bench-peers --published`: tasks that others have printed, run by us and by current
//! peers on this machine.

use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};

use crate::bench_peers::{Format, mnist, number};
use crate::published::{Name, Printed, TASKS, Task};
use crate::table::median;
use crate::{TaskResult, peers_env, process};

/// A framework that runs here: its name, its script and its file of pinned packages.
const PEERS: [(&str, &str, &str); 2] = [
    ("Flower", "published_flower.py", "published_flower.txt"),
    ("pfl-research", "published_pfl.py", "published_pfl.txt"),
];

/// A peer that could be installed.
struct Peer {
    python: PathBuf,
    script: PathBuf,
}

/// A run on this machine.
struct Measured {
    who: String,
    /// Seconds of the rounds, without what comes before and after them.
    seconds: f64,
    /// Seconds of the whole process.
    process_seconds: f64,
    accuracy: f64,
    peak_memory_mb: Option<f64>,
}

/// A line of the result.
enum Line {
    /// Read from a source.
    Theirs(&'static Printed),
    /// Measured here: a run, and how many times our seconds it took.
    Here(Measured, f64),
}

/// Inputs that all runs share.
struct Bench {
    lapa: PathBuf,
    images: PathBuf,
    /// Run folders.
    folder: PathBuf,
    threads: usize,
    quick: bool,
}

/// Runs the tasks and prints them.
pub fn run(only: Option<Name>, quick: bool, format: Format) -> TaskResult {
    let lapa = process::build_lapa(true)?;
    let images = mnist(&lapa)?;
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let folder = std::env::temp_dir().join(format!("lapa-published-{}", std::process::id()));
    let bench = Bench { lapa, images, folder, threads, quick };

    let tasks: Vec<&Task> =
        TASKS.iter().filter(|task| only.is_none_or(|name| name == task.name)).collect();
    let with_peers = tasks.iter().any(|task| task.peer_rounds.is_some());
    let peers = if with_peers { peers() } else { Vec::new() };
    let results = tasks.iter().map(|task| Ok((*task, bench.task(task, &peers)?)));
    let results: Result<Vec<_>, String> = results.collect();
    // What is left of the runs is of no use to anybody.
    let _ = fs::remove_dir_all(&bench.folder);

    let results = results?;
    let machine = format!("{}, {} threads", processor(), bench.threads);
    match format {
        Format::Text => print!("{machine}{}\n\n{}", shortened(quick), table(&results)),
        Format::Json => println!("{:#}", as_json(&results, &machine, quick)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The peers that could be installed; says why others could not.
fn peers() -> Vec<Peer> {
    let mut peers = Vec::new();
    for (name, script, requirements) in PEERS {
        match peers_env::published(requirements) {
            Ok(python) => {
                let script = process::root().join("bench/peers").join(script);
                peers.push(Peer { python, script });
            }
            Err(error) => eprintln!("notice: {name} is left out: {error}"),
        }
    }
    peers
}

impl Bench {
    /// Lines of a task: the published figures, our run, and the peers' in turns with ours.
    fn task(&self, task: &Task, peers: &[Peer]) -> Result<Vec<Line>, String> {
        let mut ours = vec![self.ours(task)?];
        let mut theirs = Vec::new();
        if let Some((all, few)) = task.peer_rounds {
            for peer in peers {
                match self.peer(task, peer, if self.quick { few } else { all }) {
                    Ok(measured) => theirs.push(measured),
                    Err(error) => eprintln!("notice: left out: {error}"),
                }
                ours.push(self.ours(task)?);
            }
        }
        ours.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let seconds = median(&ours.iter().map(|run| run.seconds).collect::<Vec<_>>());
        let mut run = ours.swap_remove(ours.len() / 2);
        run.seconds = seconds;

        let mut lines: Vec<Line> = task.printed.iter().map(Line::Theirs).collect();
        lines.push(Line::Here(run, 1.0));
        lines.extend(theirs.into_iter().map(|run| {
            let ratio = run.seconds / seconds;
            Line::Here(run, ratio)
        }));
        Ok(lines)
    }

    fn ours(&self, task: &Task) -> Result<Measured, String> {
        let config = format!("experiments/published/{}.toml", task.file);
        eprintln!("{}: lapa, {config}", task.title);
        let out = self.folder.join(task.file);
        if out.exists() {
            fs::remove_dir_all(&out)
                .map_err(|error| format!("cannot remove {}: {error}", out.display()))?;
        }
        let mut command = Command::new(&self.lapa);
        command.arg("run").arg(process::root().join(&config));
        command.args(["--format", "json", "--threads", &self.threads.to_string(), "--out"]);
        command.arg(&out);
        if self.quick {
            command.args(["-c", &format!("run.rounds={}", task.quick_rounds)]);
        }
        measure(&mut command)
    }

    fn peer(&self, task: &Task, peer: &Peer, rounds: u32) -> Result<Measured, String> {
        let mut command = Command::new(&peer.python);
        command.arg(&peer.script).arg(&self.images).arg(task.file);
        command.args([rounds.to_string(), self.threads.to_string()]);
        eprintln!("{}: {}", task.title, process::shown(&command));
        measure(&mut command)
    }
}

/// Runs a program that shows its progress on standard error and prints its result as JSON, at the
/// end of its standard output.
fn measure(command: &mut Command) -> Result<Measured, String> {
    let start = process::now();
    let printed = process::output(command.stderr(Stdio::inherit()))?;
    let process_seconds = start.elapsed().as_secs_f64();
    let result = result(&printed)
        .ok_or_else(|| format!("`{}` printed no JSON: {printed}", process::shown(command)))?;
    Ok(Measured {
        who: result["name"].as_str().unwrap_or("lapa").to_owned(),
        seconds: number(&result, "seconds")?,
        process_seconds,
        accuracy: number(&result, "accuracy")?,
        peak_memory_mb: result["peak_memory_mb"].as_f64(),
    })
}

/// The JSON object at the end of what a program printed; libraries may print before it.
fn result(printed: &str) -> Option<Value> {
    let starts = printed.match_indices('{').map(|(at, _)| at);
    let at_line = |at: &usize| *at == 0 || printed[..*at].ends_with('\n');
    starts.filter(at_line).find_map(|at| serde_json::from_str(&printed[at..]).ok())
}

/// Name of the processor, where Linux tells it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    name.unwrap_or("unknown processor").to_owned()
}

fn shortened(quick: bool) -> &'static str {
    if quick { "; --quick: few rounds, no result" } else { "" }
}

/// The table, in Markdown.
fn table(results: &[(&Task, Vec<Line>)]) -> String {
    let mut rows = vec![
        ["task", "who", "where", "rounds take", "process", "accuracy", "memory", "× our time"]
            .map(String::from),
    ];
    for (task, lines) in results {
        rows.extend(lines.iter().map(|line| cells(task.title, line)));
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row: &[String; 8]| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; 8] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(&format!("| {} |\n", padded.collect::<Vec<_>>().join(" | ")));
        if number == 0 {
            text.push_str(&format!("|{}\n", "---|".repeat(widths.len())));
        }
    }
    text
}

fn cells(title: &str, line: &Line) -> [String; 8] {
    let none = || "–".to_owned();
    let (title, seconds) = (title.to_owned(), |seconds: f64| format!("{seconds:.2} s"));
    match line {
        Line::Theirs(printed) => [
            title,
            printed.who.into(),
            printed.place.into(),
            format!("{} s", printed.seconds),
            none(),
            printed.accuracy.into(),
            none(),
            none(),
        ],
        Line::Here(run, ratio) => [
            title,
            run.who.clone(),
            "here".into(),
            seconds(run.seconds),
            seconds(run.process_seconds),
            format!("{:.2} %", 100.0 * run.accuracy),
            run.peak_memory_mb.map_or_else(none, |memory| format!("{memory:.0} MB")),
            format!("{ratio:.1}"),
        ],
    }
}

fn as_json(results: &[(&Task, Vec<Line>)], machine: &str, quick: bool) -> Value {
    let row = |task: &Task, line: &Line| match line {
        Line::Theirs(printed) => json!({
            "task": task.file, "who": printed.who, "where": printed.place,
            "seconds": printed.seconds, "accuracy": printed.accuracy,
        }),
        Line::Here(run, ratio) => json!({
            "task": task.file, "who": run.who, "where": "here", "seconds": run.seconds,
            "process_seconds": run.process_seconds, "accuracy": run.accuracy,
            "peak_memory_mb": run.peak_memory_mb, "ratio": ratio,
        }),
    };
    let of_task = |(task, lines): &(&Task, Vec<Line>)| {
        lines.iter().map(|line| row(task, line)).collect::<Vec<_>>()
    };
    let rows: Vec<Value> = results.iter().flat_map(of_task).collect();
    json!({"machine": machine, "quick": quick, "rows": rows})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_found_behind_other_output() {
        let printed = "Metrics {}\n{broken\n{\"name\": \"x\",\n \"seconds\": 2}\n";
        assert_eq!(result(printed).unwrap()["seconds"], 2);
        assert_eq!(result("nothing {}"), None);
    }

    #[test]
    fn the_table_has_printed_and_measured_lines() {
        let run = Measured {
            who: "peer".into(),
            seconds: 12.0,
            process_seconds: 15.0,
            accuracy: 0.5,
            peak_memory_mb: None,
        };
        let lines = vec![Line::Theirs(&TASKS[0].printed[0]), Line::Here(run, 3.0)];
        let text = table(&[(&TASKS[0], lines)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].contains("| 91 s"), "{text}");
        assert!(lines[3].contains("| 12.00 s") && lines[3].contains("| 50.00 %"), "{text}");
    }

    /// Every task has a configuration, and peers know those they are to run.
    #[test]
    fn tasks_exist_on_both_sides() {
        let read = |path: &str| fs::read_to_string(process::root().join(path)).unwrap();
        let peers = read("bench/peers/published_tasks.py");
        for task in &TASKS {
            read(&format!("experiments/published/{}.toml", task.file));
            let known = peers.contains(&format!("    \"{}\": Task(", task.file));
            assert_eq!(known, task.peer_rounds.is_some(), "{}", task.file);
        }
    }
}
