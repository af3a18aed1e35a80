//! Input of the drawing library, and additions to its picture.

use kuva::plot::annotations::ReferenceLine;
use kuva::render::layout::{ComputedLayout, Layout};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, TextAnchor, render_multiple};

use super::{canvas, style};

/// Curves and axes, ready to be drawn.
pub(super) struct Drawing {
    pub plots: Vec<Plot>,
    pub layout: Layout,
    /// Labels above the axes, and where.
    marks: Vec<(String, f64)>,
}

impl Drawing {
    /// Adds dashed lines up the plot at `marks`, with labels in a strip between title and axes.
    pub fn new(plots: Vec<Plot>, mut layout: Layout, marks: Vec<(String, f64)>) -> Self {
        for (_, x) in &marks {
            let line = ReferenceLine::vertical(*x).with_color(style::GRAY);
            layout = layout.with_reference_line(line);
        }
        if !marks.is_empty() {
            let [.., top, bottom] = margins(&layout);
            let strip = 0.6 * f64::from(layout.tick_size);
            layout = layout.with_force_margins_y(top + strip, bottom);
        }
        Self { plots, layout, marks }
    }

    /// Leaves out the label of the horizontal axis, and its room.
    pub fn drop_x_label(&mut self) {
        let [.., top, bottom] = self.margins();
        self.layout.x_label = None;
        self.layout.force_margin_top = Some(top);
        self.layout.force_margin_bottom = Some(bottom - 1.6 * f64::from(self.layout.label_size));
    }

    /// Left, right, top and bottom margin.
    pub fn margins(&self) -> [f64; 4] {
        margins(&self.layout)
    }

    pub fn scene(self) -> Scene {
        let computed = ComputedLayout::from_layout(&self.layout);
        let mut scene = render_multiple(self.plots, self.layout);
        for (label, x) in &self.marks {
            let (x, y) = (computed.map_x(*x), computed.margin_top - 5.0);
            let size = computed.tick_size;
            scene.add(canvas::text(x, y, label, size, TextAnchor::Middle, false));
        }
        scene
    }
}

fn margins(layout: &Layout) -> [f64; 4] {
    let computed = ComputedLayout::from_layout(layout);
    [computed.margin_left, computed.margin_right, computed.margin_top, computed.margin_bottom]
}
