//! ε spent in a ledger, per device and on both bases.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use lapa::budget::round_up;
use lapa::observe::Quantiles;
use lapa_privacy::ledger::Ledger;
use serde_json::{Value, json};

use super::devices::{Devices, Row};
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Few, Format, count as count_of, or_dash, wrap};

/// Meaning of the figures, in words.
const MEANING: [(&str, &str); 3] = [
    (
        "declared",
        "the largest budget that was enforced (∞ if none was), the guarantee unless a later run raised it \
         after an earlier run's releases were seen",
    ),
    ("claimed", "the paper's ε, summed over the releases of this device"),
    (
        "provable",
        "ε of the recorded releases by the tightest accountant that applies; for a schedule that was \
         chosen adaptively it is an odometer reading, not a guarantee",
    ),
];

/// Width of a column whose rows are not known before they are printed.
const WIDTH: usize = 11;

pub fn execute(path: &Path, all: bool, format: Format) -> CommandResult {
    // The folder of a run has its ledger inside.
    let inside = path.join("ledger.db");
    let path = if inside.is_file() { &inside } else { path };
    let ledger = Ledger::open_read_only(path)?;
    let declarations = ledger.declarations()?;
    let devices = Devices::new(&ledger, &declarations);
    let mut summary = Summary::default();
    if all {
        begin(path, format)?;
        devices.each(true, |row| {
            let separator = if summary.provable.is_empty() { "" } else { ",\n" };
            summary.add(&row);
            match format {
                Format::Json => {
                    output::text_out(&(separator.to_owned() + &serde_json::to_string(&row)?))
                }
                Format::Text => output::text_out(&line(cells(&row))),
            }
        })?;
        return end(&summary, format);
    }
    let mut few = Few::default();
    // Those without releases are listed if all fit a table.
    devices.each(devices.count <= output::MOST_ROWS, |row| {
        summary.add(&row);
        few.add(row.provable, row);
        Ok(())
    })?;
    summary.unlisted = devices.count.saturating_sub(summary.provable.len());
    let mut value = head(path);
    value["devices"] = json!(few.items());
    if let (Value::Object(value), Value::Object(more)) = (&mut value, summary.json()) {
        value.extend(more);
    }
    output::print(format, &value, || text(path, &few, &summary))
}

/// Figures over all devices.
#[derive(Default)]
struct Summary {
    /// Provable ε of each device that was read.
    provable: Vec<f64>,
    /// Largest ε if no noise of the channel is counted.
    without_channel: f64,
    /// Devices that declared a budget, released nothing and were not read.
    unlisted: usize,
}

impl Summary {
    fn add(&mut self, row: &Row) {
        self.provable.push(row.provable);
        self.without_channel = self.without_channel.max(row.without_channel);
    }

    fn json(&self) -> Value {
        let provable = Quantiles::of(self.provable.iter().copied());
        json!({ "count": self.provable.len(), "provable": provable, "unlisted": self.unlisted })
    }

    /// Lines below the table.
    fn text(&self) -> String {
        let heading = |name| if name == "claimed" { "paper's sum" } else { name };
        let meaning: Vec<String> =
            MEANING.iter().map(|(name, words)| format!("{}: {words}.", heading(name))).collect();
        let words = format!("ε at the declared δ of each device. {}", meaning.join(" "));
        let mut text = match self.unlisted {
            0 => String::new(),
            silent => {
                let devices = count_of(silent, "more device");
                format!("{devices} declared a budget and released nothing\n")
            }
        };
        text += &format!("\n{}\n", wrap(&words, ""));
        let provable = self.provable.iter().copied().fold(0.0, f64::max);
        if self.without_channel > provable {
            let channel = format!(
                "Channel noise is counted as far as the runs trust it (privacy.channel_trust); \
                 without it the worst device has ε = {} instead of {}.",
                round_up(self.without_channel),
                round_up(provable)
            );
            text += &format!("{}\n", wrap(&channel, ""));
        }
        text
    }
}

/// Part of the JSON before the devices.
fn head(path: &Path) -> Value {
    json!({ "ledger": path, "meaning": BTreeMap::from(MEANING) })
}

/// Prints what stands before all rows.
fn begin(path: &Path, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => {
            let head = head(path).to_string();
            output::text_out(&format!("{},\"devices\":[\n", &head[..head.len() - 1]))
        }
        Format::Text => {
            let names = line(COLUMNS.map(|(name, _)| name.trim_start_matches('>').to_owned()));
            let rule = line(COLUMNS.map(|_| "─".repeat(WIDTH)));
            output::text_out(&format!("{}\n\n{names}{rule}", path.display()))
        }
    }
}

/// Prints what stands below all rows.
fn end(summary: &Summary, format: Format) -> CommandResult {
    output::text_out(&match format {
        Format::Json => format!("\n],{}\n", &summary.json().to_string()[1..]),
        Format::Text => summary.text(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A row of columns as wide as [`WIDTH`], or as wide as its cells.
fn line(cells: [String; 10]) -> String {
    let cells = cells.map(|cell| format!("{cell:>WIDTH$}"));
    format!("{}\n", cells.join("  "))
}

const COLUMNS: [Column<Row>; 10] = [
    ("data", |row| row.data.chars().take(8).collect()),
    (">device", |row| row.device.to_string()),
    (">runs", |row| row.runs.to_string()),
    (">releases", |row| row.releases.to_string()),
    (">declared", |row| round_up(row.declared)),
    (">paper's sum", |row| round_up(row.claimed)),
    (">provable", |row| round_up(row.provable)),
    (">gdp", |row| or_dash(row.gdp)),
    (">rdp", |row| or_dash(row.rdp)),
    (">pld", |row| or_dash(row.pld)),
];

fn cells(row: &Row) -> [String; 10] {
    COLUMNS.map(|(_, cell)| cell(row))
}

fn text(path: &Path, few: &Few<Row>, summary: &Summary) -> String {
    let header = COLUMNS.map(|(name, _)| name);
    let row =
        |i: usize| few.get(i).map_or_else(|| vec![String::new(); 10], |row| cells(row).into());
    let table = output::bounded(&header, &summary.provable, false, ("provable ε", round_up), row);
    format!("{}\n\n{table}{}", path.display(), summary.text())
}
