//! Plots as pixels.

use std::io::Cursor;

use kuva::backend::raster::RasterBackend;
use kuva::render::render::Scene;

/// Pixels of the PNG per SVG unit.
const SCALE: usize = 2;
/// Drawn this much finer and averaged: the drawing library has no soft edges in rotated text.
const FINER: usize = 2;

/// Draws a PNG with [`SCALE`] pixels per unit; fonts are built in.
pub(super) fn png(scene: &Scene) -> Result<Vec<u8>, String> {
    let fine = RasterBackend::new().with_scale((SCALE * FINER) as f32).render_scene(scene)?;
    let (width, pixels) = decode(&fine).map_err(|e| e.to_string())?;
    let (width, pixels) = average(width, &pixels);
    encode(width, &pixels).map_err(|e| e.to_string())
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

fn encode(width: usize, pixels: &[[u8; 3]]) -> Result<Vec<u8>, png::EncodingError> {
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
    fn squares_are_averaged() {
        let grey = |v: u8| [v, v, v, 255];
        let row = [grey(0), grey(100), grey(8), grey(8), grey(9)];
        let next = [grey(0), grey(100), grey(8), grey(8), grey(9)];
        assert_eq!(average(5, &[row, next].concat()), (2, vec![[50; 3], [8; 3]]));
    }
}
