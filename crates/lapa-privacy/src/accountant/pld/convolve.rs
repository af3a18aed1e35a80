//! The composed loss on its grid, by FFT of the tilted losses, with a bound on every error.

use std::cell::RefCell;

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::discretize::GridPmf;
use super::saddle::Saddle;
use super::{CELL_ERROR, MAX_POINTS};

/// The composed loss: the point `lowest + i` of the grid, moved down by `shift`, has the mass
/// e^{ln_scale − θl}·tilted\[i\], up to the errors stated.
#[derive(Clone, Debug)]
pub(super) struct Composed {
    /// Width of the grid.
    pub(super) h: f64,
    /// Index of the window's first point.
    pub(super) lowest: i64,
    /// Downward shift of the grid.
    pub(super) shift: f64,
    /// θ
    pub(super) theta: f64,
    /// Near the ε asked for: exponents are taken relative to it.
    pub(super) reference: f64,
    /// ln E e^{θS}
    pub(super) ln_scale: f64,
    /// Masses of the tilted loss in the window, plus those that alias into it.
    pub(super) tilted: Vec<f64>,
    /// Bound on the sum of the absolute errors of `tilted` by floating-point arithmetic.
    pub(super) rounding: f64,
    /// Bound on the tilted mass above the window.
    pub(super) above: f64,
    /// Bound on the tilted mass below the window.
    pub(super) below: f64,
    /// Bound on the logarithm of the relative error of all masses together.
    pub(super) ln_relative: f64,
}

/// u, the unit roundoff.
const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Frequencies where the composed spectrum is below e^−100 are left out.
const LN_NEGLIGIBLE: f64 = -100.0;

thread_local! {
    /// Twiddle factors are worth keeping.
    static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new());
}

/// The composition of `repeats` times all losses; `None` if the window takes too many points.
pub(super) fn compose(
    parts: &[(GridPmf, u64)],
    repeats: u64,
    h: f64,
    saddle: &Saddle,
) -> Option<Composed> {
    let releases = |count: u64| count as f64 * repeats as f64;
    let shift: f64 = parts.iter().map(|(pmf, count)| releases(*count) * pmf.shift).sum();
    // The lowest and the highest point of all.
    let extreme = |end: fn(&GridPmf) -> i64| -> f64 {
        parts.iter().map(|(pmf, count)| releases(*count) * end(pmf) as f64).sum()
    };
    let first = extreme(|pmf| pmf.first);
    let last = extreme(|pmf| pmf.first + pmf.mass.len() as i64 - 1);
    let low = ((saddle.low + shift) / h).max(first);
    let high = ((saddle.high + shift) / h).min(last);
    let points = ((high - low).ceil() + 3.0).max(16.0);
    // Not below for NaN.
    if !(points <= MAX_POINTS as f64 && low.abs().max(high.abs()) < 2.0_f64.powi(52)) {
        return None;
    }
    let points = (points as usize).next_power_of_two();
    let lowest = ((low + high - points as f64) / 2.0).floor() as i64;

    let theta = saddle.theta;
    let mut product = Product::new(points);
    let mut ln_scale = 0.0;
    let mut ln_relative = 0.0;
    // ln of the Chernoff bounds at the window's ends, in units of the unshifted grid.
    let mut ln_above = -saddle.t_high * (lowest as f64 + points as f64) * h;
    let mut ln_below = saddle.t_low * (lowest as f64 - 1.0) * h;
    for (pmf, count) in parts {
        let releases = releases(*count);
        let mut buffer = vec![0.0; points];
        let ln_moment = fold_tilted(pmf, h, theta, &mut buffer);
        product.multiply(&mut buffer, count * repeats);
        ln_scale += releases * ln_moment;
        ln_above += releases * (ln_moment_of(pmf, h, theta + saddle.t_high) - ln_moment);
        ln_below += releases * (ln_moment_of(pmf, h, theta - saddle.t_low) - ln_moment);
        // The weights e^{θl} are as exact as their exponents.
        let ends = [pmf.first as f64 * h, (pmf.first as f64 + pmf.mass.len() as f64) * h];
        let exponent = ends.iter().map(|end| (theta * end).abs()).fold(0.0, f64::max);
        ln_relative += releases * (CELL_ERROR + (4.0 * exponent + 128.0) * ROUNDOFF);
    }
    let (mut tilted, rounding) = product.invert();
    tilted.rotate_left(lowest.rem_euclid(points as i64) as usize);
    Some(Composed {
        h,
        lowest,
        shift,
        theta,
        reference: saddle.epsilon.clamp(low * h - shift, (high * h - shift).max(low * h - shift)),
        ln_scale: ln_scale - theta * shift,
        tilted,
        rounding,
        above: if last < lowest as f64 + points as f64 { 0.0 } else { ln_above.min(0.0).exp() },
        below: if first >= lowest as f64 { 0.0 } else { ln_below.min(0.0).exp() },
        ln_relative,
    })
}

