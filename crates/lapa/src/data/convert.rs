//! Conversions: a data set written as files of another format.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::arrays::{DEVICES, NAMES};
use super::fetch::io;
use super::parts::is_held_out;
use super::table::{DEVICE, LABEL};
use super::{DataError, DataName, Dataset, Format, Result, Split, Values, idx};
use crate::files::Folder;

/// Files that a data set can be written as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    format: Format,
    path: PathBuf,
}

impl TryFrom<&str> for Target {
    type Error = String;

    /// A format and a path, as `npz:PATH`; a path alone where its end says the format.
    fn try_from(text: &str) -> Result<Self, String> {
        let by_end = [(".npz", Format::Npz), (".csv", Format::Csv)];
        let named = match DataName::try_from(text.to_owned()) {
            Ok(DataName::Files(format, path)) => Some(Self { format, path }),
            _ => None,
        };
        let ends = by_end.iter().find(|(end, _)| text.ends_with(end));
        let target = named.or(ends.map(|(_, format)| Self { format: *format, path: text.into() }));
        let writable = [Format::Npz, Format::Csv, Format::Idx, Format::Images];
        target.filter(|target| writable.contains(&target.format)).ok_or_else(|| {
            format!(
                "`{text}`: expected FILE.npz, FILE.csv, npz:FILE, csv:PATH, idx:FOLDER or images:FOLDER"
            )
        })
    }
}

impl Target {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a data set, all of it or nothing. What is there is never replaced. Devices of records are
    /// kept in the formats that have a place for them.
    pub fn write(&self, data: &Dataset) -> Result<()> {
        let path = &self.path;
        let problem = |problem: String| DataError::File { path: path.clone(), problem };
        if path.symlink_metadata().is_ok() {
            return Err(problem("exists already; expected a new name".into()));
        }
        let is_file = match self.format {
            Format::Csv => path.extension().is_some_and(|end| end == "csv"),
            format => format == Format::Npz,
        };
        self.refuse(data, is_file).map_err(problem)?;
        let (folder, name) = Folder::of(path).map_err(io(path, "write"))?;
        if is_file {
            let write = |file: &mut File| match self.format {
                Format::Npz => npz(data, file),
                _ => table(data, file, None),
            };
            return folder.replace(name, write).map_err(io(path, "write"));
        }
        let written = tempfile::tempdir_in(folder.path()).and_then(|place| {
            match self.format {
                Format::Idx => idx_files(data, place.path())?,
                Format::Images => images(data, place.path())?,
                _ => {
                    for (name, is_test) in [("train.csv", false), ("test.csv", true)] {
                        table(
                            data,
                            &mut File::create_new(place.path().join(name))?,
                            Some(is_test),
                        )?;
                    }
                }
            }
            std::fs::rename(place.path(), path)
        });
        written.map_err(io(path, "write"))
    }

    /// Says what the format has no place for.
    fn refuse(&self, data: &Dataset, is_file: bool) -> Result<(), String> {
        let (shape, count) = (data.train.shape, data.train.len() + data.test.len());
        let (format, sizes) = (self.format.word(), shape.of_image());
        let is_bytes = data.train.values.bytes().is_some();
        let held_out = (0..count).filter(|&row| is_held_out(row)).count();
        match self.format {
            Format::Idx | Format::Images if !is_bytes => {
                Err(format!("{format} has bytes, and these values are floats: use npz or csv"))
            }
            Format::Images if ![1, 3].contains(&shape.channels) => {
                Err(format!("samples of {sizes}; images are gray or have 3 channels: use npz"))
            }
            Format::Csv if is_file && held_out != data.test.len() => Err(format!(
                "a single table holds every fifth row out, {held_out} of {count}, and this set has {} test \
                 samples: use csv:FOLDER for two tables",
                data.test.len()
            )),
            _ => Ok(()),
        }
    }
}

/// Values in the order in which files have them: channels last.
fn pixels<T: Copy>(values: &[T], split: &Split, sample: usize) -> impl Iterator<Item = T> {
    let (places, shape) = (split.places(sample), split.shape);
    let values = &values[places];
    (0..shape.area()).flat_map(move |at| values[at..].iter().step_by(shape.area()).copied())
}

