//! How every plot looks: sizes, colours, type.

use kuva::plot::legend::{LegendEntry, LegendPosition};
use kuva::render::layout::Layout;
use kuva::render::theme::Theme;

/// Width of a plot in SVG units.
const WIDTH: f64 = 720.0;
/// Height of a plot in SVG units.
const HEIGHT: f64 = 450.0;

/// Any viewer has the last one. The sizes are measured with the first, which is the widest, so
/// that another font leaves room rather than lacking it. PNGs have the first one built in.
const FONTS: &str = "DejaVu Sans, Verdana, Arial, Helvetica, sans-serif";

/// Colours of lines, told apart by colour-blind readers too: M. Okabe and K. Ito, "Color Universal
/// Design", 2008, without the yellow that is too faint for a line.
pub(super) const LINES: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// Colours of areas, for as many as ten classes: the "muted" scheme of P. Tol, "Colour Schemes",
/// SRON technical note, 2021, in an order that sets light against dark.
pub(super) const AREAS: [&str; 10] = [
    "#332288", "#88CCEE", "#117733", "#DDCC77", "#882255", "#44AA99", "#CC6677", "#999933",
    "#AA4499", "#DDDDDD",
];

/// The common part of every layout.
pub(super) fn apply(layout: Layout, title: &str, x_label: &str, y_label: &str) -> Layout {
    let theme = Theme {
        axis_color: "#555555".into(),
        grid_color: "#E6E6E6".into(),
        tick_color: "#555555".into(),
        text_color: "#222222".into(),
        legend_border: "#CCCCCC".into(),
        ..Theme::light()
    };
    layout
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_theme(theme)
        .with_font_family(FONTS)
        .with_title(plain(title))
        .with_x_label(plain(x_label))
        .with_y_label(plain(y_label))
        .with_title_size(18)
        .with_label_size(15)
        .with_tick_size(13)
        .with_body_size(13)
        .with_legend_box(false)
}

/// A legend with a title, beside the plot.
pub(super) fn legend(layout: Layout, entries: Vec<LegendEntry>, title: &str) -> Layout {
    layout
        .with_legend_entries(entries)
        .with_legend_title(plain(title))
        .with_legend_position(LegendPosition::OutsideRightTop)
}

/// Text as it is: the drawing library reads a formula between dollar signs.
pub(super) fn plain(text: &str) -> String {
    text.replace('$', "\\$")
}
