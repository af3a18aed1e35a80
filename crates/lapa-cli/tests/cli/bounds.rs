//! Small inputs that ask for much: memory and time stay bounded.
#![cfg(unix)]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tempfile::TempDir;

use super::privacy::write_private;
use super::*;

/// `lapa` with so many megabytes of address space: more of it is an abort, which no test takes for
/// an error.
fn lapa_within(megabytes: u32, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    let lapa = assert_cmd::cargo::cargo_bin("lapa");
    command.arg("-c").arg(format!("ulimit -v {} && exec \"$0\" \"$@\"", 1024 * megabytes));
    command.arg(lapa).current_dir(folder);
    // Address space that is set aside for each thread and never used.
    command.env("MALLOC_ARENA_MAX", "1");
    command
}

/// Four IDX files of `train` and `test` black images, which take no room on the disk.
fn write_black(folder: &Path, train: u32, test: u32, side: u32) {
    fs::create_dir(folder).unwrap();
    for (name, count) in [("train", train), ("t10k", test)] {
        let mut images = File::create(folder.join(format!("{name}-images-idx3-ubyte"))).unwrap();
        let header = [0x803, count, side, side].map(u32::to_be_bytes).concat();
        images.write_all(&header).unwrap();
        images.set_len(16 + u64::from(count) * u64::from(side) * u64::from(side)).unwrap();
        let mut labels = [0x801, count].map(u32::to_be_bytes).concat();
        labels.extend((0..count).map(|image| (image % 2) as u8));
        fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
}

#[test]
fn megabytes_of_mistakes_fit_into_memory() {
    let place = TempDir::new().unwrap();
    let text: String = (0..320_000).map(|i| format!("k{i}=1\n")).collect();
    assert!(text.len() > 3_000_000);
    fs::write(place.path().join("my.toml"), text).unwrap();
    let mut command = lapa_within(1000, place.path());
    let text = failure(command.args(["config", "check", "my.toml"]), 2);
    assert!(text.contains("my.toml:1:1: unknown key `k0`"), "{text}");
    assert!(text.contains("319979 more mistakes"), "{text}");

    // A line without an end is not repeated.
    let text = format!("transmit.power_w = [{}'x']\n", "1,".repeat(1_000_000));
    fs::write(place.path().join("my.toml"), text).unwrap();
    let text = failure(lapa_within(1000, place.path()).args(["config", "check", "my.toml"]), 2);
    assert!(text.contains("my.toml:1:20: `transmit.power_w` = [1,1,1,"), "{text}");
    assert!(text.len() < 2000, "{}", text.len());

    let file = File::create(place.path().join("my.toml")).unwrap();
    file.set_len(1 << 40).unwrap();
    let text = failure(lapa_within(1000, place.path()).args(["config", "check", "my.toml"]), 2);
    assert!(text.contains("my.toml: it has more than the 8388608 bytes"), "{text}");
}

#[test]
fn large_images_are_trained_in_little_memory() {
    let place = TempDir::new().unwrap();
    write_black(&place.path().join("large"), 4, 24, 512);
    let mut command = lapa_within(1000, place.path());
    command.args(["run", "--quiet", "--format", "json", "-c", "data.name=idx:large"]);
    for change in
        ["partition.scheme=iid", "partition.iid.devices=2", "run.rounds=1", "run.threads=1"]
    {
        command.args(["-c", change]);
    }
    assert_eq!(stdout_json(&mut command)["rounds"], 1);
}

#[test]
fn models_that_are_too_large_are_refused_with_their_numbers() {
    let place = TempDir::new().unwrap();
    write_black(&place.path().join("huge"), 2, 1, 8192);
    for model in ["cnn", "mlp"] {
        let mut command = lapa_within(1500, place.path());
        command.args(["run", "-c", "data.name=idx:huge", "-c", &format!("model.name={model}")]);
        command.args(["-c", "partition.scheme=iid", "-c", "partition.iid.devices=2"]);
        // The only test image has label 0.
        let text = failure(command.args(["-c", "run.threads=1", "-c", "data.classes=2"]), 2);
        for part in [&format!("model.name = \"{model}\""), "8192 8192", "8589934592 are allowed"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(names(place.path()), ["huge"]);
}

#[test]
fn counts_beyond_their_limits_are_refused_at_once() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let refused = |arguments: &[&str], parts: &[&str]| {
        let text = failure(lapa_within(1500, place.path()).args(arguments), 2);
        for part in parts {
            assert!(text.contains(part), "{arguments:?}: {part} is not in {text}");
        }
    };
    let iid = ["-c", "partition.scheme=iid"];
    let many = ["-c", "partition.iid.devices=4294967295"];
    for command in ["link", "partition", "power", "bound", "audit"] {
        refused(&[&[command][..], &iid, &many].concat(), &["4294967295", "from 1 to 1000000"]);
    }
    for command in ["bound", "power", "run"] {
        let rounds = [command, "small.toml", "-c", "run.rounds=4294967295"];
        refused(&rounds, &["4294967295", "from 1 to 1000000"]);
    }
    refused(
        &[
            &["link"][..],
            &iid,
            &["-c", "partition.iid.devices=1000000", "-c", "radio.antennas=1024"],
        ]
        .concat(),
        &["1024000000 channel coefficients", "at most 67108864"],
    );
    let long = ["-c", "run.rounds=1000000", "-c", "partition.mix.iid=8"];
    refused(
        &[&["bound", "small.toml"][..], &long].concat(),
        &["11000000", "the limit is 10000000"],
    );
    let analog = ["-c", "transmit.uplink=analog", "-c", "privacy.initial_sigma=0.2"];
    refused(
        &[&["power", "small.toml"][..], &long, &analog].concat(),
        &["11000000", "the limit is 10000000"],
    );
    let sweep = ["sweep", "small.toml", "--grid", "learn.momentum=0,0.5"];
    refused(&[&sweep[..], &long].concat(), &["run.rounds = 1000000", "at most 10000000"]);
    let wide =
        ["-c", "control.ddpg.hidden=4096", "-c", "control.ddpg.batch=65536", "-c", "run.rounds=5"];
    let devices = ["-c", "partition.mix.iid=10000"];
    refused(
        &[&["power", "small.toml", "--only", "ddpg"][..], &analog, &wide, &devices].concat(),
        &["control.ddpg.hidden and control.ddpg.batch", "at most 4294967296"],
    );
    assert_eq!(names(place.path()), ["small.toml"]);
}

/// A thousand draws of 20,000 devices take half a minute.
#[test]
fn a_hopeless_partition_is_refused_after_a_draw() {
    let place = TempDir::new().unwrap();
    let mut command = lapa(place.path());
    command.args(["partition", "-c", "data.name=synthetic", "-c", "partition.scheme=dirichlet"]);
    let text = failure(command.args(["-c", "partition.dirichlet.devices=19999"]), 2);
    assert!(text.contains("partition.scheme = \"virtual\""), "{text}");
    assert!(text.contains("every draw (tried: 1) left some of the 19999 devices"), "{text}");
}

#[test]
fn a_folder_whose_name_is_not_utf_8_is_an_error_where_a_configuration_must_hold_it() {
    let place = TempDir::new().unwrap();
    let folder = place.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).unwrap();
    write_private(&folder);
    let files = names(&folder);
    for change in ["run.rounds=2", "run.ledger=x.db"] {
        let mut command = lapa(&folder);
        command.args(["run", "private.toml", "-c", change]);
        if change.starts_with("privacy") {
            command.args(["-c", "data.name=synthetic"]);
        }
        let text = failure(&mut command, 1);
        assert!(text.contains("this path is not UTF-8"), "{text}");
    }
    let mut command = lapa(&folder);
    command.args(["run", "private.toml", "-c", "data.name=synthetic", "--quiet", "--out", "run"]);
    command.assert().success();
    lapa(&folder).args(["run", "--resume", "run", "--quiet"]).assert().success();
    fs::remove_dir_all(folder.join("run")).unwrap();
    assert_eq!(names(&folder), files);
}

#[test]
fn a_training_label_without_a_class_is_named_with_the_key_to_set() {
    let place = TempDir::new().unwrap();
    write_private(place.path());
    let labels = place.path().join("digits/train-labels-idx1-ubyte");
    let mut bytes = fs::read(&labels).unwrap();
    bytes[8 + 17] = 11;
    fs::write(&labels, bytes).unwrap();
    let run = |changes: &[&str]| {
        let mut command = lapa(place.path());
        command.args(["run", "private.toml", "--quiet", "--format", "json", "--out", "run"]);
        command.args(changes);
        command
    };
    let text = failure(&mut run(&[]), 1);
    for part in ["train-labels-idx1-ubyte: label 17 (from 0) is 11", "below 10", "data.classes"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    stdout_json(&mut run(&["-c", "data.classes=12"]));
    let text = fs::read_to_string(place.path().join("run/config.resolved.toml")).unwrap();
    assert!(text.contains("classes = 12"), "{text}");
    stdout_json(lapa(place.path()).args(["run", "--resume", "run", "--quiet", "--format", "json"]));
}
