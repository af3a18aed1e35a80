//! The files of a run: metrics.jsonl, metrics.parquet and their documentation.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use ::parquet::basic::Type as PhysicalType;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use serde_json::{Value, json};

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

/// Column names with their physical types, and the rows.
fn read_table(path: &Path) -> (Vec<(String, PhysicalType)>, Vec<Vec<Field>>) {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns =
        schema.columns().iter().map(|c| (c.name().to_string(), c.physical_type())).collect();
    let rows = reader.get_row_iter(None).unwrap();
    let rows = rows.map(|row| row.unwrap().into_columns().into_iter().map(|(_, f)| f).collect());
    (columns, rows.collect())
}

fn table_of(jsonl: &str) -> (Vec<(String, PhysicalType)>, Vec<Vec<Field>>) {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("metrics.jsonl"), dir.path().join("metrics.parquet"));
    fs::write(&from, jsonl).unwrap();
    write_parquet(&from, &to).unwrap();
    read_table(&to)
}

fn lines(records: &[RoundRecord]) -> String {
    records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect()
}

#[test]
fn a_table_row_is_a_device_in_a_round() {
    use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, INT64};
    let empty = record(3, None, DeviceRecords::List(vec![]));
    let (columns, rows) = table_of(&lines(&[list(1, None), list(2, Some(0.1)), empty]));
    let expected = [
        ("round", INT64),
        ("accuracy", DOUBLE),
        ("loss", DOUBLE),
        ("pid_error", DOUBLE),
        ("epsilon_round", DOUBLE),
        ("noise_mode", BYTE_ARRAY),
        ("under_noised", INT64),
        ("under_noising", DOUBLE),
        ("seconds", DOUBLE),
        ("outages", INT64),
        ("airtime_s", DOUBLE),
        ("energy_j", DOUBLE),
        ("uplink_bytes", INT64),
        ("downlink_bytes", INT64),
        ("device", INT64),
        ("samples", INT64),
        ("weight", DOUBLE),
        ("epsilon", DOUBLE),
        ("sigma_artificial", DOUBLE),
        ("sigma_required", DOUBLE),
        ("spent_claimed", DOUBLE),
        ("spent_provable", DOUBLE),
        ("angle", DOUBLE),
        ("sinr_db", DOUBLE),
        ("ser", DOUBLE),
        ("selected", BOOLEAN),
        ("sigma_channel", DOUBLE),
        ("gradient_norm", DOUBLE),
        ("clipped", DOUBLE),
    ];
    assert_eq!(columns, expected.map(|(name, kind)| (name.to_string(), kind)));
    let air = [Field::Long(1), Field::Double(0.25), Field::Double(0.125)];
    let bytes = [Field::Long(80), Field::Long(160)];
    let noise = [Field::Str("mixed".into()), Field::Long(0), Field::Null];
    let shared = [noise.into(), vec![Field::Double(0.5)], air.into(), bytes.into()].concat();
    let row = |round, evaluation: [Field; 4], of_device: [Field; 15]| {
        [vec![Field::Long(round)], evaluation.into(), shared.to_vec(), of_device.into()].concat()
    };
    let on = |device, norm| {
        let [epsilon, sigma, required, claimed] = [0.5, 2.0, 2.5, 3.0].map(Field::Double);
        let (weight, provable) = (Field::Double(0.1), Field::Double(f64::INFINITY));
        let (norm, clipped) = (Field::Double(norm), Field::Double(0.0));
        let (k, n) = (Field::Long(device), Field::Long(600));
        let [sinr, ser, channel] = [f64::INFINITY, 0.0, 0.0].map(Field::Double);
        let (angle, selected) = (Field::Null, Field::Bool(true));
        let link = [sinr, ser, selected, channel];
        let release = [k, n, weight, epsilon, sigma, required, claimed, provable, angle];
        [release.to_vec(), link.into(), vec![norm, clipped]].concat().try_into().unwrap()
    };
    let evaluated = || [0.1, 0.9, 0.1].map(Field::Double);
    let evaluated = || [evaluated().to_vec(), vec![Field::Null]].concat().try_into().unwrap();
    let not = || [const { Field::Null }; 4];
    let nobody = [const { Field::Null }; 15];
    let expected = [
        row(1, not(), on(0, 1.25)),
        row(1, not(), on(7, f64::INFINITY)),
        row(2, evaluated(), on(0, 1.25)),
        row(2, evaluated(), on(7, f64::INFINITY)),
        row(3, not(), nobody),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_summary_row_is_a_round() {
    let nobody = record(2, None, DeviceRecords::Summary(DeviceSummary::of(&[]).into()));
    let (columns, rows) = table_of(&lines(&[summary(1), nobody]));
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[14..17], ["count", "samples_min", "samples_q25"]);
    // Fourteen of the round, the count, twelve times five quantiles and the angles, which nobody has.
    assert_eq!((names.len(), rows.len()), (76, 2));
    let norm = names.iter().position(|&name| name == "gradient_norm_median").unwrap();
    assert_eq!((&rows[0][norm], &rows[1][norm]), (&Field::Double(1.5), &Field::Null));
}

