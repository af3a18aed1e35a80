//! metrics.jsonl and its documentation.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

fn device(device: u32, gradient_norm: f64) -> DeviceRecord {
    DeviceRecord {
        device,
        samples: 600,
        weight: 0.1,
        epsilon: 0.5,
        sigma_artificial: 2.0,
        sigma_required: 2.5,
        spent_claimed: 3.0,
        spent_provable: f64::INFINITY,
        angle: None,
        sinr_db: f64::INFINITY,
        ser: 0.0,
        selected: true,
        sigma_channel: 0.0,
        gradient_norm: Some(gradient_norm),
        clipped: Some(0.0),
    }
}

fn record(round: u32, accuracy: Option<f64>, devices: DeviceRecords) -> RoundRecord {
    RoundRecord {
        round,
        accuracy,
        loss: accuracy.map(|a| 1.0 - a),
        pid_error: accuracy,
        epsilon_round: None,
        noise_mode: Some(NoiseMode::Mixed),
        under_noised: 0,
        under_noising: None,
        seconds: 0.5,
        outages: 1,
        airtime_s: 0.25,
        energy_j: 0.125,
        uplink_bytes: 80,
        downlink_bytes: 160,
        devices,
    }
}

fn list(round: u32, accuracy: Option<f64>) -> RoundRecord {
    record(round, accuracy, DeviceRecords::List(vec![device(0, 1.25), device(7, f64::INFINITY)]))
}

fn summary(round: u32) -> RoundRecord {
    let devices = DeviceSummary::of(&[device(0, 1.0), device(1, 2.0)]);
    record(round, Some(0.25), DeviceRecords::Summary(devices.into()))
}

fn write(path: &Path, records: &[RoundRecord]) {
    let mut writer = MetricsWriter::create(path).unwrap();
    records.iter().for_each(|record| writer.append(record).unwrap());
    writer.sync().unwrap();
}

/// The message of an error and of its causes.
fn full(error: ObserveError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[test]
fn a_line_is_exactly_this() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.jsonl");
    write(&path, &[list(1, Some(0.1)), record(2, None, DeviceRecords::List(vec![]))]);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        concat!(
            r#"{"round":1,"accuracy":0.1,"loss":0.9,"pid_error":0.1,"epsilon_round":null,"#,
            r#""noise_mode":"mixed","under_noised":0,"under_noising":null,"#,
            r#""seconds":0.5,"outages":1,"airtime_s":0.25,"energy_j":0.125,"#,
            r#""uplink_bytes":80,"downlink_bytes":160,"devices":["#,
            r#"{"device":0,"samples":600,"weight":0.1,"epsilon":0.5,"sigma_artificial":2.0,"#,
            r#""sigma_required":2.5,"#,
            r#""spent_claimed":3.0,"spent_provable":"inf","angle":null,"sinr_db":"inf","#,
            r#""ser":0.0,"selected":true,"sigma_channel":0.0,"gradient_norm":1.25,"#,
            r#""clipped":0.0},"#,
            r#"{"device":7,"samples":600,"weight":0.1,"epsilon":0.5,"sigma_artificial":2.0,"#,
            r#""sigma_required":2.5,"#,
            r#""spent_claimed":3.0,"spent_provable":"inf","angle":null,"sinr_db":"inf","#,
            r#""ser":0.0,"selected":true,"sigma_channel":0.0,"gradient_norm":"inf","#,
            r#""clipped":0.0}]}"#,
            "\n",
            r#"{"round":2,"accuracy":null,"loss":null,"pid_error":null,"epsilon_round":null,"#,
            r#""noise_mode":"mixed","under_noised":0,"under_noising":null,"#,
            r#""seconds":0.5,"outages":1,"airtime_s":0.25,"energy_j":0.125,"#,
            r#""uplink_bytes":80,"downlink_bytes":160,"devices":[]}"#,
            "\n",
        )
    );
}

