//! Pictures in PNG or JPEG: decoded to bytes of gray or color, and resized.

use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::parts::MAX_BYTES;
use crate::shape::Shape;

/// Most bytes of a decoded picture. A few kilobytes of a file can promise gigabytes.
const MAX_PICTURE: usize = 1 << 27;
/// Red, green, blue, and how much covers what is behind it.
const MOST_CHANNELS: usize = 4;

/// A picture, pixel by pixel.
#[derive(Debug, PartialEq)]
pub struct Picture {
    /// 1 channel for gray, 3 for color.
    pub shape: Shape,
    bytes: Vec<u8>,
}

impl Picture {
    /// Decodes a PNG or a JPEG. 16 bits become 8; what says how much a pixel covers is left out.
    pub fn decode(encoded: &[u8]) -> Result<Self, String> {
        match encoded {
            [0x89, b'P', b'N', b'G', ..] => png(encoded),
            [0xff, 0xd8, ..] => jpeg(encoded),
            _ => Err("no PNG and no JPEG".into()),
        }
    }

    /// The picture in other sides. Where it shrinks, all pixels count: the weights are those of a
    /// triangle as wide as two new pixels (bilinear interpolation, where it grows).
    fn resized(&self, [rows, cols]: [usize; 2]) -> Self {
        let Shape { channels, rows: height, cols: width } = self.shape;
        let across = weights(width, cols);
        let mut narrow = vec![0f32; channels * height * cols];
        for (line, row) in narrow.chunks_exact_mut(cols * channels).zip(self.lines()) {
            for (pixel, (first, weights)) in line.chunks_exact_mut(channels).zip(&across) {
                for (weight, from) in weights.iter().zip(row[first * channels..].chunks(channels)) {
                    pixel.iter_mut().zip(from).for_each(|(to, &x)| *to += weight * f32::from(x));
                }
            }
        }
        let mut bytes = Vec::with_capacity(channels * rows * cols);
        let mut line = vec![0f32; cols * channels];
        for (first, weights) in weights(height, rows) {
            line.fill(0.0);
            for (weight, from) in
                weights.iter().zip(narrow[first * line.len()..].chunks(line.len()))
            {
                line.iter_mut().zip(from).for_each(|(to, x)| *to += weight * x);
            }
            bytes.extend(line.iter().map(|x| (x + 0.5).clamp(0.0, 255.0) as u8));
        }
        Self { shape: Shape::new(channels, rows, cols), bytes }
    }

    /// Its rows of pixels.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.shape.cols * self.shape.channels)
    }

    /// Adds its bytes channel by channel; gray is the same in each of them.
    fn add_planes(&self, channels: usize, planes: &mut Vec<u8>) {
        let own = self.shape.channels;
        for channel in 0..channels {
            planes.extend(self.bytes.iter().skip(channel.min(own - 1)).step_by(own));
        }
    }
}

/// For each of `to` new pixels the first of `from` old ones that counts, and the weights.
fn weights(from: usize, to: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = from as f64 / to as f64;
    let reach = scale.max(1.0);
    let weights = |at: usize| {
        let center = (at as f64 + 0.5) * scale;
        let first = (center - reach + 0.5).max(0.0) as usize;
        let end = ((center + reach + 0.5) as usize).min(from);
        let triangle = |at| (1.0 - ((at as f64 + 0.5 - center) / reach).abs()).max(0.0);
        let weights: Vec<f64> = (first..end).map(triangle).collect();
        let sum: f64 = weights.iter().sum();
        (first, weights.iter().map(|weight| (weight / sum) as f32).collect())
    };
    (0..to).map(weights).collect()
}

fn png(encoded: &[u8]) -> Result<Picture, String> {
    let broken = |error: png::DecodingError| format!("cannot be read as PNG: {error}");
    let limits = png::Limits { bytes: MAX_PICTURE };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(encoded), limits);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let header = decoder.read_header_info().map_err(broken)?;
    let (cols, rows) = (header.width as usize, header.height as usize);
    refuse_bomb(rows, cols)?;
    let mut reader = decoder.read_info().map_err(broken)?;
    // Unwrap safety: the sides were counted.
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut bytes).map_err(broken)?;
    let samples = reader.output_color_type().0.samples();
    let channels = if samples < 3 { 1 } else { 3 };
    if samples != channels {
        bytes = bytes.chunks_exact(samples).flat_map(|pixel| &pixel[..channels]).copied().collect();
    }
    Ok(Picture { shape: Shape::new(channels, rows, cols), bytes })
}