fn npz(data: &Dataset, file: &mut File) -> io::Result<()> {
    let mut archive = ZipWriter::new(BufWriter::new(file));
    let options = SimpleFileOptions::default();
    let mut member =
        |name: &str, header: String, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>| {
            archive.start_file(format!("{name}.npy"), options)?;
            // The values begin at a multiple of 64 bytes.
            let padding = 64 - (10 + header.len() + 1) % 64;
            let header = format!("{header}{}\n", " ".repeat(padding));
            archive.write_all(b"\x93NUMPY\x01\x00")?;
            archive.write_all(&(header.len() as u16).to_le_bytes())?;
            archive.write_all(header.as_bytes())?;
            write(&mut archive)
        };
    let header = |kind: &str, sizes: &str| {
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}")
    };
    for (split, [x, y]) in [(&data.train, [NAMES[0], NAMES[1]]), (&data.test, [NAMES[2], NAMES[3]])]
    {
        let (n, shape) = (split.len(), split.shape);
        let sizes = match (shape.channels, shape.rows) {
            (1, 1) => format!("{n}, {}", shape.cols),
            (1, rows) => format!("{n}, {rows}, {}", shape.cols),
            (channels, rows) => format!("{n}, {rows}, {}, {channels}", shape.cols),
        };
        let kind = if split.values.bytes().is_some() { "|u1" } else { "<f4" };
        member(x, header(kind, &sizes), &mut |out| {
            for sample in 0..n {
                let bytes: Vec<u8> = match &split.values {
                    Values::Floats(floats) => {
                        pixels(floats, split, sample).flat_map(f32::to_le_bytes).collect()
                    }
                    Values::Halves(halves) => pixels(halves, split, sample)
                        .flat_map(|half| half.to_f32().to_le_bytes())
                        .collect(),
                    Values::Bytes(bytes) | Values::Normalized(bytes, _) => {
                        pixels(bytes, split, sample).collect()
                    }
                };
                out.write_all(&bytes)?;
            }
            Ok(())
        })?;
        member(y, header("|u1", &format!("{n},")), &mut |out| out.write_all(&split.labels))?;
    }
    if let Some(devices) = &data.devices {
        let sizes = format!("{},", devices.len());
        member(DEVICES, header("<u4", &sizes), &mut |out| {
            devices.iter().try_for_each(|device| out.write_all(&device.to_le_bytes()))
        })?;
    }
    archive.finish()?.flush()
}

/// Writes the training or the test samples, or both with every fifth row for testing.
fn table(data: &Dataset, file: &mut File, is_test: Option<bool>) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(BufWriter::new(file));
    let columns = (0..data.train.shape.len()).map(|at| format!("x{at}"));
    let device = data.devices.as_ref().map(|_| DEVICE.to_owned());
    out.write_record(columns.chain([LABEL.to_owned()]).chain(device))?;
    let (mut train, mut test) = (0..data.train.len(), 0..data.test.len());
    for row in 0.. {
        let is_test = is_test.unwrap_or(is_held_out(row));
        let (split, next) =
            if is_test { (&data.test, test.next()) } else { (&data.train, train.next()) };
        let Some(sample) = next else { break };
        let values: Vec<String> = match &split.values {
            Values::Floats(floats) => {
                floats[split.places(sample)].iter().map(f32::to_string).collect()
            }
            Values::Halves(halves) => {
                halves[split.places(sample)].iter().map(ToString::to_string).collect()
            }
            Values::Bytes(bytes) | Values::Normalized(bytes, _) => {
                bytes[split.places(sample)].iter().map(u8::to_string).collect()
            }
        };
        // Test samples belong to no device; the column has a value in every row.
        let of = |devices: &Vec<u32>| if is_test { 0 } else { devices[sample] }.to_string();
        let device = data.devices.as_ref().map(of);
        out.write_record(
            values.into_iter().chain([split.labels[sample].to_string()]).chain(device),
        )?;
    }
    out.flush()
}

fn idx_files(data: &Dataset, folder: &Path) -> io::Result<()> {
    for (split, [images, labels]) in [
        (&data.train, [idx::FILES[0], idx::FILES[1]]),
        (&data.test, [idx::FILES[2], idx::FILES[3]]),
    ] {
        let (shape, bytes) = (split.shape, split.values.bytes().unwrap_or_default());
        let mut sizes = vec![split.len(), shape.rows, shape.cols];
        let mut name = images.to_owned();
        if shape.channels > 1 {
            sizes.push(shape.channels);
            name = images.replace("idx3", "idx4");
        }
        let write = |name: &str, sizes: &[usize], values: &mut dyn Iterator<Item = u8>| {
            let mut out = BufWriter::new(File::create_new(folder.join(name))?);
            out.write_all(&(0x0800 + sizes.len() as u32).to_be_bytes())?;
            sizes.iter().try_for_each(|&size| out.write_all(&(size as u32).to_be_bytes()))?;
            for value in values {
                out.write_all(&[value])?;
            }
            out.flush()
        };
        let mut pixels = (0..split.len()).flat_map(|sample| pixels(bytes, split, sample));
        write(&name, &sizes, &mut pixels)?;
        write(labels, &[split.len()], &mut split.labels.iter().copied())?;
    }
    Ok(())
}

