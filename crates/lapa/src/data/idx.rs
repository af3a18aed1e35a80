//! The IDX format: a magic number, big-endian sizes, then unsigned bytes.
//!
//! Format: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", section
//! "File formats". The magic number is 0x000008NN: 08 for unsigned bytes, NN dimensions.

use std::cmp::Ordering;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::fetch::io;
use super::samples::planes;
use super::{DataError, Result, Split};
use crate::files;
use crate::shape::Shape;

#[cfg(test)]
mod tests;

/// The standard names: training images and labels, test images and labels.
pub const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// Most bytes of data in one file. A few kilobytes of gzip can promise and hold terabytes.
const MAX_BYTES: u64 = 1 << 30;

/// Most channels of an image.
const MOST_CHANNELS: usize = 4;

/// A parsed IDX file.
#[derive(Debug)]
pub struct Idx {
    /// Its file.
    pub path: PathBuf,
    /// The sizes of its dimensions.
    pub dims: Vec<usize>,
    /// Everything after the header.
    pub data: Vec<u8>,
    /// SHA-256 of the uncompressed file, header included.
    pub sha256: String,
}

/// The file `name` or `name.gz` in a folder.
pub fn locate(folder: &Path, name: &str) -> Option<PathBuf> {
    [name.to_string(), format!("{name}.gz")]
        .map(|file| folder.join(file))
        .into_iter()
        .find(|path| path.is_file())
}

/// Undoes gzip if the first bytes say so; IDX itself starts with two zero bytes.
pub fn plain_or_gzip<'a>(mut input: impl BufRead + 'a) -> std::io::Result<Box<dyn Read + 'a>> {
    let gzip = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if gzip { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) })
}

/// Reads a file, plain or gzip, that should have this many dimensions.
pub fn read_file(path: &Path, dimensions: usize) -> Result<Idx> {
    let file = files::open_regular(path).map_err(io(path, "open"))?;
    parse(BufReader::new(file), dimensions)
        .map(|(dims, data, sha256)| Idx { path: path.into(), dims, data, sha256 })
        .map_err(|problem| DataError::File { path: path.into(), problem })
}

type Parsed = (Vec<usize>, Vec<u8>, String);

/// Never holds more than the header promises, nor more than [`MAX_BYTES`].
fn parse(input: impl BufRead, dimensions: usize) -> Result<Parsed, String> {
    let unreadable = |e| format!("cannot be read as plain or gzip IDX: {e}");
    let mut input =
        Hashing { input: plain_or_gzip(input).map_err(unreadable)?, hash: Sha256::new() };

    let length = 4 + 4 * dimensions;
    let mut header = Vec::with_capacity(length);
    input.by_ref().take(length as u64).read_to_end(&mut header).map_err(unreadable)?;
    let mut words = header.chunks_exact(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
    let magic = 0x0800 + dimensions as u32;
    match words.next() {
        Some(found) if found != magic => {
            return Err(format!("magic number is {found:#010x}, expected {magic:#010x}"));
        }
        _ if header.len() < length => {
            let found = header.len();
            return Err(format!("truncated: {found} bytes, expected a header of {length} bytes"));
        }
        _ => {}
    }

    let dims: Vec<u64> = words.map(u64::from).collect();
    let shape = dims.iter().map(u64::to_string).collect::<Vec<_>>().join("×");
    if dims.contains(&0) {
        return Err(format!("dimensions are {shape}, expected each to be at least 1"));
    }
    let promised = dims
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(dim))
        .filter(|&bytes| bytes <= MAX_BYTES)
        .ok_or_else(|| format!("dimensions are {shape}, expected at most {MAX_BYTES} bytes"))?;

    // A lying header must not reserve what the file does not hold.
    let mut data = Vec::with_capacity(promised.min(1 << 26) as usize + 1);
    input.by_ref().take(promised + 1).read_to_end(&mut data).map_err(unreadable)?;
    let found = data.len() as u64;
    match found.cmp(&promised) {
        Ordering::Less => Err(format!(
            "truncated: {found} bytes of data, expected {promised} for dimensions {shape}"
        )),
        Ordering::Greater => Err(format!(
            "too long: more than the {promised} bytes of data expected for dimensions {shape}"
        )),
        Ordering::Equal => Ok((
            dims.into_iter().map(|dim| dim as usize).collect(),
            data,
            files::hex(input.hash.finalize()),
        )),
    }
}

/// Pairs images with their labels.
pub fn split(images: Idx, labels: Idx) -> Result<Split> {
    let (count, expected) = (labels.dims[0], images.dims[0]);
    if count != expected {
        let images = images.path.display();
        return Err(DataError::File {
            path: labels.path,
            problem: format!("{count} labels, expected {expected}, one per image of {images}"),
        });
    }
    let channels = images.dims.get(3).copied().unwrap_or(1);
    if channels > MOST_CHANNELS {
        let dims = images.dims.iter().map(usize::to_string).collect::<Vec<_>>().join("×");
        let problem = format!("dimensions are {dims}; expected 1 to {MOST_CHANNELS} channels last");
        return Err(DataError::File { path: images.path, problem });
    }
    let shape = Shape::new(channels, images.dims[1], images.dims[2]);
    let values = if channels == 1 { images.data } else { planes(&images.data, shape) };
    Ok(Split { values: values.into(), labels: labels.data, shape })
}

/// Hashes what passes through.
struct Hashing<R> {
    input: R,
    hash: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
