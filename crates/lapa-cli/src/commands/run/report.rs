//! What is printed at the end of a run.

use std::path::Path;

use lapa::budget::{PrivacySummary, round_up};
use lapa::observe::DeviceRecords;
use lapa::run::{Summary, SwitchingRound, UnderNoised};
use serde_json::json;

use super::Screen;
use crate::commands::explain::Figures;
use crate::failure::Failure;
use crate::output::{self, Format, count, table};

/// The links of the last round, for all devices up to a screenful; nothing without radio.
pub fn link_table(devices: &DeviceRecords) -> String {
    const MOST_ROWS: usize = 30;
    let summary = devices.summary();
    let db = |db: f64| format!("{db:.1}");
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
            "Links in the last round: SINR {} to {} dB, median {}; symbol error rate {:.1e} to {:.1e}, \
             median {:.1e}; {} transmitted\n",
            db(sinr.min),
            db(sinr.max),
            db(sinr.median),
            ser.min,
            ser.max,
            ser.median,
            count(summary.count as usize, "device"),
        );
    }
    let header =
        [">device", ">SINR (dB)", ">SER", "sends", ">weight", ">σ artificial", ">σ channel"];
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|device| {
            vec![
                device.device.to_string(),
                db(device.sinr_db),
                format!("{:.1e}", device.ser),
                if device.selected { "yes" } else { "no" }.into(),
                format!("{:.3}", device.weight),
                format!("{:.2e}", device.sigma_artificial),
                format!("{:.2e}", device.sigma_channel),
            ]
        })
        .collect();
    format!("Links in the last round (details: `lapa link`):\n{}", table(&header, &rows))
}

pub fn finished(
    summary: &Summary,
    screen: &Screen,
    folder: &Path,
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Json {
        let mut value = serde_json::to_value(summary).map_err(Failure::failed)?;
        value["folder"] = json!(folder);
        value["peak_memory_mb"] = json!(peak_memory_mb());
        return output::json(&value);
    }
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let percent = summary.accuracy.map_or("–".into(), |a| format!("{:.2} %", 100.0 * a));
    let loss = summary.loss.map_or("–".into(), |loss| format!("{loss:.4}"));
    output::text_out(&format!(
        "\n{}Test accuracy {percent}, loss {loss} after {} in {:.1} s\n\
         Uplink {:.1} MB, downlink {:.1} MB, {}{}\n\
         {}{}\n\
         Results: {9}. Next: lapa report {9}\n",
        screen.links,
        count(summary.rounds as usize, "round"),
        summary.seconds,
        megabytes(summary.uplink_bytes),
        megabytes(summary.downlink_bytes),
        count(summary.devices as usize, "device"),
        air(summary),
        noise_control(summary),
        privacy(&summary.privacy, &screen.protection, folder),
        folder.display(),
    ))
}

/// When the channel's noise took over, and who had too little; nothing where it never does.
fn noise_control(summary: &Summary) -> String {
    let Some(switching_round) = &summary.switching_round else { return String::new() };
    let mut text = match switching_round {
        SwitchingRound::All(round) => format!("Last round with artificial noise: {round}"),
        SwitchingRound::Each(_) => match switching_round.spread() {
            Some([least, median, most]) => format!(
                "Last round with artificial noise: {least} to {most} over the devices, median {median}"
            ),
            None => "No device transmitted".into(),
        },
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

/// What the radio cost.
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

/// The figures in one line, and in another what is protected against whom.
fn privacy(summary: &PrivacySummary, protection: &str, folder: &Path) -> String {
    let separator = if protection.is_empty() { "" } else { "; " };
    format!(
        "{}\n{protection}{separator}details: lapa explain {}",
        Figures::from(summary).line(),
        folder.display()
    )
}

pub fn stopped(what: &str, folder: &Path, format: Format) -> Result<(), Failure> {
    let folder = folder.display().to_string();
    let command = format!("lapa run --resume {folder}");
    match format {
        Format::Json => output::json(
            &json!({ "stopped": true, "what": what, "folder": folder, "resume": command }),
        ),
        Format::Text => output::text_out(&format!("\n{what}; continue with: {command}\n")),
    }
}

/// The most memory this process has held, where the system tells (Linux).
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1e3)
}
