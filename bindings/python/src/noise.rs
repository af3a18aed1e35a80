//! `lapa.clip_and_noise`: for gradients that are computed elsewhere.

use lapa::seed::{Purpose, stream};
use lapa_privacy::sampler::{clip, os_stream, release_gaussian};
use numpy::{AllowTypeChange, IntoPyArray, PyArray1, PyArrayLikeDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rand::Rng;

use crate::error::Raise;

/// Rows whose sum in f64 is off by less than the margin of the clip: 2n²·2⁻⁵³ ≤ 10⁻⁵.
const MOST_ROWS: usize = 1 << 17;

/// Clips a gradient to the norm `clip_norm` and adds Gaussian noise of `sigma` to each coordinate.
///
/// A 1-D gradient is clipped as a whole: one record moves it by up to 2·clip_norm. Of a 2-D one,
/// each row is the gradient of one sample: rows are clipped, summed and divided by `denominator`, a
/// public number, so that one record adds up to clip_norm/denominator. A gradient or row that is not
/// finite counts as zero: an error would tell of the records. The noise comes from the operating
/// system, or from `seed`, which protects nobody.
///
/// This draws noise and records nothing: `lapa.Device` and `lapa.Filter` hold a budget.
///
/// >>> import numpy
/// >>> rows = numpy.array([[3.0, 4.0], [0.0, 0.5]])
/// >>> numpy.round(lapa.clip_and_noise(rows, clip_norm=1, sigma=0, denominator=2), 3)
/// array([0.3 , 0.65], dtype=float32)
/// >>> noisy = lapa.clip_and_noise(numpy.zeros(1000), clip_norm=1, sigma=2.0)
/// >>> bool(1.5 < noisy.std() < 2.5)
/// True
#[pyfunction]
#[pyo3(signature = (gradient, *, clip_norm, sigma, denominator=None, seed=None))]
pub fn clip_and_noise<'py>(
    py: Python<'py>,
    gradient: PyArrayLikeDyn<'py, f32, AllowTypeChange>,
    clip_norm: f64,
    sigma: f64,
    denominator: Option<f64>,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let gradient = gradient.as_array();
    // A norm that nothing can be clipped to.
    clip(&mut [], clip_norm).map_err(Raise::raise)?;
    let clipped = |row: &mut dyn Iterator<Item = &f32>| -> Vec<f64> {
        let mut row: Vec<f32> = row.copied().collect();
        if clip(&mut row, clip_norm).is_err() {
            row.fill(0.0);
        }
        row.into_iter().map(f64::from).collect()
    };
    let mean: Result<Vec<f64>, String> = match (gradient.ndim(), denominator) {
        (1, None) => Ok(clipped(&mut gradient.iter())),
        (2, Some(_)) if gradient.shape()[0] > MOST_ROWS => Err(format!(
            "gradient has {} rows: the rounding of their sum is bounded for at most {MOST_ROWS}",
            gradient.shape()[0]
        )),
        (2, Some(denominator)) if denominator > 0.0 && denominator.is_finite() => {
            let mut sum = vec![0.0f64; gradient.shape()[1]];
            for row in gradient.outer_iter() {
                sum.iter_mut().zip(clipped(&mut row.iter())).for_each(|(sum, g)| *sum += g);
            }
            Ok(sum.into_iter().map(|sum| sum / denominator).collect())
        }
        (2, _) => {
            Err("per-sample gradients (2-D) need a denominator, a public number above 0".into())
        }
        (1, Some(_)) => Err("denominator applies to per-sample gradients (2-D) only".into()),
        (dimensions, _) => Err(format!(
            "gradient has {dimensions} dimensions: expected 1, or 2 for one row per sample"
        )),
    };
    let mean = mean.map_err(PyValueError::new_err)?;
    let mut rng: Box<dyn Rng> = match seed {
        Some(seed) => Box::new(stream(seed, Purpose::Noise, 0, 0)),
        None => Box::new(os_stream().map_err(Raise::raise)?),
    };
    // The sum of mean and noise is rounded, once.
    let mut released = Vec::with_capacity(mean.len());
    release_gaussian(&mean, sigma, &mut *rng, &mut released).map_err(Raise::raise)?;
    Ok(released.into_pyarray(py))
}
