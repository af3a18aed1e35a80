//! Tables in Parquet: pictures or numbers, the class in column `label`, and the device in `device`.
//!
//! Pictures are a column of bytes, or of structures with a field `bytes`, as Hugging Face has them.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::{Compression, LogicalType, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;
use rayon::prelude::*;

use super::fetch::io;
use super::format::Request;
use super::guarded::guarded;
use super::parts::{self, MAX_BYTES, Part, Parts, hold_out, is_held_out};
use super::picture::{self, Frame, Picture};
use super::table::{DEVICE, LABEL};
use super::{DataError, FetchEvent, FileHash, Result, Split};
use crate::files;
use crate::shape::Shape;

/// Bytes of a row beside its numbers: label and device, while they are read.
const BESIDE: u64 = 16;

/// Columns with a part to play, by their places.
struct Columns {
    label: usize,
    device: Option<usize>,
    /// The encoded pictures; without them the rows are numbers.
    pictures: Option<usize>,
    numbers: Vec<usize>,
    /// Names of the pictures or numbers.
    names: Vec<String>,
}

/// Values of the samples.
enum Content {
    Pictures(Vec<Picture>, Frame),
    Numbers(Vec<f32>),
}

/// Rows of one or several files.
struct Rows {
    path: PathBuf,
    names: Vec<String>,
    content: Content,
    labels: Vec<u8>,
    devices: Option<Vec<String>>,
    hashes: Vec<FileHash>,
}

/// Reads a file, of which every fifth row is for testing, or a folder with train*.parquet and
/// test*.parquet. Samples are in color if a test picture is, which is public.
pub fn read(request: Request) -> Result<Parts> {
    let Request { path, size, on_event } = request;
    if !path.is_dir() {
        let mut rows = Rows::read(&[path.into()], size, on_event)?;
        let (devices, hash) = (rows.devices.take(), rows.hashes.remove(0));
        let shape = rows.shape(is_held_out);
        return hold_out(rows.into_split(shape)?, devices, path, hash);
    }
    let [train, test] = ["train", "test"].map(|start| list(path, start));
    let test = Rows::read(&test?, size, on_event)?;
    let mut train = Rows::read(&train?, size, on_event)?;
    if test.names != train.names {
        let [found, expected] = [test.names, train.names].map(|names| names.join(", "));
        let problem = format!("columns {found}; expected {expected} as in training");
        return Err(DataError::File { path: test.path, problem });
    }
    let (shape, devices) = (test.shape(|_| true), train.devices.take());
    let hashes = train.hashes.iter().chain(&test.hashes).cloned().collect();
    let part = |rows: Rows| -> Result<Part> {
        let path = rows.path.clone();
        Ok(Part { split: rows.into_split(shape)?, values: path.clone(), labels: path })
    };
    Ok(Parts { train: part(train)?, test: part(test)?, hashes, devices, classes: None })
}

/// The files of a folder whose names begin with a word, in their order.
fn list(folder: &Path, start: &str) -> Result<Vec<PathBuf>> {
    let read = |error| io(folder, "read the folder")(error);
    let mut paths = Vec::new();
    for entry in folder.read_dir().map_err(read)? {
        let path = entry.map_err(read)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(start) && name.ends_with(".parquet") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        let problem = format!("no {start}*.parquet; expected train*.parquet and test*.parquet");
        return Err(DataError::File { path: folder.into(), problem });
    }
    Ok(paths)
}

impl Rows {
    /// The rows of some files with the same columns.
    fn read(
        paths: &[PathBuf],
        size: Option<[u32; 2]>,
        on_event: &mut dyn FnMut(FetchEvent),
    ) -> Result<Self> {
        let mut all: Option<Self> = None;
        for path in paths {
            let hash = parts::hash(path)?;
            let file = files::open_regular(path).map_err(io(path, "open"))?;
            let bytes = file.metadata().map_err(io(path, "read"))?.len();
            let name = hash.file.clone();
            let mut report = |share: f64| {
                let (file, total) = (name.clone(), bytes);
                on_event(FetchEvent::Progress {
                    file,
                    bytes: (share * total as f64) as u64,
                    total,
                });
            };
            let rows = read_file(file, size, all.take(), &mut report);
            let mut rows =
                rows.map_err(|problem| DataError::File { path: path.clone(), problem })?;
            rows.path.clone_from(&paths[0]);
            rows.hashes.push(hash);
            all = Some(rows);
        }
        // Unwrap safety: there is at least one path.
        Ok(all.unwrap())
    }

