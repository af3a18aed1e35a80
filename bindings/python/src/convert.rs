//! Between Python's values and ours.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lapa::config::{Experiment, Override};
use lapa::data::Dataset;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{ConfigError, Raise};

/// A dictionary with these items, or the error of the first value that cannot be converted.
macro_rules! dict {
    ($py:expr, $($key:literal: $value:expr),* $(,)?) => {{
        let dict = PyDict::new($py);
        let items = [$(dict.set_item($key, $value)),*];
        items.into_iter().collect::<PyResult<()>>().map(|()| dict)
    }};
}
pub(crate) use dict;

/// Locks; a poisoned lock only means that another thread panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A warning of Python.
pub fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = CString::new(text).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

/// A configuration: nothing for the quickstart, a path, TOML, or a dictionary of sections.
pub fn experiment(
    config: Option<&Bound<'_, PyAny>>,
    changes: Option<Vec<String>>,
) -> PyResult<Experiment> {
    let (text, name) = match config {
        None => (lapa_cli::QUICKSTART.to_owned(), "quickstart".to_owned()),
        Some(config) => source(config)?,
    };
    let changes: Vec<Override> = changes
        .unwrap_or_default()
        .iter()
        .map(|change| Override::parse_flag("changes", change))
        .collect::<Result<_, _>>()
        .map_err(Raise::raise)?;
    Experiment::from_toml(&text, &name, &changes).map_err(Raise::raise)
}

/// The text of a configuration, and what it is called.
fn source(config: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    if let Ok(sections) = config.cast::<PyDict>() {
        let text = toml::to_string(&from_python(sections)?)
            .map_err(|error| ConfigError::new_err(format!("config: {error}")))?;
        return Ok((text, "config".into()));
    }
    if let Ok(text) = config.cast::<PyString>() {
        let text = text.to_str()?;
        if text.contains(['\n', '=']) || text.is_empty() {
            return Ok((text.into(), "config".into()));
        }
    }
    let path: PathBuf = config.extract().map_err(|_| {
        PyTypeError::new_err(
            "config must be a path, TOML text (with a line break or `=` in it) or a dict of sections",
        )
    })?;
    let text = lapa::config::read_file(&path).map_err(|error| {
        ConfigError::new_err(format!("cannot read {}: {error}", path.display()))
    })?;
    Ok((text, path.display().to_string()))
}

/// The data set of an experiment.
pub fn data(py: Python<'_>, experiment: &Experiment) -> PyResult<Dataset> {
    py.detach(|| experiment.inputs().load(&mut |_| {})).map_err(Raise::raise)
}

/// Plain values of a configuration. None stands for an absent key.
fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(sections) = value.cast::<PyDict>() {
        let mut map = Map::new();
        for (key, value) in sections {
            if !value.is_none() {
                map.insert(key.extract()?, from_python(&value)?);
            }
        }
        return Ok(Value::Object(map));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(value.extract::<bool>()?.into());
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.extract::<i64>()?.into());
    }
    if value.is_instance_of::<PyFloat>() {
        let number: f64 = value.extract()?;
        return serde_json::Number::from_f64(number).map(Value::Number).ok_or_else(|| {
            PyValueError::new_err(format!("config: {number} is not a valid value"))
        });
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return value.try_iter()?.map(|item| from_python(&item?)).collect();
    }
    // Paths, and numbers of numpy.
    if let Ok(text) = value.extract::<String>() {
        return Ok(text.into());
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return path.to_str().map(Value::from).ok_or_else(|| {
            let path = path.display();
            PyValueError::new_err(format!(
                "config: the path {path} is not UTF-8, which a configuration requires"
            ))
        });
    }
    match value.extract::<i64>() {
        Ok(number) => Ok(number.into()),
        Err(_) => Ok(value.extract::<f64>()?.into()),
    }
}

/// JSON as Python's own values; "inf" is a number.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into_pyobject(py)?.into_any(),
            (None, real) => PyFloat::new(py, real.unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) if text == "inf" => PyFloat::new(py, f64::INFINITY).into_any(),
        Value::String(text) if text == "-inf" => PyFloat::new(py, f64::NEG_INFINITY).into_any(),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(to_python(py, item)?))?;
            list.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, value) in map {
                dict.set_item(key, to_python(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// Anything that is written as JSON, as Python's own values.
pub fn as_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value)
        .map_err(|error| PyValueError::new_err(format!("cannot be converted: {error}")))?;
    to_python(py, &value)
}
