//! Several plots of curves in a grid, with one legend.

use std::path::{Path, PathBuf};

use kuva::render::render::{Primitive, Scene, TextAnchor};

use super::drawing::Drawing;
use super::figure::Figure;
use super::style::{self, Look};
use super::{PlotError, canvas, save};

/// Room around the grid and between its parts.
const GAP: f64 = 12.0;
/// Length of a line in the legend.
const KEY: f64 = 28.0;
/// Height of a line of the legend.
const LEGEND_ROW: f64 = 22.0;

/// Plots of curves in a grid. A curve has the same color wherever its name appears; a legend below
/// the grid has all the names.
#[derive(Clone, Debug)]
pub struct Panels {
    title: String,
    columns: usize,
    share_y: bool,
    panels: Vec<Figure>,
}

impl Panels {
    /// A grid of two columns without plots yet. An empty title takes no room.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), columns: 2, share_y: false, panels: Vec::new() }
    }

    /// Sets the number of columns, at least 1. With many of them the panels are small.
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns.max(1);
        self
    }

    /// Gives all panels in a row the same vertical axis, with numbers at the first one only.
    pub fn share_y(mut self) -> Self {
        self.share_y = true;
        self
    }

    /// Adds a panel: from left to right, row by row.
    pub fn panel(mut self, figure: Figure) -> Self {
        self.panels.push(figure);
        self
    }

    /// Writes `stem.svg` and `stem.png`. Every panel must have a point that can be drawn.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        let look = style::panel(self.columns.min(self.panels.len()));
        let legend = self.legend();
        let names: Vec<&str> = legend.iter().map(|(name, _)| *name).collect();
        let drawings = self.drawings(&look, &names);
        let drawings = drawings.ok_or_else(|| PlotError::NoPoints { stem: stem.into() })?;
        save(self.scene(drawings, &look, &legend), stem)
    }

    /// All names in order of appearance, and whether their first curves are dashed.
    fn legend(&self) -> Vec<(&str, bool)> {
        let mut legend: Vec<(&str, bool)> = Vec::new();
        for series in self.panels.iter().flat_map(Figure::series) {
            if legend.iter().all(|(name, _)| *name != series.name) {
                legend.push((&series.name, series.dashed));
            }
        }
        legend
    }

    /// The panels row by row; nothing if one of them has no point.
    fn drawings(&self, look: &Look, names: &[&str]) -> Option<Vec<Drawing>> {
        let room = look.width + GAP;
        let sizes = self.panels.iter().map(|p| canvas::fitted(p.title(), look.title, room));
        let look = Look { title: sizes.min()?, ..*look };
        let mut drawings = Vec::new();
        for (r, row) in self.panels.chunks(self.columns).enumerate() {
            let others = if self.share_y {
                row.iter().flat_map(Figure::heights).collect()
            } else {
                Vec::new()
            };
            for (c, figure) in row.iter().enumerate() {
                let mut drawing = figure.drawing(&look, names, &others)?;
                let below = self.panels.get((r + 1) * self.columns + c);
                if below.is_some_and(|below| below.same_x_label(figure)) {
                    drawing.drop_x_label();
                }
                drawing.layout.suppress_y_ticks = self.share_y && c > 0 && figure.same_y(&row[0]);
                drawings.push(drawing);
            }
        }
        Some(drawings)
    }

    fn scene(&self, drawings: Vec<Drawing>, look: &Look, legend: &[(&str, bool)]) -> Scene {
        let columns = self.columns.min(drawings.len());
        let rows = drawings.len().div_ceil(columns);
        // The largest margin at a side of a column or row, so that the axes are in line.
        let widest = |side: usize, line: usize| {
            let place = |i: usize| if side < 2 { i % columns } else { i / columns };
            let of = drawings.iter().enumerate().filter(|(i, _)| place(*i) == line);
            of.map(|(_, drawing)| drawing.margins()[side]).fold(0.0, f64::max)
        };
        let across: Vec<[f64; 2]> =
            (0..columns).map(|c| [widest(0, c), widest(1, c) + GAP]).collect();
        let down: Vec<[f64; 2]> = (0..rows).map(|r| [widest(2, r), widest(3, r)]).collect();
        let size = |inner: f64, margins: &[f64; 2]| inner + margins[0] + margins[1];
        let widths: Vec<f64> = across.iter().map(|m| size(look.width, m)).collect();
        let heights: Vec<f64> = down.iter().map(|m| size(look.height, m)).collect();
        let starts = |sizes: &[f64], first: f64| -> Vec<f64> {
            sizes.iter().scan(first, |at, size| Some(std::mem::replace(at, *at + size))).collect()
        };

        let width = widths.iter().sum::<f64>() + 2.0 * GAP;
        let title_size = canvas::fitted(&self.title, 18, width - 2.0 * GAP);
        let top = if self.title.is_empty() { GAP } else { 3.0 * GAP };
        let bottom = top + heights.iter().sum::<f64>();
        let names: Vec<&str> = legend.iter().map(|(name, _)| *name).collect();
        let lines = legend_lines(legend, look.tick, width - 2.0 * GAP);
        let legend_height = LEGEND_ROW * lines.len() as f64;
        let mut scene = canvas::sheet(width.ceil(), (bottom + legend_height + GAP).ceil());
        if !self.title.is_empty() {
            let anchor = TextAnchor::Middle;
            scene.add(canvas::text(0.5 * width, 2.2 * GAP, &self.title, title_size, anchor, false));
        }
        let (lefts, tops) = (starts(&widths, GAP), starts(&heights, top));
        for (i, mut drawing) in drawings.into_iter().enumerate() {
            let (r, c) = (i / columns, i % columns);
            drawing.layout = drawing
                .layout
                .with_width(widths[c])
                .with_height(heights[r])
                .with_force_margins(across[c][0], across[c][1])
                .with_force_margins_y(down[r][0], down[r][1]);
            scene.add(Primitive::GroupStart {
                transform: Some(format!("translate({},{})", lefts[c], tops[r])),
                title: None,
                extra_attrs: None,
            });
            let panel = drawing.scene();
            scene.defs.extend(panel.defs);
            scene.elements.extend(panel.elements);
            scene.add(Primitive::GroupEnd);
        }
        draw_legend(&lines, &names, look, bottom, &mut scene);
        scene
    }
}

