//! The plots of radio links.

use std::path::{Path, PathBuf};

use super::scatter::{Marker, Scatter};
use super::{Figure, PlotError, Series, style};
use lapa::config::RegionSpec;
use lapa::observe::Quantiles;
use lapa::radio::{Link, Links};

/// Most devices that are drawn; of more, an even selection.
const MOST_POINTS: usize = 2000;

/// Symbol error rates by decade: at most this, and its color.
const CLASSES: [(f64, &str, &str); 4] = [
    (1e-3, "≤ 0.001", style::LINES[0]),
    (1e-2, "≤ 0.01", style::LINES[2]),
    (1e-1, "≤ 0.1", style::LINES[4]),
    (f64::INFINITY, "above 0.1", style::LINES[1]),
];

/// Symbol error rates below this are drawn as this.
const LEAST_SER: f64 = 1e-6;

/// Draws where devices and base station are, seen from above, with the symbol error rates of
/// `links`, to `stem.svg` and `stem.png`.
pub fn plot_links(
    places: &Links,
    links: &[Link],
    regions: &[RegionSpec],
    stem: &Path,
) -> Result<[PathBuf; 2], PlotError> {
    let every = links.len().div_ceil(MOST_POINTS).max(1);
    let title = match every {
        1 => "Map of the radio links".into(),
        _ => {
            let shown = links.len().div_ceil(every);
            format!("Map of the radio links ({shown} of {} devices)", links.len())
        }
    };
    let class = |link: &Link| CLASSES.iter().position(|&(most, ..)| link.ser <= most);
    let mut groups: [Vec<[f64; 2]>; CLASSES.len()] = Default::default();
    for link in links.iter().step_by(every) {
        let position = places.placement(link.device).position;
        if let Some(class) = class(link) {
            groups[class].push([position.x.0, position.y.0]);
        }
    }
    let base = places.base_station();
    let mut plot = Scatter::new(title, "x (m)", "y (m)", "Symbol error rate");
    for region in regions {
        plot = plot.rectangle("", region.x, region.y);
    }
    for ((_, name, color), points) in CLASSES.into_iter().zip(groups) {
        plot = plot.group(name, color, Marker::Dot, points);
    }
    plot.group("base station", style::LINES[6], Marker::Triangle, [[base.x.0, base.y.0]]).save(stem)
}

/// Draws symbol error rates over something that was varied, with lines at `thresholds`, to
/// `stem.svg` and `stem.png`. A point is (x, rates over the devices).
pub fn plot_sweep(
    x_label: &str,
    log_x: bool,
    points: &[(f64, Quantiles)],
    thresholds: &[f64],
    stem: &Path,
) -> Result<[PathBuf; 2], PlotError> {
    let shown = |ser: f64| ser.max(LEAST_SER);
    let curve =
        points.iter().map(|(x, ser)| (*x, shown(ser.median), [ser.min, ser.max].map(shown)));
    let y_label = "Symbol error rate (median, min–max; floor 10⁻⁶)";
    let mut figure = Figure::new("Symbol error rate of the devices", x_label, y_label).log_y();
    if log_x {
        figure = figure.log_x();
    }
    for &ser in thresholds.iter().filter(|&&ser| ser >= LEAST_SER) {
        figure = figure.level(format!("SER {ser}"), ser);
    }
    figure.line(Series::with_band("SER", curve)).save(stem)
}