fn images(data: &Dataset, folder: &Path) -> io::Result<()> {
    let class = |label: usize| format!("{label:03}");
    for (split, part) in [(&data.train, "train"), (&data.test, "test")] {
        let folder = folder.join(part);
        // A class without a picture is one nevertheless.
        for label in 0..data.classes {
            std::fs::create_dir_all(folder.join(class(label)))?;
        }
        let (shape, bytes) = (split.shape, split.values.bytes().unwrap_or_default());
        for (sample, &label) in split.labels.iter().enumerate() {
            let path = folder.join(class(label.into())).join(format!("{sample:08}.png"));
            let file = BufWriter::new(File::create_new(path)?);
            let mut encoder = png::Encoder::new(file, shape.cols as u32, shape.rows as u32);
            let color =
                if shape.channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb };
            encoder.set_color(color);
            let pixels: Vec<u8> = pixels(bytes, split, sample).collect();
            encoder.write_header()?.write_image_data(&pixels)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, digits};
    use crate::shape::Shape;

    fn read(name: &str) -> Dataset {
        Data::named(DataName::try_from(name.to_owned()).unwrap()).load(&mut |_| {}).unwrap()
    }

    /// Samples of three channels that differ in every value, and their devices.
    fn color() -> Dataset {
        let shape = Shape::new(3, 2, 3);
        let split = |n: usize, by: usize| Split {
            values: (0..n * shape.len()).map(|at| (at * by) as u8).collect::<Vec<_>>().into(),
            labels: (0..n).map(|at| (at % 3) as u8).collect(),
            shape,
        };
        let (train, test) = (split(8, 7), split(2, 5));
        let data = digits(1, 1);
        Dataset { train, test, classes: 3, devices: Some(vec![1, 0, 1, 2, 2, 0, 1, 0]), ..data }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| name.replace("DIR", place.path().to_str().unwrap());
        let mut data = color();
        data.test.labels = vec![1, 2];
        for target in ["npz:DIR/a", "DIR/a.npz", "idx:DIR/idx"] {
            let written = Target::try_from(at(target).as_str()).unwrap();
            written.write(&data).unwrap();
            let name = if target.contains(".npz") { "npz:DIR/a.npz" } else { target };
            let found = read(&at(name));
            assert_eq!((&found.train, &found.test), (&data.train, &data.test), "{target}");
            assert_eq!(found.devices.is_some(), target.contains("npz:") || target.contains(".npz"));
            assert!(found.devices.is_none_or(|devices| Some(devices) == data.devices));
            let error = written.write(&data).unwrap_err().to_string();
            assert!(error.contains("exists already; expected a new name"), "{error}");
        }
        Target::try_from(at("images:DIR/pets").as_str()).unwrap().write(&data).unwrap();
        let found = read(&at("images:DIR/pets"));
        assert_eq!((found.train.shape, found.classes), (data.train.shape, 3));
        // By class, then in their order.
        assert_eq!(
            (found.train.labels, found.test.labels),
            (vec![0, 0, 0, 1, 1, 1, 2, 2], vec![1, 2])
        );
        assert_eq!(found.test.values, data.test.values);
        for target in ["csv:DIR/tables", "DIR/one.csv"] {
            Target::try_from(at(target).as_str()).unwrap().write(&data).unwrap();
            let found = read(&at(if target.contains("one") { "csv:DIR/one.csv" } else { target }));
            assert_eq!((found.train.labels.len(), &found.test.labels), (8, &data.test.labels));
            let expected: Vec<f32> =
                data.train.values.bytes().unwrap().iter().map(|&b| b.into()).collect();
            assert_eq!(
                (found.train.values, found.devices),
                (expected.into(), data.devices.clone())
            );
        }
    }

    #[test]
    fn what_a_format_has_no_place_for_is_named() {
        let place = tempfile::tempdir().unwrap();
        let refused = |name: &str, data: &Dataset| {
            let name = name.replace("PATH", &place.path().join("x").display().to_string());
            Target::try_from(name.as_str()).unwrap().write(data).unwrap_err().to_string()
        };
        let (data, mut floats) = (color(), color());
        floats.train.values = vec![0.5f32; 8 * 18].into();
        assert!(
            refused("idx:PATH", &floats).contains("idx has bytes, and these values are floats")
        );
        let other = Dataset { test: data.train.clone(), ..data };
        let error = refused("PATH.csv", &other);
        assert!(error.contains("every fifth row out, 3 of 16, and this set has 8 test"), "{error}");
        for name in ["cifar:x", "parquet:x", "x.png", "mnist"] {
            let error = Target::try_from(name).unwrap_err();
            assert!(error.contains("expected FILE.npz"), "{error}");
        }
        assert_eq!(place.path().read_dir().unwrap().count(), 0);
    }
}
