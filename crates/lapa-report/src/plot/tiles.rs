//! Tables of colored tiles: how sure a statement is, condition by condition.

use std::path::{Path, PathBuf};

use kuva::render::render::{Primitive, Scene, TextAnchor};

use super::{PlotError, canvas, save, style};

/// Size of a tile with a number or a word, and of one with a sign.
const TILE: [f64; 2] = [46.0, 24.0];
const SMALL: [f64; 2] = [26.0, 20.0];
/// Room around the table and between its parts.
const GAP: f64 = 12.0;
/// Size of the text.
const TEXT: u32 = 13;
/// Slope of the labels above the columns, in degrees.
const SLOPE: f64 = 40.0;

/// Certainty of a statement: blue for it, orange against it, faint where it may be chance. The colors
/// are those of lines, which color-blind readers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Surely so.
    For,
    /// So, which may be chance.
    MaybeFor,
    /// Not so, which may be chance.
    MaybeAgainst,
    /// Surely not so.
    Against,
    /// Not known.
    Unknown,
}

impl Tone {
    /// Fill, and color of the text on it.
    fn colors(self) -> (&'static str, &'static str) {
        match self {
            Self::For => ("#0072B2", "#FFFFFF"),
            Self::MaybeFor => ("#B9DBEE", style::TEXT),
            Self::MaybeAgainst => ("#F6D9B8", style::TEXT),
            Self::Against => ("#C4500A", "#FFFFFF"),
            Self::Unknown => ("#E6E6E6", style::TEXT),
        }
    }
}

/// A tile: a tone, and a few letters on it.
#[derive(Clone, Debug)]
pub struct Tile {
    /// Its color.
    pub tone: Tone,
    /// At most six letters.
    pub text: String,
}

/// A table of tiles, with names for rows and columns.
#[derive(Clone, Debug)]
pub struct Tiles {
    title: String,
    columns: Vec<String>,
    tile: [f64; 2],
    rows: Vec<(String, Vec<Option<Tile>>)>,
    legend: Vec<(Tone, String, String)>,
}

impl Tiles {
    /// A table without rows yet. A column with an empty name is a gap between groups.
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = String>) -> Self {
        let (title, columns) = (title.into(), columns.into_iter().collect());
        Self { title, columns, tile: TILE, rows: Vec::new(), legend: Vec::new() }
    }

    /// Small tiles, which have room for a sign.
    pub fn small(self) -> Self {
        Self { tile: SMALL, ..self }
    }

    /// Adds a row.
    pub fn row(mut self, label: impl Into<String>, tiles: Vec<Option<Tile>>) -> Self {
        self.rows.push((label.into(), tiles));
        self
    }

    /// Adds the meaning of a tone.
    pub fn legend(self, tone: Tone, meaning: impl Into<String>) -> Self {
        self.sign(tone, "", meaning)
    }

    /// Adds the meaning of a sign on a tone.
    pub fn sign(mut self, tone: Tone, sign: &str, meaning: impl Into<String>) -> Self {
        self.legend.push((tone, sign.into(), meaning.into()));
        self
    }

    /// Writes `stem.svg` and `stem.png`.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        if self.rows.iter().all(|(_, tiles)| tiles.iter().all(Option::is_none)) {
            return Err(PlotError::NoPoints { stem: stem.into() });
        }
        save(self.scene(), stem)
    }

    fn scene(&self) -> Scene {
        let width_of = |text: &String| canvas::text_width(text, TEXT);
        let labels = self.rows.iter().map(|(label, _)| width_of(label)).fold(0.0, f64::max);
        let (sine, cosine) = SLOPE.to_radians().sin_cos();
        let names = || self.columns.iter().enumerate().map(|(at, name)| (at, width_of(name)));
        let above = names().map(|(_, width)| sine * width).fold(0.0, f64::max);
        let [tile_width, tile_height] = self.tile;
        let left = labels + 2.0 * GAP;
        let mut table = left;
        let mut middles = Vec::new();
        for name in &self.columns {
            let width = if name.is_empty() { GAP } else { tile_width };
            middles.push(table + 0.5 * width);
            table += width;
        }
        let right = names().map(|(at, width)| middles[at] + cosine * width);
        let legend: f64 =
            self.legend.iter().map(|(_, _, text)| tile_width + width_of(text) + 1.5 * GAP).sum();
        let width = right.fold(table.max(legend + GAP), f64::max) + 2.0 * GAP;
        let title = if self.title.is_empty() { GAP } else { 3.0 * GAP };
        let top = title + above + 1.5 * GAP;
        let bottom = top + self.rows.len() as f64 * tile_height;
        let mut scene = canvas::sheet(width.ceil(), (bottom + 3.0 * GAP).ceil());
        if !self.title.is_empty() {
            let size = canvas::fitted(&self.title, 18, width - 2.0 * GAP);
            let middle = TextAnchor::Middle;
            scene.add(canvas::text(0.5 * width, 2.0 * GAP, &self.title, size, middle, false));
        }
        for (column, name) in self.columns.iter().enumerate() {
            scene.add(sloping([middles[column] - 2.0, top - 0.5 * GAP], name));
        }
        for (row, (label, tiles)) in self.rows.iter().enumerate() {
            let y = top + row as f64 * tile_height;
            let stand = y + 0.5 * tile_height + 0.36 * f64::from(TEXT);
            scene.add(canvas::text(left - GAP, stand, label, TEXT, TextAnchor::End, false));
            for (column, tile) in tiles.iter().enumerate() {
                if let Some(tile) = tile {
                    let x = middles[column] - 0.5 * tile_width;
                    draw(tile.tone, &tile.text, [x, y], self.tile, &mut scene);
                }
            }
        }
        let mut x = GAP;
        for (tone, sign, meaning) in &self.legend {
            draw(*tone, sign, [x, bottom + GAP], self.tile, &mut scene);
            let stand = bottom + GAP + 0.5 * tile_height + 0.36 * f64::from(TEXT);
            let beside = x + tile_width + 0.5 * GAP;
            scene.add(canvas::text(beside, stand, meaning, TEXT, TextAnchor::Start, false));
            x = beside + width_of(meaning) + GAP;
        }
        scene
    }
}

/// A name above a column, which climbs from there.
fn sloping([x, y]: [f64; 2], name: &str) -> Primitive {
    Primitive::Text {
        x,
        y,
        content: style::plain(name),
        size: TEXT,
        anchor: TextAnchor::Start,
        rotate: Some(-SLOPE),
        bold: false,
        color: None,
    }
}

fn draw(tone: Tone, text: &str, [x, y]: [f64; 2], tile: [f64; 2], scene: &mut Scene) {
    let (fill, ink) = tone.colors();
    scene.add(canvas::rectangle([x + 1.0, y + 1.0], tile.map(|side| side - 2.0), fill, fill));
    scene.add(Primitive::Text {
        x: x + 0.5 * tile[0],
        y: y + 0.5 * tile[1] + 0.36 * f64::from(TEXT),
        content: style::plain(text),
        size: canvas::fitted(text, TEXT, tile[0] - 4.0),
        anchor: TextAnchor::Middle,
        rotate: None,
        bold: false,
        color: Some(ink.into()),
    });
}
