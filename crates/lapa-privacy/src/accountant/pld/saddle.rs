//! Tilt and window of the composed loss, chosen from a few hundred points of each single loss.
//! Nothing here needs to be exact: a bad choice costs accuracy, not soundness.

use super::FRACTION_ERROR;
use super::discretize::GridPmf;
use super::loss::SingleLoss;

/// One loss and how often it is in one repetition, as weighted points.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// ln of the weight, and the loss.
    points: Vec<(f64, f64)>,
    count: u64,
}

/// The tilt θ and the window for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saddle {
    /// θ: the composed loss l is weighted by e^{θl}.
    pub(super) theta: f64,
    /// The ε given or, without, what the Rényi divergence gives.
    pub(super) epsilon: f64,
    /// All but [`TAIL`] of the tilted loss is above.
    pub(super) low: f64,
    /// All but [`TAIL`] of the tilted loss is below.
    pub(super) high: f64,
    /// t for a Chernoff bound on the tail above the window.
    pub(super) t_high: f64,
    /// t for a Chernoff bound on the tail below the window.
    pub(super) t_low: f64,
}

/// Mass of the tilted loss that may lie on either side of the window.
const TAIL: f64 = 1e-13;

impl Profile {
    /// Points a quarter of a standard deviation apart, around each mean of P.
    pub(super) fn new(loss: &SingleLoss, count: u64, reach: f64) -> Self {
        const STEP: f64 = 0.25;
        let steps = (reach / STEP).ceil() as i32;
        let points = loss.components().flat_map(|(weight, mean)| {
            (-steps..=steps).map(move |i| {
                let x = f64::from(i) * STEP;
                (weight.ln() - x * x / 2.0, loss.at(mean + x))
            })
        });
        let mut points: Vec<(f64, f64)> = points.collect();
        let total = points.iter().map(|(ln_weight, _)| ln_weight.exp()).sum::<f64>().ln();
        points.iter_mut().for_each(|(ln_weight, _)| *ln_weight -= total);
        Self { points, count }
    }

    /// The same loss after pessimistic discretization, which spreads each point over its two
    /// neighbors on the grid.
    pub(super) fn on_grid(&self, h: f64) -> Self {
        let points = self.points.iter().flat_map(|&(ln_weight, loss)| {
            let below = (loss / h).floor() * h;
            let up = ((below - loss).exp_m1() / (-h).exp_m1() + FRACTION_ERROR).clamp(0.0, 1.0);
            [(ln_weight + (1.0 - up).ln(), below), (ln_weight + up.ln(), below + h)]
        });
        let points = points.filter(|(ln_weight, _)| *ln_weight > f64::NEG_INFINITY).collect();
        Self { points, count: self.count }
    }

    /// All points of a discretized loss.
    pub(super) fn of(pmf: &GridPmf, count: u64, h: f64) -> Self {
        let points = pmf.mass.iter().enumerate().filter(|(_, mass)| **mass > 0.0);
        let points = points
            .map(|(i, mass)| (mass.ln(), (pmf.first + i as i64) as f64 * h - pmf.shift))
            .collect();
        Self { points, count }
    }

    /// ln E e^{θL}, and its derivative: the mean of L under the tilt θ.
    fn cumulant(&self, theta: f64) -> (f64, f64) {
        let exponent = |&(ln_weight, loss): &(f64, f64)| ln_weight + theta * loss;
        let top = self.points.iter().map(exponent).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut first) = (0.0, 0.0);
        for point in &self.points {
            let weight = (exponent(point) - top).exp();
            sum += weight;
            first += weight * point.1;
        }
        (top + sum.ln(), first / sum)
    }

    /// Variance of one loss under the tilt θ.
    fn variance(&self, theta: f64) -> f64 {
        let (ln_moment, mean) = self.cumulant(theta);
        let squares = self.points.iter().map(|(ln_weight, loss)| {
            (ln_weight + theta * loss - ln_moment).exp() * (loss - mean).powi(2)
        });
        squares.sum()
    }
}

