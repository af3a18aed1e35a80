//! `lapa.run`: an experiment in this process.

use std::ops::ControlFlow;
use std::path::PathBuf;

use lapa::config::Experiment;
use lapa::data::Dataset;
use lapa::error::FederationError;
use lapa::observe::{RoundRecord, read_metrics};
use lapa::run::{Outcome, RunEvent, Summary, Tensor, model_tensors, read_model};
use lapa_control::phases::{Destination, InMemory, Job, PhaseError, PhaseEvent, Unfinished};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::{Map, Value};

use crate::convert::{as_python, data, experiment, to_python, warn};
use crate::error::Raise;

/// Result of `lapa.run`.
#[pyclass(module = "lapa", frozen, get_all)]
pub struct RunResult {
    /// One row per round: a dict of columns, for `pandas.DataFrame` or `polars.DataFrame`.
    history: Py<PyDict>,
    /// One row per device and round, likewise; empty with observe.devices = "summary".
    devices: Py<PyDict>,
    /// Accuracy, bytes, and what was claimed, proved and spent; `None` if the run was stopped.
    summary: Option<Py<PyAny>>,
    /// The trained model: numpy arrays by name; `None` if a run in a folder was stopped.
    model: Option<Py<PyDict>>,
    /// The run's folder, if it has one.
    folder: Option<PathBuf>,
}

#[pymethods]
impl RunResult {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let rounds = self.history.bind(py).get_item("round")?.map_or(Ok(0), |list| list.len())?;
        Ok(match &self.summary {
            Some(summary) => {
                let summary = summary.bind(py);
                format!(
                    "<lapa.RunResult: {rounds} rounds, accuracy {}, epsilon {}>",
                    summary.get_item("accuracy")?,
                    summary.get_item("epsilon_provable")?
                )
            }
            None => format!("<lapa.RunResult: stopped after {rounds} rounds>"),
        })
    }
}

/// Trains across simulated devices.
///
/// `config` is a path, TOML text or a dict of sections; without it the built-in quickstart.
/// `changes` are further keys, as `["run.rounds=20"]`. `on_round` is called with each round's record,
/// a dict, and stops the run by returning False; so does Ctrl-C, which raises KeyboardInterrupt. With
/// `out`, a new folder, the run leaves there what the command line leaves; with `resume`, the folder of
/// an interrupted run, it goes on. Otherwise everything stays in memory. The interpreter is free while
/// rounds run.
///
/// >>> config = {
/// ...     "data": {"name": "synthetic"},
/// ...     "model": {"name": "logistic"},
/// ...     "run": {"rounds": 3, "seed": 1, "evaluate_every": 1},
/// ...     "partition": {"mix": {"iid": 2, "non_iid": 1, "iid_samples": 60, "non_iid_samples": 60}},
/// ...     "privacy": {"epsilon": 8},
/// ... }
/// >>> result = lapa.run(config)
/// >>> result.history["round"], result.summary["epsilon_provable"]
/// ([1, 2, 3], 8.0)
/// >>> {name: array.shape for name, array in result.model.items()}
/// {'0.linear.weight': (10, 784), '0.linear.bias': (10,)}
#[pyfunction]
#[pyo3(signature = (config=None, *, changes=None, on_round=None, out=None, resume=None))]
pub fn run(
    py: Python<'_>,
    config: Option<&Bound<'_, PyAny>>,
    changes: Option<Vec<String>>,
    on_round: Option<Py<PyAny>>,
    out: Option<PathBuf>,
    resume: Option<PathBuf>,
) -> PyResult<RunResult> {
    let mut listener = Listener { on_round, failure: None };
    if let Some(folder) = resume {
        if config.is_some() || changes.is_some() || out.is_some() {
            return Err(PyValueError::new_err(
                "resume cannot be combined with config, changes or out",
            ));
        }
        let unfinished = Unfinished::open(&folder).map_err(Raise::raise)?;
        let data = data(py, &unfinished.experiment)?;
        let job = py.detach(|| unfinished.resume(data));
        return in_folder(py, &mut listener, job.map_err(Raise::raise)?);
    }
    let experiment = experiment(config, changes)?;
    let data = data(py, &experiment)?;
    match out {
        None => in_memory(py, &mut listener, experiment, data),
        Some(folder) => {
            let job = py.detach(|| Job::create(experiment, data, Destination::Folder(&folder)));
            in_folder(py, &mut listener, job.map_err(Raise::raise)?)
        }
    }
}

/// Hears of rounds, and of Ctrl-C between them.
struct Listener {
    on_round: Option<Py<PyAny>>,
    failure: Option<PyErr>,
}

