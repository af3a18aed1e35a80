//! Golden runs: small configurations whose models and metrics keep their bits.
//!
//! `golden.json` has two SHA-256 for each: of the model, and of the metrics without the times. Same
//! configuration, same bits, is a promise of the program; a change of them is a decision that its
//! commit explains. `LAPA_GOLDEN=write cargo test --workspace --test golden_runs` writes the file anew.

mod cases;
mod remote;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, thread};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use cases::{BASE, CONVOLUTIONAL, Case, LINEAR, STAGED, TRUSTED_TOP_UP};

/// SHA-256 of the model and of the metrics of each run, by kernels and name.
type Golden = BTreeMap<String, [String; 2]>;

/// A run to make: its name in `golden.json`, its changes, and the kernels.
struct Job {
    name: String,
    changes: Vec<String>,
    portable: bool,
}

fn jobs() -> Vec<Job> {
    let convolutional = CONVOLUTIONAL.iter().flat_map(|case| [job(case, false), job(case, true)]);
    let linear = LINEAR.iter().map(|case| with(case, &["model.name=logistic"]));
    let staged: Vec<&str> = [&TRUSTED_TOP_UP[..], &["model.name=logistic"]].concat();
    let staged = STAGED.iter().map(|case| with(case, &staged));
    convolutional.chain(linear).chain(staged).collect()
}

fn job(&(name, changes): &Case, portable: bool) -> Job {
    let kernels = if portable { "portable" } else { "avx2+fma" };
    let changes = changes.iter().map(ToString::to_string).collect();
    Job { name: format!("{name} ({kernels})"), changes, portable }
}

/// A run with `changes` below its own.
fn with(case: &Case, changes: &[&str]) -> Job {
    let own = job(case, false).changes;
    let all = changes.iter().map(ToString::to_string).chain(own).collect();
    Job { name: case.0.into(), changes: all, portable: false }
}

/// The run's folder, made by the program.
fn execute(job: &Job, place: &Path) -> PathBuf {
    let out = place.join(&job.name);
    let mut run = Command::new(env!("CARGO_BIN_EXE_lapa"));
    if job.portable {
        run.env("LAPA_KERNELS", "portable");
    }
    run.current_dir(place).args(["run", "--quiet", "--out"]).arg(&out);
    for change in &job.changes {
        run.args(["-c", change]);
    }
    let config = place.join(format!("{}.toml", job.name));
    fs::write(&config, BASE).unwrap();
    let output = run.arg(&config).output().unwrap();
    assert!(output.status.success(), "{}: {}", job.name, String::from_utf8_lossy(&output.stderr));
    out
}

/// SHA-256 of the model and of the metrics without the times.
fn digests(folder: &Path) -> [String; 2] {
    let model = fs::read(folder.join("model.safetensors")).unwrap();
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let mut metrics = String::new();
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().shift_remove("seconds").unwrap();
        metrics += &format!("{record}\n");
    }
    [sha256(&model), sha256(metrics.as_bytes())]
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A few code-drawn digits as IDX files: evaluation on all of them would take most of the time.
fn write_digits(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let data = lapa::data::digits(600, 100);
    for (name, split) in [("train", &data.train), ("t10k", &data.test)] {
        let count = split.labels.len() as u32;
        let sides = [split.shape.rows as u32, split.shape.cols as u32];
        let big_endian = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
        };
        let images =
            [&big_endian(&[0x0803, count, sides[0], sides[1]]), split.values.bytes().unwrap()]
                .concat();
        fs::write(folder.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        let labels = [&big_endian(&[0x0801, count]), &split.labels[..]].concat();
        fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
}

/// Every run on this machine's cores.
fn all() -> Golden {
    let place = TempDir::new().unwrap();
    write_digits(&place.path().join("digits"));
    let jobs = jobs();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut golden = Golden::new();
    thread::scope(|scope| {
        let parts = (0..cores).map(|first| {
            let (jobs, place) = (&jobs, place.path());
            scope.spawn(move || -> Vec<_> {
                let mine = jobs.iter().skip(first).step_by(cores);
                mine.map(|job| (job.name.clone(), digests(&execute(job, place)))).collect()
            })
        });
        let parts: Vec<_> = parts.collect();
        golden.extend(parts.into_iter().flat_map(|part| part.join().unwrap()));
    });
    golden.extend(remote::all(place.path()));
    golden
}

#[test]
fn golden_runs_have_the_bits_they_had() {
    if lapa::model::kernels_in_use() != "avx2+fma" {
        eprintln!("skipped: the golden bits are of processors with AVX2 and FMA");
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_runs/golden.json");
    let golden = all();
    if env::var_os("LAPA_GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&file, serde_json::to_string_pretty(&golden).unwrap() + "\n").unwrap();
        return;
    }
    let expected: Golden = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let names: Vec<_> = expected.keys().collect();
    assert_eq!(golden.keys().collect::<Vec<_>>(), names);
    let changed: Vec<_> =
        names.into_iter().filter(|&name| golden[name] != expected[name]).collect();
    assert!(changed.is_empty(), "other bits than before: {changed:?}");
}
