use std::fs::{self, File};
use std::io::Write;

use super::*;
use crate::data::{Data, DataName, Dataset};

fn load(path: &Path) -> Result<Dataset, String> {
    let name = DataName::try_from(format!("npz:{}", path.display())).unwrap();
    Data::named(name).load(&mut |_| {}).map_err(|error| error.to_string())
}

/// An array as `numpy.save` writes it.
fn array(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), values].concat()
}

/// Written by NumPy 2.4, `numpy.savez_compressed(file, **arrays)`, in base 16: x_train
/// `numpy.arange(24).reshape(2, 2, 2, 3)` as uint8, y_train `[[1], [0]]` as int64, x_test
/// `numpy.arange(12).reshape(1, 2, 2, 3)` as uint8, y_test `[[1]]` as int64.
const BY_NUMPY: &str = include_str!("numpy.hex");

#[test]
fn an_archive_of_numpy_is_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("color.npz");
    let digits: Vec<u8> = BY_NUMPY.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    fs::write(&path, digits.chunks_exact(2).map(byte).collect::<Vec<_>>()).unwrap();
    let data = load(&path).unwrap();
    assert_eq!((data.train.len(), data.test.len(), data.classes), (2, 1, 2));
    assert_eq!((data.train.shape, &data.train.labels[..]), (Shape::new(3, 2, 2), &[1, 0][..]));
    let expected = [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, 12, 15];
    assert_eq!(data.train.values.bytes().unwrap()[..14], expected);
    assert_eq!(data.hashes.len(), 1);
}

#[test]
fn a_folder_of_arrays_is_read() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: Vec<u8>| fs::write(place.path().join(name), bytes).unwrap();
    let floats = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    write("x_train.npy", array("<f8", "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, -6.5])));
    write("y_train.npy", array("<i4", "(2,)", &[1, 0, 0, 0, 0, 0, 0, 0]));
    write("x_test.npy", array("<f4", "(1, 3)", &[0; 12]));
    write("y_test.npy", array("|u1", "(1,)", &[1]));
    let data = load(place.path()).unwrap();
    assert_eq!(data.train.shape, Shape::new(1, 1, 3));
    assert_eq!((data.train.input(1), data.hashes.len()), (vec![4.0, 5.0, -6.5], 4));
}

/// Loads a good archive but for one array, which is another or absent.
fn load_with(name: &str, bytes: Option<Vec<u8>>) -> Result<Dataset, String> {
    let good = [
        ("x_train", array("|u1", "(2, 1, 2)", &[0; 4])),
        ("y_train", array("|u1", "(2,)", &[0, 1])),
        ("x_test", array("|u1", "(1, 1, 2)", &[0; 2])),
        ("y_test", array("|u1", "(1,)", &[1])),
    ];
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.npz");
    let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
    for (member, value) in &good {
        let value = if *member == name { bytes.as_ref() } else { Some(value) };
        if let Some(value) = value {
            let options = zip::write::SimpleFileOptions::default();
            archive.start_file(format!("{member}.npy"), options).unwrap();
            archive.write_all(value).unwrap();
        }
    }
    archive.finish().unwrap();
    load(&path)
}

/// Each case is refused with these words.
fn refused<const N: usize>(cases: [(&str, Vec<u8>, &str); N]) {
    for (name, bytes, expected) in cases {
        let error = load_with(name, Some(bytes)).unwrap_err();
        assert!(error.contains("a.npz: ") && error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn archives_that_are_none_or_lack_an_array_are_named() {
    assert!(load_with("none", None).is_ok());
    let error = load_with("y_test", None).unwrap_err();
    assert!(error.contains("no array y_test; it has x_train.npy"), "{error}");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.npz");
    fs::write(&path, "no archive").unwrap();
    assert!(load(&path).unwrap_err().contains("a.npz: cannot be read as .npz"));
}

#[test]
fn samples_that_do_not_fit_are_named() {
    let nan = [0.0f32, f32::NAN].map(f32::to_le_bytes).concat();
    let order = array("|u1", "(2, 1, 2)", &[0; 4]);
    let fortran = String::from_utf8_lossy(&order[10..]).replace("False", "True ");
    let fortran = [&order[..10], fortran.as_bytes()].concat();
    let x = |descr: &str, shape: &str, count: usize| array(descr, shape, &vec![0; count]);
    refused([
        ("x_train", b"no array".to_vec(), "x_train: no array of NumPy"),
        ("x_train", x("|u1", "(2, 1, 2)", 3), "x_train: 3 bytes of values; expected 4"),
        ("x_train", x("|u1", "(2, 1, 2)", 5), "x_train: more bytes of values"),
        ("x_train", x("|u1", "(99999999, 28, 28)", 0), "dimensions are 99999999×28×28"),
        ("x_train", x("<f2", "(2, 1, 2)", 0), "x_train: values of type <f2"),
        ("x_train", x(">f4", "(2, 1, 2)", 0), "x_train: values of type >f4"),
        ("x_train", x("<i8", "(2, 1, 2)", 32), "x_train: whole numbers of more than a byte"),
        ("x_train", x("|u1", "(2,)", 2), "x_train: dimensions are 2; expected samples"),
        ("x_train", x("|u1", "(2, 5, 1, 5)", 50), "1 to 4 channels last or first"),
        ("x_train", fortran, "x_train: Fortran order"),
        ("x_test", array("<f4", "(1, 1, 2)", &nan), "x_test: sample 0 (from 0) has NaN"),
        ("x_test", x("|u1", "(1, 1, 3)", 3), "images of 1×3; expected 1×2 as in training"),
    ]);
}

#[test]
fn labels_that_do_not_fit_are_named() {
    refused([
        ("y_train", array("|u1", "(3,)", &[0; 3]), "y_train: 3 labels; expected 2"),
        ("y_train", array("<f4", "(2,)", &[0; 8]), "y_train: floats; expected classes"),
        ("y_train", array("<i2", "(2,)", &[0, 0, 255, 255]), "y_train: at 1 (from 0) it is -1"),
        ("y_train", array("|u1", "(2, 2)", &[0; 4]), "y_train: dimensions are 2×2"),
    ]);
}
