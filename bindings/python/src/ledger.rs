//! `lapa.Ledger`: what was released, on the disk before its noise is drawn.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use lapa::budget::kind_of_costs;
use lapa_privacy::ledger::{
    DataKey, Declaration, DeclaredBudget, Entry, Ledger as Inner, Repeat, Request,
};
use lapa_privacy::{
    Adjacency, ClipUnit, Event, Filter as InnerFilter, NoiseKind, Overspent, Release, Sampling,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::account::{Filter, adjacency};
use crate::convert::{as_python, dict, lock};
use crate::error::{LapaError, LedgerError, Raise};

/// A durable record of releases in a file, made if it is missing.
///
/// A release is on the disk when `charge` returns; only then may its noise be drawn. What was spent is
/// kept by data set and device, over all runs. The ledger of a run or of a `Device` can be read here
/// too.
///
/// >>> import tempfile, pathlib
/// >>> ledger = lapa.Ledger(pathlib.Path(tempfile.mkdtemp()) / "ledger.db")
/// >>> filter = lapa.Filter(epsilon=8, delta=1e-5)
/// >>> left = ledger.begin("my run", {0: filter})
/// >>> cost = ledger.charge("my run", 1, 0, sigma=2.0)
/// >>> round(cost, 6), round(ledger.declarations()[0]["spent"] / filter.capacity, 2)
/// (0.25, 0.09)
/// >>> ledger.charge("my run", 2, 0, sigma=0.1)
/// Traceback (most recent call last):
/// lapa.Refused: the cost of a release is ...
#[pyclass(module = "lapa", frozen)]
pub struct Ledger {
    inner: Mutex<Inner>,
    /// Starting budgets of the runs of this process, by run and device.
    filters: Mutex<BTreeMap<(String, u32), (InnerFilter, Adjacency)>>,
}

#[pymethods]
impl Ledger {
    #[new]
    #[pyo3(signature = (path, *, read_only=false))]
    fn new(path: PathBuf, read_only: bool) -> PyResult<Self> {
        let opened = if read_only { Inner::open_read_only(&path) } else { Inner::open(&path) };
        let inner = Mutex::new(opened.map_err(Raise::raise)?);
        Ok(Self { inner, filters: Mutex::default() })
    }

    /// Declares a run's devices and their filters, or goes on with a run that was declared the same;
    /// returns what each device has left.
    ///
    /// `adjacency` is that of all releases on a device: costs under two of them do not add up, so a
    /// ledger refuses another one for a device that it knows.
    #[pyo3(signature = (run, filters, *, data="records", adjacency="zero-out"))]
    fn begin<'py>(
        &self,
        py: Python<'py>,
        run: &str,
        filters: BTreeMap<u32, Bound<'py, Filter>>,
        data: &str,
        adjacency: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let adjacency = self::adjacency(adjacency)?;
        let mut listed = Vec::with_capacity(filters.len());
        let mut began = Vec::with_capacity(filters.len());
        for (&device, filter) in &filters {
            let filter = filter.get().lock().clone();
            let kind = kind_of_costs(&filter, adjacency, 0.0);
            let budget = filter.budget();
            let (epsilon, delta) = (budget.epsilon(), budget.delta());
            listed.push((
                device,
                DeclaredBudget { kind, epsilon, delta, capacity: filter.capacity() },
            ));
            began.push(((run.to_owned(), device), (filter, adjacency)));
        }
        let data = DataKey { data: data.into(), partition: data.into() };
        let begun = lock(&self.inner).begin_run(run, &data, &listed);
        let left = begun.map_err(Raise::raise)?;
        // A run that was refused goes on with what it began with.
        lock(&self.filters).extend(began);
        filters.keys().zip(left).into_py_dict(py)
    }

    /// Charges a release with noise of `sigma` sensitivities to a device, all or nothing, and returns
    /// its cost. When this returns it is on the disk. A round that is charged again costs again.
    #[pyo3(signature = (run, round, device, *, sigma, sampling_rate=None))]
    fn charge(
        &self,
        py: Python<'_>,
        run: &str,
        round: u32,
        device: u32,
        sigma: f64,
        sampling_rate: Option<f64>,
    ) -> PyResult<f64> {
        // A copy: a thread that waits for the interpreter below must not hold this lock.
        let found = lock(&self.filters).get(&(run.to_owned(), device)).cloned();
        let Some((filter, adjacency)) = found else {
            return Err(LedgerError::new_err(format!(
                "run {run} has not begun with device {device}: call begin first"
            )));
        };
        // In units of the sensitivity: the clip norm is such that it is 1.
        let release = Release {
            clip: if sampling_rate.is_some() { ClipUnit::Sample } else { ClipUnit::Device },
            clip_norm: if sampling_rate.is_some() { 1.0 } else { 0.5 },
            denominator: 1.0,
            records: 1,
            learning_rate: 1.0,
            adjacency,
            sampling: sampling_rate.map_or(Sampling::Full, |rate| Sampling::Poisson { rate }),
            noise: NoiseKind::Gaussian,
            sigma_artificial: sigma,
            sigma_channel: 0.0,
            kappa: 0.0,
            shared_channel: false,
        };
        let mechanism = release.mechanism();
        let mechanism = mechanism.map_err(|error| LapaError::new_err(error.to_string()))?;
        let cost = filter.cost(&mechanism).map_err(Raise::raise)?;
        let request = [Request { device, cost }];
        py.detach(|| {
            let mut ledger = lock(&self.inner);
            let offers = ledger.offer(run, round, Repeat::ChargeAgain, 0.0, &request);
            let offers = offers.map_err(Raise::raise)?;
            let left = offers.granted().next().flatten().unwrap_or_default();
            if left < cost {
                return Err(Overspent { cost, left }.raise());
            }
            let recorded = offers.record([(Event::Release(release), cost)]);
            let recorded = recorded.map_err(Raise::raise)?.into_iter().next().flatten();
            Ok(recorded.ok_or_else(|| Overspent { cost, left: 0.0 }.raise())?.cost())
        })
    }

    /// All releases in the order they were recorded: run, data, round, device, attempt, granted, cost
    /// and event.
    fn releases<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let releases = lock(&self.inner).releases().map_err(Raise::raise)?;
        let row = |entry: Entry| {
            dict!(py, "run": entry.run, "data": entry.data, "round": entry.round,
                  "device": entry.device, "attempt": entry.attempt, "granted": entry.granted,
                  "cost": entry.cost, "event": as_python(py, &entry.event)?)
        };
        releases.into_iter().map(row).collect()
    }

    /// Declarations of every run for its devices: run, data, device, epsilon, delta, capacity, and what
    /// was spent on the device by all runs.
    fn declarations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let ledger = lock(&self.inner);
        let declarations = ledger.declarations().map_err(Raise::raise)?;
        let mut rows = Vec::new();
        for Declaration { run, data, devices, budget, .. } in declarations {
            let spending = ledger.spending(&data).map_err(Raise::raise)?;
            for device in devices {
                let spent = spending.get(&device).copied().unwrap_or_default();
                rows.push(dict!(py, "run": &run, "data": &data, "device": device,
                                "epsilon": budget.epsilon, "delta": budget.delta,
                                "capacity": budget.capacity, "spent": spent)?);
            }
        }
        Ok(rows)
    }

    /// Its path.
    #[getter]
    fn path(&self) -> PathBuf {
        lock(&self.inner).path().to_path_buf()
    }
}