fn jpeg(encoded: &[u8]) -> Result<Picture, String> {
    let broken = |error| format!("cannot be read as JPEG: {error}");
    let options = DecoderOptions::default().set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(encoded), options);
    decoder.decode_headers().map_err(broken)?;
    let info = decoder.info().ok_or("cannot be read as JPEG: no header")?;
    let (rows, cols) = (usize::from(info.height), usize::from(info.width));
    refuse_bomb(rows, cols)?;
    let (channels, color) =
        if info.components == 1 { (1, ColorSpace::Luma) } else { (3, ColorSpace::RGB) };
    decoder.set_options(options.jpeg_set_out_colorspace(color));
    let bytes = decoder.decode().map_err(broken)?;
    let shape = Shape::new(channels, rows, cols);
    if bytes.len() != shape.len() {
        return Err(format!(
            "{} bytes of pixels; expected {} for {shape}",
            bytes.len(),
            shape.len()
        ));
    }
    Ok(Picture { shape, bytes })
}

fn refuse_bomb(rows: usize, cols: usize) -> Result<(), String> {
    let bytes = rows.checked_mul(cols).and_then(|pixels| pixels.checked_mul(MOST_CHANNELS));
    if rows == 0 || cols == 0 || bytes.is_none_or(|bytes| bytes > MAX_PICTURE) {
        let most = MAX_PICTURE / MOST_CHANNELS;
        return Err(format!("a picture of {rows}×{cols}; expected 1 to {most} pixels"));
    }
    Ok(())
}

/// The sides of all pictures of a data set: those that are declared, or else those of the first.
pub struct Frame {
    size: [usize; 2],
    is_declared: bool,
}

impl Frame {
    /// The frame of `count` pictures; refuses more than may be in memory.
    pub fn new(declared: Option<[u32; 2]>, first: &[u8], count: usize) -> Result<Self, String> {
        let size = match declared {
            Some(size) => size.map(|side| side as usize),
            None => {
                let shape = Picture::decode(first)?.shape;
                [shape.rows, shape.cols]
            }
        };
        let [rows, cols] = size;
        let bytes = (rows as u64 * cols as u64 * 3).saturating_mul(count as u64);
        if bytes > MAX_BYTES {
            return Err(format!(
                "{count} pictures of {rows}×{cols} may take {bytes} bytes; expected at most \
                 {MAX_BYTES}: lower data.size"
            ));
        }
        Ok(Self { size, is_declared: declared.is_some() })
    }

    /// A picture in these sides.
    pub fn fit(&self, encoded: &[u8]) -> Result<Picture, String> {
        let picture = Picture::decode(encoded)?;
        let (Shape { rows, cols, .. }, [height, width]) = (picture.shape, self.size);
        match [rows, cols] == self.size {
            true => Ok(picture),
            false if self.is_declared => Ok(picture.resized(self.size)),
            false => Err(format!(
                "a picture of {rows}×{cols}; expected {height}×{width} as the first one: make them \
                 alike, or set data.size, to which all are resized"
            )),
        }
    }

    /// The shape of these pictures as samples: in color if one of them is.
    pub fn shape<'a>(&self, pictures: impl IntoIterator<Item = &'a Picture>) -> Shape {
        let channels = pictures.into_iter().map(|picture| picture.shape.channels).max();
        let channels = channels.unwrap_or(1);
        Shape::new(channels, self.size[0], self.size[1])
    }
}

/// Pictures as samples of a shape; the error is the place of one in color among gray ones.
pub fn planes(pictures: Vec<Picture>, shape: Shape) -> Result<Vec<u8>, usize> {
    if let Some(at) = pictures.iter().position(|picture| picture.shape.channels > shape.channels) {
        return Err(at);
    }
    let mut planes = Vec::with_capacity(pictures.len() * shape.len());
    pictures.into_iter().for_each(|picture| picture.add_planes(shape.channels, &mut planes));
    Ok(planes)
}

#[cfg(test)]
mod tests;
