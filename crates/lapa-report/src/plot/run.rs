//! The plots of a run.

use std::path::{Path, PathBuf};

use super::{Figure, PlotError, Series, StackedBars};
use lapa::files::Folder;
use lapa::observe::{DeviceSummary, Quantiles, RoundRecord};

/// Points of a curve over the rounds.
type Points = Vec<(f64, f64)>;

/// The devices of each round, summarized.
type Devices = [(f64, DeviceSummary)];

/// Draws `accuracy`, `loss`, `noise` and `privacy` over the rounds into `dir`, as SVG and PNG; a
/// plot without a single finite value is left out. `initial_sigma` is σ₀, if the run was set by
/// it. Returns the files written.
pub fn plot_run(
    records: &[RoundRecord],
    initial_sigma: Option<f64>,
    dir: &Folder,
) -> Result<Vec<PathBuf>, PlotError> {
    let rounds = || records.iter().map(|record| (f64::from(record.round), record));
    let devices: Vec<(f64, DeviceSummary)> =
        rounds().map(|(round, record)| (round, record.devices.summary())).collect();
    let curve = |figure: Figure, name: &str, value: fn(&RoundRecord) -> Option<f64>| {
        let points = rounds().filter_map(|(round, record)| Some((round, value(record)?)));
        let points: Points = points.filter(|(_, value)| value.is_finite()).collect();
        (!points.is_empty()).then(|| figure.line(Series::new(name, points)))
    };
    let accuracy = Figure::new("Test accuracy", "Round", "Accuracy").percent();
    let loss = Figure::new("Test loss", "Round", "Cross-entropy");
    let mut written = Vec::new();
    for (name, figure) in [
        ("accuracy", curve(accuracy, "accuracy", |record| record.accuracy)),
        ("loss", curve(loss, "loss", |record| record.loss)),
        ("noise", noise(&devices, initial_sigma)),
        ("privacy", privacy(&devices)),
    ] {
        if let Some(figure) = figure {
            written.extend(figure.save_in(dir, name)?);
        }
    }
    Ok(written)
}

/// Noise over the rounds; `None` for a run without privacy, where channel noise is no subject.
fn noise(devices: &Devices, initial_sigma: Option<f64>) -> Option<Figure> {
    let artificial = devices.iter().filter_map(|(round, summary)| {
        let sigma = summary.sigma_artificial.filter(|sigma| sigma.max > 0.0)?;
        Some((*round, sigma.median, [sigma.min, sigma.max]))
    });
    let artificial: Vec<_> = artificial.collect();
    let median = |value: fn(&DeviceSummary) -> Option<Quantiles>| -> Points {
        let points = devices.iter().filter_map(|(round, s)| Some((*round, value(s)?.median)));
        points.filter(|(_, sigma)| *sigma > 0.0).collect()
    };
    let channel = median(|summary| summary.sigma_channel);
    // The two differ if the channel's noise stands in for artificial noise.
    let differs = devices.iter().any(|(_, s)| s.sigma_required != s.sigma_artificial);
    let required = if differs { median(|summary| summary.sigma_required) } else { Points::new() };
    if artificial.is_empty() && required.is_empty() {
        return None;
    }
    let title =
        if channel.is_empty() { "Artificial noise" } else { "Artificial and channel noise" };
    let start = initial_sigma.map_or(String::new(), |sigma| format!(", σ₀ = {sigma}"));
    let label = "σ per coordinate (median, min–max)";
    let mut figure = Figure::new(format!("{title}{start}"), "Round", label).log_y();
    if !artificial.is_empty() {
        figure = figure.line(Series::with_band("artificial", artificial));
    }
    for (name, points) in [("channel", channel), ("required", required)] {
        if !points.is_empty() {
            figure = figure.line(Series::new(name, points));
        }
    }
    Some(figure)
}

/// ε of the worst device over the rounds, proven and claimed.
fn privacy(devices: &Devices) -> Option<Figure> {
    let worst = |value: fn(&DeviceSummary) -> Option<Quantiles>| -> Points {
        let points = devices.iter().filter_map(|(round, s)| Some((*round, value(s)?.max)));
        points.filter(|(_, epsilon)| epsilon.is_finite()).collect()
    };
    let (provable, claimed) = (worst(|s| s.spent_provable), worst(|s| s.spent_claimed));
    if provable.is_empty() || claimed.is_empty() {
        return None;
    }
    let figure = Figure::new("Privacy loss of the worst device", "Round", "ε spent so far").log_y();
    let figure = figure.line(Series::new("proven", provable));
    Some(figure.line(Series::new("the paper's sum", claimed)))
}

/// Draws the samples per label of each device, as stacked bars, to `stem.svg` and `stem.png`.
/// A row holds the samples of one device for each label.
pub fn plot_partition(rows: &[Vec<u32>], stem: &Path) -> Result<[PathBuf; 2], PlotError> {
    let labels = rows.iter().map(Vec::len).max().unwrap_or(0);
    let names = (0..labels).map(|label| label.to_string());
    let empty =
        StackedBars::new("Samples per device and label", "Device", "Samples", "Label", names);
    let bars = rows.iter().enumerate().fold(empty, |bars, (device, counts)| {
        bars.bar(device.to_string(), counts.iter().map(|&count| f64::from(count)).collect())
    });
    bars.save(stem)
}

/// Bars of [`plot_sizes`], at most.
const MOST_BARS: f64 = 40.0;

/// Draws how many devices have how many samples, to `stem.svg` and `stem.png`.
pub fn plot_sizes(sizes: &[f64], stem: &Path) -> Result<[PathBuf; 2], PlotError> {
    let bounds = |(low, high): (f64, f64), &size: &f64| (low.min(size), high.max(size));
    let (low, high) = sizes.iter().fold((f64::INFINITY, 0.0), bounds);
    let width = ((high - low + 1.0) / MOST_BARS).ceil().max(1.0);
    let bins = if sizes.is_empty() { 0 } else { ((high - low) / width) as usize + 1 };
    let mut counts = vec![0u32; bins];
    sizes.iter().for_each(|size| counts[((size - low) / width) as usize] += 1);
    let title = format!("Devices by number of samples ({} devices)", sizes.len());
    let part = ["devices".to_owned()];
    let empty = StackedBars::new(title, "Samples, from", "Devices", "", part);
    let bars = (0..).zip(counts).fold(empty, |bars, (bin, count): (u32, _)| {
        bars.bar((low + width * f64::from(bin)).to_string(), vec![f64::from(count)])
    });
    bars.save(stem)
}
