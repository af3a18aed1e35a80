use std::fs;

use super::*;
use crate::data::{Data, DataName, Dataset, Format};
use crate::shape::Shape;

fn environment(set: &[(&str, &str)]) -> Result<PathBuf, DataError> {
    cache_dir_from(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
}

#[test]
fn the_cache_follows_the_environment() {
    let folder = |set: &[(&str, &str)]| environment(set).unwrap();
    let home = ("HOME", "/h");
    assert_eq!(folder(&[("LAPA_DATA", "/d"), ("XDG_CACHE_HOME", "/x"), home]), Path::new("/d"));
    assert_eq!(folder(&[("XDG_CACHE_HOME", "/x"), home]), Path::new("/x/lapa/data"));
    for ignored in ["", "relative"] {
        let found = folder(&[("LAPA_DATA", ""), ("XDG_CACHE_HOME", ignored), home]);
        assert_eq!(found, Path::new("/h/.cache/lapa/data"));
    }
    assert!(environment(&[]).unwrap_err().to_string().contains("LAPA_DATA"));
}

fn images(count: u8, rows: u8, cols: u8) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, rows, 0, 0, 0, cols];
    bytes.extend((0..count as usize * rows as usize * cols as usize).map(|i| i as u8));
    bytes
}

fn labels(values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 1, 0, 0, 0, values.len() as u8];
    bytes.extend_from_slice(values);
    bytes
}

fn load(folder: &Path, classes: Option<u32>) -> Result<Dataset> {
    let name = DataName::Files(Format::Idx, folder.into());
    Data { classes, ..Data::named(name) }.load(&mut |_| {})
}

/// Writes the four files, loads the folder, and gives what is said with the folder as `DIR`.
fn try_load(files: [Vec<u8>; 4]) -> Result<Dataset, String> {
    try_load_classes(files, None)
}

fn try_load_classes(files: [Vec<u8>; 4], classes: Option<u32>) -> Result<Dataset, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in idx::FILES.iter().zip(files) {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let error = |e: DataError| e.to_string().replace(folder.path().to_str().unwrap(), "DIR");
    load(folder.path(), classes).map_err(error)
}

#[test]
fn a_folder_is_a_data_set() {
    let files = [images(3, 2, 2), labels(&[0, 4, 1]), images(1, 2, 2), labels(&[4])];
    let data = try_load(files.clone()).unwrap();
    assert_eq!((data.train.len(), data.test.len(), data.classes), (3, 1, 5));
    assert_eq!(data.train.values.bytes().unwrap()[8..12], [8, 9, 10, 11]);
    assert_eq!(data.test.labels, [4]);
    // Computed with the `sha256sum` program.
    let sha256 = "e0aed30d312d23b28f387fa3b26896ffceba086246203d073bff2a404975449b";
    assert_eq!(data.hashes[1], FileHash { file: idx::FILES[1].into(), sha256: sha256.into() });

    // Compressed, the same data set with the same hashes.
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in idx::FILES.iter().zip(&files) {
        let file = fs::File::create(folder.path().join(format!("{name}.gz"))).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, Default::default());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap();
    }
    let same = load(folder.path(), None).unwrap();
    assert_eq!((same.train, same.test, same.hashes), (data.train, data.test, data.hashes));
}

/// Pixels in color stand together in the file, and channel by channel in memory.
#[test]
fn color_images_have_four_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    for (name, count) in [("train", 2), ("t10k", 1)] {
        let mut bytes = vec![0, 0, 8, 4, 0, 0, 0, count, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3];
        bytes.extend((0..12 * count).map(|value| 10 * (value % 3) + value / 3));
        fs::write(folder.path().join(format!("{name}-images-idx4-ubyte")), bytes).unwrap();
        let labels = labels(&vec![1; count.into()]);
        fs::write(folder.path().join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
    let data = load(folder.path(), None).unwrap();
    assert_eq!(data.train.shape, Shape::new(3, 2, 2));
    let expected = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 4, 5, 6, 7, 14];
    assert_eq!(data.train.values.bytes().unwrap()[..17], expected);
    let name = folder.path().join("train-images-idx4-ubyte");
    let mut bytes = fs::read(&name).unwrap();
    bytes[19] = 5;
    bytes.extend([0; 16]);
    fs::write(&name, bytes).unwrap();
    let error = load(folder.path(), None).unwrap_err().to_string();
    assert!(error.ends_with("dimensions are 2×2×2×5; expected 1 to 4 channels last"), "{error}");
}

#[test]
fn files_that_do_not_fit_together_are_named() {
    let error = |files| try_load(files).unwrap_err();
    assert_eq!(
        error([images(2, 2, 2), labels(&[0, 1]), images(1, 2, 2), labels(&[0, 1])]),
        "DIR/t10k-labels-idx1-ubyte: 2 labels, expected 1, one per image of \
         DIR/t10k-images-idx3-ubyte"
    );
    assert_eq!(
        error([images(2, 2, 2), labels(&[0, 1]), images(1, 2, 3), labels(&[0])]),
        "DIR/t10k-images-idx3-ubyte: images of 2×3; expected 2×2 as in training"
    );
    assert_eq!(
        error([images(2, 2, 2), labels(&[0, 1]), images(1, 2, 2), labels(&[0])]),
        "DIR/t10k-labels-idx1-ubyte: every label is 0; expected at least 2 classes, or set \
         data.classes"
    );
}

#[test]
fn missing_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = load(folder.path(), None).unwrap_err().to_string();
    assert!(error.contains("train-images-idx3-ubyte is missing; expected that file"), "{error}");
    let error = load(&folder.path().join("absent"), None).unwrap_err().to_string();
    assert!(error.ends_with("absent: not a folder; expected a folder of IDX files"), "{error}");
}

/// The shape of the model is public, and a private record must not decide it.
#[test]
fn classes_do_not_follow_from_training_labels() {
    let files = |train: [u8; 3], test: u8| {
        [images(3, 2, 2), labels(&train), images(1, 2, 2), labels(&[test])]
    };
    for train in [[0, 0, 0], [0, 1, 0], [2, 1, 0]] {
        assert_eq!(try_load(files(train, 2)).unwrap().classes, 3);
        assert_eq!(try_load_classes(files(train, 2), Some(7)).unwrap().classes, 7);
    }
    assert_eq!(
        try_load(files([0, 1, 3], 2)).unwrap_err(),
        "DIR/train-labels-idx1-ubyte: label 2 (from 0) is 3; expected below 3, the largest label \
         of the test set plus one: set data.classes to the number of classes"
    );
    assert_eq!(try_load_classes(files([0, 1, 3], 2), Some(4)).unwrap().classes, 4);
    assert_eq!(
        try_load_classes(files([0, 1, 1], 2), Some(2)).unwrap_err(),
        "DIR/t10k-labels-idx1-ubyte: label 0 (from 0) is 2; expected below 2, data.classes: set \
         data.classes to the number of classes"
    );
}
