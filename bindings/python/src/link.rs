//! `lapa.link`: the radio links of a configuration.

use lapa::radio::{Links, Threshold};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::convert::experiment;
use crate::error::Raise;

/// The radio link of each device in a round in which all send: a dict of columns.
///
/// device, distance_m, path_loss_db, power_w, snr_db, sinr_db, ser (symbol error rate) and sends
/// (whether it may send). Positions and channels follow from the configuration and its seed alone.
///
/// >>> links = lapa.link({"partition": {"mix": {"iid": 2, "non_iid": 3}}})
/// >>> links["device"], len(links["sinr_db"])
/// ([0, 1, 2, 3, 4], 5)
#[pyfunction]
#[pyo3(signature = (config=None, *, changes=None, round=1))]
pub fn link<'py>(
    py: Python<'py>,
    config: Option<&Bound<'_, PyAny>>,
    changes: Option<Vec<String>>,
    round: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let experiment = experiment(config, changes)?;
    let mut links = Links::new(experiment.setting()).map_err(Raise::raise)?;
    let devices: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
    let list = links.draw(round, &devices).map_err(Raise::raise)?;
    let threshold = experiment.aggregate.threshold;
    let ideal = experiment.transmit.uplink.is_ideal() && threshold == Threshold::None;
    let db = |ratio: f64| 10.0 * ratio.log10();
    let dict = PyDict::new(py);
    dict.set_item("device", &devices)?;
    let column = |name: &str, values: Vec<f64>| dict.set_item(name, PyList::new(py, values)?);
    column("distance_m", devices.iter().map(|&device| links.distance(device).0).collect())?;
    column("path_loss_db", devices.iter().map(|&device| links.path_loss(device).0).collect())?;
    column("power_w", list.iter().map(|link| link.power.0).collect())?;
    column("snr_db", list.iter().map(|link| db(link.snr)).collect())?;
    column("sinr_db", list.iter().map(|link| db(link.sinr)).collect())?;
    column("ser", list.iter().map(|link| link.ser).collect())?;
    let sends: Vec<bool> = list.iter().map(|link| ideal || link.passes(&threshold)).collect();
    dict.set_item("sends", sends)?;
    Ok(dict)
}
