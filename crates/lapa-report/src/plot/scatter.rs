//! Places in a plane, seen from above.

use std::path::{Path, PathBuf};

use kuva::plot::annotations::TextAnnotation;
use kuva::plot::legend::LegendShape;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;

use super::axis::Axis;
use super::figure::tick_format;
use super::{PlotError, save, style};

/// With more points than this in a plot, they are small.
const LARGE_POINTS: usize = 200;

/// Share of the height kept free for labels above rectangles.
const LABEL_ROOM: f64 = 0.05;

/// Points that share a name and a look.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    color: String,
    marker: Marker,
    points: Vec<[f64; 2]>,
}

/// Shape of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// One of many.
    Dot,
    /// A landmark.
    Triangle,
}

/// A plot of places, with the same scale along both axes.
#[derive(Clone, Debug)]
pub struct Scatter {
    title: String,
    x_label: String,
    y_label: String,
    legend: String,
    groups: Vec<Group>,
    rectangles: Vec<(String, [[f64; 2]; 2])>,
}

impl Scatter {
    /// A plot without points yet; its groups are named in a legend with a title.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
        legend: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            y_label: y_label.into(),
            legend: legend.into(),
            groups: Vec::new(),
            rectangles: Vec::new(),
        }
    }

    /// Adds a group of [x, y] points; an empty one is in the legend all the same.
    pub fn group(
        mut self,
        name: impl Into<String>,
        color: impl Into<String>,
        marker: Marker,
        points: impl IntoIterator<Item = [f64; 2]>,
    ) -> Self {
        let finite = |point: &[f64; 2]| point.iter().all(|v| v.is_finite());
        let points = points.into_iter().filter(finite).collect();
        self.groups.push(Group { name: name.into(), color: color.into(), marker, points });
        self
    }

    /// Adds the outline of a rectangle: smallest and largest x, smallest and largest y. Its label
    /// is above it, if it has one.
    pub fn rectangle(mut self, label: impl Into<String>, x: [f64; 2], y: [f64; 2]) -> Self {
        self.rectangles.push((label.into(), [x, y]));
        self
    }

    /// Writes `stem.svg` and `stem.png`. Points that are not finite are left out.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        let points = self.groups.iter().flat_map(|group| &group.points);
        let count = points.clone().count();
        if count == 0 {
            return Err(PlotError::NoPoints { stem: stem.into() });
        }
        let ends = |axis: usize| {
            let rectangles = self.rectangles.iter().flat_map(move |(_, sides)| sides[axis]);
            points.clone().map(move |point| point[axis]).chain(rectangles)
        };
        let steps = style::SINGLE.steps[0];
        let (x, mut y) = (Axis::padded(ends(0), steps), Axis::padded(ends(1), steps));
        let labeled = || self.rectangles.iter().filter(|(label, _)| !label.is_empty());
        if labeled().next().is_some() {
            y.high += LABEL_ROOM * (y.high - y.low);
        }
        // Both axes have one scale, so one distance of ticks fits both.
        let ticks = if x.step > y.step { x } else { y };
        let plots = self.plots(if count > LARGE_POINTS { 2.2 } else { 5.0 });
        let look = &style::SINGLE;
        let layout = Layout::auto_from_plots(&plots);
        let layout = style::apply(layout, look, &self.title, &self.x_label, &self.y_label);
        let layout = style::x_axis(layout, x.low, x.high, ticks.step, tick_format(&ticks));
        let layout = style::y_axis(layout, y.low, y.high, ticks.step, tick_format(&ticks));
        let entry = |group: &Group| {
            let shape = LegendShape::Marker(group.marker.shape());
            style::entry(&group.name, &group.color, shape)
        };
        let entries = self.groups.iter().map(entry).collect();
        let mut layout = style::legend(layout.with_equal_aspect(), entries, &self.legend);
        for (label, [[left, right], [_, top]]) in labeled() {
            let text = TextAnnotation::new(style::plain(label), 0.5 * (left + right), *top);
            layout = layout.with_annotation(text.with_font_size(look.tick));
        }
        save(render_multiple(plots, layout), stem)
    }

    fn plots(&self, size: f64) -> Vec<Plot> {
        let outlines = self.rectangles.iter().map(|&(_, [[left, right], [low, high]])| {
            let corners = [(left, low), (right, low), (right, high), (left, high), (left, low)];
            let line = LinePlot::new().with_data(corners).with_color("#999999");
            Plot::from(line.with_stroke_width(1.2))
        });
        let groups = self.groups.iter().filter(|group| !group.points.is_empty()).map(|group| {
            let plot = ScatterPlot::new().with_data(group.points.iter().map(|&[x, y]| (x, y)));
            let plot = plot.with_color(group.color.clone()).with_marker(group.marker.shape());
            Plot::from(plot.with_size(if group.marker == Marker::Dot { size } else { 8.0 }))
        });
        outlines.chain(groups).collect()
    }
}

impl Marker {
    fn shape(self) -> MarkerShape {
        match self {
            Self::Dot => MarkerShape::Circle,
            Self::Triangle => MarkerShape::Triangle,
        }
    }
}
