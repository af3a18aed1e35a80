//! `lapa.Allocator`: who may spend how much of a budget in which round, over numpy gradients.

use std::collections::BTreeMap;
use std::sync::Mutex;

use lapa::seed::{Purpose, stream};
use lapa_privacy::allocate::{
    AllocateError, Allocator as Inner, AllocatorConfig, Ask, Basis, DeviceTranscript, Horizon,
    PidError, Transcript,
};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::convert::lock;
use crate::device::{Values, vectors};
use crate::error::Raise;

/// Shares a budget over rounds and devices: "lapa", "uniform", "arb" or "optimal-split".
///
/// Without `epsilon` each device has a capacity of its own (basis certified) and costs are parts of
/// what it has left, in the currency of its filter. With `epsilon`, one total is shared by all rounds
/// and devices by the paper's formulas (basis paper), and costs are ε_k. It reads noisy gradients and
/// public numbers only. The other parameters are those of `[privacy.lapa]`, with its defaults.
///
/// >>> import numpy
/// >>> allocator = lapa.Allocator("lapa", rounds=10, devices=2)
/// >>> allocator.allocate(1, left={0: 1.0, 1: 1.0})
/// {0: 0.1, 1: 0.1}
/// >>> gradients = {0: numpy.array([1.0, 0.0]), 1: numpy.array([0.0, 1.0])}
/// >>> allocator.observe(1, gradients, weights={0: 0.9, 1: 0.1}, sigmas={0: 0.01, 1: 0.01})
/// >>> costs = allocator.allocate(2, left={0: 0.9, 1: 0.9})
/// >>> sorted(costs), all(0 < cost <= 0.9 for cost in costs.values())
/// ([0, 1], True)
#[pyclass(module = "lapa", frozen)]
pub struct Allocator {
    inner: Mutex<Box<dyn Inner>>,
    name: String,
    seed: u64,
}

#[pymethods]
impl Allocator {
    #[new]
    #[pyo3(signature = (name="lapa", *, rounds, devices, epsilon=None, proportional=None,
                        integral=None, window=None, error=None, schedule=None, split=None,
                        decay=None, seed=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        name: &str,
        rounds: u32,
        devices: u32,
        epsilon: Option<f64>,
        proportional: Option<f64>,
        integral: Option<f64>,
        window: Option<u32>,
        error: Option<&str>,
        schedule: Option<&str>,
        split: Option<&str>,
        decay: Option<f64>,
        seed: u64,
    ) -> PyResult<Self> {
        let basis = if epsilon.is_some() { Basis::Paper } else { Basis::Certified };
        let given = [
            ("proportional", proportional.map(Value::from)),
            ("integral", integral.map(Value::from)),
            ("window", window.map(Value::from)),
            ("error", error.map(Value::from)),
            ("schedule", schedule.map(Value::from)),
            ("split", split.map(Value::from)),
            ("decay", decay.map(Value::from)),
        ];
        let given =
            given.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect();
        let config = config(name, given, basis)
            .map_err(|error| PyValueError::new_err(format!("allocator = \"{name}\": {error}")))?;
        let inner =
            config.build(Horizon { total: epsilon, rounds, devices }).map_err(
                |error| match error {
                    AllocateError::NeedsTotal { .. } => PyValueError::new_err(error.to_string()),
                    error => error.raise(),
                },
            )?;
        Ok(Self { inner: Mutex::new(inner), name: name.into(), seed })
    }

    /// The costs of the devices in `left` in a round; rounds must ascend.
    ///
    /// `left` is what each device has left (without meaning with `epsilon`); `weights` are expected
    /// aggregation weights, equal if absent; `sensitivities` the paper's Δs_k, 1 if absent.
    #[pyo3(signature = (round, left, *, weights=None, sensitivities=None))]
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        round: u32,
        left: BTreeMap<u32, f64>,
        weights: Option<BTreeMap<u32, f64>>,
        sensitivities: Option<BTreeMap<u32, f64>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let equal = 1.0 / left.len().max(1) as f64;
        let asks = left
            .iter()
            .map(|(&device, &left)| {
                Ok(Ask {
                    device,
                    left,
                    weight: of(weights.as_ref(), "weights", device, equal)?,
                    sensitivity: of(sensitivities.as_ref(), "sensitivities", device, 1.0)?,
                })
            })
            .collect::<PyResult<Vec<Ask>>>()?;
        let costs = lock(&self.inner).allocate(round, &asks);
        asks.iter().map(|ask| ask.device).zip(costs.by_device).into_py_dict(py)
    }

    /// Learns from a finished round: the noisy gradients as they were received, the weights they were
    /// summed with, and the standard deviation of the noise on each coordinate (0 if absent).
    #[pyo3(signature = (round, gradients, *, weights, sigmas=None))]
    fn observe(
        &self,
        round: u32,
        gradients: BTreeMap<u32, Values<'_>>,
        weights: BTreeMap<u32, f64>,
        sigmas: Option<BTreeMap<u32, f64>>,
    ) -> PyResult<()> {
        let gradients = vectors(gradients);
        let len = gradients.values().next().map_or(0, Vec::len);
        let mut global = vec![0.0f32; len];
        let mut devices = Vec::with_capacity(gradients.len());
        for (&device, gradient) in &gradients {
            if gradient.len() != len || gradient.iter().any(|value| !value.is_finite()) {
                return Err(PyValueError::new_err(format!(
                    "the gradient of device {device} is not finite or has another length"
                )));
            }
            let weight = of(Some(&weights), "weights", device, 0.0)?;
            let sigma = of(sigmas.as_ref(), "sigmas", device, 0.0)?;
            global.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += weight as f32 * g);
            devices.push(DeviceTranscript { device, weight, gradient, sigma });
        }
        let transcript = Transcript { round, devices: &devices, global: &global };
        let mut rng = stream(self.seed, Purpose::Allocate, round.into(), 0);
        lock(&self.inner).observe(&transcript, &mut rng);
        Ok(())
    }

    /// All that later decisions depend on, as JSON text.
    fn state(&self) -> PyResult<String> {
        serde_json::to_string(&lock(&self.inner).state())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Goes back to a state of an allocator with the same settings.
    fn restore(&self, state: &str) -> PyResult<()> {
        let state = serde_json::from_str(state)
            .map_err(|error| PyValueError::new_err(format!("state: {error}")))?;
        lock(&self.inner).restore(state).map_err(Raise::raise)
    }

    /// "lapa", "uniform", "arb" or "optimal-split".
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }
}

/// The number of a device, or what stands for absent numbers.
fn of(numbers: Option<&BTreeMap<u32, f64>>, what: &str, device: u32, absent: f64) -> PyResult<f64> {
    let Some(numbers) = numbers else { return Ok(absent) };
    let missing = || PyKeyError::new_err(format!("{what} has no device {device}"));
    numbers.get(&device).copied().ok_or_else(missing)
}

/// The allocator of a name with these parameters, and the defaults of a configuration.
fn config(
    name: &str,
    mut given: Map<String, Value>,
    basis: Basis,
) -> serde_json::Result<AllocatorConfig> {
    if name == "lapa" {
        let error = given.entry("error").or_insert(json!(PidError::default_for(basis)));
        let gain = PidError::deserialize(&*error)?.default_gain();
        for key in ["proportional", "integral"] {
            given.entry(key).or_insert(gain.into());
        }
    }
    serde_json::from_value(json!({ name: given }))
}
