//! Sizes of configurations, and of the numbers in them.

use super::{read, refuses, with_flags};
use crate::config::*;
use crate::data::Format;

#[test]
fn many_mistakes_are_told_at_once_and_very_many_are_counted() {
    let error = read("[run]\nsede = 1\nrounds = 0\n[modle]\n").unwrap_err();
    let text = error.to_string();
    let places: Vec<_> = text.lines().filter(|line| !line.starts_with("  help")).collect();
    for (line, expected) in places.iter().zip([
        "lapa.toml:2:1: unknown key `run.sede`: expected one of rounds, ",
        "lapa.toml:3:10: `run.rounds` = 0: expected a whole number from 1 to 1000000",
        "lapa.toml:4:2: unknown key `modle`: expected one of profile, ",
    ]) {
        assert!(line.starts_with(expected), "{text}");
    }
    assert_eq!((places.len(), error.related().len(), error.more()), (3, 2, 0));
    let error = with_flags("sede = 1", &["run.x=1"]).unwrap_err();
    assert!(error.to_string().starts_with("-c run.x=1: unknown key `run.x`"), "{error}");
    assert!(error.related()[0].to_string().starts_with("lapa.toml:1:1: unknown key `sede`"));
    // Each of them once had a copy of the text: the square of its length.
    let text: String = (0..100_000).map(|i| format!("k{i}=1\n")).collect();
    let error = read(&text).unwrap_err().to_string();
    assert!(error.ends_with("\n99979 more mistakes"), "{error}");
    assert_eq!(error.matches("unknown key").count(), 21);
}

#[test]
fn the_length_of_a_configuration_is_bounded() {
    let text = format!("#{}\n", "x".repeat(MOST_BYTES - 2));
    assert!(read(&text).is_ok());
    refuses(&format!("{text}\n"), "lapa.toml:1:1: 8388609 bytes: expected at most 8388608");
    // A value that is short to write and long to write down.
    let powers = "1e-300,".repeat(100_000);
    let text = format!(
        "partition = {{ scheme = 'iid', iid.devices = 100000 }}\ntransmit.power_w = [{powers}]"
    );
    let error = read(&text).unwrap_err().to_string();
    assert!(error.contains("bytes: expected at most 8388608"), "{error}");

    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("long.toml");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = read_file(&path).unwrap_err().to_string();
    assert!(error.contains("more than the 8388608 bytes"), "{error}");
    std::fs::write(&path, b"a = '\xff'").unwrap();
    assert_eq!(read_file(&path).unwrap_err().to_string(), "byte 5 is not UTF-8");
}

#[test]
fn long_keys_and_values_are_cut_in_errors() {
    for text in [
        format!("{} = 1", "k".repeat(1_000_000)),
        format!("run.rounds = '{}'", "ü".repeat(1_000_000)),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.len() < 600 && error.contains('…'), "{error}");
    }
}

