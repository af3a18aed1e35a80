//! `lapa.Device`: what one real device runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use lapa::data::Split;
use lapa::model::Shape;
use lapa::remote::{DeviceInfo, RemoteError, Spending};
use numpy::{
    AllowTypeChange, Element, IntoPyArray, PyArray1, PyArrayLike1, PyReadonlyArray1,
    PyReadonlyArray3,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{as_python, data, dict, experiment, lock};
use crate::error::{LapaError, Raise};

/// Values of a model or an update; other numbers are converted.
pub type Values<'py> = PyArrayLike1<'py, f32, AllowTypeChange>;

/// Copies of the arrays of some devices.
pub fn vectors<T: Element + Copy>(
    arrays: BTreeMap<u32, PyArrayLike1<'_, T, AllowTypeChange>>,
) -> BTreeMap<u32, Vec<T>> {
    arrays.into_iter().map(|(device, array)| (device, array.as_array().to_vec())).collect()
}

/// One device of a real federation: its records, its budget and its ledger.
///
/// It shares no memory with other devices or the base station. Whatever it is asked, nothing leaves
/// it before its own ledger, a file, has the release on the disk, and it refuses (`lapa.Refused`)
/// what would pass its budget. The ledger counts everything that the device ever released.
///
/// `config`: a path, TOML text or a dict of sections, with `transmit.uplink = "ideal"`.
/// `images` (uint8, n × rows × cols) and `labels` (uint8, n) are the device's own records, of
/// `classes`, by default `data.classes` of the configuration or 10; without
/// them it has part `device` of the configuration's data set. With `samples` and `parameters`
/// instead, the model is trained elsewhere, for example in PyTorch, and only `privatize` is used.
/// `seeded=True` draws batches and noise from the configuration's seed: a simulation, which protects
/// nobody. Otherwise they come from the operating system, whatever the configuration says.
///
/// >>> import numpy, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> config = {"run": {"rounds": 10}, "privacy": {"epsilon": 8}, "transmit": {"uplink": "ideal"}}
/// >>> device = lapa.Device(config, 0, ledger=folder / "ledger.db", samples=400, parameters=3)
/// >>> cost = device.describe()["left"] / 10
/// >>> noisy = device.privatize("my run", 1, numpy.array([0.1, -0.2, 0.3]), cost)
/// >>> noisy.dtype, len(noisy)
/// (dtype('float32'), 3)
/// >>> again = device.privatize("my run", 1, numpy.array([0.1, -0.2, 0.3]), cost)
/// >>> bool((noisy == again).all()), device.spent()["releases"]
/// (True, 1)
/// >>> device.privatize("my run", 2, numpy.zeros(3), 1e9)
/// Traceback (most recent call last):
/// lapa.Refused: device 0 refuses: it was asked for a cost of 1000000000, and ...
#[pyclass(module = "lapa", frozen)]
pub struct Device {
    inner: Mutex<lapa::remote::Device>,
    /// The thread that is in a training function of `privatize`, which has the device meanwhile.
    training: Mutex<Option<ThreadId>>,
}

impl Device {
    /// Does `work` without holding the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut lapa::remote::Device) -> Result<T, RemoteError> + Send,
    ) -> PyResult<T> {
        if *lock(&self.training) == Some(thread::current().id()) {
            return Err(LapaError::new_err("a training function cannot use its own device"));
        }
        py.detach(|| work(&mut lock(&self.inner))).map_err(Raise::raise)
    }

    /// Update that a training function returns. An exception is reported as Python reports what nobody can
    /// catch, and counts as nothing, which is no update.
    fn call(&self, train: &Py<PyAny>) -> Vec<f32> {
        *lock(&self.training) = Some(thread::current().id());
        let update = Python::attach(|py| {
            let called = train.bind(py).call0();
            let update =
                called.and_then(|update| Ok(update.extract::<Values>()?.as_array().to_vec()));
            update.unwrap_or_else(|error| {
                error.write_unraisable(py, Some(train.bind(py)));
                Vec::new()
            })
        });
        *lock(&self.training) = None;
        update
    }
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (config, device, *, ledger, seeded=false, images=None, labels=None, classes=None,
                        samples=None, parameters=None, changes=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        config: &Bound<'_, PyAny>,
        device: u32,
        ledger: PathBuf,
        seeded: bool,
        images: Option<PyReadonlyArray3<'_, u8>>,
        labels: Option<PyReadonlyArray1<'_, u8>>,
        classes: Option<usize>,
        samples: Option<u32>,
        parameters: Option<usize>,
        changes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let experiment = experiment(Some(config), changes)?;
        use lapa::remote::Device as Inner;
        let inner = match (images, labels, samples, parameters) {
            (Some(images), Some(labels), None, None) => {
                let images = images.as_array();
                let (_, rows, cols) = images.dim();
                let records = Split {
                    values: images.iter().copied().collect::<Vec<u8>>().into(),
                    labels: labels.as_array().to_vec(),
                    shape: Shape::new(1, rows, cols),
                };
                let declared = experiment.data.classes.map(|classes| classes as usize);
                let classes = classes.or(declared).unwrap_or(lapa::data::CLASSES);
                py.detach(|| {
                    Inner::with_records(&experiment, device, records, classes, seeded, &ledger)
                })
            }
            (None, None, Some(samples), Some(parameters)) => py.detach(|| {
                Inner::of_updates(&experiment, device, samples, parameters, seeded, &ledger)
            }),
            (None, None, None, None) => {
                let data = data(py, &experiment)?;
                py.detach(|| Inner::of_partition(&experiment, &data, device, seeded, &ledger))
            }
            _ => {
                return Err(PyTypeError::new_err(
                    "a device takes either images and labels, or samples and parameters, or none of them",
                ));
            }
        };
        Ok(Self { inner: Mutex::new(inner.map_err(Raise::raise)?), training: Mutex::default() })
    }

    /// Public facts for the base station, all of them numbers.
    ///
    /// device, samples (public), parameters, classes, rounds; epsilon, its budget, and epsilon_ever, the
    /// largest that it ever held itself to; delta; left, in the currency of its filter; seeded, 0 or 1.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facts = self.with(py, |device| device.describe())?;
        let dict = as_python(py, &facts)?.cast_into::<PyDict>()?;
        dict.set_item("seeded", u8::from(facts.seeded))?;
        Ok(dict)
    }

    /// The noisy update from the global model `parameters` in `round` of `run`, for a cost to the
    /// device's budget.
    ///
    /// A batch, its gradient, clipped; charged to the device's own ledger; then noise. The same
    /// question gets the first answer again and costs nothing. Raises `lapa.Refused`, whatever the
    /// server asks, for what would pass the budget and for strange questions.
    fn train<'py>(
        &self,
        py: Python<'py>,
        run: String,
        round: u32,
        parameters: Values<'py>,
        cost: f64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let parameters = parameters.as_array().to_vec();
        let update = self.with(py, |device| device.train(&run, round, &parameters, cost))?;
        Ok(update.into_gradient().into_pyarray(py))
    }

    /// A noisy copy of an update that was computed elsewhere, for a cost to the device's budget.
    ///
    /// The whole update is clipped to `learn.clip_norm` C, so that one record moves it by up to 2C;
    /// values that are not finite make it zero. Charged as in `train`. The same run, round and cost get
    /// the first answer again, whatever the update: training need not be repeatable.
    ///
    /// `update` may be a function without arguments that trains and returns the update. It is called
    /// when the release is charged, and not at all for what is refused or was answered before. Whatever
    /// it raises, and an update of another length, counts as zero, since an error would tell of the
    /// records; a warning on standard error says so.
    fn privatize<'py>(
        &self,
        py: Python<'py>,
        run: String,
        round: u32,
        update: Bound<'py, PyAny>,
        cost: f64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let update = if update.is_callable() {
            let train = update.unbind();
            self.with(py, |device| device.privatize_after(&run, round, cost, || self.call(&train)))
        } else {
            let update = update.extract::<Values>()?.as_array().to_vec();
            self.with(py, |device| device.privatize(&run, round, &update, cost))
        }?;
        Ok(update.into_gradient().into_pyarray(py))
    }

    /// The device's label counts before round 1, with noise for a cost to its budget; see
    /// `BaseStation.ask_histograms`.
    fn histogram<'py>(
        &self,
        py: Python<'py>,
        run: String,
        cost: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let counts = self.with(py, |device| device.histogram(&run, cost))?;
        Ok(counts.into_pyarray(py))
    }

    /// State of the budget over all that was ever released.
    ///
    /// epsilon (spent), declared (the budget), delta, left and capacity (in the currency of the
    /// filter), releases.
    fn spent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Spending { epsilon, declared, delta, left, capacity, releases } =
            self.with(py, |device| device.spent())?;
        dict!(py, "epsilon": epsilon, "declared": declared, "delta": delta, "left": left,
              "capacity": capacity, "releases": releases)
    }
}

