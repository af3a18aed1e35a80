//! Heat maps of confusion matrices.

use std::collections::BTreeMap;

use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};
use lapa::model::Confusion;

use super::{canvas, style};

/// Side of the map in units, about.
const SIDE: f64 = 480.0;
/// Side of a cell, at most and at least.
const CELL: [f64; 2] = [44.0, 2.0];
/// Smallest cell with a number in it.
const NUMBERED: f64 = 30.0;
/// Room around the map and between its parts.
const GAP: f64 = 12.0;
/// Size of the text.
const TEXT: u32 = 13;
/// Shades of each color, white apart.
const SHADES: f64 = 24.0;
/// Colors of samples that were taken for what they are, and of others: those of tiles.
const COLORS: [[f64; 3]; 2] = [[0.0, 114.0, 178.0], [196.0, 80.0, 10.0]];
/// Shares in the legend.
const LEGEND: [f64; 4] = [0.01, 0.1, 0.5, 1.0];

/// A shade: 0 is white. It grows with the root of the share, so that rare mistakes can be seen.
fn shade(share: f64) -> u32 {
    (share.clamp(0.0, 1.0).sqrt() * SHADES).round() as u32
}

/// The color of a shade on the diagonal or off it.
fn color(shade: u32, is_right: bool) -> String {
    let part = f64::from(shade) / SHADES;
    let ends = COLORS[usize::from(!is_right)];
    let [r, g, b] = ends.map(|end| (255.0 + part * (end - 255.0)).round() as u8);
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// A map with a row for each class, as shares of its samples.
pub(super) fn heat_map(matrix: &Confusion, title: &str) -> Scene {
    let classes = matrix.classes();
    let cell = (SIDE / classes.max(1) as f64).floor().clamp(CELL[1], CELL[0]);
    let side = cell * classes as f64;
    let label = canvas::text_width(&classes.saturating_sub(1).to_string(), TEXT);
    let line = 1.5 * f64::from(TEXT);
    let (left, top) = (label + line + 2.0 * GAP, 3.0 * GAP + 2.0 * line);
    let legend = 2.0 * LEGEND.len() as f64 * 54.0 + 2.0 * 60.0;
    let width = (left + side + 2.0 * GAP).max(legend + 2.0 * GAP);
    let left = left.max(0.5 * (width - side));
    let mut scene = canvas::sheet(width.ceil(), (top + side + 2.0 * GAP + line).ceil());
    let middle = TextAnchor::Middle;
    let size = canvas::fitted(title, 18, width - 2.0 * GAP);
    scene.add(canvas::text(0.5 * width, 2.0 * GAP, title, size, middle, false));
    let across = left + 0.5 * side;
    scene.add(canvas::text(across, top - line - 2.0, "Taken for", TEXT, middle, false));
    scene.add(upward([left - label - 1.5 * GAP, top + 0.5 * side], "Class"));
    let every = [1, 2, 5, 10, 20, 50, 100].into_iter().find(|&n| n as f64 * cell >= label + 4.0);
    for class in (0..classes).step_by(every.unwrap_or(100)) {
        let at = (class as f64 + 0.5) * cell;
        let (name, stand) = (class.to_string(), 0.36 * f64::from(TEXT));
        scene.add(canvas::text(left + at, top - 5.0, &name, TEXT, middle, false));
        let y = top + at + stand;
        scene.add(canvas::text(left - 6.0, y, &name, TEXT, TextAnchor::End, false));
    }
    cells(matrix, cell, [left, top], &mut scene);
    scene.add(canvas::rectangle([left, top], [side, side], "none", style::GRAY));
    key([0.5 * (width - legend), top + side + 1.5 * GAP], &mut scene);
    scene
}

/// The cells: a path for each color, of runs of equal cells.
fn cells(matrix: &Confusion, cell: f64, [left, top]: [f64; 2], scene: &mut Scene) {
    let mut paths: BTreeMap<(bool, u32), String> = BTreeMap::new();
    let mut numbers = Vec::new();
    for class in 0..matrix.classes() {
        let (row, samples) = (matrix.row(class), f64::from(matrix.samples(class).max(1)));
        let share = |column: usize| f64::from(row[column]) / samples;
        let kind = |column: usize| (column == class, shade(share(column)));
        let mut column = 0;
        while column < row.len() {
            let run = (column..row.len()).take_while(|&next| kind(next) == kind(column)).count();
            if kind(column).1 > 0 {
                let (x, y) = (column as f64 * cell, class as f64 * cell);
                *paths.entry(kind(column)).or_default() +=
                    &format!("M{x} {y}h{}v{cell}h-{0}z", run as f64 * cell);
            }
            column += run;
        }
        let shown = (0..row.len())
            .filter(|&column| cell >= NUMBERED && (100.0 * share(column)).round() >= 1.0);
        numbers.extend(shown.map(|column| (class, column, share(column))));
    }
    let transform = Some(format!("translate({left},{top})"));
    scene.add(Primitive::GroupStart { transform, title: None, extra_attrs: None });
    for ((is_right, shade), d) in paths {
        scene.add(Primitive::Path(Box::new(PathData {
            d,
            fill: Some(color(shade, is_right).into()),
            stroke: "none".into(),
            stroke_width: 0.0,
            opacity: None,
            stroke_dasharray: None,
        })));
    }
    scene.add(Primitive::GroupEnd);
    for (class, column, share) in numbers {
        let ink = if shade(share) > 15 { "#FFFFFF" } else { style::TEXT };
        let place = |at: usize| (at as f64 + 0.5) * cell;
        scene.add(Primitive::Text {
            x: left + place(column),
            y: top + place(class) + 0.36 * f64::from(TEXT),
            content: (100.0 * share).round().to_string(),
            size: TEXT,
            anchor: TextAnchor::Middle,
            rotate: None,
            bold: false,
            color: Some(ink.into()),
        });
    }
}

/// The meaning of the colors.
fn key([mut x, y]: [f64; 2], scene: &mut Scene) {
    let stand = y + 0.5 * f64::from(TEXT) + 0.36 * f64::from(TEXT);
    let words = |x: f64, text: &str| canvas::text(x, stand, text, TEXT, TextAnchor::Start, false);
    for (name, is_right) in [("right", true), ("wrong", false)] {
        scene.add(words(x, name));
        x += 48.0;
        for share in LEGEND {
            let fill = color(shade(share), is_right);
            scene.add(canvas::rectangle([x, y], [14.0, 14.0], &fill, style::GRAY));
            scene.add(words(x + 18.0, &format!("{:.0}%", 100.0 * share)));
            x += 54.0;
        }
        x += 12.0;
    }
}

/// A name beside the rows, read from below.
fn upward([x, y]: [f64; 2], name: &str) -> Primitive {
    Primitive::Text {
        x,
        y,
        content: name.into(),
        size: TEXT,
        anchor: TextAnchor::Middle,
        rotate: Some(-90.0),
        bold: false,
        color: None,
    }
}
