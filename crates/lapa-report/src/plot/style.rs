//! Style of every plot: sizes, colors, type.

use kuva::plot::legend::{LegendEntry, LegendPosition, LegendShape};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::theme::Theme;

/// Sizes of a plot and of what is in it, in SVG units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub width: f64,
    pub height: f64,
    pub title: u32,
    pub label: u32,
    pub tick: u32,
    pub line: f64,
    pub marker: f64,
    /// About how many steps between ticks the axes have: horizontal, vertical.
    pub steps: [f64; 2],
    /// True if two or more curves have a legend.
    pub legend: bool,
}

/// A plot alone.
pub(super) const SINGLE: Look = Look {
    width: 720.0,
    height: 450.0,
    title: 18,
    label: 15,
    tick: 13,
    line: 2.2,
    marker: 3.2,
    steps: [8.0, 6.0],
    legend: true,
};

/// A plot among others in as many columns; width and height are those inside its axes.
pub(super) fn panel(columns: usize) -> Look {
    let look = Look { legend: false, ..SINGLE };
    match columns {
        0..=2 => Look { width: 360.0, height: 240.0, title: 16, steps: [6.0, 6.0], ..look },
        3..=4 => Look {
            width: 230.0,
            height: 170.0,
            title: 15,
            label: 14,
            line: 1.9,
            marker: 2.7,
            steps: [4.0, 5.0],
            ..look
        },
        _ => Look {
            width: 150.0,
            height: 125.0,
            title: 14,
            label: 13,
            tick: 12,
            line: 1.7,
            marker: 2.2,
            steps: [3.0, 5.0],
            ..look
        },
    }
}

/// Any viewer has the last one. The sizes are measured with the first, which is the widest, so
/// that another font leaves room rather than lacking it. PNGs have the first one built in.
pub(super) const FONTS: &str = "DejaVu Sans, Verdana, Arial, Helvetica, sans-serif";

/// Colors of lines, told apart by color-blind readers too: M. Okabe and K. Ito, "Color Universal
/// Design", 2008, without the yellow that is too faint for a line.
pub(super) const LINES: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// The color of the curve called `name`, by its place among all `names`.
pub(super) fn line_color(names: &[&str], name: &str) -> &'static str {
    LINES[names.iter().position(|&n| n == name).unwrap_or(0) % LINES.len()]
}

/// Colors of areas, for as many as ten classes: the "muted" scheme of P. Tol, "Color Schemes",
/// SRON technical note, 2021, in an order that sets light against dark.
pub(super) const AREAS: [&str; 10] = [
    "#332288", "#88CCEE", "#117733", "#DDCC77", "#882255", "#44AA99", "#CC6677", "#999933",
    "#AA4499", "#DDDDDD",
];

/// Lengths of dashes and of the gaps between them.
pub(super) const DASHES: &str = "5 3.5";

/// Color of text.
pub(super) const TEXT: &str = "#222222";
/// Color of axes and of lines that mark a value.
pub(super) const GRAY: &str = "#555555";

/// The common part of every layout.
pub(super) fn apply(
    layout: Layout,
    look: &Look,
    title: &str,
    x_label: &str,
    y_label: &str,
) -> Layout {
    let theme = Theme {
        axis_color: GRAY.into(),
        grid_color: "#E6E6E6".into(),
        tick_color: GRAY.into(),
        text_color: TEXT.into(),
        legend_border: "#CCCCCC".into(),
        ..Theme::light()
    };
    layout
        .with_width(look.width)
        .with_height(look.height)
        .with_theme(theme)
        .with_font_family(FONTS)
        .with_title(plain(title))
        .with_x_label(plain(x_label))
        .with_y_label(plain(y_label))
        .with_title_size(look.title)
        .with_label_size(look.label)
        .with_tick_size(look.tick)
        .with_body_size(look.tick)
        .with_legend_box(false)
}

/// Sets the horizontal axis.
pub(super) fn x_axis(layout: Layout, low: f64, high: f64, step: f64, format: TickFormat) -> Layout {
    let layout = layout.with_x_axis_min(low).with_x_axis_max(high);
    layout.with_x_tick_step(step).with_x_tick_format(format)
}

/// Sets the vertical axis.
pub(super) fn y_axis(layout: Layout, low: f64, high: f64, step: f64, format: TickFormat) -> Layout {
    let layout = layout.with_y_axis_min(low).with_y_axis_max(high);
    let mut layout = layout.with_y_tick_step(step).with_y_tick_format(format);
    // The left margin is measured from this range, not from the one above.
    layout.y_range = (low, high);
    layout
}

/// A legend with a title, beside the plot.
pub(super) fn legend(layout: Layout, entries: Vec<LegendEntry>, title: &str) -> Layout {
    layout
        .with_legend_entries(entries)
        .with_legend_title(plain(title))
        .with_legend_position(LegendPosition::OutsideRightTop)
}

/// An entry of a legend.
pub(super) fn entry(label: &str, color: &str, shape: LegendShape) -> LegendEntry {
    LegendEntry { label: plain(label), color: color.into(), shape, dasharray: None }
}

/// Text as it is: the drawing library reads a formula between dollar signs.
pub(super) fn plain(text: &str) -> String {
    text.replace('$', "\\$")
}
