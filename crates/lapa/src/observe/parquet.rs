//! metrics.parquet: metrics.jsonl as one table.
//!
//! A row is a device in a round, with the fields of its round repeated; in a `summary` run a row is
//! a round. Columns and their types come from the JSON, so a new field needs no code here.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use super::metrics::for_each_line;
use super::{ObserveError, number};
use crate::atomic::write_atomically;

/// Rows held in memory at a time.
const ROW_GROUP: usize = 1 << 16;

/// Writes the table of `jsonl` to `parquet`, all of it or nothing.
pub fn write_parquet(jsonl: &Path, parquet: &Path) -> Result<(), ObserveError> {
    let columns = find_columns(jsonl)?;
    let written = write_atomically(parquet, |file| {
        let schema = Arc::new(schema(&columns)?);
        let properties =
            WriterProperties::builder().set_compression(Compression::SNAPPY).build().into();
        let mut writer = SerializedFileWriter::new(file, schema, properties)?;
        write_rows(jsonl, columns, &mut writer)?;
        writer.close()?;
        Ok(())
    });
    written.map_err(|error| match error {
        Failure::Table(source) => ObserveError::Parquet { path: parquet.into(), source },
        Failure::File(source) => ObserveError::io(parquet, "write", source),
        Failure::Lines(error) => error,
    })
}

/// What can fail in the middle of writing the table.
enum Failure {
    Table(ParquetError),
    File(io::Error),
    Lines(ObserveError),
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        Self::Table(error)
    }
}

impl From<ObserveError> for Failure {
    fn from(error: ObserveError) -> Self {
        Self::Lines(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// Which part of a record a field belongs to; the same name may occur in both.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Round,
    Device,
}

type Field = (Part, String);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Integer,
    Real,
    Bool,
    Text,
}

impl Kind {
    fn of(value: &Value) -> Option<Self> {
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
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Integer, Self::Real) | (Self::Real, Self::Integer) => Self::Real,
            _ => Self::Text,
        }
    }
}

struct Column {
    field: Field,
    name: String,
    kind: Kind,
}

/// Calls `each` with the fields of every row of the table.
fn for_each_row<E: From<ObserveError>>(
    jsonl: &Path,
    mut each: impl FnMut(&[(Field, Value)]) -> Result<(), E>,
) -> Result<(), E> {
    for_each_line(jsonl, |mut record: Map<String, Value>| {
        let devices = record.shift_remove("devices").unwrap_or_default();
        let mut row = Vec::new();
        flatten(Part::Round, "", record, &mut row);
        let shared = row.len();
        let of_devices = match devices {
            Value::Array(devices) if !devices.is_empty() => devices,
            Value::Object(summary) => vec![Value::Object(summary)],
            // A round without devices still has its row.
            _ => vec![Value::Object(Map::new())],
        };
        for device in of_devices {
            row.truncate(shared);
            if let Value::Object(device) = device {
                flatten(Part::Device, "", device, &mut row);
            }
            each(&row)?;
        }
        Ok(())
    })
}

/// Appends the fields of an object, those of inner objects as `outer_inner`.
fn flatten(part: Part, prefix: &str, object: Map<String, Value>, row: &mut Vec<(Field, Value)>) {
    for (key, value) in object {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(inner) => flatten(part, &format!("{name}_"), inner, row),
            value => row.push(((part, name), value)),
        }
    }
}

/// The columns in the order in which they first occur, the round's before the devices'.
fn find_columns(jsonl: &Path) -> Result<Vec<Column>, ObserveError> {
    let mut fields: Vec<(Field, Option<Kind>)> = Vec::new();
    let mut index: HashMap<Field, usize> = HashMap::new();
    for_each_row(jsonl, |row| -> Result<(), ObserveError> {
        for (field, value) in row {
            let i = *index.entry(field.clone()).or_insert_with(|| {
                fields.push((field.clone(), None));
                fields.len() - 1
            });
            let known = &mut fields[i].1;
            *known = match (*known, Kind::of(value)) {
                (Some(a), Some(b)) => Some(a.with(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(())
    })?;
    let names: HashSet<Field> = index.into_keys().collect();
    // A null in the place of an object is no column of its own.
    let is_object = |(part, name): &Field| {
        names.iter().any(|(p, n)| {
            p == part && n.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('_'))
        })
    };
    fields.retain(|(field, kind)| kind.is_some() || !is_object(field));
    fields.sort_by_key(|((part, _), _)| *part == Part::Device);
    let column = |(field, kind): (Field, Option<Kind>)| {
        let clash = field.0 == Part::Device && names.contains(&(Part::Round, field.1.clone()));
        let name = if clash { format!("device_{}", field.1) } else { field.1.clone() };
        Column { field, name, kind: kind.unwrap_or(Kind::Real) }
    };
    Ok(fields.into_iter().map(column).collect())
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
    Type::group_type_builder("metrics").with_fields(fields.collect::<Result<_, _>>()?).build()
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

fn write_rows(
    jsonl: &Path,
    columns: Vec<Column>,
    writer: &mut SerializedFileWriter<&mut File>,
) -> Result<(), Failure> {
    let mut cells: Vec<Cells> = columns.iter().map(|_| Cells::default()).collect();
    let mut flush = |cells: &mut Vec<Cells>| -> Result<(), ParquetError> {
        let mut group = writer.next_row_group()?;
        for (cell, column) in cells.iter_mut().zip(&columns) {
            std::mem::take(cell).write(column.kind, &mut group)?;
        }
        group.close().map(|_| ())
    };
    let mut rows = 0;
    for_each_row(jsonl, |row| -> Result<(), Failure> {
        for (cell, column) in cells.iter_mut().zip(&columns) {
            let value = row.iter().find(|(field, _)| *field == column.field).map(|(_, v)| v);
            cell.push(column.kind, value);
        }
        rows += 1;
        if rows == ROW_GROUP {
            rows = 0;
            flush(&mut cells)?;
        }
        Ok(())
    })?;
    if rows > 0 {
        flush(&mut cells)?;
    }
    Ok(())
}
