//! The plots of a run.

use std::path::{Path, PathBuf};

use super::{Figure, PlotError, Series, StackedBars};
use crate::observe::RoundRecord;

/// Draws `accuracy` and `loss` over the rounds into `dir`, as SVG and PNG; a curve without a single
/// finite value is left out. Returns the files written.
pub fn plot_run(records: &[RoundRecord], dir: &Path) -> Result<Vec<PathBuf>, PlotError> {
    let curve = |value: fn(&RoundRecord) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = records.iter().filter_map(|r| Some((f64::from(r.round), value(r)?)));
        points.filter(|(_, value)| value.is_finite()).collect()
    };
    let plots = [
        (
            "accuracy",
            Figure::new("Test accuracy", "Round", "Accuracy").percent(),
            curve(|r| r.accuracy),
        ),
        ("loss", Figure::new("Test loss", "Round", "Cross-entropy"), curve(|r| r.loss)),
    ];
    let mut written = Vec::new();
    for (name, figure, points) in plots {
        if !points.is_empty() {
            written.extend(figure.line(Series::new(name, points)).save(&dir.join(name))?);
        }
    }
    Ok(written)
}

/// Draws the samples per label of each device, as stacked bars, to `stem.svg` and `stem.png`.
/// A row holds the samples of one device for each label.
pub fn plot_partition(rows: &[Vec<u32>], stem: &Path) -> Result<[PathBuf; 2], PlotError> {
    let labels = rows.iter().map(Vec::len).max().unwrap_or(0);
    let names = (0..labels).map(|label| label.to_string());
    let empty =
        StackedBars::new("Samples per label on each device", "Device", "Samples", "Label", names);
    let bars = rows.iter().enumerate().fold(empty, |bars, (device, counts)| {
        bars.bar(device.to_string(), counts.iter().map(|&count| f64::from(count)).collect())
    });
    bars.save(stem)
}
