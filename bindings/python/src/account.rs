//! `lapa.account`, `lapa.calibrate` and `lapa.Filter`.

use std::sync::{Mutex, MutexGuard};

use lapa_privacy::accountant::{ACCOUNTANTS, Named, Pld, composed};
use lapa_privacy::calibrate::noise_multiplier;
use lapa_privacy::{AccountError, Adjacency, Budget, Filter as Inner, FilterKind, Mechanism};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::lock;
use crate::error::Raise;

/// Relation of neighboring data sets, by its name.
pub fn adjacency(name: &str) -> PyResult<Adjacency> {
    serde_json::from_value(name.into()).map_err(|_| {
        PyValueError::new_err(format!(
            "adjacency = \"{name}\": expected \"zero-out\", \"add-remove\" or \"replace-one\""
        ))
    })
}

/// ε of noise, by every accountant.
///
/// `sigma` is in units of the sensitivity. With `sampling_rate` each record joins a batch by itself
/// with that probability, and the sensitivity is the most that one record adds. `events`, a list of
/// (sampling_rate, sigma, rounds), stands for releases that are not all equal. An accountant without
/// a theorem for the question says None. naive and advanced, as the paper, read `delta` as that of
/// each round; all others as that of the whole.
///
/// >>> epsilon = lapa.account(sigma=1.0, rounds=100, delta=1e-5, sampling_rate=0.1)
/// >>> epsilon["gdp"] is None, round(epsilon["pld"], 2)
/// (True, 7.05)
#[pyfunction]
#[pyo3(signature = (sigma=None, rounds=1, *, delta, sampling_rate=None, adjacency="zero-out", events=None))]
pub fn account<'py>(
    py: Python<'py>,
    sigma: Option<f64>,
    rounds: u32,
    delta: f64,
    sampling_rate: Option<f64>,
    adjacency: &str,
    events: Option<Vec<(Option<f64>, f64, u32)>>,
) -> PyResult<Bound<'py, PyDict>> {
    let adjacency = self::adjacency(adjacency)?;
    let events = match (sigma, events) {
        (Some(sigma), None) => vec![(sampling_rate, sigma, rounds)],
        (None, Some(events)) => events,
        _ => return Err(PyTypeError::new_err("expected either sigma or events")),
    };
    let all: Vec<(&str, Result<f64, AccountError>)> = py.detach(|| {
        let epsilon = |Named { name, new, .. }: Named| {
            let releases = events.iter().map(|&(rate, sigma, rounds)| {
                (Mechanism::gaussian(rate, sigma, adjacency), rounds)
            });
            (name, composed(new(), releases, delta))
        };
        ACCOUNTANTS.into_iter().map(epsilon).collect()
    });
    let dict = PyDict::new(py);
    for (name, epsilon) in all {
        match epsilon {
            Ok(epsilon) => dict.set_item(name, epsilon)?,
            Err(AccountError::Unsupported { .. }) => dict.set_item(name, py.None())?,
            Err(error) => return Err(error.raise()),
        }
    }
    Ok(dict)
}

/// The least σ, in units of the sensitivity, with which `rounds` releases meet (epsilon, delta).
///
/// The result was itself accounted: ε never exceeds the target.
///
/// >>> round(lapa.calibrate(epsilon=8, delta=1e-5, rounds=150, sampling_rate=0.1), 2)
/// 1.04
#[pyfunction]
#[pyo3(signature = (epsilon, delta, rounds, *, sampling_rate=None, adjacency="zero-out", accountant="pld"))]
pub fn calibrate(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    rounds: u32,
    sampling_rate: Option<f64>,
    adjacency: &str,
    accountant: &str,
) -> PyResult<f64> {
    let unit = Mechanism::gaussian(sampling_rate, 1.0, self::adjacency(adjacency)?);
    let Some(chosen) = ACCOUNTANTS.into_iter().find(|known| known.name == accountant) else {
        let names = ACCOUNTANTS.map(|known| known.name).join(", ");
        return Err(PyValueError::new_err(format!(
            "accountant = \"{accountant}\": expected one of {names}"
        )));
    };
    py.detach(|| chosen.sigma((epsilon, delta), unit, rounds)).map_err(Raise::raise)
}

/// A budget that cannot be overspent, however releases are chosen on the way.
///
/// `Filter(epsilon, delta)` adds up μ² of Gaussian releases without sampling;
/// `Filter(epsilon, delta, order=a)` Rényi divergences at one order; `Filter.plan` counts equal
/// releases on Poisson samples. Costs are in that currency.
///
/// >>> filter = lapa.Filter(epsilon=8, delta=1e-5)
/// >>> sigma = filter.sigma_for(filter.capacity / 2)
/// >>> filter.charge(filter.cost(sigma))
/// >>> filter.charge(filter.cost(sigma / 2))
/// Traceback (most recent call last):
/// lapa.Refused: the cost of a release is ...
/// >>> round(filter.spent_epsilon(), 2)
/// 5.3
#[pyclass(module = "lapa", frozen)]
pub struct Filter {
    inner: Mutex<Inner>,
}

