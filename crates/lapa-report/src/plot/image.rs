//! Plots as pixels.

use std::io::Cursor;

use kuva::backend::raster::RasterBackend;
use kuva::render::render::{Primitive, Scene};

/// Pixels of the PNG per SVG unit.
const SCALE: usize = 2;
/// Drawn this much finer and averaged: the drawing library has no soft edges in rotated text.
const FINER: usize = 2;

/// Draws a PNG with [`SCALE`] pixels per unit; fonts are built in.
pub(super) fn png(mut scene: Scene) -> Result<Vec<u8>, String> {
    scene.elements = scene.elements.into_iter().flat_map(dashes).collect();
    let fine = RasterBackend::new().with_scale((SCALE * FINER) as f32).render_scene(&scene)?;
    let (width, pixels) = decode(&fine).map_err(|e| e.to_string())?;
    let (width, pixels) = average(width, &pixels);
    encode(width, &pixels).map_err(|e| e.to_string())
}

/// Dashes as lines of their own: the drawing library does not scale them, and begins anew at every
/// point of a curve.
fn dashes(element: Primitive) -> Vec<Primitive> {
    let (points, stroke, stroke_width, pattern) = match element {
        Primitive::Line {
            x1,
            y1,
            x2,
            y2,
            stroke,
            stroke_width,
            stroke_dasharray: Some(dashes),
        } => (vec![(x1, y1), (x2, y2)], stroke, stroke_width, dashes),
        Primitive::PolyLine { points, stroke, stroke_width, stroke_dasharray: Some(dashes) } => {
            (points, stroke, stroke_width, dashes)
        }
        other => return vec![other],
    };
    let lengths = pattern.split([' ', ',']).filter_map(|length| length.parse::<f64>().ok());
    // Lines have round ends here, which reach into the gaps by half a width each.
    let lengths: Vec<f64> = lengths
        .enumerate()
        .map(|(i, length)| if i % 2 == 0 { length - stroke_width } else { length + stroke_width })
        .map(|length| length.max(0.1))
        .collect();
    let line = |points: Vec<(f64, f64)>| Primitive::PolyLine {
        points,
        stroke: stroke.clone(),
        stroke_width,
        stroke_dasharray: None,
    };
    cut(&points, &lengths).into_iter().map(line).collect()
}

/// Cuts a curve into dashes: the first, third, … of `lengths` are drawn, over and over. They must
/// be positive; a curve without gaps stays whole.
fn cut(points: &[(f64, f64)], lengths: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let (Some(first), &[mut left, _, ..]) = (points.first(), lengths) else {
        return vec![points.to_vec()];
    };
    let mut pieces = vec![vec![*first]];
    for ends in points.windows(2) {
        let ((mut x, mut y), (to_x, to_y)) = (ends[0], ends[1]);
        let mut length = (to_x - x).hypot(to_y - y);
        while length > left {
            let share = left / length;
            (x, y) = (x + share * (to_x - x), y + share * (to_y - y));
            length -= left;
            if let Some(piece) = pieces.last_mut() {
                piece.push((x, y));
            }
            left = lengths[pieces.len() % lengths.len()];
            pieces.push(vec![(x, y)]);
        }
        left -= length;
        if let Some(piece) = pieces.last_mut() {
            piece.push((to_x, to_y));
        }
    }
    // Every second piece is a gap.
    pieces.into_iter().step_by(2).collect()
}

/// Width and pixels, red, green, blue and opacity each.
fn decode(png: &[u8]) -> Result<(usize, Vec<[u8; 4]>), png::DecodingError> {
    let mut reader = png::Decoder::new(Cursor::new(png)).read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().unwrap_or(0)];
    let width = reader.next_frame(&mut bytes)?.width as usize;
    Ok((width, bytes.as_chunks().0.to_vec()))
}

/// Means over squares of [`FINER`] by [`FINER`] pixels; what does not fill a square is cut off.
fn average(width: usize, pixels: &[[u8; 4]]) -> (usize, Vec<[u8; 3]>) {
    let (columns, rows) = (width / FINER, pixels.len() / width / FINER);
    let mean = |row: usize, column: usize, channel: usize| {
        let square = (0..FINER * FINER).map(|i| {
            let (y, x) = (row * FINER + i / FINER, column * FINER + i % FINER);
            usize::from(pixels[y * width + x][channel])
        });
        (square.sum::<usize>() / (FINER * FINER)) as u8
    };
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    (columns, places.map(|(row, column)| [0, 1, 2].map(|c| mean(row, column, c))).collect())
}

pub(super) fn encode(width: usize, pixels: &[[u8; 3]]) -> Result<Vec<u8>, png::EncodingError> {
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, width as u32, (pixels.len() / width) as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels.as_flattened())?;
    Ok(png)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_run_on_around_corners() {
        let corner = [(0.0, 0.0), (3.0, 0.0), (3.0, 4.0)];
        let dashes = vec![
            vec![(0.0, 0.0), (2.0, 0.0)],
            vec![(3.0, 0.0), (3.0, 2.0)],
            vec![(3.0, 3.0), (3.0, 4.0)],
        ];
        assert_eq!(cut(&corner, &[2.0, 1.0]), dashes);
        assert_eq!(cut(&corner, &[]), [corner.to_vec()]);
    }

    #[test]
    fn squares_are_averaged() {
        let gray = |v: u8| [v, v, v, 255];
        let row = [gray(0), gray(100), gray(8), gray(8), gray(9)];
        let next = [gray(0), gray(100), gray(8), gray(8), gray(9)];
        assert_eq!(average(5, &[row, next].concat()), (2, vec![[50; 3], [8; 3]]));
    }
}
