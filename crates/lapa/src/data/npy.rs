//! Arrays of NumPy: a header that is a Python literal, then the values.
//!
//! Format: NumPy Enhancement Proposal 1, versions 1.0 to 3.0. Little-endian and C order alone.

use std::io::Read;

/// Most bytes of an array. A few kilobytes of a compressed file can promise and hold terabytes.
const MAX_BYTES: u64 = 1 << 30;
/// Most bytes of a header.
const MAX_HEADER: u64 = 1 << 16;

/// Values of an array.
pub enum Numbers {
    Bytes(Vec<u8>),
    Floats(Vec<f32>),
    /// Whole numbers of other types.
    Whole(Vec<i64>),
}

/// An array.
pub struct Array {
    pub dims: Vec<usize>,
    pub numbers: Numbers,
}

impl Array {
    /// The sizes of its dimensions, as `60000×28×28`.
    pub fn sizes(&self) -> String {
        self.dims.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
    }
}

/// Reads an array; an error says what is wrong with it.
pub fn read(input: &mut dyn Read) -> Result<Array, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let mut start = [0; 8];
    input.read_exact(&mut start).map_err(unreadable)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err("no array of NumPy: it does not begin with \\x93NUMPY".into());
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            input.read_exact(&mut length).map_err(unreadable)?;
            u64::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            input.read_exact(&mut length).map_err(unreadable)?;
            u64::from(u32::from_le_bytes(length))
        }
        version => return Err(format!("format version {version}; expected 1 to 3")),
    };
    if length > MAX_HEADER {
        return Err(format!("a header of {length} bytes; expected at most {MAX_HEADER}"));
    }
    let mut header = String::new();
    input.take(length).read_to_string(&mut header).map_err(unreadable)?;
    let (kind, dims) = parse(&header)?;
    let shape = Array { dims, numbers: Numbers::Bytes(Vec::new()) };
    let sizes = shape.sizes();
    let promised = shape
        .dims
        .iter()
        .try_fold(kind.bytes() as u64, |product, &dim| product.checked_mul(dim as u64))
        .filter(|&bytes| bytes <= MAX_BYTES)
        .ok_or_else(|| format!("dimensions are {sizes}; expected at most {MAX_BYTES} bytes"))?;
    // A lying header must not reserve what the file does not hold.
    let mut bytes = Vec::with_capacity(promised.min(1 << 26) as usize + 1);
    input.take(promised + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 != promised {
        let found =
            if (bytes.len() as u64) < promised { bytes.len().to_string() } else { "more".into() };
        return Err(format!("{found} bytes of values; expected {promised} for dimensions {sizes}"));
    }
    Ok(Array { numbers: kind.numbers(bytes), ..shape })
}

/// Type of the values.
#[derive(Clone, Copy)]
struct Kind {
    letter: char,
    bytes: usize,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        let known = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"];
        let kind = text.strip_prefix(['<', '|', '=']).filter(|kind| known.contains(kind))?;
        let mut letters = kind.chars();
        Some(Self { letter: letters.next()?, bytes: letters.as_str().parse().ok()? })
    }

    fn bytes(self) -> usize {
        self.bytes
    }

    fn numbers(self, bytes: Vec<u8>) -> Numbers {
        // Sign and size say how a number's bytes are extended to eight.
        let wide = |number: &[u8]| {
            let is_negative = self.letter == 'i' && number[self.bytes - 1] >= 0x80;
            let mut wide = [if is_negative { 0xff } else { 0 }; 8];
            wide[..self.bytes].copy_from_slice(number);
            wide
        };
        let all = bytes.chunks_exact(self.bytes).map(wide);
        match (self.letter, self.bytes) {
            ('u', 1) => Numbers::Bytes(bytes),
            ('f', 4) => {
                Numbers::Floats(all.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
            }
            ('f', _) => Numbers::Floats(all.map(|b| f64::from_le_bytes(b) as f32).collect()),
            // Beyond i64 it is no label, and -1 is none either.
            ('u', 8) => Numbers::Whole(
                all.map(|b| u64::from_le_bytes(b).try_into().unwrap_or(-1)).collect(),
            ),
            _ => Numbers::Whole(all.map(i64::from_le_bytes).collect()),
        }
    }
}

/// Type and dimensions by the header, `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse(header: &str) -> Result<(Kind, Vec<usize>), String> {
    let field = |key: &str| {
        let (_, rest) = header.split_once(&format!("'{key}':"))?;
        Some(rest.trim_start())
    };
    let broken = || format!("no header of an array: {}", header.trim());
    let descr = field("descr").and_then(|rest| rest.strip_prefix('\'')).ok_or_else(broken)?;
    let (descr, _) = descr.split_once('\'').ok_or_else(broken)?;
    let kind = Kind::parse(descr).ok_or_else(|| {
        format!("values of type {descr}; expected whole numbers, float32 or float64, little-endian")
    })?;
    let shape = field("shape").and_then(|rest| rest.strip_prefix('(')).ok_or_else(broken)?;
    let (shape, _) = shape.split_once(')').ok_or_else(broken)?;
    let dims = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty()).map(str::parse);
    let dims: Vec<usize> = dims.collect::<Result<_, _>>().map_err(|_| broken())?;
    if field("fortran_order").ok_or_else(broken)?.starts_with("True") && dims.len() > 1 {
        return Err("Fortran order; expected C order: save numpy.ascontiguousarray(array)".into());
    }
    Ok((kind, dims))
}
