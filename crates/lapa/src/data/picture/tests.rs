use serde_json::Value;

use super::*;

/// Written by Pillow: crates/lapa/tests/vectors/pictures.py.
const VECTORS: &str = include_str!("../../../tests/vectors/pictures.json");

fn cases(key: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    vectors[key].as_array().unwrap().clone()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap().as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The shape is that of a case, and no byte differs from Pillow's by more than `most`.
fn agrees(picture: &Picture, case: &Value, most: u8) {
    let shape = [0, 1, 2].map(|at| case["shape"][at].as_u64().unwrap() as usize);
    assert_eq!(picture.shape, Shape::new(shape[0], shape[1], shape[2]), "{}", case["name"]);
    for (at, (found, expected)) in picture.bytes.iter().zip(bytes(&case["pixels"])).enumerate() {
        let difference = found.abs_diff(expected);
        assert!(difference <= most, "{}, {at}: {found}, Pillow {expected}", case["name"]);
    }
}

#[test]
fn pictures_are_decoded_as_pillow_does_it() {
    let cases = cases("decoded");
    assert_eq!(cases.len(), 9);
    for case in cases {
        let picture = Picture::decode(&bytes(&case["file"])).unwrap();
        // Inverse cosine transforms may round differently, and so may the colors that follow.
        let is_jpeg = case["name"].as_str().unwrap().starts_with("jpeg");
        agrees(&picture, &case, if is_jpeg { 3 } else { 0 });
    }
}

#[test]
fn pictures_are_resized_as_pillow_does_it() {
    for case in cases("resized") {
        let picture = Picture::decode(&bytes(&case["file"])).unwrap();
        let size = [0, 1].map(|at| case["size"][at].as_u64().unwrap() as usize);
        // Pillow rounds to bytes between rows and columns.
        agrees(&picture.resized(size), &case, 1);
    }
}

#[test]
fn bombs_and_broken_pictures_are_refused_with_their_numbers() {
    let files: Vec<Vec<u8>> = cases("decoded").iter().map(|case| bytes(&case["file"])).collect();
    let refused = |encoded: &[u8]| Picture::decode(encoded).unwrap_err();
    assert_eq!(refused(b"GIF89a"), "no PNG and no JPEG");
    for file in &files {
        let cut = refused(&file[..file.len() / 2]);
        assert!(cut.starts_with("cannot be read as "), "{cut}");
    }
    // Sides in the header of a PNG, with its checksum, and in the frame header of a JPEG.
    let mut bomb = files[0].clone();
    bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    let crc = crc32(&bomb[12..29]).to_be_bytes();
    bomb[29..33].copy_from_slice(&crc);
    let expected = "a picture of 65536×65536; expected 1 to 33554432 pixels";
    assert_eq!(refused(&bomb), expected);
    let mut bomb = files[5].clone();
    let frame = bomb.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    bomb[frame + 5..frame + 9].copy_from_slice(&[0x3f; 4]);
    assert_eq!(refused(&bomb), "a picture of 16191×16191; expected 1 to 33554432 pixels");
    let many = Frame::new(None, &files[0], 10_000_000).err().unwrap();
    let expected =
        "10000000 pictures of 12×17 may take 6120000000 bytes; expected at most 1073741824";
    assert!(many.starts_with(expected), "{many}");
}

/// The checksum of PNG's chunks, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
    !bytes
        .iter()
        .fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[test]
fn gray_joins_color_as_three_equal_channels() {
    let gray = Picture { shape: Shape::new(1, 1, 2), bytes: vec![7, 8] };
    let color = || Picture { shape: Shape::new(3, 1, 2), bytes: vec![1, 2, 3, 4, 5, 6] };
    let frame = Frame { size: [1, 2], is_declared: false };
    let pictures = vec![gray, color()];
    let shape = frame.shape(&pictures);
    assert_eq!(planes(pictures, shape).unwrap(), [7, 8, 7, 8, 7, 8, 1, 4, 2, 5, 3, 6]);
    assert_eq!(planes(vec![color()], Shape::new(1, 1, 2)), Err(0));
}
