//! Contact sheets: a few images of each class, as pixels.

use std::io::Write;
use std::path::Path;

use lapa::data::{Split, Values};
use lapa::files::Folder;

use super::{PlotError, image};

/// Images of a class, side by side.
const OF_CLASS: usize = 10;
/// Most classes on a sheet.
const MOST_CLASSES: usize = 40;
/// Shorter side of an image at least, in pixels.
const LEAST_SIDE: usize = 56;
/// Pixels between images.
const GAP: usize = 4;
/// Gray between images.
const GROUND: [u8; 3] = [0x80; 3];

/// Writes the first images of each class, a row each, as a PNG. Of images in color the first three
/// channels are red, green and blue. Floats go from the least, black, to the largest, white.
pub fn contact_sheet(split: &Split, path: &Path) -> Result<(), PlotError> {
    let shape = split.shape;
    let factor = LEAST_SIDE.div_ceil(shape.rows.min(shape.cols).max(1)).max(1);
    let [height, width] = [shape.rows * factor + GAP, shape.cols * factor + GAP];
    let rows = rows(split);
    let size = [GAP + OF_CLASS * width, GAP + rows.len() * height];
    let mut pixels = vec![GROUND; size[0] * size[1]];
    for (row, samples) in rows.iter().enumerate() {
        for (column, &sample) in samples.iter().enumerate() {
            let values = bytes(split, sample);
            for y in 0..shape.rows * factor {
                for x in 0..shape.cols * factor {
                    let at = y / factor * shape.cols + x / factor;
                    let channel = |c: usize| values[at + c.min(shape.channels - 1) * shape.area()];
                    let color =
                        if shape.channels < 3 { [channel(0); 3] } else { [0, 1, 2].map(channel) };
                    pixels[(GAP + row * height + y) * size[0] + GAP + column * width + x] = color;
                }
            }
        }
    }
    let png = image::encode(size[0], &pixels);
    let png =
        png.map_err(|error| PlotError::Png { path: path.into(), message: error.to_string() })?;
    let written = Folder::of(path)
        .and_then(|(folder, name)| folder.replace(name, |file| file.write_all(&png)));
    written.map_err(|source| PlotError::Io { path: path.into(), source })
}

/// The first samples of each class that has any.
fn rows(split: &Split) -> Vec<Vec<usize>> {
    let mut of_class = vec![Vec::new(); 256];
    for (sample, &label) in split.labels.iter().enumerate() {
        let samples = &mut of_class[usize::from(label)];
        if samples.len() < OF_CLASS {
            samples.push(sample);
        }
    }
    of_class.retain(|samples| !samples.is_empty());
    of_class.truncate(MOST_CLASSES);
    of_class
}

fn bytes(split: &Split, sample: usize) -> Vec<u8> {
    match &split.values {
        Values::Bytes(bytes) | Values::Normalized(bytes, _) => bytes[split.places(sample)].to_vec(),
        Values::Floats(_) | Values::Halves(_) => {
            let values = split.input(sample);
            let least = values.iter().copied().fold(f32::INFINITY, f32::min);
            let span = values.iter().copied().fold(f32::NEG_INFINITY, f32::max) - least;
            let byte = |&value: &f32| if span > 0.0 { 255.0 * (value - least) / span } else { 0.0 };
            values.iter().map(|value| byte(value) as u8).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes stand below each other, and color stays.
    #[test]
    fn images_stand_in_the_rows_of_their_classes() {
        let shape = lapa::model::Shape::new(3, 2, 1);
        let red = [255, 0, 0, 10, 0, 20];
        let green = [0, 0, 255, 255, 0, 0];
        let values = [red, green, red].concat();
        let split = Split { values: values.into(), labels: vec![7, 2, 7], shape };
        assert_eq!(rows(&split), [vec![1], vec![0, 2]]);
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("sheet.png");
        contact_sheet(&split, &path).unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        // 56-fold, so that the shorter side has 56 pixels.
        assert_eq!((info.width, info.height), (4 + 10 * 60, 4 + 2 * 116));
        let pixel = |x: usize, y: usize| &bytes[3 * (y * 604 + x)..][..3];
        assert_eq!(
            (pixel(0, 0), pixel(5, 5), pixel(5, 70)),
            (&GROUND[..], &[0, 255, 0][..], &[0, 255, 0][..])
        );
        assert_eq!((pixel(5, 125), pixel(65, 185)), (&[255, 0, 0][..], &[0, 10, 20][..]));
    }
}
