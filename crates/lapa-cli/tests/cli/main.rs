//! The command line, end to end: what it leaves, what it prints, how it fails.

mod account;
mod accuracy;
mod audit;
mod bound;
mod bounds;
mod config;
mod data;
mod explain;
mod features;
#[cfg(unix)]
mod flower;
#[cfg(unix)]
mod folders;
mod interrupt;
mod ledger;
mod link;
mod model;
#[path = "../../../lapa-report/tests/support/pages.rs"]
mod pages;
mod partition;
mod power;
mod privacy;
mod reference;
mod report;
mod reproduce;
mod run;
mod streams;
mod sweep;
mod transmit;
mod virtual_devices;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

/// `lapa` in a folder of its own.
fn lapa(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("lapa").unwrap();
    command.current_dir(folder);
    command
}

/// `lapa` where no data set can be had: no cache, no network, no clients.
fn lapa_alone(folder: &Path) -> Command {
    let mut command = lapa(folder);
    // Nothing listens on the discard port, so every download is refused at once.
    command.env_clear().env("HTTPS_PROXY", "http://127.0.0.1:9").env("PATH", "");
    command.env("LAPA_DATA", folder.join("empty"));
    command
}

/// Five small devices with synthetic digits: a round takes milliseconds.
const SMALL: &str = "\
profile = 'paper'
data.name = 'synthetic'
[run]
rounds = 4
evaluate_every = 2
seed = 3
[partition.mix]
iid = 2
non_iid = 3
iid_samples = [20, 40]
non_iid_samples = [20, 40]
";

/// Writes [`SMALL`] to small.toml.
fn write_small(folder: &Path) {
    fs::write(folder.join("small.toml"), SMALL).unwrap();
}

/// Standard error of a command that must fail with `code`, as one line: messages are broken to
/// the width of the terminal.
fn failure(command: &mut Command, code: i32) -> String {
    one_line(&command.assert().code(code).get_output().stderr)
}

fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace(['│', '×'], " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn stdout(assert: Assert) -> String {
    String::from_utf8(assert.success().get_output().stdout.clone()).unwrap()
}

/// True if MNIST is in the cache; says so if not.
fn has_mnist() -> bool {
    let place = tempfile::TempDir::new().unwrap();
    let list = stdout_json(lapa(place.path()).args(["data", "list", "--format", "json"]));
    let available = list[0]["available"] == true;
    if !available {
        eprintln!("skipped: MNIST is not in the cache; run `lapa data get mnist`");
    }
    available
}

fn stderr(assert: Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn stdout_json(command: &mut Command) -> Value {
    let text = stdout(command.assert());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Parts that must be the same in two runs: the model's bytes, and the metrics without the times.
fn results(folder: &Path) -> (Vec<u8>, Vec<Value>) {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    assert!(text.ends_with('\n'), "the last line is torn");
    let metrics = text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().remove("seconds").unwrap();
        record
    });
    let metrics = metrics.collect();
    (fs::read(folder.join("model.safetensors")).unwrap(), metrics)
}
