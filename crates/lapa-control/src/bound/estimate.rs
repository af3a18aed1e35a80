//! The constants of the bound, as a pilot run of a simulation shows them.
//!
//! None of this is private: it reads exact losses and gradients of the devices
//! ([`Simulation::study`](lapa::simulation::Simulation::study)). Models here are not strongly
//! convex, so these are estimates along one path, not constants.

use lapa::blame::Blame;
use lapa::observe::{Quantiles, number};
use serde::Serialize;

use super::setting::Constants;

/// A place on the path of a pilot run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Rounds done.
    pub round: u32,
    /// w
    pub parameters: Vec<f32>,
    /// F(w) = Σ_k G_k F_k(w)
    pub loss: f64,
    /// ∇F(w)
    pub gradient: Vec<f64>,
    /// Σ_k G_k‖∇F_k(w)‖²
    pub local_squares: f64,
}

/// Smallest, median and largest of what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Smallest.
    #[serde(with = "number")]
    pub least: f64,
    /// Median.
    #[serde(with = "number")]
    pub median: f64,
    /// Largest.
    #[serde(with = "number")]
    pub most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let quantiles = Quantiles::of(values)?;
        Some(Self { least: quantiles.min, median: quantiles.median, most: quantiles.max })
    }
}

/// The constants of the bound, estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimates {
    /// ‖∇F(w) − ∇F(w')‖/‖w − w'‖ between one point of the path and the next: each at most L.
    pub secants: Spread,
    /// Largest eigenvalues of the Hessian at points of the path, by [`curvature`]: each at most L.
    pub curvatures: Option<Spread>,
    /// ‖∇F‖²/(2(F − F*)) along the path; the smallest is the "effective" μ (the inequality of
    /// Polyak and Łojasiewicz, all that the proof takes from strong convexity).
    pub convexity: Spread,
    /// The smallest ‖∇F‖²/(2F): μ if F* were 0, below which no cross-entropy is. The truth lies
    /// between the two.
    #[serde(with = "number")]
    pub convexity_above_zero: f64,
    /// δ² = ΣG_k‖∇F_k‖²/‖∇F‖² along the path.
    pub dissimilarity_squared: Spread,
    /// The lowest loss on the path, which stands for F*. The true minimum is lower, so both the
    /// gaps and 1/μ are larger in truth.
    #[serde(with = "number")]
    pub lowest_loss: f64,
    /// Its round.
    pub lowest_round: u32,
    /// F(w⁰) − F*
    #[serde(with = "number")]
    pub initial_gap: f64,
}

/// Error of an estimate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EstimateError {
    /// A path needs two points.
    #[error("{given} points of a pilot run: expected at least 2, of the same model")]
    TooFewPoints {
        /// Number of points.
        given: usize,
    },
    /// Parameters, or gradients, of different lengths.
    #[error(
        "the point after round {round} has {parameters} parameters and a gradient of {gradient}"
    )]
    Lengths {
        /// Rounds done.
        round: u32,
        /// Parameters.
        parameters: usize,
        /// Coordinates of the gradient.
        gradient: usize,
    },
    /// Training diverged.
    #[error(
        "after round {round} the loss is {loss} and ΣG‖∇F_k‖² is {local_squares}: \
             expected finite numbers from 0"
    )]
    NotFinite {
        /// Rounds done.
        round: u32,
        /// F
        loss: f64,
        /// ΣG‖∇F_k‖²
        local_squares: f64,
    },
    /// Nothing to divide by.
    #[error("the model or its loss did not change in the pilot run, so nothing can be estimated")]
    NoChange,
}

impl Blame for EstimateError {}

