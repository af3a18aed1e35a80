//! Tables in CSV: numbers in columns, the class in column `label`, and the device in column `device`.

use std::path::Path;

use super::parts::{self, MAX_BYTES, Part, Parts, hold_out};
use super::{DataError, FileHash, Result, Split};
use crate::shape::Shape;

/// Column of the class.
pub const LABEL: &str = "label";
/// Column of the device.
pub const DEVICE: &str = "device";

/// Rows of a file.
struct Table {
    columns: Vec<String>,
    values: Vec<f32>,
    labels: Vec<u8>,
    devices: Option<Vec<String>>,
    hash: FileHash,
}

/// Reads a file, of which every fifth row is for testing, or a folder with train.csv and test.csv.
pub fn read(path: &Path) -> Result<Parts> {
    if path.is_dir() {
        let [train_path, test_path] = ["train.csv", "test.csv"].map(|name| path.join(name));
        let (mut train, test) = (read_file(&train_path)?, read_file(&test_path)?);
        if train.columns != test.columns {
            let problem = format!(
                "columns {}; expected {} as in train.csv",
                test.columns.join(", "),
                train.columns.join(", ")
            );
            return Err(DataError::File { path: test_path, problem });
        }
        let hashes = vec![train.hash.clone(), test.hash.clone()];
        let devices = train.devices.take();
        let [train, test] = [(train, train_path), (test, test_path)].map(|(table, path)| {
            let split = table.into_split();
            Part { split, values: path.clone(), labels: path }
        });
        return Ok(Parts { train, test, hashes, devices, classes: None });
    }
    let mut table = read_file(path)?;
    let (devices, hash) = (table.devices.take(), table.hash.clone());
    hold_out(table.into_split(), devices, path, hash)
}

impl Table {
    fn into_split(self) -> Split {
        let shape = Shape::new(1, 1, self.columns.len());
        Split { values: self.values.into(), labels: self.labels, shape }
    }
}

fn read_file(path: &Path) -> Result<Table> {
    let problem = |problem: String| DataError::File { path: path.into(), problem };
    let (bytes, hash) = parts::read_file(path)?;
    parse(&bytes, hash).map_err(problem)
}

/// Place of the column with a name, which may stand there once.
fn place(names: &[&str], wanted: &str) -> Result<Option<usize>, String> {
    let mut places = (0..names.len()).filter(|&at| names[at] == wanted);
    match (places.next(), places.count()) {
        (place, 0) => Ok(place),
        (_, more) => {
            let names = names.join(", ");
            Err(format!("{} columns `{wanted}` among {names}; expected one", more + 1))
        }
    }
}

/// The rows of a table.
fn parse(bytes: &[u8], hash: FileHash) -> Result<Table, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let unreadable = |error: csv::Error| format!("cannot be read as CSV: {error}");
    let header = reader.headers().map_err(unreadable)?.clone();
    let names: Vec<&str> = header.iter().collect();
    let Some(label) = place(&names, LABEL)? else {
        return Err(format!("0 columns `{LABEL}` among {}; expected one", names.join(", ")));
    };
    let device = place(&names, DEVICE)?;
    let is_value = |at: &usize| *at != label && Some(*at) != device;
    let columns: Vec<String> =
        (0..names.len()).filter(is_value).map(|at| names[at].into()).collect();
    if columns.is_empty() {
        return Err(format!("no column beside `{LABEL}`; expected at least one with numbers"));
    }
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    let mut devices = device.map(|_| Vec::new());
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).map_err(unreadable)? {
        let line = row.position().map_or(0, csv::Position::line);
        if (size_of::<f32>() * (values.len() + columns.len())) as u64 > MAX_BYTES {
            return Err(format!("line {line}: the values take more than {MAX_BYTES} bytes"));
        }
        for (at, text) in row.iter().enumerate() {
            let refuse = |expected: &str| {
                Err(format!("line {line}, column `{}`: `{text}`; expected {expected}", names[at]))
            };
            if at == label {
                match text.parse() {
                    Ok(class) => labels.push(class),
                    Err(_) => return refuse("a class, a whole number from 0 to 255"),
                }
            } else if is_value(&at) {
                match text.parse::<f32>() {
                    Ok(value) if value.is_finite() => values.push(value),
                    _ => return refuse("a finite number"),
                }
            } else if let Some(devices) = &mut devices {
                match text {
                    "" => return refuse("the name of a device"),
                    name => devices.push(name.to_owned()),
                }
            }
        }
    }
    Ok(Table { columns, values, labels, devices, hash })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::{Data, DataName, Dataset, Values};

    fn load(path: &Path) -> Result<Dataset, String> {
        let name = DataName::try_from(format!("csv:{}", path.display())).unwrap();
        Data::named(name).load(&mut |_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn every_fifth_row_of_a_single_file_is_for_testing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("all.csv");
        let rows = (0..10).map(|i| format!("{i}.5, {}, {}\n", i % 2, -i));
        fs::write(&path, format!("a,label, b\n{}", rows.collect::<String>())).unwrap();
        let data = load(&path).unwrap();
        assert_eq!((data.train.len(), data.test.len(), data.classes), (8, 2, 2));
        assert_eq!(data.train.shape, Shape::new(1, 1, 2));
        assert_eq!(data.test.values, Values::from(vec![4.5, -4.0, 9.5, -9.0]));
        assert_eq!(data.test.labels, [0, 1]);
        assert_eq!(data.train.input(5), [6.5, -6.0]);
    }

    #[test]
    fn a_folder_has_both_files() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("train.csv"), "x,label\n1,0\n2,1\n3,1\n").unwrap();
        fs::write(place.path().join("test.csv"), "x,label\n4,1\n").unwrap();
        let data = load(place.path()).unwrap();
        assert_eq!((data.train.len(), data.test.len(), data.hashes.len()), (3, 1, 2));
        fs::write(place.path().join("test.csv"), "y,label\n4,1\n").unwrap();
        let error = load(place.path()).unwrap_err();
        assert!(error.contains("test.csv: columns y; expected x as in train.csv"), "{error}");
    }

    #[test]
    fn rows_that_do_not_fit_are_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.csv");
        for (text, expected) in [
            ("", "0 columns `label` among ; expected one"),
            ("a,b\n1,2\n", "0 columns `label` among a, b; expected one"),
            ("label,a,label\n1,2,3\n", "2 columns `label`"),
            ("label\n1\n", "no column beside `label`"),
            ("a,label\n1,0\nnan,1\n", "line 3, column `a`: `nan`; expected a finite number"),
            ("a,label\n1,0\n,1\n", "line 3, column `a`: ``; expected a finite number"),
            ("a,label\n1,256\n", "line 2, column `label`: `256`; expected a class"),
            ("a,label\n1,cat\n", "line 2, column `label`: `cat`; expected a class"),
            ("a,label\n1,0\n1,2,3\n", "cannot be read as CSV"),
            ("a,label\n1,0\n1,1\n", "2 rows; expected at least 5"),
            ("a,label\n1,0\n1,0\n1,0\n1,0\n1,0\n", "every label is 0"),
        ] {
            fs::write(&path, text).unwrap();
            let error = load(&path).unwrap_err();
            assert!(error.contains("t.csv: ") && error.contains(expected), "{text:?}: {error}");
        }
    }
}