#[test]
fn columns_follow_the_json() {
    let (columns, rows) = table_of(
        r#"{"a":1,"eps":"inf","always":"inf","flag":true,"kind":"x","mix":1,"devices":[{"a":2}]}
           {"a":2.5,"eps":3,"always":"inf","inner":{"list":[1,2]},"mix":"y","devices":[{"a":null}]}
        "#
        .trim_end(),
    );
    let find = |name: &str| columns.iter().position(|(n, _)| n == name).unwrap();
    let column = |name: &str| (columns[find(name)].1, [0, 1].map(|i| rows[i][find(name)].clone()));
    let text = |s: &str| Field::Str(s.into());
    use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, INT64};
    assert_eq!(column("a"), (DOUBLE, [1.0, 2.5].map(Field::Double)));
    assert_eq!(column("eps"), (DOUBLE, [f64::INFINITY, 3.0].map(Field::Double)));
    assert_eq!(column("always"), (DOUBLE, [f64::INFINITY; 2].map(Field::Double)));
    assert_eq!(column("flag"), (BOOLEAN, [Field::Bool(true), Field::Null]));
    assert_eq!(column("kind"), (BYTE_ARRAY, [text("x"), Field::Null]));
    assert_eq!(column("mix"), (BYTE_ARRAY, [text("1"), text("y")]));
    assert_eq!(column("inner_list"), (BYTE_ARRAY, [Field::Null, text("[1,2]")]));
    assert_eq!(column("device_a"), (INT64, [Field::Long(2), Field::Null]));
}

#[test]
fn a_table_of_values_has_the_types_of_its_columns() {
    use PhysicalType::{BYTE_ARRAY, DOUBLE, INT64};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let names = ["learn.rate", "seed", "list", "epsilon", "nothing"].map(str::to_owned);
    let rows = [
        vec![json!(1), json!(7), json!([1, 2]), json!("inf"), Value::Null],
        vec![json!(0.5), json!(8), json!("x"), json!(2)],
    ];
    write_table(&names, &rows, &path).unwrap();
    let (columns, rows) = read_table(&path);
    let kinds = [DOUBLE, INT64, BYTE_ARRAY, DOUBLE, DOUBLE];
    assert_eq!(columns, names.into_iter().zip(kinds).collect::<Vec<_>>());
    let text = |text: &str| Field::Str(text.into());
    let (one, half) = (Field::Double(1.0), Field::Double(0.5));
    let (infinite, two) = (Field::Double(f64::INFINITY), Field::Double(2.0));
    assert_eq!(rows[0], [one, Field::Long(7), text("[1,2]"), infinite, Field::Null]);
    assert_eq!(rows[1], [half, Field::Long(8), text("x"), two, Field::Null]);
}

#[test]
fn many_rows_take_several_row_groups() {
    let one = record(1, None, DeviceRecords::List((0..35_000).map(|k| device(k, 1.0)).collect()));
    let (_, rows) = table_of(&lines(&[one.clone(), one]));
    assert_eq!(rows.len(), 70_000);
    assert!(rows.iter().enumerate().all(|(i, row)| row[14] == Field::Long((i % 35_000) as i64)));
}

#[test]
fn a_bad_line_leaves_the_old_table() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("metrics.jsonl"), dir.path().join("metrics.parquet"));
    fs::write(&from, "{}\n3\n").unwrap();
    fs::write(&to, "old").unwrap();
    let error = full(write_parquet(&from, &to).unwrap_err());
    assert!(error.contains("metrics.jsonl, line 2"), "{error}");
    assert_eq!(fs::read(&to).unwrap(), b"old");
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
