//! Estimates with their intervals, one below the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kuva::plot::annotations::ReferenceLine;
use kuva::plot::legend::{LegendEntry, LegendPosition, LegendShape};
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;

use super::axis::Axis;
use super::figure::tick_format;
use super::style::Look;
use super::{PlotError, save, style};

/// Height of a row.
const ROW: f64 = 26.0;
/// Height of title, axis and its label together.
const FRAME: f64 = 110.0;

/// An estimate.
#[derive(Clone, Debug)]
struct Row {
    label: String,
    group: usize,
    mean: f64,
    interval: [f64; 2],
    reference: Option<f64>,
}

/// A forest plot: means with intervals against zero, perhaps beside reference values.
#[derive(Clone, Debug)]
pub struct Forest {
    title: String,
    x_label: String,
    reference: String,
    groups: Vec<String>,
    rows: Vec<Row>,
}

impl Forest {
    /// A plot without rows yet.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            reference: "reference".into(),
            groups: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Sets the name of the reference values in the legend.
    pub fn reference(mut self, name: impl Into<String>) -> Self {
        self.reference = name.into();
        self
    }

    /// Starts a group: the rows that follow share a color and stand apart from those before.
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.groups.push(name.into());
        self
    }

    /// Adds a row: a mean, the ends of its interval, and a reference value. An interval with an end
    /// that is not finite is left out.
    pub fn row(
        mut self,
        label: impl Into<String>,
        mean: f64,
        interval: [f64; 2],
        reference: Option<f64>,
    ) -> Self {
        let reference = reference.filter(|r| r.is_finite());
        let group = self.groups.len();
        self.rows.push(Row { label: label.into(), group, mean, interval, reference });
        self
    }

    /// Writes `stem.svg` and `stem.png`. A row whose mean is not finite has no point.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        let places = self.places();
        let placed = || self.rows.iter().zip(&places).filter(|(row, _)| row.mean.is_finite());
        if placed().next().is_none() {
            return Err(PlotError::NoPoints { stem: stem.into() });
        }
        let values = placed().flat_map(|(row, _)| {
            let ends = row.ends().into_iter().flatten();
            ends.chain(row.reference).chain([row.mean, 0.0])
        });
        let x = Axis::padded(values, style::SINGLE.steps[0]);
        let plots: Vec<Plot> = placed().flat_map(|(row, y)| row.plots(*y)).collect();
        let (low, high) = (places.last().map_or(0.0, |y| y - 0.7), 0.7);
        let look = Look { height: FRAME + ROW * (high - low), ..style::SINGLE };
        let labels: Vec<(f64, String)> =
            places.iter().zip(&self.rows).map(|(y, row)| (*y, style::plain(&row.label))).collect();
        let label = move |v: f64| {
            let of = labels.iter().find(|(y, _)| (y - v).abs() < 0.5);
            of.map_or_else(String::new, |(_, label)| label.clone())
        };
        let layout = Layout::auto_from_plots(&plots);
        let layout = style::apply(layout, &look, &self.title, &self.x_label, "");
        let layout = style::x_axis(layout, x.low, x.high, x.step, tick_format(&x));
        let labels = TickFormat::Custom(Arc::new(label));
        let zero = ReferenceLine::vertical(0.0).with_color(style::GRAY).with_dasharray("none");
        let mut layout = style::y_axis(layout, low, high, 1.0, labels)
            .with_tick_length(0.0)
            .with_reference_line(zero);
        let entries = self.legend_entries();
        if !entries.is_empty() {
            layout = layout
                .with_legend_entries(entries)
                .with_legend_position(LegendPosition::OutsideRightTop);
        }
        save(render_multiple(plots, layout), stem)
    }

    /// The height of each row, from 0 down, with a free place between groups.
    fn places(&self) -> Vec<f64> {
        let mut next = 0.0;
        let mut group = self.rows.first().map_or(0, |row| row.group);
        let place = |row: &Row| {
            if row.group != group {
                (group, next) = (row.group, next - 1.0);
            }
            next -= 1.0;
            next + 1.0
        };
        self.rows.iter().map(place).collect()
    }

    fn legend_entries(&self) -> Vec<LegendEntry> {
        let entry = |label: &str, color: &str, marker| {
            style::entry(label, color, LegendShape::Marker(marker))
        };
        let groups = self.groups.iter().enumerate();
        let mut entries: Vec<_> =
            groups.map(|(i, name)| entry(name, color(i + 1), MarkerShape::Circle)).collect();
        if self.rows.iter().any(|row| row.reference.is_some()) {
            entries.push(entry(&self.reference, REFERENCE, MarkerShape::Diamond));
        }
        entries
    }
}

/// Color of reference values; no group has it.
const REFERENCE: &str = style::LINES[6];

/// The color of a group; rows before the first group have number 0.
fn color(group: usize) -> &'static str {
    style::LINES[group.saturating_sub(1) % (style::LINES.len() - 1)]
}

impl Row {
    /// The interval, if it can be drawn.
    fn ends(&self) -> Option<[f64; 2]> {
        Some(self.interval).filter(|ends| ends.iter().all(|end| end.is_finite()))
    }

    fn plots(&self, y: f64) -> Vec<Plot> {
        let color = color(self.group);
        let mut plots: Vec<Plot> = Vec::new();
        if let Some([lower, upper]) = self.ends() {
            let cap = |x: f64| [(x, y - 0.16), (x, y + 0.16)];
            for data in [[(lower, y), (upper, y)], cap(lower), cap(upper)] {
                let line = LinePlot::new().with_data(data).with_color(color);
                plots.push(line.with_stroke_width(1.8).into());
            }
        }
        let point = |x: f64, color: &str, marker| {
            let point = ScatterPlot::new().with_data([(x, y)]).with_color(color);
            Plot::from(point.with_marker(marker).with_size(4.5))
        };
        plots.push(point(self.mean, color, MarkerShape::Circle));
        plots.extend(self.reference.map(|x| point(x, REFERENCE, MarkerShape::Diamond)));
        plots
    }
}
