//! The curves of a run for TensorBoard: a file of TFRecords, each a protobuf `Event`.
//!
//! Both formats are small, so they are written by hand. TFRecord: length (8 bytes), checksum of
//! the length, the event, checksum of the event. Event: wall_time = 1, step = 2, file_version = 3,
//! summary = 5; Summary: value = 1, with tag = 1 and simple_value = 2.

use std::io::Write;
use std::path::PathBuf;

use lapa::files::Folder;
use lapa::observe::{DeviceSummary, Quantiles, RoundRecord};
use lapa::run::Manifest;

use super::ReportError;
use super::crc32c::crc32c;

/// Writes the curves into `folder` and returns the file. It is the same file, to the bit, each time.
pub fn write_events(
    manifest: &Manifest,
    records: &[RoundRecord],
    folder: &Folder,
) -> Result<PathBuf, ReportError> {
    // TensorBoard's own names end with the host's, which is nobody's business.
    let name = format!("events.out.tfevents.{:010}.lapa", manifest.started_unix);
    let (path, bytes) = (folder.path().join(&name), events(manifest.started_unix as f64, records));
    let written = folder.replace(&name, |file| file.write_all(&bytes));
    written.map_err(ReportError::io("write", &path))?;
    Ok(path)
}

/// The bytes of the file: its version, then an event for each round.
fn events(start: f64, records: &[RoundRecord]) -> Vec<u8> {
    let mut version = Vec::new();
    double(&mut version, 1, start);
    bytes(&mut version, 3, b"brain.Event:2");
    let mut file = framed(&version);
    let (mut time, mut worst) = (start, None);
    for record in records {
        time += record.seconds;
        let mut summary = Vec::new();
        for (tag, value) in scalars(record, &mut worst) {
            let mut scalar = Vec::new();
            bytes(&mut scalar, 1, tag.as_bytes());
            key(&mut scalar, 2, 5);
            scalar.extend(value.to_le_bytes());
            bytes(&mut summary, 1, &scalar);
        }
        let mut event = Vec::new();
        double(&mut event, 1, time);
        key(&mut event, 2, 0);
        varint(&mut event, u64::from(record.round));
        bytes(&mut event, 5, &summary);
        file.extend(framed(&event));
    }
    file
}

/// Scalars of a round. `worst` is the most that any device had provably spent before.
fn scalars(record: &RoundRecord, worst: &mut Option<f64>) -> Vec<(&'static str, f32)> {
    let devices: DeviceSummary = record.devices.summary();
    // A device that sits a round out has spent what it had.
    let spent = devices.spent_provable.map(|spent| spent.max);
    *worst = [*worst, spent].into_iter().flatten().reduce(f64::max);
    let median = |sigma: Option<Quantiles>| sigma.map(|sigma| sigma.median as f32);
    let all = [
        ("accuracy", record.accuracy.map(|accuracy| accuracy as f32)),
        ("loss", record.loss.map(|loss| loss as f32)),
        ("epsilon/provable_worst_device", worst.map(not_below)),
        ("sigma/artificial_median", median(devices.sigma_artificial)),
        ("sigma/channel_median", median(devices.sigma_channel)),
        ("sigma/required_median", median(devices.sigma_required)),
        ("round/uplink_bytes", Some(record.uplink_bytes as f32)),
        ("round/energy_j", Some(record.energy_j as f32)),
    ];
    all.into_iter().filter_map(|(tag, value)| Some((tag, value?))).collect()
}

/// The least single-precision number that is not below: a privacy figure is never rounded down.
fn not_below(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// One TFRecord.
fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), data, &masked(data)].concat()
}

