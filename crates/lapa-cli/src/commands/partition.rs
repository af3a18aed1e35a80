//! `lapa partition`: who holds which samples, as a table and a plot.

use std::path::{Path, PathBuf};

use clap::Args;
use lapa::observe::Quantiles;
use lapa::partition::{Records, Row};
use serde_json::json;

use crate::failure::{CommandResult, Failure};
use crate::output::{self, Formatted, MOST_LISTED, PlotFolder, count, paths};
use crate::progress::{Mode, patiently};

/// Show how the samples and labels are split over the devices.
///
/// Prints a table and draws partition.svg and partition.png. Without CONFIG it shows the partition
/// of the quickstart.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    #[command(flatten)]
    plots: PlotFolder,
    #[command(flatten)]
    formatted: Formatted,
    /// List all devices; else, of more than 60 (1,000 as JSON), those with the most and the fewest
    /// samples, and quantiles.
    #[arg(long)]
    all: bool,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let mode = Mode::choose(false);
    let (experiment, mut data) = arguments.source.prepare(None, mode)?;
    let (scheme, seed) = (&experiment.partition.scheme, experiment.run.seed);
    let records = patiently(mode, "partitioning the samples", || {
        Records::new(&**scheme, experiment.partition.skew(), &mut data, seed)
    })?;
    let labels = &data.train.labels;
    let sizes: Vec<f64> = records.sizes().into_iter().map(f64::from).collect();
    let row = |device: usize| records.row(device as u32, labels, data.classes);
    let all = arguments.all;
    let rows: Vec<Row> = output::listed(&sizes, all).into_iter().map(row).collect();
    let plots = patiently(mode, "drawing", || draw(&rows, &sizes, &arguments.plots.out))?;
    let samples: f64 = sizes.iter().sum();
    let value = json!({
        "devices": rows,
        "count": sizes.len(),
        "samples": samples as u64,
        "sizes": Quantiles::of(sizes.iter().copied()),
        "plots": plots,
    });
    output::print(arguments.formatted.format, &value, || {
        text(data.classes, (&sizes, all), row, &plots)
    })
}

fn draw(rows: &[Row], sizes: &[f64], folder: &Path) -> Result<[PathBuf; 2], Failure> {
    super::create_folder(folder)?;
    let stem = folder.join("partition");
    // Of more, bars would be thinner than a line.
    if sizes.len() > MOST_LISTED {
        return Ok(lapa_report::plot::plot_sizes(sizes, &stem)?);
    }
    let counts: Vec<Vec<u32>> = rows.iter().map(|row| row.label_counts.clone()).collect();
    Ok(lapa_report::plot::plot_partition(&counts, &stem)?)
}

/// Samples, and the share of each label in percent.
fn text(
    labels: usize,
    (sizes, all): (&[f64], bool),
    row: impl Fn(usize) -> Row,
    plots: &[PathBuf; 2],
) -> String {
    let titles: Vec<String> = (0..labels).map(|label| format!(">{label}")).collect();
    let mut header = vec![">device", "kind", ">samples"];
    header.extend(titles.iter().map(String::as_str));
    let cells = |device| {
        let row = row(device);
        let mut cells = vec![row.device.to_string(), row.kind.into(), row.samples.to_string()];
        cells.extend(row.label_counts.iter().map(|&count| match count {
            0 => "·".into(),
            _ => format!("{:.0}%", 100.0 * f64::from(count) / f64::from(row.samples)),
        }));
        cells
    };
    let by: output::By = ("number of samples", |size| size.to_string());
    let (table, total) =
        (output::bounded(&header, sizes, all, by, cells), sizes.iter().sum::<f64>());
    let devices = count(sizes.len(), "device");
    table + &format!("{total} samples on {devices}; plots: {}\n", paths(plots))
}
