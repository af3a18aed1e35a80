//! A bound after each round, term by term.

use lapa::observe::number;
use serde::Serialize;

use super::setting::DeviceNoise;

/// The three terms of the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Terms {
    /// Rest of F(w⁰) − F(w*).
    #[serde(with = "number")]
    pub initial: f64,
    /// Part of the channel's noise.
    #[serde(with = "number")]
    pub channel: f64,
    /// Part of the artificial noise.
    #[serde(with = "number")]
    pub artificial: f64,
}

impl Terms {
    /// The bound on E[F(w) − F(w*)].
    pub fn total(&self) -> f64 {
        self.initial + self.channel + self.artificial
    }
}

/// A bound and how it comes about.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// A, by which a round without noise shrinks the gap at least. Below 1 the bound converges.
    pub contraction: f64,
    /// After 0, 1, …, T rounds.
    pub after: Vec<Terms>,
}

impl Bound {
    /// After the last round.
    pub fn last(&self) -> Terms {
        self.after.last().copied().unwrap_or_default()
    }
}

/// factor·value, where 0 wins over infinity: what contracts to nothing leaves nothing.
pub(super) fn scaled(factor: f64, value: f64) -> f64 {
    if factor == 0.0 || value == 0.0 { 0.0 } else { factor * value }
}

/// factor·Σ_k G_k²σ_k², with the variance that `variance` reads.
pub(super) fn noise(
    factor: f64,
    devices: &[DeviceNoise],
    variance: fn(&DeviceNoise) -> f64,
) -> f64 {
    scaled(factor, devices.iter().map(|d| d.weight * d.weight * variance(d)).sum())
}
