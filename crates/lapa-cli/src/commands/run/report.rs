//! Summary of a run, printed at its end.

use std::path::Path;
use std::process::ExitCode;

use lapa::budget::{PrivacySummary, round_up};
use lapa::observe::{DeviceRecord, DeviceRecords};
use lapa::run::{Summary, SwitchingRound, UnderNoised};
use lapa_study::report::accuracy::worst;
use lapa_study::report::privacy::PrivacyFigures;
use serde_json::json;

use super::Screen;
use crate::failure::CommandResult;
use crate::output::{self, Column, Format, count};

/// The links of the last round, for all devices up to a screenful; nothing without radio.
pub fn link_table(devices: &DeviceRecords) -> String {
    const MOST_ROWS: usize = 30;
    let summary = devices.summary();
    let (Some(sinr), Some(ser)) = (summary.sinr_db, summary.ser) else { return String::new() };
    if sinr.min.is_infinite() && sinr.min > 0.0 {
        return String::new();
    }
    let rows = match devices {
        DeviceRecords::List(list) if list.len() <= MOST_ROWS => list.as_slice(),
        _ => &[],
    };
    if rows.is_empty() {
        return format!(
            "Links in the last round: SINR {:.1} to {:.1} dB, median {:.1}; symbol error rate {:.1e} \
             to {:.1e}, median {:.1e}; {} transmitted\n",
            sinr.min,
            sinr.max,
            sinr.median,
            ser.min,
            ser.max,
            ser.median,
            count(summary.count as usize, "device"),
        );
    }
    let columns: [Column<DeviceRecord>; 7] = [
        (">device", |device| device.device.to_string()),
        (">SINR (dB)", |device| format!("{:.1}", device.sinr_db)),
        (">SER", |device| format!("{:.1e}", device.ser)),
        ("sends", |device| if device.selected { "yes" } else { "no" }.into()),
        (">weight", |device| format!("{:.3}", device.weight)),
        (">σ artificial", |device| format!("{:.2e}", device.sigma_artificial)),
        (">σ channel", |device| format!("{:.2e}", device.sigma_channel)),
    ];
    let table = output::columns(rows, &columns);
    format!("Links in the last round (details: `lapa link`):\n{table}")
}

pub fn finished(
    summary: &Summary,
    screen: &Screen,
    folder: &Path,
    format: Format,
) -> CommandResult {
    let mut value = serde_json::to_value(summary)?;
    value["folder"] = json!(folder);
    value["peak_memory_mb"] = json!(peak_memory_mb());
    output::print(format, &value, || text(summary, screen, folder))
}

fn text(summary: &Summary, screen: &Screen, folder: &Path) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let percent = summary.accuracy.map_or("–".into(), |a| format!("{:.2} %", 100.0 * a));
    let loss = summary.loss.map_or("–".into(), |loss| format!("{loss:.4}"));
    format!(
        "\n{}Test accuracy {percent}, loss {loss} after {} in {:.1} s\n\
         {}Uplink {:.1} MB, downlink {:.1} MB, {}{}\n\
         {}{}\n\
         Results: {10}. Next: lapa report {10}\n",
        screen.links,
        count(summary.rounds as usize, "round"),
        summary.seconds,
        worst(summary).iter().map(|line| format!("{line}\n")).collect::<String>(),
        megabytes(summary.uplink_bytes),
        megabytes(summary.downlink_bytes),
        count(summary.devices as usize, "device"),
        air(summary),
        noise_control(summary),
        privacy(&summary.privacy, &screen.protection, folder),
        folder.display(),
    )
}

/// Last round with artificial noise, and the shortfall of noise; nothing without noise control.
fn noise_control(summary: &Summary) -> String {
    let Some(switching_round) = &summary.switching_round else { return String::new() };
    let mut text = match (switching_round, switching_round.spread()) {
        (SwitchingRound::All(round), _) => format!("Last round with artificial noise: {round}"),
        (_, Some([least, median, most])) => format!(
            "Last round with artificial noise: {least} to {most} over the devices, median {median}"
        ),
        (_, None) => "No device transmitted".into(),
    };
    text += &format!(", of {}", summary.rounds);
    if let UnderNoised { device_rounds: releases @ 1.., worst_factor: Some(worst) } =
        summary.under_noised
    {
        text += &format!(
            "\n{} had less noise than required, the worst {} times less",
            count(releases as usize, "release"),
            round_up(worst)
        );
    }
    text + "\n"
}

/// Cost of the radio.
fn air(summary: &Summary) -> String {
    let silent = match summary.outages {
        0 => String::new(),
        outages => format!("; {} skipped (weak link)", count(outages as usize, "transmission")),
    };
    match summary.airtime_s {
        0.0 => silent,
        seconds => {
            format!("; airtime {seconds:.2} s; radiated energy {:.3} J{silent}", summary.energy_j)
        }
    }
}

/// The figures in one line, and in another what is protected against whom, if anything is proven.
fn privacy(summary: &PrivacySummary, protection: &str, folder: &Path) -> String {
    let protection = if summary.epsilon_provable.is_finite() { protection } else { "" };
    let separator = if protection.is_empty() { "" } else { "; " };
    format!(
        "{}\n{protection}{separator}details: lapa explain {}",
        PrivacyFigures::from(summary).line(),
        folder.display()
    )
}

pub fn stopped(what: &str, folder: &Path, format: Format) -> CommandResult {
    let folder = folder.display().to_string();
    let command = format!("lapa run --resume {folder}");
    let value = json!({ "stopped": true, "what": what, "folder": folder, "resume": command });
    output::print(format, &value, || format!("\n{what}; continue with: {command}\n"))?;
    Ok(ExitCode::FAILURE)
}

/// The most memory this process has held, where the system tells (Linux).
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1e3)
}
