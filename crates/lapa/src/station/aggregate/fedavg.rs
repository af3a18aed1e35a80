//! Weights by data volume.

/// FedAvg (McMahan et al. 2017): G_k = |D_k| / Σ_j |D_j| over the devices of the round, so that
/// ΣG_k = 1 as in the paper's eq. (2).
///
/// `samples` are public numbers: |D_k|, or n̂ where |D_k| is not public.
pub fn fedavg(samples: &[u32]) -> Vec<f64> {
    let total: f64 = samples.iter().map(|&samples| f64::from(samples)).sum();
    samples.iter().map(|&samples| f64::from(samples) / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fedavg_weighs_by_samples() {
        assert_eq!(fedavg(&[30, 10]), [0.75, 0.25]);
        assert_eq!(fedavg(&[]), [0.0; 0]);
    }
}
