//! Change of the global gradient over the rounds: eqs. (10) and (11).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LapaConfig;
use crate::allocate::Basis;

/// Measure of the change of the global gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PidError {
    /// ‖g − g'‖, as printed. Diverges unless the gains are small: about 0.37 over σ_g·√(2q).
    Raw,
    /// ‖g − g'‖ / (‖g‖ + ‖g'‖). Under heavy noise it settles at 1/√2.
    Relative,
    /// The same with the noise's expected part taken out of every norm.
    Debiased,
}

impl PidError {
    /// The measure for a basis unless one is given. The raw norm, as printed, needs gains that go
    /// with the noise and the model: it must be asked for.
    pub fn default_for(basis: Basis) -> Self {
        match basis {
            Basis::Paper => Self::Relative,
            Basis::Certified => Self::Debiased,
        }
    }

    /// K_p and K_s unless they are given; the paper prints no numbers.
    ///
    /// A change that is relative to the norms is at most 1, so that e ≤ K_p + K_s and any gains
    /// keep a budget. The printed norm has a scale. Noise of standard deviation σ_g on each of the q
    /// coordinates of the global gradient makes it ‖g − g'‖ ≈ σ_g·√(2q), and eq. (12) multiplies
    /// that noise by exp(e) in the next round. With K = K_p + K_s·(m−1)/m and σ_g at an even budget,
    /// e ↦ K·σ_g·√(2q)·exp(e). This map has a fixed point, e ≤ 1, if and only if
    ///
    /// K·σ_g·√(2q) ≤ max x·exp(−x) = 1/e ≈ 0.37,
    ///
    /// and otherwise e grows without bound. The part of the gradient that is no noise adds to e, so
    /// the bound is a little lower still; the rest that is not spent is for later rounds and raises
    /// it a little.
    pub fn default_gain(self) -> f64 {
        match self {
            Self::Raw => 0.003,
            Self::Relative | Self::Debiased => 0.1,
        }
    }
}

/// A received gradient with the variance of the noise in each of its coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Noisy<'a> {
    /// g
    pub gradient: &'a [f32],
    /// s²; ΣG_k²σ_k² for a global gradient.
    pub variance: f64,
}

/// E: by how much two global gradients differ, eq. (10).
///
/// Differs from the paper: it prints ‖g − g'‖ ([`PidError::Raw`]). Relative to the norms, and 0 if
/// both are 0, it has no scale that noise could raise. Debiased, with q coordinates,
/// E = √(‖g−g'‖² − q(s²+s'²)) / (√(‖g‖² − qs²) + √(‖g'‖² − qs'²)), where what is negative under a
/// root counts as 0; at most 1, and 0 if both norms below are 0.
pub fn change(error: PidError, one: Noisy<'_>, other: Noisy<'_>) -> f64 {
    debug_assert_eq!(one.gradient.len(), other.gradient.len());
    let (mut difference, mut first, mut second) = (0.0, 0.0, 0.0);
    for (&a, &b) in one.gradient.iter().zip(other.gradient) {
        let (a, b) = (f64::from(a), f64::from(b));
        difference += (a - b) * (a - b);
        first += a * a;
        second += b * b;
    }
    if error == PidError::Debiased {
        let q = one.gradient.len() as f64;
        difference -= q * (one.variance + other.variance);
        first -= q * one.variance;
        second -= q * other.variance;
    }
    let root = |square: f64| square.max(0.0).sqrt();
    let norms = root(first) + root(second);
    match error {
        PidError::Raw => root(difference),
        PidError::Relative | PidError::Debiased if norms == 0.0 => 0.0,
        PidError::Relative | PidError::Debiased => (root(difference) / norms).min(1.0),
    }
}

/// Changes of a global gradient from the two before it; 0 if there is none. No more of the past is
/// needed, since at most one of m + 1 neighbors is left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// E to the gradient before.
    pub one: f64,
    /// E to the one before that.
    pub two: f64,
}

/// `e^[t] = K_p·E^(i_m) + K_s·(1/m)·ΣE^(i_s)`, eq. (11), over the sampled gradients i_1 < … < i_m:
/// all of `window`, the oldest first, but the one at `left_out`, which is never the current one, i_m.
/// Nothing if that leaves fewer than two.
///
/// Differs from the paper: the sum begins at the first pair of neighbors in the sample (m − 1
/// terms), since the printed lower index n − m + 1 names an n that is nowhere defined.
pub fn pid_error(config: &LapaConfig, window: &[Changes], left_out: Option<usize>) -> Option<f64> {
    let sampled: Vec<usize> = (0..window.len()).filter(|&i| Some(i) != left_out).collect();
    let errors = sampled.windows(2).map(|pair| match pair[1] - pair[0] {
        1 => window[pair[1]].one,
        _ => window[pair[1]].two,
    });
    let last = errors.clone().next_back()?;
    let mean = errors.sum::<f64>() / sampled.len() as f64;
    // Finite, so that a checkpoint can hold it.
    Some((config.proportional * last + config.integral * mean).min(f64::MAX))
}
