//! Curves over a common axis.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kuva::plot::annotations::ReferenceLine;
use kuva::plot::legend::LegendPosition;
use kuva::plot::line::LineStyle;
use kuva::plot::{BandPlot, LinePlot, ScatterPlot};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;

use super::axis::Axis;
use super::drawing::Drawing;
use super::series::{Point, Series};
use super::style::Look;
use super::svg::svg;
use super::{PlotError, save, save_in, style};
use lapa::files::Folder;

/// With as many points or fewer, a curve shows each of them.
const MARKED_POINTS: usize = 30;

/// A plot of curves.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    title: String,
    x_label: String,
    y_label: String,
    series: Vec<Series>,
    levels: Vec<(String, f64)>,
    marks: Vec<(String, f64)>,
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
            ..Self::default()
        }
    }

    /// Adds a curve. Two or more curves have a legend; curves of one name have one color.
    pub fn line(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a dashed line across the plot at the height `y`, with a label at its end.
    pub fn level(mut self, label: impl Into<String>, y: f64) -> Self {
        self.levels.push((label.into(), y));
        self
    }

    /// Adds a dashed line up the plot at `x`, with a label above it.
    pub fn mark(mut self, label: impl Into<String>, x: f64) -> Self {
        self.marks.push((label.into(), x));
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
        save(self.whole(stem)?.scene(), stem)
    }

    /// Writes `name.svg` and `name.png` into an open folder.
    pub(super) fn save_in(&self, folder: &Folder, name: &str) -> Result<[PathBuf; 2], PlotError> {
        let stem = folder.path().join(name);
        save_in(self.whole(&stem)?.scene(), folder, &stem)
    }

    /// The text of an SVG file of this name, without writing one.
    pub fn svg(&self, name: &str) -> Result<String, PlotError> {
        let stem = Path::new(name);
        Ok(svg(&self.whole(stem)?.scene(), stem))
    }

    /// All of the plot; `stem` is its path.
    fn whole(&self, stem: &Path) -> Result<Drawing, PlotError> {
        let names: Vec<&str> = self.series().map(|series| series.name.as_str()).collect();
        self.drawing(&style::SINGLE, &names, &[])
            .ok_or_else(|| PlotError::NoPoints { stem: stem.into() })
    }

    /// The curves in their order.
    pub(super) fn series(&self) -> impl Iterator<Item = &Series> {
        self.series.iter()
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn same_x_label(&self, other: &Self) -> bool {
        self.x_label == other.x_label
    }

    /// The heights that the vertical axis must show.
    pub(super) fn heights(&self) -> Vec<f64> {
        let points = self.series.iter().flat_map(|series| self.drawable(series));
        let values = points.flat_map(|p| p.interval.into_iter().flatten().chain([p.y]));
        let levels = self.levels.iter().map(|(_, y)| *y).filter(|y| on(self.log_y, *y));
        values.chain(levels).collect()
    }

    /// True if the vertical axes of both say the same of the same heights.
    pub(super) fn same_y(&self, other: &Self) -> bool {
        let key = |figure: &Self| (figure.y_label.clone(), figure.log_y, figure.percent);
        key(self) == key(other)
    }

    /// The curves, placed on their axes. A curve has the color of its place among `names`; the vertical
    /// axis shows the heights of `others` too. Nothing if there is no point.
    pub(super) fn drawing(&self, look: &Look, names: &[&str], others: &[f64]) -> Option<Drawing> {
        let curves: Vec<Vec<Point>> = self.series.iter().map(|s| self.drawable(s)).collect();
        let points = curves.iter().flatten();
        points.clone().next()?;
        let mut marks = self.marks.clone();
        marks.retain(|(_, x)| on(self.log_x, *x));
        let plots = self.plots(&curves, look, names);
        let layout = Layout::auto_from_plots(&plots);
        let layout = style::apply(layout, look, &self.title, &self.x_label, &self.y_label);
        let across = points.map(|p| p.x).chain(marks.iter().map(|(_, x)| *x));
        let layout = self.with_x_axis(layout, across, look.steps[0]);
        let others = others.iter().copied().filter(|y| on(self.log_y, *y));
        let mut layout =
            self.with_y_axis(layout, self.heights().into_iter().chain(others), look.steps[1]);
        for (label, y) in self.levels.iter().filter(|(_, y)| on(self.log_y, *y)) {
            let line = ReferenceLine::horizontal(*y).with_label(style::plain(label));
            layout = layout.with_reference_line(line.with_color(style::GRAY));
        }
        let layout = layout.with_legend_position(self.legend_position(&curves));
        Some(Drawing::new(plots, layout, marks))
    }

    /// The points that can be drawn on these axes, their intervals cut to what an axis can show.
    fn drawable(&self, series: &Series) -> Vec<Point> {
        let mut points = series.points.clone();
        points.retain(|p| on(self.log_x, p.x) && on(self.log_y, p.y));
        for Point { y, interval, .. } in &mut points {
            for end in interval.iter_mut().flatten() {
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

    fn plots(&self, curves: &[Vec<Point>], look: &Look, names: &[&str]) -> Vec<Plot> {
        let (mut bands, mut lines) = (Vec::<Plot>::new(), Vec::<Plot>::new());
        for (series, points) in self.series.iter().zip(curves) {
            let color = style::line_color(names, &series.name);
            let intervals = || points.iter().filter_map(|p| Some((p, p.interval?)));
            if intervals().count() > 1 {
                let band = BandPlot::new(
                    intervals().map(|(p, _)| p.x),
                    intervals().map(|(_, [lower, _])| lower),
                    intervals().map(|(_, [_, upper])| upper),
                );
                bands.push(band.with_color(color).with_opacity(0.18).into());
            }
            let data = || points.iter().map(|p| (p.x, p.y));
            let mut line =
                LinePlot::new().with_data(data()).with_color(color).with_stroke_width(look.line);
            if series.dashed {
                line = line.with_line_style(LineStyle::Custom(style::DASHES.into()));
            }
            if look.legend && self.series.len() > 1 {
                line = line.with_legend(style::plain(&series.name));
            }
            lines.push(line.into());
            if points.len() <= MARKED_POINTS {
                let marks =
                    ScatterPlot::new().with_data(data()).with_color(color).with_size(look.marker);
                lines.push(marks.into());
            }
        }
        // Bands first, so that none hides a curve.
        bands.extend(lines);
        bands
    }

    fn with_x_axis(
        &self,
        layout: Layout,
        values: impl Iterator<Item = f64> + Clone,
        steps: f64,
    ) -> Layout {
        if self.log_x {
            let (low, high) = Axis::logarithmic(values);
            let layout = layout.with_log_x().with_x_tick_format(log_ticks());
            return layout.with_x_axis_min(low).with_x_axis_max(high);
        }
        let axis = Axis::horizontal(values, steps);
        style::x_axis(layout, axis.low, axis.high, axis.step, tick_format(&axis))
    }

    fn with_y_axis(&self, layout: Layout, values: impl Iterator<Item = f64>, steps: f64) -> Layout {
        if self.log_y {
            let (low, high) = Axis::logarithmic(values);
            let layout = layout.with_log_y().with_y_tick_format(log_ticks());
            return layout.with_y_axis_min(low).with_y_axis_max(high);
        }
        let limits = if self.percent { (0.0, 1.0) } else { (f64::NEG_INFINITY, f64::INFINITY) };
        let axis = Axis::vertical(values, limits, steps);
        let format = if self.percent { percent_ticks(&axis) } else { tick_format(&axis) };
        style::y_axis(layout, axis.low, axis.high, axis.step, format)
    }

    /// The lower right is free under rising curves, the upper right above falling ones.
    fn legend_position(&self, curves: &[Vec<Point>]) -> LegendPosition {
        let ends = |points: &Vec<Point>| Some(points.last()?.y - points.first()?.y);
        let rise: f64 = curves.iter().filter_map(ends).map(f64::signum).sum();
        if rise > 0.0 { LegendPosition::InsideBottomRight } else { LegendPosition::InsideTopRight }
    }
}

/// True if an axis has a place for a value.
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

/// Shares in percent, with as many digits as the ticks need.
pub(super) fn percent_ticks(axis: &Axis) -> TickFormat {
    let decimals = Axis { step: 100.0 * axis.step, ..*axis }.decimals();
    TickFormat::Custom(Arc::new(move |v| format!("{:.decimals$}%", 100.0 * v)))
}

/// One significant digit, as a decimal number unless that would be long.
fn log_ticks() -> TickFormat {
    TickFormat::Custom(Arc::new(|v| {
        // The small shift is for powers of ten whose logarithm is just below a whole number.
        let power = (v.log10() + 1e-9).floor();
        match power {
            -3.0..=4.0 => format!("{v:.0$}", (-power).max(0.0) as usize),
            _ => format!("{v:.0e}"),
        }
    }))
}