#[test]
fn counts_have_limits_that_errors_name() {
    let refused = |text: &str, expected: &str| {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let most = "a whole number from 1 to 1000000";
    refused("run.rounds = 4294967295", &format!("`run.rounds` = 4294967295: expected {most}"));
    let iid = "partition = { scheme = 'iid', iid.devices = 1000001 }";
    refused(iid, &format!("`partition.iid.devices` = 1000001: expected {most}"));
    refused(
        "partition = { scheme = 'virtual', virtual.devices = 4000000000 }",
        &format!(
            "= 4000000000: expected {most}\n  help: this many devices take 248.0 GB even if none of \
             them takes part; lower partition.virtual.devices"
        ),
    );
    refused(
        "partition.mix = { iid = 4000000000 }",
        "`partition.mix.iid` = 4000000000: expected a whole number from 0 to 1000000\n  help: this many \
         devices take 248.0 GB even if none of them takes part; lower partition.mix.iid",
    );
    refused(
        "partition.mix = { iid = 600000, non_iid = 600000 }",
        "make 1200000 devices: expected from 1 to 1000000 (this many devices take 0.1 GB",
    );
    assert!(
        read("run.rounds = 1000000\npartition = { scheme = 'iid', iid.devices = 1000000 }").is_ok()
    );
}

/// 150 rounds of 200,000 devices make 30 million records of 256 bytes, 7.7 GB.
#[test]
fn powers_of_too_many_devices_are_refused() {
    let of = |devices: u32, rounds: u32, control: &str| {
        read(&format!(
            "profile = 'certified'\nrun.rounds = {rounds}\nprivacy.epsilon = 8\n\
             transmit.uplink = 'analog'\ncontrol = {{ {control} }}\n\
             partition = {{ scheme = 'virtual', virtual.devices = {devices} }}"
        ))
    };
    let fitted = |rounds: u32, power: &str| of(200_000, rounds, &format!("power = '{power}'"));
    for power in ["closed-form", "random-search", "cma-es", "ddpg"] {
        let error = fitted(150, power).unwrap_err().to_string();
        for part in [
            "lapa.toml:",
            "`control.power` = ",
            "`run.rounds` = 150 with 200000 devices",
            "30000000 records of about 7.7 GB; the limit is 10000000 (2.6 GB)",
            "control.power = \"equal\"",
        ] {
            assert!(error.contains(part), "{power}: {part} is not in {error}");
        }
        assert!(fitted(10, power).is_ok(), "{power}");
        let error = of(1_000_000, 1, &format!("power = '{power}'")).unwrap_err().to_string();
        assert!(error.contains("each of 1000000 devices: expected at most 250000"), "{error}");
    }
    for power in ["equal", "full"] {
        assert!(fitted(150, power).is_ok(), "{power}");
    }
    let error = of(200_000, 10, "power = 'ddpg', ddpg.hidden = 4096").unwrap_err().to_string();
    for part in ["200000 devices: bytes for control.ddpg.hidden", "at most 4294967296: lower"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn classes_are_for_folders_of_idx_files() {
    let classes = |text: &str| read(text).unwrap().data.classes;
    assert_eq!(classes("data.name = 'idx:a'"), None);
    assert_eq!(classes("data = { name = 'idx:a', classes = 26 }"), Some(26));
    refuses(
        "data.classes = 26",
        "lapa.toml:1:16: `data.classes` = 26 does not go with `data.name` = \"mnist\", which has \
         10\n  help: remove data.classes, or use data.name = \"idx:PATH\"",
    );
}

#[test]
fn the_size_of_pictures_and_normalization_are_checked() {
    let data = |text: &str| read(text).unwrap().data;
    assert_eq!(data("data = { name = 'images:a', size = [32, 48] }").size, Some([32, 48]));
    let numbers = data("data = { scale = 0.5, mean = [0.1, 0.2], std = 2 }");
    assert_eq!(numbers.mean.unwrap().numbers().len(), 2);
    assert_eq!((numbers.std.unwrap().numbers()[0].0, numbers.scale.unwrap().0), (2.0, 0.5));
    let refused = |text: &str, part: &str| {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(
        "data.size = [8, 8]",
        "does not go with `data.name` = \"mnist\", whose samples have a size",
    );
    refused("data = { name = 'images:a', size = [0, 8] }", "`data.size` = [0, 8]: expected");
    refused("data.std = [1, 0]", "`data.std` = [1, 0]: expected");
    refused("data.scale = 0", "`data.scale` = 0: expected a finite number from");
    refused("data.mean = 'x'", "`data.mean` = 'x': expected");
    refused(
        "partition = { scheme = 'virtual', noise = 0.1 }",
        "cannot give each device features of its own",
    );
    refused(
        "partition = { scheme = 'iid', iid = { samples = 5, sizes_concentration = 1 } }",
        "`partition.iid.sizes_concentration` does not go with `partition.iid.samples`",
    );
}

#[cfg(unix)]
#[test]
fn paths_that_no_configuration_can_hold_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(b"/caf\xe9/x"));
    let mut with_ledger = read("").unwrap();
    with_ledger.run.ledger = Some(path.into());
    let mut with_data = read("").unwrap();
    with_data.data.name = DataName::Files(Format::Idx, path.into());
    for experiment in [with_ledger, with_data] {
        let (refused, error) = experiment.with_absolute_paths().unwrap_err();
        assert_eq!(refused, path);
        assert!(error.to_string().contains("not UTF-8"), "{error}");
    }
}