    /// The shape of the samples, in color if one of the public pictures is.
    fn shape(&self, is_public: impl Fn(usize) -> bool) -> Shape {
        match &self.content {
            Content::Numbers(_) => Shape::new(1, 1, self.names.len()),
            Content::Pictures(pictures, frame) => {
                let public = pictures.iter().enumerate().filter(|(row, _)| is_public(*row));
                frame.shape(public.map(|(_, picture)| picture))
            }
        }
    }

    /// The samples, with the channels of a shape.
    fn into_split(self, shape: Shape) -> Result<Split> {
        let Self { content, labels, path, .. } = self;
        let (values, shape) = match content {
            Content::Numbers(numbers) => (numbers.into(), shape),
            Content::Pictures(pictures, frame) => {
                let shape = Shape { channels: shape.channels, ..frame.shape(std::iter::empty()) };
                let planes = picture::planes(pictures, shape).map_err(|row| {
                    let problem =
                        format!("row {row} (from 0) is in color; expected gray, as in testing");
                    DataError::File { path, problem }
                });
                (planes?.into(), shape)
            }
        };
        Ok(Split { values, labels, shape })
    }
}

/// Reads a file, after the rows that were there before.
fn read_file(
    file: File,
    size: Option<[u32; 2]>,
    before: Option<Rows>,
    report: &mut dyn FnMut(f64),
) -> Result<Rows, String> {
    let reader = guarded(|| SerializedFileReader::new(file).map_err(unreadable))?;
    let metadata = reader.metadata();
    let columns = Columns::find(metadata.file_metadata().schema_descr())?;
    let counts = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let count = counts.sum::<Option<u64>>().ok_or("a negative number of rows")?;
    let held = before.as_ref().map_or(0, |rows| rows.labels.len() as u64);
    let each = BESIDE + 4 * columns.numbers.len() as u64;
    if (count.saturating_add(held)).saturating_mul(each) > MAX_BYTES {
        let what = format!("{count} rows of {} numbers", columns.numbers.len());
        return Err(format!("{what} take more than the {MAX_BYTES} bytes that are allowed"));
    }
    let mut rows = before.unwrap_or_else(|| Rows::empty(&columns));
    if rows.names != columns.names || rows.devices.is_some() != columns.device.is_some() {
        let (found, expected) = (columns.names.join(", "), rows.names.join(", "));
        return Err(format!(
            "columns {found}; expected {expected}, and `{DEVICE}` in all files or none"
        ));
    }
    let first = rows.labels.len() as u64;
    for group in 0..metadata.num_row_groups() {
        let group = reader.get_row_group(group).map_err(unreadable)?;
        let at = rows.labels.len();
        let decoded = Group { columns: &columns, reader: &*group };
        decoded.read(&mut rows, size, (first + count) as usize).map_err(
            |(row, what)| match row {
                Some(row) => format!("row {} (from 0), {what}", at - first as usize + row),
                None => what,
            },
        )?;
        report((rows.labels.len() as u64 - first) as f64 / count.max(1) as f64);
    }
    Ok(rows)
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("cannot be read as Parquet: {error}")
}

impl Rows {
    fn empty(columns: &Columns) -> Self {
        Self {
            path: PathBuf::new(),
            names: columns.names.clone(),
            content: Content::Numbers(Vec::new()),
            labels: Vec::new(),
            devices: columns.device.map(|_| Vec::new()),
            hashes: Vec::new(),
        }
    }
}

