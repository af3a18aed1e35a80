//! The plots of a run.

use std::path::{Path, PathBuf};

use super::{Figure, PlotError, Series, StackedBars};
use lapa::files::Folder;
use lapa::observe::{DeviceSummary, Quantiles, RoundRecord};

/// Draws `accuracy`, `loss`, `noise` and `privacy` over the rounds into `dir`, as SVG and PNG; a
/// plot without a single finite value is left out. `initial_sigma` is σ₀, if the run was set by
/// it. Returns the files written.
pub fn plot_run(
    records: &[RoundRecord],
    initial_sigma: Option<f64>,
    dir: &Folder,
) -> Result<Vec<PathBuf>, PlotError> {
    let rounds = || records.iter().map(|record| (f64::from(record.round), record));
    let curve = |value: fn(&RoundRecord) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = rounds().filter_map(|(round, record)| Some((round, value(record)?)));
        points.filter(|(_, value)| value.is_finite()).collect()
    };
    let devices: Vec<(f64, DeviceSummary)> =
        rounds().map(|(round, record)| (round, record.devices.summary())).collect();
    let noise = devices.iter().filter_map(|(round, summary)| {
        let sigma = summary.sigma_artificial.filter(|sigma| sigma.max > 0.0)?;
        Some((*round, sigma.median, [sigma.min, sigma.max]))
    });
    let noise: Vec<_> = noise.collect();
    let worst = |value: fn(&DeviceSummary) -> Option<Quantiles>| -> Vec<(f64, f64)> {
        let points = devices.iter().filter_map(|(round, s)| Some((*round, value(s)?.max)));
        points.filter(|(_, epsilon)| epsilon.is_finite()).collect()
    };
    let (provable, claimed) = (worst(|s| s.spent_provable), worst(|s| s.spent_claimed));
    let channel: Vec<(f64, f64)> = devices
        .iter()
        .filter_map(|(round, summary)| Some((*round, summary.sigma_channel?.median)))
        .filter(|(_, sigma)| *sigma > 0.0)
        .collect();
    let mut noise_title = if channel.is_empty() {
        "Artificial noise".to_owned()
    } else {
        "Artificial and channel noise".into()
    };
    if let Some(sigma) = initial_sigma {
        noise_title += &format!(", σ₀ = {sigma}");
    }
    // Where the channel's noise stands in for artificial noise the two differ.
    let differs =
        |(_, summary): &(f64, DeviceSummary)| summary.sigma_required != summary.sigma_artificial;
    let required: Vec<(f64, f64)> = if devices.iter().any(differs) {
        devices
            .iter()
            .filter_map(|(round, summary)| Some((*round, summary.sigma_required?.median)))
            .filter(|(_, sigma)| *sigma > 0.0)
            .collect()
    } else {
        Vec::new()
    };

    let mut figures = Vec::new();
    let accuracy = curve(|record| record.accuracy);
    if !accuracy.is_empty() {
        let figure = Figure::new("Test accuracy", "Round", "Accuracy").percent();
        figures.push(("accuracy", figure.line(Series::new("accuracy", accuracy))));
    }
    let loss = curve(|record| record.loss);
    if !loss.is_empty() {
        let figure = Figure::new("Test loss", "Round", "Cross-entropy");
        figures.push(("loss", figure.line(Series::new("loss", loss))));
    }
    // Without privacy the channel's noise is no subject here.
    let (asked, any) = (!required.is_empty(), !noise.is_empty());
    if any || asked {
        let mut figure =
            Figure::new(noise_title, "Round", "σ per coordinate (median, min–max)").log_y();
        if any {
            figure = figure.line(Series::with_band("artificial", noise));
        }
        if !channel.is_empty() {
            figure = figure.line(Series::new("channel", channel));
        }
        if asked {
            figure = figure.line(Series::new("required", required));
        }
        figures.push(("noise", figure));
    }
    if !provable.is_empty() && !claimed.is_empty() {
        let figure =
            Figure::new("Privacy loss of the worst device", "Round", "ε spent so far").log_y();
        let figure = figure
            .line(Series::new("proven", provable))
            .line(Series::new("the paper's sum", claimed));
        figures.push(("privacy", figure));
    }
    let mut written = Vec::new();
    for (name, figure) in figures {
        written.extend(figure.save_in(dir, name)?);
    }
    Ok(written)
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
