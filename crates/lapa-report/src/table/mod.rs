//! A table as a Parquet file. Columns have the types of their JSON values.

mod metrics;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapa::atomic::write_atomically;
use lapa::observe::{ObserveError, number};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;

pub use metrics::write_parquet;

/// A table that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The rows cannot be read, or the file system refused.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The Parquet file could not be written.
    #[error("{}: cannot write the table", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        source: ParquetError,
    },
}

impl lapa::blame::Blame for TableError {}

/// Rows held in memory at a time.
const ROW_GROUP: usize = 1 << 16;

/// Writes a table to `path`, all of it or nothing. A row has a value for each of `names`, null where
/// there is none; `"inf"` is a number.
pub fn write_table(names: &[String], rows: &[Vec<Value>], path: &Path) -> Result<(), TableError> {
    let column = |(at, name): (usize, &String)| {
        let kind = rows.iter().filter_map(|row| Kind::of(row.get(at)?)).reduce(Kind::with);
        Column { name: name.clone(), kind: kind.unwrap_or(Kind::Real) }
    };
    let columns = names.iter().enumerate().map(column).collect();
    write_file(path, columns, |table| {
        rows.iter().try_for_each(|row| table.push((0..names.len()).map(|at| row.get(at))))
    })
}

/// Writes a file whose rows `fill` gives.
fn write_file(
    path: &Path,
    columns: Vec<Column>,
    fill: impl FnOnce(&mut TableWriter<'_>) -> Result<(), Failure>,
) -> Result<(), TableError> {
    let written = write_atomically(path, |file| {
        let mut table = TableWriter::new(file, columns)?;
        fill(&mut table)?;
        table.close()
    });
    written.map_err(|error| match error {
        Failure::Table(source) => TableError::Parquet { path: path.into(), source },
        Failure::File(source) => {
            ObserveError::Io { path: path.into(), action: "write", source }.into()
        }
        Failure::Rows(error) => error.into(),
    })
}

/// A failure in the middle of writing a table.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Failure {
    Table(#[from] ParquetError),
    File(#[from] io::Error),
    /// Error of the source of the rows.
    Rows(#[from] ObserveError),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Integer,
    Real,
    Bool,
    Text,
}

impl Kind {
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Bool),
            Value::Number(n) if n.is_i64() => Some(Self::Integer),
            Value::Number(_) => Some(Self::Real),
            Value::String(s) if number::infinity(s).is_some() => Some(Self::Real),
            _ => Some(Self::Text),
        }
    }

    /// The kind that holds values of both.
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Integer, Self::Real) | (Self::Real, Self::Integer) => Self::Real,
            _ => Self::Text,
        }
    }
}

struct Column {
    pub name: String,
    pub kind: Kind,
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Integer => (PhysicalType::INT64, None),
            Kind::Real => (PhysicalType::DOUBLE, None),
            Kind::Bool => (PhysicalType::BOOLEAN, None),
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(&column.name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL)
            .build()
            .map(Arc::new)
    });
    Type::group_type_builder("table").with_fields(fields.collect::<Result<_, _>>()?).build()
}

/// A column's cells of the row group in the making: values, and per row whether there is one.
#[derive(Default)]
struct Cells {
    integers: Vec<i64>,
    reals: Vec<f64>,
    bools: Vec<bool>,
    texts: Vec<ByteArray>,
    present: Vec<i16>,
}

impl Cells {
    fn push(&mut self, kind: Kind, value: Option<&Value>) {
        let value = value.filter(|value| !value.is_null());
        self.present.push(value.is_some().into());
        let Some(value) = value else { return };
        match kind {
            Kind::Integer => self.integers.extend(value.as_i64()),
            Kind::Real => {
                self.reals.extend(value.as_f64().or_else(|| number::infinity(value.as_str()?)));
            }
            Kind::Bool => self.bools.extend(value.as_bool()),
            Kind::Text => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.texts.push(text.into_bytes().into());
            }
        }
    }

    fn write(
        &self,
        kind: Kind,
        group: &mut SerializedRowGroupWriter<'_, &mut File>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else { return Ok(()) };
        let present = Some(&self.present[..]);
        match kind {
            Kind::Integer => column.typed::<Int64Type>().write_batch(&self.integers, present, None),
            Kind::Real => column.typed::<DoubleType>().write_batch(&self.reals, present, None),
            Kind::Bool => column.typed::<BoolType>().write_batch(&self.bools, present, None),
            Kind::Text => column.typed::<ByteArrayType>().write_batch(&self.texts, present, None),
        }?;
        column.close()
    }
}

/// Takes rows and writes them in groups.
struct TableWriter<'a> {
    columns: Vec<Column>,
    cells: Vec<Cells>,
    rows: usize,
    writer: SerializedFileWriter<&'a mut File>,
}

impl<'a> TableWriter<'a> {
    fn new(file: &'a mut File, columns: Vec<Column>) -> Result<Self, ParquetError> {
        let schema = Arc::new(schema(&columns)?);
        let properties =
            WriterProperties::builder().set_compression(Compression::SNAPPY).build().into();
        let writer = SerializedFileWriter::new(file, schema, properties)?;
        let cells = columns.iter().map(|_| Cells::default()).collect();
        Ok(Self { columns, cells, rows: 0, writer })
    }

    /// Adds a row: a value for each column.
    pub fn push<'v>(
        &mut self,
        values: impl IntoIterator<Item = Option<&'v Value>>,
    ) -> Result<(), Failure> {
        for ((cells, column), value) in self.cells.iter_mut().zip(&self.columns).zip(values) {
            cells.push(column.kind, value);
        }
        self.rows += 1;
        if self.rows == ROW_GROUP {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        self.rows = 0;
        let mut group = self.writer.next_row_group()?;
        for (cells, column) in self.cells.iter_mut().zip(&self.columns) {
            std::mem::take(cells).write(column.kind, &mut group)?;
        }
        group.close().map(|_| ())
    }

    fn close(mut self) -> Result<(), Failure> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.close()?;
        Ok(())
    }
}
