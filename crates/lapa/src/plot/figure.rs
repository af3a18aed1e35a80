//! Curves over a common axis.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kuva::plot::annotations::ReferenceLine;
use kuva::plot::legend::LegendPosition;
use kuva::plot::{BandPlot, LinePlot, ScatterPlot};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;

use super::axis::Axis;
use super::{PlotError, save, style};

/// With as many points or fewer, a curve shows each of them.
const MARKED_POINTS: usize = 30;

/// A point of a curve, perhaps with the lower and upper end of its interval.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: f64,
    y: f64,
    band: Option<[f64; 2]>,
}

/// A named curve.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    points: Vec<Point>,
}

impl Series {
    /// A curve through (x, y) points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, band: None }).collect();
        Self { name: name.into(), points }
    }

    /// A curve through (x, y) with a band between lower and upper around it: (x, y, [lower, upper]).
    pub fn with_band(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64, [f64; 2])>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y, band)| Point { x, y, band: Some(band) });
        Self { name: name.into(), points: points.collect() }
    }
}

/// A plot of curves.
#[derive(Clone, Debug)]
pub struct Figure {
    title: String,
    x_label: String,
    y_label: String,
    series: Vec<Series>,
    levels: Vec<(String, f64)>,
    log_x: bool,
    log_y: bool,
    percent: bool,
}