impl Listener {
    fn hear(&mut self, event: &PhaseEvent<'_>) -> ControlFlow<()> {
        let done = Python::attach(|py| match event {
            PhaseEvent::Run(RunEvent::Warning(text))
            | PhaseEvent::Pilot(RunEvent::Warning(text)) => warn(py, text).map(|()| true),
            PhaseEvent::Run(RunEvent::Round(record)) => self.round(py, record),
            PhaseEvent::Run(_) => Ok(true),
            _ => py.check_signals().map(|()| true),
        });
        match done {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                self.failure.get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    }

    fn round(&self, py: Python<'_>, record: &RoundRecord) -> PyResult<bool> {
        py.check_signals()?;
        let Some(on_round) = &self.on_round else { return Ok(true) };
        let answer = on_round.bind(py).call1((as_python(py, record)?,))?;
        // Nothing returned means to go on.
        Ok(answer.is_none() || answer.is_truthy()?)
    }

    /// The exception of a listener, if there was one.
    fn done(&mut self) -> PyResult<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

fn in_folder(py: Python<'_>, listener: &mut Listener, job: Job) -> PyResult<RunResult> {
    let folder = &job.folder().to_path_buf();
    let outcome = py.detach(|| job.execute(&mut |event| listener.hear(&event)));
    listener.done()?;
    let summary = match outcome.map_err(Raise::raise)? {
        Outcome::Finished(summary) => Some(*summary),
        Outcome::Stopped { .. } => None,
    };
    let records = read_metrics(&folder.join("metrics.jsonl"))
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let model = summary.as_ref().map(|_| read_model(folder)).transpose().map_err(Raise::raise)?;
    result(py, &records, summary.as_ref(), model, Some(folder.to_path_buf()))
}

fn in_memory(
    py: Python<'_>,
    listener: &mut Listener,
    experiment: Experiment,
    data: Dataset,
) -> PyResult<RunResult> {
    let start = lapa::clock::now();
    let run = py.detach(|| {
        let on_event = &mut |event: PhaseEvent<'_>| listener.hear(&event);
        let mut run = InMemory::prepare(experiment, data, on_event)?;
        let summary = match run.execute(on_event) {
            Err(FederationError::Cancelled(_)) => None,
            ended => {
                ended?;
                Some(run.simulation.summary(&run.records, start.elapsed().as_secs_f64())?)
            }
        };
        Ok::<_, PhaseError>((run, summary))
    });
    listener.done()?;
    let (run, summary) = match run {
        // Before the first round there is no model.
        Err(PhaseError::Cancelled(_)) => return result(py, &[], None, None, None),
        run => run.map_err(Raise::raise)?,
    };
    let model = model_tensors(run.simulation.network(), run.simulation.model());
    result(py, &run.records, summary.as_ref(), Some(model), None)
}

fn result(
    py: Python<'_>,
    records: &[RoundRecord],
    summary: Option<&Summary>,
    model: Option<Vec<Tensor>>,
    folder: Option<PathBuf>,
) -> PyResult<RunResult> {
    let (mut history, mut devices) = (Columns::default(), Columns::default());
    for record in records {
        let Ok(Value::Object(mut row)) = serde_json::to_value(record) else { continue };
        if let Some(Value::Array(list)) = row.shift_remove("devices") {
            for device in list.into_iter().filter_map(|device| device.as_object().cloned()) {
                devices.push([("round".to_owned(), record.round.into())].into_iter().chain(device));
            }
        }
        history.push(row);
    }
    let array =
        |Tensor { name, shape, values }| Ok((name, PyArray1::from_vec(py, values).reshape(shape)?));
    let model = model.map(|tensors| -> PyResult<Py<PyDict>> {
        let arrays = tensors.into_iter().map(array).collect::<PyResult<Vec<_>>>()?;
        Ok(arrays.into_py_dict(py)?.unbind())
    });
    Ok(RunResult {
        history: history.into_python(py)?,
        devices: devices.into_python(py)?,
        summary: summary.map(|summary| as_python(py, summary)).transpose()?.map(Bound::unbind),
        model: model.transpose()?,
        folder,
    })
}

/// Rows as columns. All rows have the same keys.
#[derive(Default)]
struct Columns(Map<String, Value>);

impl Columns {
    fn push(&mut self, row: impl IntoIterator<Item = (String, Value)>) {
        for (key, value) in row {
            if let Value::Array(column) = self.0.entry(key).or_insert_with(|| Value::Array(vec![]))
            {
                column.push(value);
            }
        }
    }

    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        Ok(to_python(py, &Value::Object(self.0))?.cast_into::<PyDict>()?.unbind())
    }
}
