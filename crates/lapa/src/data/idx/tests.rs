use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn file(magic: u32, dims: &[u32], data: &[u8]) -> Vec<u8> {
    let header = std::iter::once(&magic).chain(dims).flat_map(|word| word.to_be_bytes());
    header.chain(data.iter().copied()).collect()
}

/// Answer of the parser to a file, which must not depend on compression.
fn problem(bytes: &[u8], dimensions: usize) -> String {
    let plain = parse(bytes, dimensions).unwrap_err();
    assert_eq!(parse(&gzip(bytes)[..], dimensions).unwrap_err(), plain);
    plain
}

#[test]
fn plain_and_gzip_read_the_same() {
    let bytes = file(0x803, &[2, 1, 3], &[1, 2, 3, 4, 5, 6]);
    // Computed with the `sha256sum` program.
    let sha256 = "a1b863518377dfbc88a1dd24258b1d971485d668e3a7e932de0a65b4f9144edd";
    for bytes in [bytes.clone(), gzip(&bytes)] {
        let (dims, data, found) = parse(&bytes[..], 3).unwrap();
        assert_eq!((dims, data), (vec![2, 1, 3], vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(found, sha256);
    }
}

#[test]
fn headers_are_checked() {
    assert_eq!(problem(&[], 1), "truncated: 0 bytes, expected a header of 8 bytes");
    let short = &file(0x803, &[2, 2], &[]);
    assert_eq!(problem(short, 3), "truncated: 12 bytes, expected a header of 16 bytes");
    let labels = file(0x801, &[2], &[0, 1]);
    assert_eq!(problem(&labels, 3), "magic number is 0x00000801, expected 0x00000803");
    let floats = file(0xd01, &[2], &[0; 8]);
    assert_eq!(problem(&floats, 1), "magic number is 0x00000d01, expected 0x00000801");
}

#[test]
fn dimensions_are_checked() {
    let zero = file(0x803, &[2, 0, 3], &[]);
    assert_eq!(problem(&zero, 3), "dimensions are 2×0×3, expected each to be at least 1");
    let most = u32::MAX;
    let overflow = file(0x803, &[most; 3], &[]);
    assert_eq!(
        problem(&overflow, 3),
        format!("dimensions are {most}×{most}×{most}, expected at most 1073741824 bytes")
    );
    let large = file(0x801, &[(1 << 30) + 1], &[]);
    assert_eq!(problem(&large, 1), "dimensions are 1073741825, expected at most 1073741824 bytes");
    let lying = file(0x801, &[1 << 30], &[7]);
    assert_eq!(
        problem(&lying, 1),
        "truncated: 1 bytes of data, expected 1073741824 for dimensions 1073741824"
    );
}

#[test]
fn the_file_holds_what_the_header_promises() {
    let short = file(0x803, &[2, 1, 3], &[0; 5]);
    assert_eq!(problem(&short, 3), "truncated: 5 bytes of data, expected 6 for dimensions 2×1×3");
    let long = file(0x803, &[2, 1, 3], &[0; 7]);
    assert_eq!(
        problem(&long, 3),
        "too long: more than the 6 bytes of data expected for dimensions 2×1×3"
    );
}

#[test]
fn damaged_gzip_is_an_error() {
    let whole = gzip(&file(0x801, &[300], &[3; 300]));
    let mut garbage = whole.clone();
    garbage[12..].fill(0xff);
    let mut trailing = whole.clone();
    trailing.extend_from_slice(b"more");
    for bytes in [&whole[..whole.len() - 1], &garbage, &trailing, b"\x1f\x8b"] {
        let problem = parse(bytes, 1).unwrap_err();
        assert!(problem.starts_with("cannot be read as plain or gzip IDX: "), "{problem}");
    }
}

/// Counts what is taken from it.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(0);
        self.0 += buffer.len() as u64;
        Ok(buffer.len())
    }
}

#[test]
fn a_gzip_bomb_is_not_unpacked() {
    // 64 MiB of zeros in 64 KiB of gzip, behind a header that promises four bytes.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&file(0x801, &[4], &[])).unwrap();
    std::io::copy(&mut Zeros(0).take(1 << 26), &mut encoder).unwrap();
    let bomb = encoder.finish().unwrap();
    let mut rest = &bomb[..];
    let error = parse(BufReader::with_capacity(4096, &mut rest), 1).unwrap_err();
    assert_eq!(error, "too long: more than the 4 bytes of data expected for dimensions 4");
    assert!(rest.len() > bomb.len() / 2, "read {} of {}", bomb.len() - rest.len(), bomb.len());
}

#[test]
fn an_endless_file_is_not_read_to_its_end() {
    let mut zeros = Zeros(0);
    let header = file(0x801, &[1000], &[]);
    let endless = BufReader::with_capacity(512, header.as_slice().chain(&mut zeros));
    assert!(parse(endless, 1).unwrap_err().starts_with("too long"));
    assert!(zeros.0 < 10_000, "{}", zeros.0);
}

#[test]
fn labels_match_images() {
    let idx = |path: &str, dims: &[usize]| Idx {
        path: path.into(),
        dims: dims.into(),
        data: vec![1; dims.iter().product()],
        sha256: String::new(),
    };
    let good = split(idx("i", &[2, 3, 4]), idx("l", &[2])).unwrap();
    assert_eq!((good.len(), good.shape, good.input(1).len()), (2, Shape::new(1, 3, 4), 12));
    let bad = split(idx("i", &[2, 3, 4]), idx("l", &[3])).unwrap_err();
    assert_eq!(bad.to_string(), "l: 3 labels, expected 2, one per image of i");
}
