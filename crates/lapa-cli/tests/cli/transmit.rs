//! Runs over radio links: every uplink finishes and tells, and bad values name their flag.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::privacy::{metrics, number, run_private, write_private};
use super::*;

/// `lapa run` on five devices with synthetic digits and a small model.
fn radio(place: &Path, out: &str, changes: &[&str]) -> Command {
    let mut command = lapa(place);
    command.args(["run", "small.toml", "--quiet", "--format", "json", "--out", out]);
    let small = ["model.name=logistic", "model.norm=none", "run.rounds=2"];
    command.args(small.iter().chain(changes).flat_map(|change| ["-c", change]));
    command
}

#[test]
fn every_uplink_finishes_and_leaves_its_figures() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_small(place);
    // 7850 coordinates at 10⁶ symbols per second: one symbol each, or 8 bits in symbols of 2.
    for (uplink, airtime, bytes) in [
        (&["transmit.uplink=ideal"][..], 0.0, 31_400),
        (&["transmit.uplink=analog"], 7850e-6, 31_400),
        (&["transmit.uplink=digital"], 31_400e-6, 7850),
        (&["transmit.uplink=signal"], 7850e-6, 31_400),
        (&["transmit.uplink=signal", "transmit.signal.symbols=digital"], 31_400e-6, 7850),
    ] {
        let out = uplink.join("-");
        let summary = stdout_json(&mut radio(place, &out, uplink));
        assert_eq!((&summary["rounds"], &summary["devices"]), (&2.into(), &5.into()), "{out}");
        assert!((0.0..=1.0).contains(&number(&summary["accuracy"])), "{out}");
        assert_eq!(summary["uplink_bytes"], 2 * 5 * bytes, "{out}");
        assert_eq!(summary["downlink_bytes"], 2 * 5 * 31_400, "{out}");
        let ideal = airtime == 0.0;
        let analog = !ideal && bytes == 31_400;
        for line in metrics(&place.join(&out)) {
            assert_eq!(line["outages"], 0, "{out}");
            assert!((number(&line["airtime_s"]) - airtime).abs() < 1e-12, "{out}: {line}");
            // Five devices of 75 mW.
            let energy = 5.0 * 0.075 * airtime;
            assert!((number(&line["energy_j"]) - energy).abs() < 1e-12, "{out}: {line}");
            for device in line["devices"].as_array().unwrap() {
                assert_eq!(device["selected"], true, "{out}");
                assert_eq!(number(&device["sinr_db"]).is_infinite(), ideal, "{out}");
                assert!((0.0..=0.75).contains(&number(&device["ser"])), "{out}");
                assert_eq!(number(&device["sigma_channel"]) > 0.0, analog, "{out}");
            }
        }
        let resolved = fs::read_to_string(place.join(&out).join("config.resolved.toml")).unwrap();
        for section in ["[radio]", "[transmit]", "[aggregate]"] {
            assert!(resolved.contains(section), "{resolved}");
        }
    }
}

#[test]
fn poor_links_are_told() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_small(place);
    let far = ["transmit.uplink=analog", "aggregate.sinr_threshold_db=150"];
    let mut command = radio(place, "skipped", &far);
    let told = one_line(&command.assert().success().get_output().stderr);
    let warning = "round 1: no device passes aggregate.sinr_threshold_db = 150";
    assert_eq!(told.matches(warning).count(), 1, "{told}");
    assert!(told.contains("such rounds leave the model as it is"), "{told}");
    for line in metrics(&place.join("skipped")) {
        assert_eq!((&line["outages"], &line["uplink_bytes"]), (&5.into(), &0.into()));
    }
    let failing = [&far[..], &["aggregate.none_selected=error"]].concat();
    let told = failure(&mut radio(place, "failed", &failing), 1);
    assert!(told.contains(warning) && told.contains("the best has an SINR of"), "{told}");
}

#[test]
fn bad_values_name_the_flag() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_small(place);
    for (flag, says) in [
        ("transmit.uplink=analogue", "did you mean \"analog\"?"),
        ("transmit.power_w=0.4", "above `transmit.max_power_w` = 0.3"),
        ("transmit.power_w=[0.1,0.2]", "has 2 numbers, but there are 5 devices"),
        ("transmit.digital.bits=8", "read only with transmit.uplink = \"digital\""),
        ("transmit.perfect_sic=yes", "expected true or false"),
        ("radio.regions=[{x=[1,0],y=[0,1],devices=1}]", "write x = [0, 1]"),
        ("radio.regions=[{x=[0,1],y=[0,1]}]", "a list, each { x, y, devices }"),
        ("radio.positions=[[0,0,0]]", "has 1 entries, but there are 5 devices"),
        ("radio.antennas=0", "a whole number from 1 to 1024"),
        ("aggregate.wasserstein.floor=0.3", "read only with aggregate.rule = \"wasserstein\""),
        ("aggregate.ser_threshold=0", "a finite number from 1e-12 to 1"),
        ("privacy.channel_trust=1", "only coordinates sent as amplitudes"),
        ("radio.uplink=analog", "`uplink` belongs to [transmit]"),
    ] {
        let told = failure(&mut radio(place, "bad", &[flag]), 2);
        assert!(told.contains(flag) && told.contains(says), "{flag}: {told}");
        assert!(!place.join("bad").exists(), "{flag}");
    }
}

#[test]
fn certified_weights_pay_for_their_histograms_and_count_no_channel_unasked() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let analog = ["transmit.uplink=analog", "transmit.access=orthogonal", "learn.sampling=fixed"];
    let rule = ["aggregate.rule=wasserstein"];
    let summary = run_private(place, "untrusted", &[&analog[..], &rule].concat());
    assert_eq!(summary["epsilon_provable"], 8.0);
    assert_eq!(summary["epsilon_without_channel"], summary["epsilon_spent"]);
    let words = summary["privacy"].as_str().unwrap();
    assert!(
        words.contains("Labels: each device sent a label histogram once, with noise"),
        "{words}"
    );

    let trusted = [&analog[..], &["privacy.channel_trust=1"]].concat();
    let summary = run_private(place, "trusted", &trusted);
    assert_eq!(summary["epsilon_provable"], 8.0);
    assert!(number(&summary["epsilon_spent"]) <= 8.0);
    assert!(number(&summary["epsilon_without_channel"]) > number(&summary["epsilon_spent"]));

    let told = ["privacy.epsilon=8", "profile=paper"];
    let summary = run_private(place, "exact", &[&rule[..], &told].concat());
    assert_eq!(summary["epsilon_provable"], "inf");
    let public = ["aggregate.wasserstein.histograms=public"];
    let summary = run_private(place, "public", &[&rule[..], &public].concat());
    assert_eq!(summary["epsilon_provable"], 8.0);
    assert!(summary["privacy"].as_str().unwrap().contains("Labels: declared public"));
}