/// Draws the lines of a legend, each in the middle, from `top` down.
fn draw_legend(
    lines: &[Vec<(&str, bool)>],
    names: &[&str],
    look: &Look,
    top: f64,
    scene: &mut Scene,
) {
    for (i, line) in lines.iter().enumerate() {
        let y = top + LEGEND_ROW * (i as f64 + 0.5);
        let width: f64 = line.iter().map(|entry| entry_width(entry, look.tick)).sum();
        let mut x = 0.5 * (scene.width - width);
        for entry @ &(name, dashed) in line {
            let (from, to) = (x + GAP, x + GAP + KEY);
            let color = style::line_color(names, name);
            scene.add(canvas::line([from, y], [to, y], color, look.line, dashed));
            let stand = y + 0.36 * f64::from(look.tick);
            scene.add(canvas::text(to + 6.0, stand, name, look.tick, TextAnchor::Start, false));
            x += entry_width(entry, look.tick);
        }
    }
}

fn entry_width((name, _): &(&str, bool), size: u32) -> f64 {
    KEY + 6.0 + canvas::text_width(name, size) + 2.0 * GAP
}

/// The entries of the legend, broken into lines; one curve alone needs no legend.
fn legend_lines<'a>(legend: &[(&'a str, bool)], size: u32, room: f64) -> Vec<Vec<(&'a str, bool)>> {
    let mut lines: Vec<Vec<(&str, bool)>> = Vec::new();
    if legend.len() < 2 {
        return lines;
    }
    let mut used = f64::INFINITY;
    for entry in legend {
        let width = entry_width(entry, size);
        if used + width > room {
            lines.push(Vec::new());
            used = 0.0;
        }
        used += width;
        if let Some(line) = lines.last_mut() {
            line.push(*entry);
        }
    }
    lines
}
