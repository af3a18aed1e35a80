//! Data volume times an exponential: the form of the paper's and of FedAdp's weights.

/// |D_k|·e^{x_k} / Σ_j |D_j|·e^{x_j}.
///
/// Powers are taken of differences to the largest exponent, so none overflows and one is 1. Every
/// |D_k| is at least 1: a partition leaves no device empty.
pub(super) fn softmax(samples: &[u32], exponents: &[f64]) -> Vec<f64> {
    debug_assert_eq!(samples.len(), exponents.len());
    let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let terms: Vec<f64> =
        samples.iter().zip(exponents).map(|(&n, x)| f64::from(n) * (x - largest).exp()).collect();
    let total: f64 = terms.iter().sum();
    terms.into_iter().map(|term| term / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_far_past_the_largest_float_divide() {
        let weights = softmax(&[1, 1, 2], &[1e6, 1e6 - 1.0, -1e6]);
        let e = std::f64::consts::E;
        assert!((weights[0] - e / (e + 1.0)).abs() < 1e-15, "{weights:?}");
        assert!((weights[1] - 1.0 / (e + 1.0)).abs() < 1e-15, "{weights:?}");
        assert_eq!(weights[2], 0.0);
        assert_eq!(softmax(&[], &[]), [0.0; 0]);
    }
}