/// Calls `visit(i, e^{a + b·i})`, multiplying from one to the next and starting anew every few: a
/// run of multiplications neither gathers much error nor starts from an underflow that matters.
pub(super) fn geometric(a: f64, b: f64, length: usize, mut visit: impl FnMut(usize, f64)) {
    let ratio = b.exp();
    let run = (32.0 / b.abs()).clamp(1.0, 64.0) as usize;
    for start in (0..length).step_by(run) {
        let mut value = (a + b * start as f64).exp();
        for i in start..length.min(start + run) {
            visit(i, value);
            value *= ratio;
        }
    }
}

/// The step of the exponents θl from point to point, and the largest.
fn exponents(pmf: &GridPmf, h: f64, theta: f64) -> (f64, f64) {
    let (first, last) = (pmf.first as f64, (pmf.first + pmf.mass.len() as i64 - 1) as f64);
    (theta * h, (theta * first * h).max(theta * last * h))
}

/// ln Σ mass·e^{θl} on the unshifted grid.
fn ln_moment_of(pmf: &GridPmf, h: f64, theta: f64) -> f64 {
    let (step, top) = exponents(pmf, h, theta);
    let mut sum = 0.0;
    geometric(theta * pmf.first as f64 * h - top, step, pmf.mass.len(), |i, weight| {
        sum += pmf.mass[i] * weight;
    });
    top + sum.ln()
}

/// Adds the tilted masses, normalized to 1, into a circle; returns ln Σ mass·e^{θl}.
fn fold_tilted(pmf: &GridPmf, h: f64, theta: f64, circle: &mut [f64]) -> f64 {
    let ln_moment = ln_moment_of(pmf, h, theta);
    let (step, _) = exponents(pmf, h, theta);
    let points = circle.len();
    let start = pmf.first.rem_euclid(points as i64) as usize;
    let a = theta * pmf.first as f64 * h - ln_moment;
    geometric(a, step, pmf.mass.len(), |i, weight| {
        circle[(start + i) & (points - 1)] += pmf.mass[i] * weight;
    });
    ln_moment
}

/// A product of powers of spectra.
struct Product {
    points: usize,
    spectrum: Vec<Complex<f64>>,
    /// ln of a bound on the modulus of the exact product, and of the computed one.
    ln_modulus: Vec<f64>,
    /// Bound on the error relative to that.
    relative: Vec<f64>,
    scratch: Vec<Complex<f64>>,
}

impl Product {
    fn new(points: usize) -> Self {
        let length = points / 2 + 1;
        Self {
            points,
            spectrum: vec![Complex::new(1.0, 0.0); length],
            ln_modulus: vec![0.0; length],
            relative: vec![0.0; length],
            scratch: Vec::new(),
        }
    }

