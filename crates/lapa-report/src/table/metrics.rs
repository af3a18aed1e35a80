//! metrics.parquet: metrics.jsonl as one table.
//!
//! A row is a device in a round, with the fields of its round repeated; in a `summary` run a row is
//! a round. Columns and their types come from the JSON, so a new field needs no code here.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use lapa::observe::{ObserveError, for_each_line};
use serde_json::{Map, Value};

use super::{Column, Failure, Kind, TableError, write_file};

/// Writes the table of `jsonl` to `parquet`, all of it or nothing.
pub fn write_parquet(jsonl: &Path, parquet: &Path) -> Result<(), TableError> {
    let (fields, columns) = find_columns(jsonl)?;
    write_file(parquet, columns, |table| {
        for_each_row(jsonl, |row| -> Result<(), Failure> {
            let value = |field| row.iter().find(|(other, _)| other == field).map(|(_, v)| v);
            table.push(fields.iter().map(value))
        })
    })
}

/// Part of a record that a field belongs to; the same name may occur in both.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Round,
    Device,
}

type Field = (Part, String);

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

/// The fields in the order in which they first occur, the round's before the devices', and the
/// columns they become.
fn find_columns(jsonl: &Path) -> Result<(Vec<Field>, Vec<Column>), ObserveError> {
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
        (field, Column { name, kind: kind.unwrap_or(Kind::Real) })
    };
    Ok(fields.into_iter().map(column).unzip())
}
