//! `lapa partition`: who holds which samples, as a table and a plot.

use std::path::{Path, PathBuf};

use clap::Args;
use lapa::partition::{Records, Row};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, count, paths, table};
use crate::progress::{Mode, patiently};

/// Show how the samples and labels are split over the devices.
///
/// Prints a table and draws partition.svg and partition.png. Without CONFIG it shows the partition
/// of the quickstart.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    /// Folder for the plots.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Devices shown in the text table before the rest is only counted.
const MOST_ROWS: usize = 60;

/// Devices of scheme virtual that are listed and drawn.
const MOST_DRAWN: usize = 1000;

pub fn execute(arguments: Arguments) -> Outcome {
    let mode = Mode::choose(false);
    let (experiment, data) = arguments.source.prepare(None, mode)?;
    let (scheme, seed) = (&experiment.partition.scheme, experiment.run.seed);
    let labels = &data.train.labels;
    let records = patiently(mode, "partitioning the samples", || {
        Records::new(&**scheme, labels, data.classes, seed)
    })?;
    let rows = records.rows(labels, data.classes, MOST_DRAWN);
    let total = records.sizes().into_iter().map(u64::from).sum();
    let plots = patiently(mode, "drawing", || draw(&rows, &arguments.out))?;
    let value = json!({ "devices": rows, "samples": total, "plots": plots });
    let all = (records.devices(), total);
    output::print(arguments.format, &value, || text(&rows, all, &plots))
}

fn draw(rows: &[Row], folder: &Path) -> Result<[PathBuf; 2], Failure> {
    super::create_folder(folder)?;
    let counts: Vec<Vec<u32>> = rows.iter().map(|row| row.label_counts.clone()).collect();
    Ok(lapa_report::plot::plot_partition(&counts, &folder.join("partition"))?)
}

/// Samples, and the share of each label in percent.
fn text(rows: &[Row], (devices, total): (usize, u64), plots: &[PathBuf; 2]) -> String {
    let labels = rows.first().map_or(0, |row| row.label_counts.len());
    let titles: Vec<String> = (0..labels).map(|label| format!(">{label}")).collect();
    let mut header = vec![">device", "kind", ">samples"];
    header.extend(titles.iter().map(String::as_str));
    let shown: Vec<Vec<String>> = rows
        .iter()
        .take(MOST_ROWS)
        .map(|row| {
            let mut cells = vec![row.device.to_string(), row.kind.into(), row.samples.to_string()];
            cells.extend(row.label_counts.iter().map(|&count| match count {
                0 => "·".into(),
                _ => format!("{:.0}%", 100.0 * f64::from(count) / f64::from(row.samples)),
            }));
            cells
        })
        .collect();
    let mut text = table(&header, &shown);
    if devices > MOST_ROWS {
        text.push_str(&format!("… and {}\n", count(devices - MOST_ROWS, "more device")));
    }
    let devices = count(devices, "device");
    text + &format!("{total} samples on {devices}; plots: {}\n", paths(plots))
}
