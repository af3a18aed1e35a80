//! What is printed at the end of a run.

use std::path::Path;

use lapa::budget::{PrivacySummary, round_up};
use lapa::observe::DeviceRecords;
use lapa::run::{Summary, SwitchingRound, UnderNoised};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Format, table};

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
            "links: SINR {} to {} dB, median {}; symbol error rate {:.1e} to {:.1e}, median {:.1e}; \
             {} devices sent in the last round\n",
            db(sinr.min),
            db(sinr.max),
            db(sinr.median),
            ser.min,
            ser.max,
            ser.median,
            summary.count,
        );
    }
    let header = [">device", ">SINR dB", ">SER", "sends", ">weight", ">σ artificial", ">σ channel"];
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
    format!("links in the last round (`lapa link` tells more):\n{}", table(&header, &rows))
}

pub fn finished(
    summary: &Summary,
    links: &str,
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
        "\n{links}accuracy {percent} on the test set, loss {loss}, after {} rounds in {:.1} s\n\
         sent {:.1} MB up, {:.1} MB down by {} devices{}\n\
         {}{}\n\
         everything is in {}: plots/accuracy.svg, metrics.jsonl, model.safetensors\n",
        summary.rounds,
        summary.seconds,
        megabytes(summary.uplink_bytes),
        megabytes(summary.downlink_bytes),
        summary.devices,
        air(summary),
        noise_control(summary),
        privacy(&summary.privacy),
        folder.display(),
    ))
}

/// When the channel's noise took over, and who had too little; nothing where it never does.
fn noise_control(summary: &Summary) -> String {
    let Some(switching_round) = &summary.switching_round else { return String::new() };
    let mut text = match switching_round {
        SwitchingRound::All(round) => format!("last round with artificial noise: {round}"),
        SwitchingRound::Each(_) => match switching_round.spread() {
            Some([least, median, most]) => format!(
                "last round with artificial noise, over the devices: {least} to {most}, median \
                 {median}"
            ),
            None => "no device sent".into(),
        },
    };
    text += &format!(", of {}", summary.rounds);
    if let UnderNoised { device_rounds: count @ 1.., worst_factor: Some(worst) } =
        summary.under_noised
    {
        text += &format!(
            "\nunder-noised: {count} releases had less noise than asked for, the worst {} times \
             less",
            round_up(worst)
        );
    }
    text + "\n"
}

/// What the radio cost.
fn air(summary: &Summary) -> String {
    let silent = match summary.outages {
        0 => String::new(),
        outages => format!("; told {outages} times not to send, for a bad link"),
    };
    match summary.airtime_s {
        0.0 => silent,
        seconds => format!("; {seconds:.2} s on the air, {:.3} J{silent}", summary.energy_j),
    }
}

/// The figures and what they mean, wrapped.
fn privacy(summary: &PrivacySummary) -> String {
    let figures = format!(
        "privacy: ε provable {}, spent (ex post) {}{}; δ {:e}\n  the paper's sum: worst device {}, \
         all devices {}",
        round_up(summary.epsilon_provable),
        round_up(summary.epsilon_spent),
        match summary.epsilon_without_channel > summary.epsilon_spent {
            true => format!(
                " ({} if no channel noise is counted)",
                round_up(summary.epsilon_without_channel)
            ),
            false => String::new(),
        },
        summary.delta,
        round_up(summary.epsilon_claimed_worst),
        round_up(summary.epsilon_claimed_total),
    );
    let mut text = figures + "\n ";
    let mut width = 1;
    for word in summary.privacy.split(' ') {
        if width + word.chars().count() >= 98 {
            text += "\n ";
            width = 1;
        }
        text += " ";
        text += word;
        width += word.chars().count() + 1;
    }
    text
}

pub fn stopped(what: &str, folder: &Path, format: Format) -> Result<(), Failure> {
    let folder = folder.display().to_string();
    let command = format!("lapa run --resume {folder}");
    match format {
        Format::Json => output::json(
            &json!({ "stopped": true, "what": what, "folder": folder, "resume": command }),
        ),
        Format::Text => output::text_out(&format!("\n{what}; go on with: {command}\n")),
    }
}

/// The most memory this process has held, where the system tells (Linux).
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1e3)
}