impl Figure {
    /// A plot without curves yet.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            y_label: y_label.into(),
            series: Vec::new(),
            levels: Vec::new(),
            log_x: false,
            log_y: false,
            percent: false,
        }
    }

    /// Adds a curve. Two or more curves have a legend.
    pub fn line(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a dashed line across the plot at the height `y`, with a label at its end.
    pub fn level(mut self, label: impl Into<String>, y: f64) -> Self {
        self.levels.push((label.into(), y));
        self
    }

    /// Makes the horizontal axis logarithmic; points at or below 0 are left out.
    pub fn log_x(mut self) -> Self {
        self.log_x = true;
        self
    }

    /// Makes the vertical axis logarithmic; points at or below 0 are left out.
    pub fn log_y(mut self) -> Self {
        self.log_y = true;
        self
    }

    /// The values are fractions in [0, 1], shown in percent.
    pub fn percent(mut self) -> Self {
        self.percent = true;
        self
    }

    /// Writes `stem.svg` and `stem.png`. Points that are not finite are left out.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        let curves: Vec<Vec<Point>> = self.series.iter().map(|s| self.drawable(s)).collect();
        let points = curves.iter().flatten();
        if points.clone().next().is_none() {
            return Err(PlotError::NoPoints { stem: stem.into() });
        }
        let values = points.clone().flat_map(|p| p.band.into_iter().flatten().chain([p.y]));
        let levels = self.levels.iter().filter(|(_, y)| on(self.log_y, *y));
        let values = values.chain(levels.clone().map(|(_, y)| *y));
        let plots = self.plots(&curves);
        let layout = Layout::auto_from_plots(&plots);
        let layout = style::apply(layout, &self.title, &self.x_label, &self.y_label);
        let layout = self.with_x_axis(layout, points.map(|p| p.x));
        let mut layout = self.with_y_axis(layout, values);
        for (label, y) in levels {
            let line = ReferenceLine::horizontal(*y).with_label(style::plain(label));
            layout = layout.with_reference_line(line.with_color("#555555"));
        }
        save(plots, layout.with_legend_position(self.legend_position(&curves)), stem)
    }

    /// The points that can be drawn on these axes, their bands cut to what an axis can show.
    fn drawable(&self, series: &Series) -> Vec<Point> {
        let mut points = series.points.clone();
        points.retain(|p| on(self.log_x, p.x) && on(self.log_y, p.y));
        for Point { y, band, .. } in &mut points {
            for end in band.iter_mut().flatten() {
                if self.percent {
                    *end = end.clamp(0.0, 1.0);
                }
                // An end that cannot be drawn shrinks to the curve.
                if !on(self.log_y, *end) {
                    *end = *y;
                }
            }
        }
        points
    }

    fn plots(&self, curves: &[Vec<Point>]) -> Vec<Plot> {
        let (mut bands, mut lines) = (Vec::<Plot>::new(), Vec::<Plot>::new());
        for ((series, points), color) in
            self.series.iter().zip(curves).zip(style::LINES.into_iter().cycle())
        {
            let banded = || points.iter().filter_map(|p| Some((p.x, p.band?)));
            if banded().count() > 1 {
                let band = BandPlot::new(
                    banded().map(|(x, _)| x),
                    banded().map(|(_, [lower, _])| lower),
                    banded().map(|(_, [_, upper])| upper),
                );
                bands.push(band.with_color(color).with_opacity(0.18).into());
            }
            let data = || points.iter().map(|p| (p.x, p.y));
            let mut line =
                LinePlot::new().with_data(data()).with_color(color).with_stroke_width(2.2);
            if self.series.len() > 1 {
                line = line.with_legend(style::plain(&series.name));
            }
            lines.push(line.into());
            if points.len() <= MARKED_POINTS {
                let marks = ScatterPlot::new().with_data(data()).with_color(color).with_size(3.2);
                lines.push(marks.into());
            }
        }
        // Bands first, so that none hides a curve.
        bands.extend(lines);
        bands
    }

    fn with_x_axis(&self, layout: Layout, values: impl Iterator<Item = f64> + Clone) -> Layout {
        if self.log_x {
            let (low, high) = Axis::logarithmic(values);
            return layout.with_log_x().with_x_axis_min(low).with_x_axis_max(high);
        }
        let axis = Axis::horizontal(values);
        layout
            .with_x_axis_min(axis.low)
            .with_x_axis_max(axis.high)
            .with_x_tick_step(axis.step)
            .with_x_tick_format(tick_format(&axis))
    }

    fn with_y_axis(&self, layout: Layout, values: impl Iterator<Item = f64>) -> Layout {
        if self.log_y {
            let (low, high) = Axis::logarithmic(values);
            return layout.with_log_y().with_y_axis_min(low).with_y_axis_max(high);
        }
        let limits = if self.percent { (0.0, 1.0) } else { (f64::NEG_INFINITY, f64::INFINITY) };
        let axis = Axis::vertical(values, limits);
        let format = if self.percent {
            let decimals = Axis { step: 100.0 * axis.step, ..axis }.decimals();
            TickFormat::Custom(Arc::new(move |v| format!("{:.decimals$}%", 100.0 * v)))
        } else {
            tick_format(&axis)
        };
        let mut layout = layout
            .with_y_axis_min(axis.low)
            .with_y_axis_max(axis.high)
            .with_y_tick_step(axis.step)
            .with_y_tick_format(format);
        // The left margin is measured from this range, not from the one above.
        layout.y_range = (axis.low, axis.high);
        layout
    }

    /// The lower right is free under rising curves, the upper right above falling ones.
    fn legend_position(&self, curves: &[Vec<Point>]) -> LegendPosition {
        let ends = |points: &Vec<Point>| Some(points.last()?.y - points.first()?.y);
        let rise: f64 = curves.iter().filter_map(ends).map(f64::signum).sum();
        if rise > 0.0 { LegendPosition::InsideBottomRight } else { LegendPosition::InsideTopRight }
    }
}

/// Whether an axis has a place for a value.
fn on(log: bool, value: f64) -> bool {
    value.is_finite() && (!log || value > 0.0)
}

/// As many digits as the ticks need; very large and small ones in scientific notation.
pub(super) fn tick_format(axis: &Axis) -> TickFormat {
    if axis.step < 1e-4 || axis.high.abs().max(axis.low.abs()) >= 1e6 {
        TickFormat::Sci
    } else {
        TickFormat::Fixed(axis.decimals())
    }
}