impl Filter {
    /// The filter, while no other thread has it.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (epsilon, delta, *, order=None))]
    fn new(epsilon: f64, delta: f64, order: Option<f64>) -> PyResult<Self> {
        let made = || {
            let budget = Budget::new(epsilon, delta)?;
            match order {
                None => Inner::gdp(budget),
                Some(order) => Inner::renyi(budget, order),
            }
        };
        Ok(Self { inner: Mutex::new(made().map_err(Raise::raise)?) })
    }

    /// At most `rounds` equal releases on Poisson samples, with the least noise that meets the
    /// budget by PLD; each costs 1.
    #[staticmethod]
    #[pyo3(signature = (epsilon, delta, rounds, *, sampling_rate, adjacency="zero-out"))]
    fn plan(
        py: Python<'_>,
        epsilon: f64,
        delta: f64,
        rounds: u32,
        sampling_rate: f64,
        adjacency: &str,
    ) -> PyResult<Self> {
        let unit = Mechanism::gaussian(Some(sampling_rate), 1.0, self::adjacency(adjacency)?);
        let made = || -> Result<Inner, AccountError> {
            let budget = Budget::new(epsilon, delta)?;
            let mechanism = unit.with_noise(noise_multiplier(budget, unit, rounds, Pld::default)?);
            let epsilon = composed(Pld::default(), [(mechanism, rounds)], delta)?;
            Inner::plan(budget, mechanism, rounds, epsilon)
        };
        Ok(Self { inner: Mutex::new(py.detach(made).map_err(Raise::raise)?) })
    }

    /// Cost of a release with noise of `sigma` sensitivities.
    #[pyo3(signature = (sigma, *, sampling_rate=None, adjacency="zero-out"))]
    fn cost(&self, sigma: f64, sampling_rate: Option<f64>, adjacency: &str) -> PyResult<f64> {
        let mechanism = Mechanism::gaussian(sampling_rate, sigma, self::adjacency(adjacency)?);
        self.lock().cost(&mechanism).map_err(Raise::raise)
    }

    /// The least noise, in sensitivities, with which a release costs at most `cost`.
    #[pyo3(signature = (cost, *, sampling_rate=None, adjacency="zero-out"))]
    fn sigma_for(&self, cost: f64, sampling_rate: Option<f64>, adjacency: &str) -> PyResult<f64> {
        let unit = Mechanism::gaussian(sampling_rate, 1.0, self::adjacency(adjacency)?);
        let found = self.lock().mechanism_for(unit, cost).map_err(Raise::raise)?;
        Ok(found.noise_multiplier() / unit.noise_multiplier())
    }

    /// Part of `cost` that may be spent now: all of it, what is left, or 0 if that is below `floor`.
    /// Spends nothing.
    #[pyo3(signature = (cost, floor=0.0))]
    fn request(&self, cost: f64, floor: f64) -> f64 {
        self.lock().request(cost, floor).granted().unwrap_or(0.0)
    }

    /// Spends a cost, before the release it is for; raises `lapa.Refused` if it does not fit.
    fn charge(&self, cost: f64) -> PyResult<()> {
        self.lock().charge(cost).map_err(Raise::raise)
    }

    /// ε of what was spent, afterwards.
    fn spent_epsilon(&self) -> PyResult<f64> {
        self.lock().spent_epsilon().map_err(Raise::raise)
    }

    /// The guarantee: ε.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.lock().budget().epsilon()
    }

    /// The guarantee: δ.
    #[getter]
    fn delta(&self) -> f64 {
        self.lock().budget().delta()
    }

    /// The most that may be spent.
    #[getter]
    fn capacity(&self) -> f64 {
        self.lock().capacity()
    }

    /// Spent budget, not rounded down.
    #[getter]
    fn spent(&self) -> f64 {
        self.lock().spent()
    }

    /// Budget that is left, not rounded up.
    #[getter]
    fn left(&self) -> f64 {
        self.lock().left()
    }

    /// Theorem by which the budget holds.
    #[getter]
    fn theorem(&self) -> &'static str {
        self.lock().theorem()
    }

    /// "gdp", "renyi" or "plan".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.lock().kind() {
            FilterKind::Gdp => "gdp",
            FilterKind::Renyi { .. } => "renyi",
            FilterKind::Plan { .. } => "plan",
        }
    }
}
