//! Many devices that share records: what is written and said stays small and true.

use tempfile::TempDir;

use super::privacy::{metrics, write_private};
use super::*;

/// `lapa run` with 2,000 registered devices, 200 of them a round, which the base station sums.
fn run_many(place: &Path) -> Command {
    let mut run = lapa(place);
    run.args(["run", "private.toml", "--out", "r", "-c", "partition.scheme=virtual"]);
    run.args(["-c", "partition.virtual.devices=2000", "-c", "partition.virtual.samples=[5, 10]"]);
    run.args(["-c", "run.participation=0.1", "-c", "transmit.uplink=analog"]);
    run
}

#[test]
fn a_run_of_many_devices_is_told_in_few_and_true_words() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let done = run_many(place).assert().success().get_output().clone();
    let printed = String::from_utf8(done.stdout).unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(told.contains("devices share records"), "{told}");
    assert!(told.lines().count() + printed.lines().count() < 40, "{told}{printed}");
    let printed = one_line(printed.as_bytes());
    for part in [
        "2000 devices",
        "median",
        "Protects one record of one device, not an image that several devices hold (zero-out adjacency)",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }

    let folder = place.join("r");
    let lines = metrics(&folder);
    assert_eq!(lines.len(), 6);
    for line in lines {
        assert_eq!(line["devices"]["count"], 200);
        assert!(line.to_string().len() < 4000, "{line}");
    }
    // 650 parameters and their momentum; nothing for each device.
    let checkpoint = fs::metadata(folder.join("checkpoint.safetensors")).unwrap().len();
    assert!(checkpoint < 20_000, "{checkpoint}");
    let rows = super::privacy::rows(place, "r/ledger.db");
    assert!((200..=1200).contains(&rows.len()), "{} devices took part", rows.len());

    let explained = one_line(stdout(lapa(place).args(["explain", "r"]).assert()).as_bytes());
    for part in [
        "System: virtual devices share the images of one training set.",
        "no guarantee for an image that several devices hold",
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    assert!(!explained.contains("different records") && !explained.contains("disjoint"));
    assert!(explained.len() < 6000, "{explained}");

    lapa(place).args(["report", "r"]).assert().success();
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert_eq!(pages::check(&page), Ok(()));
    assert!(page.contains("not for an image that several devices hold") && page.contains("Median"));
    assert!(page.matches("<tr>").count() < 100 && page.len() < 500_000, "{}", page.len());
}

/// Refused before there is a folder or a ledger.
#[test]
fn what_no_machine_can_hold_is_refused_with_its_numbers() {
    let place = TempDir::new().unwrap();
    write_private(place.path());
    let before = names(place.path());
    for (change, parts) in [
        (
            "partition.virtual.devices=4000000000",
            &[
                "4000000000: expected a whole number from 1 to 1000000",
                "248.0 GB",
                "lower partition",
            ][..],
        ),
        (
            "partition.virtual.samples=201",
            &["201 samples", "at most 200", "lower partition.virtual.samples"],
        ),
        ("partition.mix.iid=4000000000", &["4000000000", "248.0 GB", "lower partition.mix.iid"]),
        (
            "control.power=ddpg",
            &[
                "`control.power` = \"ddpg\"",
                "each of 1000000 devices",
                "at most 250000",
                "\"equal\"",
            ],
        ),
        (
            "privacy.allocator=lapa",
            &["1000000 devices at a time", "`privacy.allocator` = \"lapa\"", "run.participation"],
        ),
        (
            "aggregate.rule=fedadp",
            &["1000000 devices at a time", "`aggregate.rule` = \"fedadp\"", "run.participation"],
        ),
        (
            "transmit.uplink=signal",
            &["1000000 devices at a time", "`transmit.uplink` = \"signal\"", "run.participation"],
        ),
        ("aggregate.rule=wasserstein", &["1000000 devices", "250 MB", "\"fedavg\""]),
    ] {
        let mut run = run_many(place.path());
        run.args(["-c", "partition.virtual.devices=1000000", "-c", "model.name=mlp"]);
        run.args(["-c", "run.participation=1", "-c", "run.rounds=60"]);
        let text = failure(run.args(["-c", change]), 2);
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(names(place.path()), before);
}

/// Schemes that deal each sample to one device name the one that does not.
#[test]
fn more_devices_than_samples_are_sent_to_virtual() {
    let place = TempDir::new().unwrap();
    for scheme in ["iid", "shards", "dirichlet"] {
        let mut command = lapa(place.path());
        command.args(["partition", "-c", "data.name=synthetic"]);
        command.args(["-c", &format!("partition.scheme={scheme}")]);
        let text = failure(command.args(["-c", &format!("partition.{scheme}.devices=20001")]), 2);
        for part in [
            &format!("`partition.{scheme}.devices` = 20001: expected at most 20000"),
            "partition.scheme = \"virtual\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// Rules, allocators and uplinks that need each update of a large round say so and what it takes.
#[test]
fn kept_updates_are_told() {
    let told = |change: &str| {
        let place = TempDir::new().unwrap();
        write_private(place.path());
        let mut run = run_many(place.path());
        let run = run.args(["--quiet", "-c", "run.rounds=1", "-c", change]);
        one_line(&run.assert().success().get_output().stderr)
    };
    // 200 updates of 650 parameters, four bytes each.
    for (change, reader) in [
        ("aggregate.rule=fedadp", "`aggregate.rule` = \"fedadp\""),
        ("privacy.allocator=lapa", "`privacy.allocator` = \"lapa\""),
    ] {
        let text = told(change);
        let part = format!("{reader} needs every update of a round: 200 of them take 1 MB");
        assert!(text.contains(&part), "{text}");
    }
    assert!(!told("aggregate.rule=fedavg").contains("needs every update"));
}