#[test]
fn what_is_written_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.jsonl");
    let nobody = record(4, None, DeviceRecords::Summary(DeviceSummary::of(&[]).into()));
    let records = [list(1, None), list(2, Some(1.0 / 3.0)), summary(3), nobody];
    write(&path, &records);
    assert_eq!(read_metrics(&path).unwrap(), records);
}

#[test]
fn a_resumed_file_equals_an_uninterrupted_one() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, resumed) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
    let records: Vec<_> = (1..=5).map(|round| list(round, Some(0.1))).collect();
    write(&whole, &records);
    write(&resumed, &records[..2]);
    let checkpoint = fs::metadata(&resumed).unwrap().len();
    // Round 3 was written in full and round 4 in part when the run was killed.
    let torn = fs::read(&whole).unwrap()[..(checkpoint * 3 / 2) as usize + 20].to_vec();
    fs::write(&resumed, torn).unwrap();

    let mut writer = MetricsWriter::open_at(&resumed, checkpoint).unwrap();
    assert_eq!((writer.len(), writer.is_empty()), (checkpoint, false));
    records[2..].iter().for_each(|record| writer.append(record).unwrap());
    assert_eq!(writer.len(), fs::metadata(&whole).unwrap().len());
    assert_eq!(fs::read(&whole).unwrap(), fs::read(&resumed).unwrap());
}

#[test]
fn a_file_that_does_not_fit_its_checkpoint_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.jsonl");
    write(&path, &[list(1, None)]);
    let before = fs::read(&path).unwrap();
    let len = before.len() as u64;
    let short = full(MetricsWriter::open_at(&path, len + 1).unwrap_err());
    assert!(short.contains(&format!("has {len} bytes")) && short.contains("metrics.jsonl"));
    let inside = full(MetricsWriter::open_at(&path, len - 1).unwrap_err());
    assert!(inside.contains("not the start of a line"), "{inside}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let missing = full(MetricsWriter::open_at(&dir.path().join("none"), 0).unwrap_err());
    assert!(missing.contains("none: cannot open"), "{missing}");
}

#[test]
fn bad_lines_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.jsonl");
    let good = serde_json::to_string(&list(1, None)).unwrap();
    for (bad, why) in [
        (good[..40].to_string(), "EOF"),
        (good.replace(r#""weight""#, r#""wait""#), "missing field `weight`"),
        (good.replace("0.5", r#""fast""#), r#"expected a number, "inf" or "-inf""#),
        (good.replace("[{", "3,\"x\":[{"), "expected a list of devices or quantiles over them"),
    ] {
        fs::write(&path, format!("{good}\n{bad}\n")).unwrap();
        let error = full(read_metrics(&path).unwrap_err());
        assert!(error.contains("metrics.jsonl, line 2") && error.contains(why), "{error}");
    }
}

#[test]
fn a_line_without_end_is_refused_with_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.jsonl");
    let good = serde_json::to_string(&list(1, None)).unwrap();
    fs::write(&path, format!("{good}\n")).unwrap();
    // 3 GB that take no place on the disk.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(3 << 30).unwrap();
    let error = full(read_metrics(&path).unwrap_err());
    assert!(error.contains("metrics.jsonl, line 2: longer than 268435456 bytes"), "{error}");
}

#[test]
fn nan_is_refused_and_leaves_the_file_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.jsonl");
    let mut writer = MetricsWriter::create(&path).unwrap();
    let error = full(writer.append(&list(9, Some(f64::NAN))).unwrap_err());
    assert!(error.contains("round 9"), "{error}");
    assert_eq!((writer.len(), fs::metadata(&path).unwrap().len()), (0, 0));
}

#[test]
fn every_field_is_documented() {
    fn names(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(object) => object.iter().for_each(|(name, value)| {
                found.push(name.clone());
                names(value, found);
            }),
            Value::Array(list) => list.iter().for_each(|value| names(value, found)),
            _ => {}
        }
    }
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    for record in [list(1, None), summary(1)] {
        names(&serde_json::to_value(record).unwrap(), &mut found);
    }
    assert!(found.len() > 20);
    for name in found {
        assert!(page.contains(&format!("`{name}`")), "docs/metrics.md does not explain `{name}`");
    }
}
