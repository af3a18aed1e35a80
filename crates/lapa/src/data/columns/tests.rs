use std::fs;

use serde_json::Value;

use super::*;
use crate::data::{Data, DataName, Dataset};

/// A table that pyarrow wrote: crates/lapa/tests/vectors/pictures.py.
fn table(name: &str) -> Vec<u8> {
    let vectors = include_str!("../../../tests/vectors/pictures.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let digits = vectors["tables"][name].as_str().unwrap().as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn load(path: &Path, size: Option<[u32; 2]>) -> Result<Dataset, String> {
    let name = DataName::try_from(format!("parquet:{}", path.display())).unwrap();
    let data = Data { size, ..Data::named(name) };
    data.load(&mut |_| {}).map_err(|error| error.to_string())
}

/// Loads a table from a file t.parquet.
fn load_table(bytes: &[u8]) -> Result<Dataset, String> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.parquet");
    fs::write(&path, bytes).unwrap();
    load(&path, None)
}

#[test]
fn numbers_with_devices_are_read() {
    let data = load_table(&table("sensors")).unwrap();
    assert_eq!((data.train.shape, data.classes), (Shape::new(1, 1, 2), 2));
    assert_eq!((data.train.len(), data.test.labels.as_slice()), (8, &[0, 1][..]));
    assert_eq!((data.train.input(5), data.test.input(1)), (vec![1.5, 6.0], vec![2.25, 9.0]));
    // Rows b a b c · b a c b ·, of which a is the first.
    assert_eq!(data.devices.unwrap(), [1, 0, 1, 2, 1, 0, 2, 1]);
}

#[test]
fn pictures_in_the_layout_of_hugging_face_are_read() {
    let place = tempfile::tempdir().unwrap();
    for name in ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"] {
        fs::write(place.path().join(format!("{name}.parquet")), table("pictures")).unwrap();
    }
    let data = load(place.path(), None).unwrap();
    assert_eq!((data.train.shape, data.classes), (Shape::new(3, 4, 3), 10));
    assert_eq!((data.train.len(), data.test.len(), data.hashes.len()), (20, 10, 3));
    assert_eq!(data.train.labels[9..12], [9, 0, 1]);
    let [train, test] = [data.train, data.test].map(|split| split.values.bytes().unwrap().to_vec());
    assert_eq!((&train[..360], &train[360..]), (&test[..], &test[..]));
    let large = load(place.path(), Some([8, 8])).unwrap();
    assert_eq!(large.test.shape, Shape::new(3, 8, 8));
    fs::write(place.path().join("train-00001-of-00002.parquet"), table("sensors")).unwrap();
    let error = load(place.path(), None).unwrap_err();
    let expected = "train-00001-of-00002.parquet: columns x, y; expected image.bytes";
    assert!(error.contains(expected), "{error}");
    fs::remove_file(place.path().join("test-00000-of-00001.parquet")).unwrap();
    let error = load(place.path(), None).unwrap_err();
    assert!(error.contains("no test*.parquet"), "{error}");
}

#[test]
fn tables_that_do_not_fit_are_named_with_row_and_column() {
    for (name, expected) in [
        ("gzip", "column label: compressed by GZIP(GzipLevel(6)); expected SNAPPY or UNCOMPRESSED"),
        ("null", "row 6 (from 0), column y: null; expected a value"),
        ("nan", "row 5 (from 0), column x: NaN; expected finite numbers"),
        ("lists", "is of lists; expected numbers"),
        ("text", "column y is of BYTE_ARRAY; expected numbers"),
        ("no label", "no column `label` among x"),
        ("label 300", "row 7 (from 0), column `label`: 300; expected a class from 0 to 255"),
        ("float label", "column `label` is of FLOAT; expected INT32 or INT64"),
    ] {
        let error = load_table(&table(name)).unwrap_err();
        assert!(error.contains("t.parquet: ") && error.contains(expected), "{name}: {error}");
    }
    let error = load_table(b"no table").unwrap_err();
    assert!(error.contains("t.parquet: cannot be read as Parquet"), "{error}");
}

/// A table or an error, for each byte that is changed.
#[test]
fn damaged_tables_do_not_panic() {
    for name in ["sensors", "pictures"] {
        let whole = table(name);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            _ = load_table(&damaged);
        }
        (0..whole.len()).step_by(7).for_each(|end| _ = load_table(&whole[..end]));
    }
}
