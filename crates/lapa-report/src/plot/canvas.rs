//! Drawing by hand: text and lines at places on an empty sheet.

use kuva::render::render::{Primitive, Scene, TextAnchor};

use super::style;

/// An empty sheet.
pub(super) fn sheet(width: f64, height: f64) -> Scene {
    let mut scene = Scene::new(width, height);
    scene.font_family = Some(style::FONTS.into());
    scene.text_color = Some(style::TEXT.into());
    scene
}

/// A line of text; `y` is where its letters stand.
pub(super) fn text(
    x: f64,
    y: f64,
    content: &str,
    size: u32,
    anchor: TextAnchor,
    bold: bool,
) -> Primitive {
    let content = style::plain(content);
    Primitive::Text { x, y, content, size, anchor, rotate: None, bold, color: None }
}

/// A straight line.
pub(super) fn line(
    from: [f64; 2],
    to: [f64; 2],
    color: &str,
    width: f64,
    dashed: bool,
) -> Primitive {
    Primitive::Line {
        x1: from[0],
        y1: from[1],
        x2: to[0],
        y2: to[1],
        stroke: color.into(),
        stroke_width: width,
        stroke_dasharray: dashed.then(|| style::DASHES.into()),
    }
}

/// A rectangle, with a border unless that has no color.
pub(super) fn rectangle(corner: [f64; 2], size: [f64; 2], fill: &str, border: &str) -> Primitive {
    Primitive::Rect {
        x: corner[0],
        y: corner[1],
        width: size[0],
        height: size[1],
        fill: fill.into(),
        stroke: Some(border.into()),
        stroke_width: Some(1.4),
        opacity: None,
    }
}

/// About how wide a text is, rather too wide than too narrow: the drawing library keeps the widths
/// of its letters to itself.
pub(super) fn text_width(text: &str, size: u32) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '/' => 0.34,
        'f' | 'r' | 't' | '(' | ')' | '-' | '!' => 0.42,
        'w' | '=' | '+' | '<' | '>' | '×' | '≤' | '≥' | '→' => 0.84,
        'm' | 'M' | 'W' | '%' | '@' | '—' | '…' => 1.0,
        c if c.is_uppercase() => 0.79,
        _ => 0.64,
    };
    f64::from(size) * text.chars().map(em).sum::<f64>()
}

/// The largest size up to `size` in which a text is at most `room` wide.
pub(super) fn fitted(text: &str, size: u32, room: f64) -> u32 {
    let fits = |size: &u32| text_width(text, *size) <= room;
    (1..=size).rev().find(fits).unwrap_or(1)
}
