//! The optimal test between two neighboring inputs.

use super::DeviceReleases;
use crate::AuditError;

/// The likelihood ratio of all releases of a device (Neyman & Pearson 1933), under what is declared
/// of noise and sampling.
///
/// A round's release is N(o, σ²) if the record is not in the batch, N(b, σ²) if it is, and N(a, σ²)
/// if what stands in its place is. With q, the chance to be in the batch, its logarithm is
/// ln(1 − q + q·e^ℓ(b)) − ln(1 − q + q·e^ℓ(a)), where ℓ(v) = (⟨r − o, v − o⟩ − ‖v − o‖²/2)/σ².
pub struct Distinguisher {
    test: Test,
    /// Coordinates of a release.
    coordinates: usize,
    /// σ² of each release.
    variances: Vec<f64>,
}

enum Test {
    /// The likelihood ratio.
    Ratio {
        /// a − o and b − o, with their squared norms.
        shifts: [(Vec<f64>, f64); 2],
        /// q
        inclusion: f64,
    },
    /// Σ‖r‖²/σ²
    Energy,
}

impl Distinguisher {
    /// The test for the releases of a device, as they are declared; o is 0.
    pub fn new(releases: &DeviceReleases) -> Result<Self, AuditError> {
        let shift = |with: bool| -> Result<(Vec<f64>, f64), AuditError> {
            let shift = releases.upload(with)?;
            let norm = shift.iter().map(|s| s * s).sum();
            Ok((shift, norm))
        };
        let shifts = [shift(false)?, shift(true)?];
        Ok(Self {
            test: Test::Ratio { shifts, inclusion: releases.inclusion() },
            ..Self::energy(releases)
        })
    }

    /// In place of the optimal test: whether releases are longer than noise is. For a record that
    /// should do nothing, and so has no direction of its own.
    pub fn energy(releases: &DeviceReleases) -> Self {
        let declared = &releases.device.releases;
        Self {
            test: Test::Energy,
            coordinates: releases.parameters.len(),
            variances: declared.iter().map(|release| release.sigma().powi(2)).collect(),
        }
    }

    /// ‖b − a‖: how far the two inputs are apart in a round; 0 where nobody knows.
    pub fn distance(&self) -> f64 {
        let Test::Ratio { shifts: [(a, _), (b, _)], .. } = &self.test else { return 0.0 };
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    /// High speaks for the input with the record. What is not a number gives it away.
    pub fn score(&self, released: &[f32]) -> f64 {
        if released.iter().any(|value| !value.is_finite()) {
            return f64::INFINITY;
        }
        let rounds = released.chunks_exact(self.coordinates).zip(&self.variances);
        let scores = rounds.map(|(received, &variance)| match &self.test {
            Test::Energy => received.iter().map(|&r| f64::from(r).powi(2)).sum::<f64>() / variance,
            Test::Ratio { shifts, inclusion } => {
                let [without, with] = [0, 1].map(|input| {
                    let (shift, norm) = &shifts[input];
                    let dot: f64 = shift.iter().zip(received).map(|(s, &r)| s * f64::from(r)).sum();
                    mixture((dot - norm / 2.0) / variance, *inclusion)
                });
                with - without
            }
        });
        scores.sum()
    }
}

/// ln(1 − q + q·e^ℓ)
fn mixture(exponent: f64, q: f64) -> f64 {
    match (q < 1.0, exponent > 0.0) {
        (false, _) => exponent,
        (true, true) => exponent + (q + (1.0 - q) * (-exponent).exp()).ln(),
        (true, false) => (1.0 - q + q * exponent.exp()).ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::mixture;

    #[test]
    fn mixtures_hold_for_any_exponent() {
        for (exponent, q) in [(0.3f64, 0.2f64), (-2.0, 0.9), (5.0, 0.01), (0.0, 0.5)] {
            let expected = (1.0 - q + q * exponent.exp()).ln();
            assert!((mixture(exponent, q) - expected).abs() < 1e-12);
        }
        assert_eq!(mixture(1e6, 1.0), 1e6);
        assert!((mixture(1e6, 0.1) - (1e6 + 0.1f64.ln())).abs() < 1e-6);
        assert!((mixture(-1e6, 0.1) - 0.9f64.ln()).abs() < 1e-12);
    }
}