impl Estimates {
    /// Estimate from the path of a pilot run in the order of its rounds, which starts at w⁰, and the
    /// curvatures at some of its points.
    pub fn from_pilot(points: &[Point], curvatures: &[f64]) -> Result<Self, EstimateError> {
        let [first, _, ..] = points else {
            return Err(EstimateError::TooFewPoints { given: points.len() });
        };
        points.iter().try_for_each(|point| check(point, first.parameters.len()))?;
        let secants = points.windows(2).filter_map(|pair| {
            let moved = distance(pair[0].parameters.iter(), pair[1].parameters.iter());
            let turned = distance(pair[0].gradient.iter(), pair[1].gradient.iter());
            (moved > 0.0).then_some(turned / moved)
        });
        let secants = Spread::of(secants).ok_or(EstimateError::NoChange)?;
        // Unwrap safety of the fallback: there are two points, so there is a lowest.
        let lowest = points.iter().min_by(|a, b| a.loss.total_cmp(&b.loss)).unwrap_or(first);
        let squares = |point: &Point| point.gradient.iter().map(|g| g * g).sum::<f64>();
        let convexity = points.iter().filter_map(|point| {
            let gap = point.loss - lowest.loss;
            (gap > 0.0).then(|| squares(point) / (2.0 * gap))
        });
        let above_zero = points.iter().filter(|point| point.loss > 0.0);
        let above_zero = above_zero.map(|point| squares(point) / (2.0 * point.loss));
        let dissimilarity = points.iter().filter_map(|point| {
            let square = squares(point);
            (square > 0.0).then(|| point.local_squares / square)
        });
        Ok(Self {
            secants,
            curvatures: Spread::of(curvatures.iter().copied()),
            convexity: Spread::of(convexity).ok_or(EstimateError::NoChange)?,
            convexity_above_zero: above_zero.reduce(f64::min).unwrap_or(0.0),
            dissimilarity_squared: Spread::of(dissimilarity).ok_or(EstimateError::NoChange)?,
            lowest_loss: lowest.loss,
            lowest_round: lowest.round,
            initial_gap: first.loss - lowest.loss,
        })
    }

    /// L: the largest of all secants and curvatures.
    pub fn smoothness(&self) -> f64 {
        self.curvatures.map_or(0.0, |curvatures| curvatures.most).max(self.secants.most)
    }

    /// The constants that the whole path agrees with: the largest L and δ, the smallest μ.
    pub fn constants(&self, learning_rate: f64) -> Constants {
        let smoothness = self.smoothness();
        Constants {
            smoothness,
            // Larger than L only where the lowest loss is far from the minimum.
            convexity: self.convexity.least.min(smoothness),
            // At least 1 by Jensen's inequality; rounding may fall short of it.
            dissimilarity: self.dissimilarity_squared.most.sqrt().max(1.0),
            learning_rate,
        }
    }
}

fn check(point: &Point, parameters: usize) -> Result<(), EstimateError> {
    let Point { round, loss, local_squares, .. } = *point;
    if [point.parameters.len(), point.gradient.len()] != [parameters; 2] {
        let (parameters, gradient) = (point.parameters.len(), point.gradient.len());
        return Err(EstimateError::Lengths { round, parameters, gradient });
    }
    let finite = point.gradient.iter().all(|g| g.is_finite())
        && point.parameters.iter().all(|w| w.is_finite());
    if finite && loss.is_finite() && local_squares.is_finite() && local_squares >= 0.0 {
        Ok(())
    } else {
        Err(EstimateError::NotFinite { round, loss, local_squares })
    }
}

/// Length of a step of [`curvature`] over 1 + ‖w‖: far above the rounding of 32-bit parameters,
/// far below the distance over which curvature changes.
const STEP: f64 = 1e-3;

/// The largest eigenvalue of the Hessian at a point, by as many power iterations, beginning with
/// the gradient. A product with the Hessian is a difference of the gradients at w ± s, so
/// every value is the ratio of a secant and none exceeds L, but for rounding.
pub fn curvature<E>(
    at: &Point,
    iterations: u32,
    mut gradient: impl FnMut(&[f32]) -> Result<Vec<f64>, E>,
) -> Result<f64, E> {
    let w = &at.parameters;
    let length = STEP * (1.0 + w.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>().sqrt());
    let mut direction = at.gradient.clone();
    let mut largest = 0.0f64;
    for _ in 0..iterations {
        let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        if norm == 0.0 {
            // At a stationary point any direction will do.
            direction.fill(1.0);
        }
        let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        let shifted = |sign: f64| -> Vec<f32> {
            let shift = sign * length / norm;
            w.iter().zip(&direction).map(|(&w, d)| (f64::from(w) + shift * d) as f32).collect()
        };
        let (ahead, behind) = (shifted(1.0), shifted(-1.0));
        // As it is after rounding.
        let moved = distance(ahead.iter(), behind.iter());
        let (after, before) = (gradient(&ahead)?, gradient(&behind)?);
        direction = after.iter().zip(&before).map(|(a, b)| a - b).collect();
        let turned = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        if moved == 0.0 || turned == 0.0 {
            break;
        }
        largest = largest.max(turned / moved);
    }
    Ok(largest)
}

/// ‖a − b‖
fn distance<'a, T: Copy + Into<f64> + 'a>(
    a: impl Iterator<Item = &'a T>,
    b: impl Iterator<Item = &'a T>,
) -> f64 {
    let squares = a.zip(b).map(|(&a, &b)| (a.into() - b.into()).powi(2));
    squares.sum::<f64>().sqrt()
}