/// The checksum as TFRecords have it: a checksum of bytes that hold a checksum would be weak.
fn masked(data: &[u8]) -> [u8; 4] {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// Number and wire type of a field.
fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    key(out, field, 1);
    out.extend(value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(out, field, 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

#[cfg(test)]
mod tests {
    use lapa::observe::DeviceRecords;

    use super::*;

    fn record(round: u32, spent: &[f64]) -> RoundRecord {
        let device = serde_json::json!({
            "device": 0, "samples": 1, "weight": 1, "epsilon": 1, "sigma_artificial": 0.5,
            "sigma_required": 1, "spent_claimed": 1, "spent_provable": 1, "angle": null,
            "sinr_db": "inf", "ser": 0, "selected": true, "sigma_channel": 0.25,
        });
        let devices = spent.iter().map(|&spent| {
            let mut device: lapa::observe::DeviceRecord =
                serde_json::from_value(device.clone()).unwrap();
            device.spent_provable = spent;
            device
        });
        RoundRecord {
            round,
            accuracy: round.is_multiple_of(2).then_some(0.5),
            loss: round.is_multiple_of(2).then_some(2.0),
            pid_error: None,
            epsilon_round: None,
            noise_mode: None,
            under_noised: 0,
            under_noising: None,
            seconds: 0.25,
            outages: 0,
            airtime_s: 0.0,
            energy_j: 0.125,
            uplink_bytes: 1000,
            downlink_bytes: 0,
            devices: DeviceRecords::List(devices.collect()),
        }
    }

    // The bytes that TensorBoard itself writes (`pip install tensorboard==2.21.0`):
    // ```python
    // import io
    // from tensorboard.compat.proto.event_pb2 import Event
    // from tensorboard.compat.proto.summary_pb2 import Summary
    // from tensorboard.summary.writer.record_writer import RecordWriter
    // tags = ("accuracy loss epsilon/provable_worst_device sigma/artificial_median "
    //         "sigma/channel_median sigma/required_median round/uplink_bytes round/energy_j")
    // values = zip(tags.split(), [0.5, 2, 3, 0.5, 0.25, 1, 1000, 0.125])
    // file = io.BytesIO()
    // writer = RecordWriter(file)
    // writer.write(Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
    // summary = Summary(value=[Summary.Value(tag=t, simple_value=v) for t, v in values])
    // writer.write(Event(wall_time=1.7e9 + 0.25, step=300, summary=summary).SerializeToString())
    // print(file.getvalue().hex())
    // ```
    #[test]
    fn the_file_is_what_tensorboard_writes() {
        let theirs = "\
         1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced \
         8f9de0000000000000002b490eb70900001040fc54d94110ac022ad1010a0f0a086163637572 \
         616379150000003f0a0b0a046c6f737315000000400a240a1d657073696c6f6e2f70726f7661 \
         626c655f776f7273745f64657669636515000040400a1e0a177369676d612f61727469666963 \
         69616c5f6d656469616e150000003f0a1b0a147369676d612f6368616e6e656c5f6d65646961 \
         6e150000803e0a1c0a157369676d612f72657175697265645f6d656469616e150000803f0a19 \
         0a12726f756e642f75706c696e6b5f62797465731500007a440a150a0e726f756e642f656e65 \
         7267795f6a150000003e8692ad70";
        let ours = events(1.7e9, &[record(300, &[3.0])]);
        let ours: String = ours.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(ours, theirs.replace(' ', ""));
    }

    #[test]
    fn what_is_spent_is_the_worst_devices_so_far_and_never_rounded_down() {
        let mut worst = None;
        let mut spent = |devices: &[f64]| {
            let scalars = scalars(&record(1, devices), &mut worst);
            scalars.iter().find(|(tag, _)| tag.starts_with("epsilon")).map(|(_, value)| *value)
        };
        assert_eq!(spent(&[]), None);
        assert_eq!(spent(&[1.0, 3.0]), Some(3.0));
        assert_eq!(spent(&[2.0]), Some(3.0));
        let fine = 3.0 + 1e-12;
        assert_eq!(spent(&[fine]), Some(3.0f32.next_up()));
        assert_eq!(spent(&[f64::INFINITY]), Some(f32::INFINITY));
    }
}