impl Columns {
    /// The columns of a schema. With pictures, numbers beside them are left out.
    fn find(schema: &SchemaDescriptor) -> Result<Self, String> {
        let (mut label, mut device, mut pictures, mut others) = (None, None, None, Vec::new());
        let paths: Vec<String> =
            schema.columns().iter().map(|column| column.path().string()).collect();
        for (at, column) in schema.columns().iter().enumerate() {
            let kind = column.physical_type();
            let is_text = matches!(column.logical_type_ref(), Some(LogicalType::String));
            match (paths[at].as_str(), kind) {
                (LABEL, Type::INT32 | Type::INT64) => label = Some(at),
                (LABEL, _) => {
                    return Err(format!("column `{LABEL}` is of {kind}; expected INT32 or INT64"));
                }
                (DEVICE, Type::INT32 | Type::INT64 | Type::BYTE_ARRAY) => device = Some(at),
                (DEVICE, _) => {
                    return Err(format!("column `{DEVICE}` is of {kind}; expected text or INT64"));
                }
                (path, Type::BYTE_ARRAY)
                    if path.ends_with(".bytes") || !is_text && !path.contains('.') =>
                {
                    if let Some(other) = pictures.replace(at) {
                        return Err(format!(
                            "columns {} and {path} of bytes; expected one with pictures",
                            paths[other]
                        ));
                    }
                }
                _ => others.push(at),
            }
        }
        let label =
            label.ok_or_else(|| format!("no column `{LABEL}` among {}", paths.join(", ")))?;
        let numbers = if pictures.is_some() { Vec::new() } else { others };
        for &at in &numbers {
            let (column, path) = (&schema.columns()[at], &paths[at]);
            let (kind, lists) = (column.physical_type(), column.max_rep_level());
            let is_number = matches!(kind, Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE)
                && lists == 0;
            if !is_number {
                let what = if lists > 0 { "lists".into() } else { kind.to_string() };
                return Err(format!(
                    "column {path} is of {what}; expected numbers, or one column of pictures"
                ));
            }
        }
        let names: Vec<String> =
            pictures.iter().chain(&numbers).map(|&at| paths[at].clone()).collect();
        if names.is_empty() {
            return Err(format!("no column beside `{LABEL}`; expected pictures or numbers"));
        }
        Ok(Self { label, device, pictures, numbers, names })
    }
}

/// Values of a column.
enum Cells {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

/// Rows of a file that stand together.
struct Group<'a> {
    columns: &'a Columns,
    reader: &'a dyn RowGroupReader,
}

/// A problem, and the row of the group that has it, if one does.
type Wrong = (Option<usize>, String);