/// A number that a device told of itself, which may be text, as JSON has it.
fn number(dict: &Bound<'_, PyDict>, key: &str) -> PyResult<f64> {
    let value = dict.get_item(key)?.ok_or_else(|| {
        PyTypeError::new_err(format!("devices: `{key}` is missing; pass the result of describe()"))
    })?;
    match value.extract::<String>().ok().and_then(|text| text.parse().ok()) {
        Some(number) => Ok(number),
        None => value.extract(),
    }
}

/// A whole number that a device told of itself, which may be a float.
fn whole<T: TryFrom<u64>>(dict: &Bound<'_, PyDict>, key: &str) -> PyResult<T> {
    let value = number(dict, key)?;
    let valid = value >= 0.0 && value.fract() == 0.0 && value < 9e15;
    let whole = valid.then_some(value as u64).and_then(|value| value.try_into().ok());
    whole.ok_or_else(|| PyTypeError::new_err(format!("devices: invalid `{key}`: {value}")))
}

/// Facts that a device told of itself, as they came over a network.
pub fn facts(dict: &Bound<'_, PyDict>) -> PyResult<DeviceInfo> {
    Ok(DeviceInfo {
        device: whole(dict, "device")?,
        samples: whole(dict, "samples")?,
        parameters: whole(dict, "parameters")?,
        classes: whole(dict, "classes")?,
        rounds: whole(dict, "rounds")?,
        epsilon: number(dict, "epsilon")?,
        epsilon_ever: number(dict, "epsilon_ever")?,
        delta: number(dict, "delta")?,
        left: number(dict, "left")?,
        seeded: whole::<u64>(dict, "seeded")? != 0,
    })
}