/// ln E e^{θS} of the composed loss S, and its derivative.
fn cumulant(profiles: &[Profile], theta: f64) -> (f64, f64) {
    profiles.iter().fold((0.0, 0.0), |(value, slope), profile| {
        let count = profile.count as f64;
        let (ln_moment, mean) = profile.cumulant(theta);
        (value + count * ln_moment, slope + count * mean)
    })
}

/// Variance of the composed loss under the tilt θ.
fn variance(profiles: &[Profile], theta: f64) -> f64 {
    profiles.iter().map(|profile| profile.count as f64 * profile.variance(theta)).sum()
}

/// The scale of the composed loss: its standard deviation, and more where that is lost in rounding.
pub(super) fn spread(profiles: &[Profile], repeats: f64) -> f64 {
    (repeats * variance(profiles, 0.0)).sqrt() + 1e-9 * repeats * cumulant(profiles, 0.0).1.abs()
}

/// The root of a growing function of t > 0, near 1/scale.
fn root(scale: f64, grows: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-20.0_f64, 20.0_f64);
    for _ in 0..32 {
        let middle = (low + high) / 2.0;
        if grows(middle.exp() / scale) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high.exp() / scale
}

/// The tilt that gives the best bound by Rényi divergences (order 1 + θ) at `delta`, or on δ at
/// `epsilon` where that is known already, and the window, for `repeats` times all losses. `None`
/// where the losses are too small for their squares.
///
/// With K(θ) = ln E e^{θS}, the conversion ε = [K(θ) + θ·ln θ − (1+θ)·ln(1+θ) − ln δ]/θ (Canonne,
/// Kamath, Steinke: The Discrete Gaussian, 2020, proposition 12) is least where
/// θK′ − K + ln(1+θ) + ln δ = 0, and its δ where K′ − ε − ln(1 + 1/θ) = 0; both grow with θ.
pub(super) fn saddle(
    profiles: &[Profile],
    repeats: f64,
    delta: f64,
    epsilon: Option<f64>,
) -> Option<Saddle> {
    let scale = spread(profiles, repeats);
    if !(scale > 0.0 && scale.is_finite()) {
        return None;
    }
    let cumulant = |theta| {
        let (value, slope) = cumulant(profiles, theta);
        (repeats * value, repeats * slope)
    };
    let theta = root(scale, |theta| {
        let (value, slope) = cumulant(theta);
        match epsilon {
            Some(epsilon) => slope - epsilon - (1.0 / theta).ln_1p(),
            None => theta * slope - value + theta.ln_1p() + delta.ln(),
        }
    });
    // A larger one would lose the weights' precision.
    let largest = profiles.iter().flat_map(|profile| &profile.points);
    let largest = largest.map(|(_, loss)| loss.abs()).fold(0.0, f64::max);
    let releases: f64 = profiles.iter().map(|profile| profile.count as f64).sum();
    let theta = theta.min(1e11 / (largest * releases * repeats));
    let (at_theta, _) = cumulant(theta);
    // The best t of a Chernoff bound on one side, and the loss where that bound is TAIL.
    let edge = |sign: f64| {
        let t = root(scale, |t| {
            let (value, slope) = cumulant(theta + sign * t);
            sign * t * slope - (value - at_theta) + TAIL.ln()
        });
        (t, sign * (cumulant(theta + sign * t).0 - at_theta - TAIL.ln()) / t)
    };
    let ((t_high, high), (t_low, low)) = (edge(1.0), edge(-1.0));
    let entropy = theta * theta.ln() - (1.0 + theta) * theta.ln_1p();
    let epsilon = epsilon.unwrap_or((at_theta + entropy - delta.ln()) / theta);
    Some(Saddle { theta, epsilon, low, high, t_high, t_low })
}