impl Group<'_> {
    /// Adds the rows of the group. There are `count` at the end of the file.
    fn read(&self, rows: &mut Rows, size: Option<[u32; 2]>, count: usize) -> Result<(), Wrong> {
        let Columns { label, device, pictures, numbers, names } = self.columns;
        if let Cells::Whole(labels) = self.cells(*label)? {
            for (row, label) in labels.into_iter().enumerate() {
                let class = label.try_into();
                let what = || format!("column `{LABEL}`: {label}; expected a class from 0 to 255");
                rows.labels.push(class.map_err(|_| (Some(row), what()))?);
            }
        }
        if let (Some(device), Some(devices)) = (device, &mut rows.devices) {
            match self.cells(*device)? {
                Cells::Whole(names) => devices.extend(names.iter().map(i64::to_string)),
                Cells::Bytes(names) => devices.extend(
                    names.iter().map(|name| String::from_utf8_lossy(name.data()).into_owned()),
                ),
                Cells::Real(_) => {}
            }
        }
        if let Some(pictures) = pictures {
            return self.add_pictures(*pictures, &mut rows.content, size, count);
        }
        let mut cells = Vec::with_capacity(numbers.len());
        for (&at, name) in numbers.iter().zip(names) {
            let column: Vec<f32> = match self.cells(at)? {
                Cells::Whole(values) => values.into_iter().map(|value| value as f32).collect(),
                Cells::Real(values) => values.into_iter().map(|value| value as f32).collect(),
                Cells::Bytes(_) => Vec::new(),
            };
            if let Some(row) = column.iter().position(|value| !value.is_finite()) {
                let what = format!("column {name}: {}; expected finite numbers", column[row]);
                return Err((Some(row), what));
            }
            cells.push(column);
        }
        if let Content::Numbers(all) = &mut rows.content {
            let count = cells.iter().map(Vec::len).min().unwrap_or(0);
            (0..count).for_each(|row| all.extend(cells.iter().map(|column| column[row])));
        }
        Ok(())
    }

    fn add_pictures(
        &self,
        at: usize,
        content: &mut Content,
        size: Option<[u32; 2]>,
        count: usize,
    ) -> Result<(), Wrong> {
        let Cells::Bytes(encoded) = self.cells(at)? else { return Ok(()) };
        let Some(first) = encoded.first() else { return Ok(()) };
        if let Content::Numbers(_) = content {
            let frame = Frame::new(size, first.data(), count).map_err(|what| (Some(0), what))?;
            *content = Content::Pictures(Vec::new(), frame);
        }
        let Content::Pictures(pictures, frame) = content else { return Ok(()) };
        let decoded: Vec<_> = encoded.par_iter().map(|bytes| frame.fit(bytes.data())).collect();
        for (row, picture) in decoded.into_iter().enumerate() {
            pictures.push(picture.map_err(|what| (Some(row), what))?);
        }
        Ok(())
    }

    /// The values of a column, none of them null.
    fn cells(&self, at: usize) -> Result<Cells, Wrong> {
        let chunk = self.reader.metadata().column(at);
        let (name, codec) = (chunk.column_path().string(), chunk.compression());
        let wrong = |what: String| (None, format!("column {name}: {what}"));
        if !matches!(codec, Compression::UNCOMPRESSED | Compression::SNAPPY) {
            return Err(wrong(format!(
                "compressed by {codec}; expected SNAPPY or UNCOMPRESSED, as \
                 `to_parquet(path, compression=\"snappy\")` of pandas writes it"
            )));
        }
        if !(0..=MAX_BYTES as i64).contains(&chunk.uncompressed_size()) {
            let bytes = chunk.uncompressed_size();
            return Err(wrong(format!(
                "{bytes} bytes in a row group; expected at most {MAX_BYTES}"
            )));
        }
        let rows = self.reader.metadata().num_rows() as usize;
        let most = chunk.column_descr().max_def_level();
        let pages = guarded(|| self.reader.get_column_page_reader(at).map_err(unreadable));
        let pages = Box::new(Pages { pages: pages.map_err(wrong)?, rows });
        let reader = get_column_reader(chunk.column_descr_ptr(), pages);
        let wide = |values: Vec<i32>| values.into_iter().map(i64::from).collect();
        let cells = match reader {
            ColumnReader::Int32ColumnReader(reader) => {
                all(reader, rows, most).map(wide).map(Cells::Whole)
            }
            ColumnReader::Int64ColumnReader(reader) => all(reader, rows, most).map(Cells::Whole),
            ColumnReader::FloatColumnReader(reader) => all(reader, rows, most)
                .map(|values| Cells::Real(values.into_iter().map(f64::from).collect())),
            ColumnReader::DoubleColumnReader(reader) => all(reader, rows, most).map(Cells::Real),
            ColumnReader::ByteArrayColumnReader(reader) => {
                all(reader, rows, most).map(Cells::Bytes)
            }
            _ => Err((None, "of a type that holds neither numbers nor bytes".into())),
        };
        cells.map_err(|(row, what)| (row, format!("column {name}: {what}")))
    }
}

/// Pages with no more values than there are rows, or than fit into the bytes of a dictionary: memory is
/// taken for as many as a page promises.
struct Pages {
    pages: Box<dyn PageReader>,
    rows: usize,
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        let most = match &page {
            Page::DictionaryPage { buf, .. } => buf.len(),
            _ => self.rows,
        };
        if page.num_values() as usize > most {
            let what = format!("a page of {} values; expected at most {most}", page.num_values());
            return Err(ParquetError::General(what));
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// All values of a column of `rows` rows; `most` is the level at which one is there.
fn all<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    most: i16,
) -> Result<Vec<T::T>, Wrong> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let read = guarded(|| {
        reader.read_records(rows, Some(&mut levels), None, &mut values).map_err(unreadable)
    });
    let (found, ..) = read.map_err(|what| (None, what))?;
    if found != rows {
        return Err((None, format!("{found} rows in a row group; expected {rows}")));
    }
    if values.len() != rows {
        let row = levels.iter().position(|&level| level < most);
        return Err((row, "null; expected a value in every row".into()));
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
