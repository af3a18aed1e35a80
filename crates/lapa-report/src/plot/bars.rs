//! Stacked bars.

use std::path::{Path, PathBuf};

use kuva::plot::BarPlot;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

use super::axis::Axis;
use super::figure::{percent_ticks, tick_format};
use super::{PlotError, save, save_in, style};
use lapa::files::Folder;

/// Digits that the labels may have together; with longer ones only some bars are labeled.
const LABEL_DIGITS: usize = 50;
/// With more bars than this, they touch.
const SPACED_BARS: usize = 60;

/// A plot of bars, each made of the same named parts.
#[derive(Clone, Debug)]
pub struct StackedBars {
    title: String,
    x_label: String,
    y_label: String,
    legend: String,
    parts: Vec<String>,
    bars: Vec<(String, Vec<f64>)>,
    percent: bool,
}

impl StackedBars {
    /// A plot without bars yet; the parts, from the bottom up, are named in a legend with a title.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
        legend: impl Into<String>,
        parts: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            y_label: y_label.into(),
            legend: legend.into(),
            parts: parts.into_iter().collect(),
            bars: Vec::new(),
            percent: false,
        }
    }

    /// Adds a bar with the heights of its parts.
    pub fn bar(mut self, label: impl Into<String>, heights: Vec<f64>) -> Self {
        self.bars.push((label.into(), heights));
        self
    }

    /// The heights are shares in [0, 1], shown in percent.
    pub fn percent(mut self) -> Self {
        self.percent = true;
        self
    }

    /// Writes `stem.svg` and `stem.png`.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        save(self.scene(stem)?, stem)
    }

    /// Writes `name.svg` and `name.png` into an open folder.
    pub(super) fn save_in(&self, folder: &Folder, name: &str) -> Result<[PathBuf; 2], PlotError> {
        let stem = folder.path().join(name);
        save_in(self.scene(&stem)?, folder, &stem)
    }

    fn scene(&self, stem: &Path) -> Result<Scene, PlotError> {
        let totals = self.bars.iter().map(|(_, heights)| heights.iter().sum::<f64>());
        if !totals.clone().any(|total| total > 0.0) {
            return Err(PlotError::NoPoints { stem: stem.into() });
        }
        let crowded = self.bars.len() > SPACED_BARS;
        let mut plot = BarPlot::new().with_stacked().with_gap(if crowded { 0.0 } else { 0.2 });
        let width = self.bars.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        let every = label_every(self.bars.len(), width);
        for (i, (label, heights)) in self.bars.iter().enumerate() {
            let shown = if i % every == 0 { style::plain(label) } else { String::new() };
            let parts = heights.iter().zip(style::AREAS.into_iter().cycle());
            // A part of height 0 would still be written into the SVG.
            plot = plot.with_group(shown, parts.filter(|(h, _)| **h > 0.0).map(|(h, c)| (*h, c)));
        }
        let plots: Vec<Plot> = vec![plot.into()];
        let look = &style::SINGLE;
        let top = if self.percent { 1.0 } else { f64::INFINITY };
        let axis = Axis::vertical(totals.chain([0.0]), (0.0, top), look.steps[1]);
        let ticks = if self.percent { percent_ticks(&axis) } else { tick_format(&axis) };
        let layout = Layout::auto_from_plots(&plots);
        let layout = style::apply(layout, look, &self.title, &self.x_label, &self.y_label);
        let layout = style::y_axis(layout, axis.low, axis.high, axis.step, ticks);
        let mut layout = if self.parts.len() > 1 {
            style::legend(layout, self.legend_entries(), &self.legend)
        } else {
            layout
        };
        if crowded {
            // Every bar has a tick mark, labeled or not: so many would be a black line.
            layout = layout.with_tick_length(0.0);
        }
        Ok(render_multiple(plots, layout))
    }

    /// From the top down, as the parts are stacked.
    fn legend_entries(&self) -> Vec<LegendEntry> {
        let parts = self.parts.iter().zip(style::AREAS.into_iter().cycle());
        let mut entries: Vec<_> =
            parts.map(|(part, color)| style::entry(part, color, LegendShape::Rect)).collect();
        entries.reverse();
        entries
    }
}

/// Every how many bars one is labeled: 1, 2, 5, 10, 20, … `width` is the length of a label.
fn label_every(bars: usize, width: usize) -> usize {
    let mut every = 1;
    while bars.div_ceil(every) * width > LABEL_DIGITS && every < bars {
        // 1 → 2 → 5 → 10
        every = if every.to_string().starts_with('2') { every / 2 * 5 } else { every * 2 };
    }
    every
}

#[cfg(test)]
mod tests {
    use super::label_every;

    #[test]
    fn labels_are_thinned_by_round_numbers() {
        for (bars, width, every) in
            [(1, 1, 1), (10, 1, 1), (25, 2, 1), (26, 2, 2), (50, 2, 2), (51, 2, 5), (100, 2, 5)]
        {
            assert_eq!(label_every(bars, width), every, "{bars}");
        }
        assert_eq!(label_every(1000, 3), 100);
        assert_eq!(label_every(10_000, 4), 1000);
        assert_eq!(label_every(3, 99), 5);
    }
}
