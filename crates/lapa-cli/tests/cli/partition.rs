//! `lapa partition`: table, plots, refusals.

use std::fs;

use tempfile::TempDir;

use super::*;

#[test]
fn a_partition_is_shown_and_drawn() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let show = ["partition", "small.toml", "--out", "plots"];
    let text = stdout(lapa(place.path()).args(show).assert());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("device  kind     samples"), "{text}");
    // Header, rule, five devices, total.
    assert_eq!(lines.len(), 8, "{text}");
    assert!(lines[2].contains("iid") && lines[6].contains("non-iid"), "{text}");
    assert!(lines[7].contains("samples on 5 devices"), "{text}");
    let plots = place.path().join("plots");
    assert_eq!(names(&plots), ["partition.png", "partition.svg"]);
    assert!(fs::read(plots.join("partition.png")).unwrap().starts_with(b"\x89PNG"));

    let value = stdout_json(lapa(place.path()).args(show).args(["--format", "json"]));
    for row in value["devices"].as_array().unwrap() {
        let counts = row["label_counts"].as_array().unwrap();
        let counts: Vec<u64> = counts.iter().map(|count| count.as_u64().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u64>(), row["samples"].as_u64().unwrap());
        let labels = counts.iter().filter(|&&count| count > 0).count();
        assert_eq!(labels <= 2, row["kind"] == "non-iid", "{row}");
    }
    let other =
        stdout_json(lapa(place.path()).args(show).args(["--format", "json", "--seed", "4"]));
    assert_ne!(value["devices"], other["devices"]);
}

#[test]
fn the_quickstart_takes_other_schemes() {
    let place = TempDir::new().unwrap();
    for scheme in ["dirichlet", "shards", "iid"] {
        let mut command = lapa(place.path());
        command.args(["partition", "--format", "json", "-c", "data.name=synthetic"]);
        let value = stdout_json(command.args(["-c", &format!("partition.scheme={scheme}")]));
        assert_eq!(value["devices"].as_array().unwrap().len(), 15, "{scheme}");
    }
}

/// Fifteen thousand devices of one or two samples each, as a list, a table and a plot that can be read.
#[test]
fn views_of_many_devices_are_bounded() {
    let place = TempDir::new().unwrap();
    let partition = |format| {
        let mut command = lapa(place.path());
        command.args(["partition", "--format", format, "-c", "data.name=synthetic"]);
        command.args(["-c", "partition.scheme=iid", "-c", "partition.iid.devices=15000"]);
        command
    };
    let value = stdout_json(&mut partition("json"));
    assert_eq!(value["devices"].as_array().unwrap().len(), 20);
    assert_eq!((&value["count"], &value["samples"]), (&15_000.into(), &20_000.into()));
    assert_eq!((&value["sizes"]["min"], &value["sizes"]["max"]), (&1.0.into(), &2.0.into()));
    let plot = fs::metadata(place.path().join("partition.svg")).unwrap().len();
    assert!(plot < 100_000, "{plot} bytes");
    let text = stdout(partition("text").assert());
    assert!(text.contains("the 10 of 15000 devices with the largest and the 10 with"), "{text}");
    assert!(text.contains("number of samples: 1 to 2, quartiles 1, 1 and 2"), "{text}");
    assert!(text.contains("20000 samples on 15000 devices"), "{text}");
}

#[test]
fn an_impossible_partition_is_refused_with_its_numbers() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    for name in ["partition", "run"] {
        let mut command = lapa(place.path());
        command.args([name, "small.toml", "-c", "partition.mix.iid_samples=12000"]);
        let text = failure(&mut command, 2);
        assert!(text.contains("24060") && text.contains("20000"), "{text}");
    }
    assert_eq!(names(place.path()), ["small.toml"]);
}
