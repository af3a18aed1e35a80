//! The program under siege: mutated inputs, damaged folders and ledgers, kills, full disks and
//! crowds of processes. Every case follows from a seed; `cargo xtask test --long` tries many more.
#![cfg(unix)]

mod accounts;
mod configs;
mod data;
mod folders;
mod kills;
mod ledgers;
mod mutate;
mod pilots;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use mutate::Dice;
use serde_json::Value;
use tempfile::TempDir;

/// As many cases as the occasion allows.
fn cases(short: u64, long: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("LAPA_TEST_LONG").is_some() { long } else { short }
}

/// Memory that no small input may make the program ask for, in KiB of address space.
const MEMORY_KIB: u64 = 6 << 20;
/// No small input keeps the program busy for longer; only a hang does.
const PATIENCE: Duration = Duration::from_secs(240);

/// The program in a folder, with bounded memory.
fn lapa(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
    command.args(["-c", &limited]).arg(assert_cmd::cargo::cargo_bin("lapa")).args(arguments);
    command.current_dir(place).stdin(Stdio::null());
    // No data set is fetched, and the tester's home stays as it is.
    command.env("LAPA_DATA", place.join("cache")).env("HTTPS_PROXY", "http://127.0.0.1:9");
    command
}

/// Runs to the end, or fails: a panic, an abort and a hang are never the right answer.
fn survives(place: &Path, arguments: &[&str], case: &str) -> Output {
    let (out, err) = (place.join("out.txt"), place.join("err.txt"));
    let file = |path: &Path| fs::File::create(path).unwrap();
    let mut child = lapa(place, arguments).stdout(file(&out)).stderr(file(&err)).spawn().unwrap();
    let begun = lapa::clock::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{case}: lapa {arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let output =
        Output { status, stdout: fs::read(&out).unwrap(), stderr: fs::read(&err).unwrap() };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(status.code(), Some(0..=2)) && !told.contains("panicked"),
        "{case}: lapa {arguments:?} ends with {status}: {told}"
    );
    output
}

/// A folder with siege.toml: five devices with ε = 8 each, on a few images of 8 × 8.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    let digits = place.path().join("digits");
    fs::create_dir(&digits).unwrap();
    for (name, count) in [("train", 400u32), ("t10k", 40)] {
        let header = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
        };
        let mut images = header(&[0x803, count, 8, 8]);
        images.extend((0..count * 64).map(|i| (i / 64 * 37 + i % 64 * 11) as u8));
        let mut labels = header(&[0x801, count]);
        labels.extend((0..count).map(|image| (image % 10) as u8));
        fs::write(digits.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        fs::write(digits.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
    fs::write(place.path().join("siege.toml"), SIEGE).unwrap();
    place
}

const SIEGE: &str = "\
data.name = 'idx:digits'
[run]
rounds = 12
evaluate_every = 6
checkpoint_every = 3
seed = 3
[partition.mix]
iid = 2
non_iid = 3
iid_samples = [20, 40]
non_iid_samples = [20, 40]
[model]
name = 'logistic'
[privacy]
epsilon = 8
";

/// `run siege.toml --out OUT` with changes.
fn run_arguments<'a>(out: &'a str, changes: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "siege.toml", "--quiet", "--out", out];
    arguments.extend(changes.iter().flat_map(|change| ["-c", change]));
    arguments
}

/// Every file below a folder, by name, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// A copy of a folder.
fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let copy = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&file, copy).unwrap();
    }
}

/// The model's bytes and the metrics without times.
fn results(run: &Path) -> (Vec<u8>, Vec<Value>) {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let metrics = text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().remove("seconds");
        record
    });
    (fs::read(run.join("model.safetensors")).unwrap(), metrics.collect())
}

/// The provable ε of each device on a ledger; none where the ledger is refused.
fn provable(place: &Path, ledger: &str, case: &str) -> Option<Vec<f64>> {
    let output = survives(place, &["account", "--ledger", ledger, "--format", "json"], case);
    if !output.status.success() {
        return None;
    }
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = |row: &Value| row["provable"].as_f64().unwrap_or(f64::INFINITY);
    Some(value["devices"].as_array().unwrap().iter().map(figure).collect())
}
