//! `lapa.BaseStation`: what the server of a real federation runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use lapa::remote::{Dropped, Model, Question, RemoteError, Step};
use numpy::{AllowTypeChange, PyArray1, PyArrayLike1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{as_python, data, dict, experiment, lock, warn};
use crate::device::{Values, facts, vectors};
use crate::error::Raise;

/// The server of a real federation: global model, weights, selection, LAPA's costs to the devices'
/// budgets, server momentum, and a folder with a ledger of what was asked for.
///
/// `devices` is what `Device.describe()` gave, for devices 0 to K−1. If `folder` holds a run of the
/// same configuration and devices, it goes on after its last round; else it begins one. With
/// `initial` (float32, 1-D) the model is trained elsewhere and starts there; without it, it is the
/// configuration's.
///
/// >>> import tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> config = '''
/// ... data.name = "synthetic"
/// ... model.name = "logistic"
/// ... transmit.uplink = "ideal"
/// ... run = { rounds = 2, seed = 1 }
/// ... partition.mix = { iid = 2, non_iid = 1, iid_samples = 50, non_iid_samples = 50 }
/// ... privacy.epsilon = 8
/// ... '''
/// >>> devices = [lapa.Device(config, k, ledger=folder / f"{k}.db", seeded=True) for k in range(3)]
/// >>> station = lapa.BaseStation(config, [d.describe() for d in devices], folder=folder / "run")
/// >>> for _ in range(station.rounds):
/// ...     answers = {}
/// ...     for question in station.ask([0, 1, 2]):
/// ...         device = devices[question["device"]]
/// ...         answers[question["device"]] = device.train(
/// ...             station.run, question["round"], station.parameters, question["cost"])
/// ...     record = station.step(answers)
/// >>> record["round"], record["dropped"], record["missing"]
/// (2, [], [])
/// >>> station.summary()["epsilon_provable"]
/// 8.0
#[pyclass(module = "lapa", frozen)]
pub struct BaseStation {
    inner: Mutex<lapa::remote::BaseStation>,
}

impl BaseStation {
    /// Does `work` without holding the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut lapa::remote::BaseStation) -> Result<T, RemoteError> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut lock(&self.inner))).map_err(Raise::raise)
    }

    /// Shows the run in its folder when all rounds are done.
    fn show_if_done(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let station = lock(&self.inner);
            match lapa::run::read_summary(station.folder())? {
                Some(summary) => lapa_report::run::show(station.folder(), &summary),
                None => Ok(()),
            }
        })
        .map_err(Raise::raise)
    }
}

#[pymethods]
impl BaseStation {
    #[new]
    #[pyo3(signature = (config, devices, *, folder, initial=None, changes=None))]
    fn new(
        py: Python<'_>,
        config: &Bound<'_, PyAny>,
        devices: Vec<Bound<'_, PyDict>>,
        folder: PathBuf,
        initial: Option<Values<'_>>,
        changes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let experiment = experiment(Some(config), changes)?;
        let devices = devices.iter().map(facts).collect::<PyResult<Vec<_>>>()?;
        let model = match initial {
            Some(initial) => Model::Outside(initial.as_array().to_vec()),
            None => Model::Configured(data(py, &experiment)?.into()),
        };
        let inner = py
            .detach(|| lapa::remote::BaseStation::open(&experiment, model, &devices, &folder))
            .map_err(Raise::raise)?;
        let station = Self { inner: Mutex::new(inner) };
        // It may have been killed before it could.
        station.show_if_done(py)?;
        Ok(station)
    }

    /// The run's name, the same after an interruption.
    #[getter]
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |station| Ok(station.run().to_owned()))
    }

    /// Rounds done.
    #[getter]
    fn round(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |station| Ok(station.round()))
    }

    /// Rounds in all.
    #[getter]
    fn rounds(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |station| Ok(station.rounds()))
    }

    /// The global model that devices train from, flat.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let parameters = self.with(py, |station| Ok(station.parameters().to_vec()))?;
        Ok(PyArray1::from_vec(py, parameters))
    }

    /// The global model that is evaluated, flat: the latest, or an average over rounds
    /// (learn.averaging).
    #[getter]
    fn evaluated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let parameters = self.with(py, |station| Ok(station.evaluated().to_vec()))?;
        Ok(PyArray1::from_vec(py, parameters))
    }

    /// The questions for label histograms, before round 1: dicts with device and cost, for
    /// `Device.histogram`. Empty where the rule of aggregation needs none.
    fn ask_histograms<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let questions = self.with(py, |station| station.ask_histograms())?;
        question_list(py, &questions)
    }

    /// Takes the label histograms by device; devices without one count as unknown.
    ///
    /// Returns those that were left out, and why.
    fn learn_histograms<'py>(
        &self,
        py: Python<'py>,
        answers: BTreeMap<u32, PyArrayLike1<'py, f64, AllowTypeChange>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let answers = vectors(answers);
        let dropped = self.with(py, |station| station.learn_histograms(answers))?;
        dropped_list(py, &dropped)
    }

    /// The next round's questions to the devices that are present: dicts with device, round and
    /// cost. Asked again, also after an interruption, they are the same.
    fn ask<'py>(&self, py: Python<'py>, present: Vec<u32>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let questions = self.with(py, |station| station.ask(&present))?;
        question_list(py, &questions)
    }

    /// Ends the round with the answers by device, in any order, and writes a checkpoint.
    ///
    /// Returns the round's record with `dropped`, the answers that were left out and why (not asked,
    /// wrong length, not finite, longer than clip and noise allow), and `missing`, the devices that
    /// did not answer.
    fn step<'py>(
        &self,
        py: Python<'py>,
        answers: BTreeMap<u32, Values<'py>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let answers = vectors(answers);
        let Step { record, dropped, missing, warnings } =
            self.with(py, |station| station.step(answers))?;
        warnings.iter().try_for_each(|warning| warn(py, warning))?;
        self.show_if_done(py)?;
        let dict = as_python(py, &record)?.cast_into::<PyDict>()?;
        dict.set_item("dropped", dropped_list(py, &dropped)?)?;
        dict.set_item("missing", missing)?;
        Ok(dict)
    }

    /// Accuracy and mean loss of the global model on the configuration's test set.
    fn evaluate(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        self.with(py, |station| station.evaluate())
    }

    /// Summary of the rounds so far: accuracy, claimed, proven and spent ε, and more.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let summary = self.with(py, |station| station.summary())?;
        as_python(py, &summary)
    }
}

fn question_list<'py>(py: Python<'py>, asked: &[Question]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let row = |&Question { device, round, cost }| dict!(py, "device": device, "round": round, "cost": cost);
    asked.iter().map(row).collect()
}

fn dropped_list<'py>(py: Python<'py>, dropped: &[Dropped]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let row = |Dropped { device, reason }: &Dropped| dict!(py, "device": device, "reason": reason.to_string());
    dropped.iter().map(row).collect()
}
