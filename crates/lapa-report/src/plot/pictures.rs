//! Small images in a grid.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};
use lapa::model::Shape;

use super::svg::svg;
use super::{PlotError, canvas, save, style};

/// Shades from white to black.
const SHADES: u8 = 24;
/// Shades of red, green and blue: more would make drawings of noise large.
const COLORS: u8 = 12;
/// The color of the sheet, which is not drawn.
const WHITE: [u8; 3] = [0xFF; 3];
/// Units per pixel of an image.
const PIXEL: usize = 3;
/// Room around the grid and between its parts.
const GAP: f64 = 12.0;
/// Size of the text.
const TEXT: u32 = 13;

/// A grid of images of one shape, with labels for rows and columns. Of images in color the first
/// three channels are red, green and blue. Of others the first is drawn, bright pixels dark, as ink
/// on paper.
#[derive(Clone, Debug)]
pub struct Pictures {
    title: String,
    shape: Shape,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Picture>)>,
}

/// An image and what stands below it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Channel by channel and row by row, in [0, 1]; what is outside of it, or no number, is drawn as the nearest shade.
    pub pixels: Vec<f32>,
    /// May be empty.
    pub caption: String,
}

impl Pictures {
    /// A grid without images yet, with what stands above its columns. An empty title takes no room.
    pub fn new(
        title: impl Into<String>,
        shape: Shape,
        columns: impl IntoIterator<Item = String>,
    ) -> Self {
        let columns = columns.into_iter().collect();
        Self { title: title.into(), shape, columns, rows: Vec::new() }
    }

    /// Adds a row of images and what stands before it.
    pub fn row(mut self, label: impl Into<String>, pictures: Vec<Picture>) -> Self {
        self.rows.push((label.into(), pictures));
        self
    }

    /// Writes `stem.svg` and `stem.png`.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        save(self.scene(stem)?, stem)
    }

    /// The text of an SVG file of this name, without writing one.
    pub fn svg(&self, name: &str) -> Result<String, PlotError> {
        let stem = Path::new(name);
        Ok(svg(&self.scene(stem)?, stem))
    }

    fn scene(&self, stem: &Path) -> Result<Scene, PlotError> {
        if self.rows.iter().all(|(_, pictures)| pictures.is_empty()) {
            return Err(PlotError::NoPoints { stem: stem.into() });
        }
        let pictures = || self.rows.iter().flat_map(|(_, pictures)| pictures);
        let [image_width, image_height] =
            [self.shape.cols, self.shape.rows].map(|n| (n * PIXEL) as f64);
        let widest = |texts: &mut dyn Iterator<Item = &String>| {
            texts.map(|text| canvas::text_width(text, TEXT)).fold(0.0, f64::max)
        };
        let labels = widest(&mut self.rows.iter().map(|(label, _)| label));
        let captions = widest(&mut pictures().map(|picture| &picture.caption));
        let above = widest(&mut self.columns.iter());
        let line = 1.5 * f64::from(TEXT);
        let step_x = image_width.max(captions).max(above) + GAP;
        let step_y = image_height + GAP + if captions > 0.0 { line } else { 0.0 };
        let columns = self.rows.iter().map(|(_, pictures)| pictures.len()).max().unwrap_or(0);
        let columns = columns.max(self.columns.len());
        let left = if labels > 0.0 { labels + 2.0 * GAP } else { GAP };
        let title = if self.title.is_empty() { GAP } else { 3.0 * GAP };
        let top = title + if above > 0.0 { line } else { 0.0 };

        let width = left + columns as f64 * step_x;
        let sheet_height = top + self.rows.len() as f64 * step_y;
        let mut scene = canvas::sheet(width.ceil(), sheet_height.ceil());
        if !self.title.is_empty() {
            let size = canvas::fitted(&self.title, 18, width - 2.0 * GAP);
            let middle = TextAnchor::Middle;
            scene.add(canvas::text(0.5 * width, 2.0 * GAP, &self.title, size, middle, false));
        }
        let middle_of = |column: usize| left + (column as f64 + 0.5) * step_x - 0.5 * GAP;
        for (column, name) in self.columns.iter().enumerate() {
            let (x, y) = (middle_of(column), top - 0.5 * f64::from(TEXT));
            scene.add(canvas::text(x, y, name, TEXT, TextAnchor::Middle, false));
        }
        for (row, (label, pictures)) in self.rows.iter().enumerate() {
            let y = top + row as f64 * step_y;
            let stand = y + 0.5 * image_height + 0.36 * f64::from(TEXT);
            scene.add(canvas::text(left - GAP, stand, label, TEXT, TextAnchor::End, false));
            for (column, picture) in pictures.iter().enumerate() {
                // Whole units, so that pixels are sharp.
                let x = (middle_of(column) - 0.5 * image_width).round();
                self.draw(picture, [x, y.round()], [image_width, image_height], &mut scene);
                let (x, y) = (middle_of(column), y.round() + image_height + 1.1 * f64::from(TEXT));
                let caption = &picture.caption;
                scene.add(canvas::text(x, y, caption, TEXT, TextAnchor::Middle, false));
            }
        }
        Ok(scene)
    }

    /// The color of a pixel.
    fn color(&self, pixels: &[f32], at: usize) -> [u8; 3] {
        let channel = |c: usize| pixels[c * self.shape.area() + at];
        if self.shape.channels < 3 {
            let shade = |pixel| 255 - byte(pixel, SHADES);
            return [shade(channel(0)); 3];
        }
        [0, 1, 2].map(|c| byte(channel(c), COLORS))
    }

    /// A path for each color, of runs of equal pixels: images as such are not allowed on pages that
    /// stand alone.
    fn draw(&self, picture: &Picture, corner: [f64; 2], size: [f64; 2], scene: &mut Scene) {
        scene.add(canvas::rectangle(corner, size, "#FFFFFF", style::GRAY));
        let mut paths: BTreeMap<[u8; 3], String> = BTreeMap::new();
        let (rows, cols) = (self.shape.rows, self.shape.cols);
        for row in 0..rows {
            let of = |col: usize| self.color(&picture.pixels, row * cols + col);
            let mut col = 0;
            while col < cols {
                let color = of(col);
                let run = (col..cols).take_while(|&next| of(next) == color).count();
                let (x, y, length) = (col * PIXEL, row * PIXEL, run * PIXEL);
                if color != WHITE {
                    let path = paths.entry(color).or_default();
                    // Writing to a string cannot fail.
                    let _ = write!(path, "M{x} {y}h{length}v{PIXEL}h-{length}z");
                }
                col += run;
            }
        }
        scene.add(Primitive::GroupStart {
            transform: Some(format!("translate({},{})", corner[0], corner[1])),
            title: None,
            extra_attrs: Some("shape-rendering=\"crispEdges\"".into()),
        });
        // From light to dark.
        for ([r, g, b], d) in paths.into_iter().rev() {
            scene.add(Primitive::Path(Box::new(PathData {
                d,
                fill: Some(format!("#{r:02X}{g:02X}{b:02X}").into()),
                stroke: "none".into(),
                stroke_width: 0.0,
                opacity: None,
                stroke_dasharray: None,
            })));
        }
        scene.add(Primitive::GroupEnd);
    }
}

/// The nearest of some shades, as a byte.
fn byte(pixel: f32, shades: u8) -> u8 {
    let last = shades - 1;
    // No number becomes 0, as a cast has it.
    let shade = (pixel.clamp(0.0, 1.0) * f32::from(last)).round() as u8;
    (u16::from(shade) * 255 / u16::from(last)) as u8
}
