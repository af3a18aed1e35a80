//! The plots of who gains and who loses: classes and devices.

use std::path::PathBuf;

use lapa::files::Folder;
use lapa::model::Confusion;
use lapa::observe::DeviceAccuracy;

use super::heat::heat_map;
use super::{PlotError, StackedBars, save_in};

/// Draws `confusion` and `classes` into `dir`, as SVG and PNG. Returns the files written.
pub fn plot_classes(matrix: &Confusion, dir: &Folder) -> Result<Vec<PathBuf>, PlotError> {
    let title = "Test samples by class, in percent of the class";
    let stem = dir.path().join("confusion");
    let mut written = save_in(heat_map(matrix, title), dir, &stem)?.to_vec();
    let known = matrix.class_accuracy().into_iter().enumerate();
    let bars = known.filter_map(|(class, share)| Some((class.to_string(), share?)));
    written.extend(draw("Accuracy of the classes", "Class", bars, dir, "classes")?);
    Ok(written)
}

/// Draws `devices` into `dir`, as SVG and PNG: the devices from the worst to the best. Returns the
/// files written.
pub fn plot_devices(all: &DeviceAccuracy, dir: &Folder) -> Result<Vec<PathBuf>, PlotError> {
    let bars = all.devices.iter().map(|one| (one.device.to_string(), one.accuracy));
    let label = if all.is_cut() { "Device (the ten worst, the ten best)" } else { "Device" };
    draw(
        "Accuracy of the devices for their own labels (simulation only)",
        label,
        bars,
        dir,
        "devices",
    )
}

/// Bars of shares; no plot where all are 0.
fn draw(
    title: &str,
    label: &str,
    bars: impl Iterator<Item = (String, f64)>,
    dir: &Folder,
    name: &str,
) -> Result<Vec<PathBuf>, PlotError> {
    let empty = StackedBars::new(title, label, "Accuracy", "", ["accuracy".to_owned()]).percent();
    let bars = bars.fold(empty, |bars, (name, share)| bars.bar(name, vec![share]));
    match bars.save_in(dir, name) {
        Ok(files) => Ok(files.to_vec()),
        Err(PlotError::NoPoints { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
