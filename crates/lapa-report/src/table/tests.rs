//! Tables as files: columns, types and rows.

use std::fs;
use std::path::Path;

use lapa::observe::{DeviceRecord, DeviceRecords, DeviceSummary, NoiseMode, RoundRecord};
use parquet::basic::Type as PhysicalType;
use parquet::basic::Type::{BOOLEAN, BYTE_ARRAY, DOUBLE, INT64};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};

use super::{write_parquet, write_table};

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

/// Columns of a table by devices.
const COLUMNS: [(&str, PhysicalType); 29] = [
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

#[test]
fn a_table_row_is_a_device_in_a_round() {
    let empty = record(3, None, DeviceRecords::List(vec![]));
    let (columns, rows) = table_of(&lines(&[list(1, None), list(2, Some(0.1)), empty]));
    assert_eq!(columns, COLUMNS.map(|(name, kind)| (name.to_string(), kind)));
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
    let error = write_parquet(&from, &to).unwrap_err().to_string();
    assert!(error.contains("metrics.jsonl, line 2"), "{error}");
    assert_eq!(fs::read(&to).unwrap(), b"old");
}