    /// Bound on the absolute error of each frequency of a mass 1. Every output is a sum of inputs
    /// along log₂ N levels of butterflies, each with a rounded product by a rounded twiddle factor
    /// and a rounded sum, (1 + √5 + 1)·u together (Higham: Accuracy and Stability of Numerical
    /// Algorithms, 2nd ed., section 24.1); twice for the real transform's last level, and doubled
    /// again to be safe.
    fn transform_error(&self) -> f64 {
        16.0 * ROUNDOFF * (self.points.ilog2() + 2) as f64
    }

    /// Multiplies by the spectrum of `circle` to the power `count`.
    ///
    /// |x^T − y^T| ≤ T·m^{T−1}·|x − y| with m the larger modulus; powers by repeated squaring add
    /// at most (T−1)·√5·u relatively.
    fn multiply(&mut self, circle: &mut [f64], count: u64) {
        let plan = PLANNER.with_borrow_mut(|planner| planner.plan_fft_forward(self.points));
        let mut transformed = plan.make_output_vec();
        self.scratch.resize(plan.get_scratch_len(), Complex::default());
        plan.process_with_scratch(circle, &mut transformed, &mut self.scratch)
            .expect("the buffers have the plan's lengths");
        let error = self.transform_error();
        let releases = count as f64;
        let negligible = (LN_NEGLIGIBLE / releases).exp();
        for (k, value) in transformed.iter().enumerate() {
            let modulus = value.norm_sqr().sqrt() + error;
            if modulus < negligible || self.ln_modulus[k] < LN_NEGLIGIBLE {
                self.ln_modulus[k] = f64::NEG_INFINITY;
                continue;
            }
            self.ln_modulus[k] += releases * modulus.ln();
            self.relative[k] += releases * (error / modulus + 3.0 * ROUNDOFF);
            self.spectrum[k] *= power(*value, count);
        }
    }

    /// The circle of masses, and a bound on the sum of the absolute errors.
    ///
    /// With X a spectrum and x its circle, Σ|x| ≤ √N·‖x‖₂ = ‖X‖₂; the inverse transform's own error
    /// is bounded relative to ‖x‖₂.
    fn invert(mut self) -> (Vec<f64>, f64) {
        let points = self.points as f64;
        let last = self.spectrum.len() - 1;
        let mut squares = points * (2.0 * LN_NEGLIGIBLE).exp();
        for (k, value) in self.spectrum.iter_mut().enumerate() {
            if self.ln_modulus[k] < LN_NEGLIGIBLE {
                *value = Complex::default();
                continue;
            }
            let error = self.ln_modulus[k].exp() * self.relative[k];
            // Each but the first and the last stands for two frequencies.
            squares += if k == 0 || k == last { 1.0 } else { 2.0 } * error * error;
        }
        // Real by symmetry.
        self.spectrum[0].im = 0.0;
        self.spectrum[last].im = 0.0;
        let plan = PLANNER.with_borrow_mut(|planner| planner.plan_fft_inverse(self.points));
        let mut circle = plan.make_output_vec();
        self.scratch.resize(plan.get_scratch_len(), Complex::default());
        plan.process_with_scratch(&mut self.spectrum, &mut circle, &mut self.scratch)
            .expect("the buffers have the plan's lengths");
        let mut norm = 0.0;
        for value in &mut circle {
            *value /= points;
            norm += *value * *value;
            // The exact mass is not negative, so this only lessens the error.
            *value = value.max(0.0);
        }
        let own = self.transform_error() * (points * norm).sqrt();
        (circle, 1.01 * (squares.sqrt() + own))
    }
}

/// z^n by repeated squaring.
fn power(z: Complex<f64>, mut n: u64) -> Complex<f64> {
    let mut square = z;
    let mut result = Complex::new(1.0, 0.0);
    loop {
        if n & 1 == 1 {
            result *= square;
        }
        n >>= 1;
        if n == 0 {
            return result;
        }
        square *= square;
    }
}
