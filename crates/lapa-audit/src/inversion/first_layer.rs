//! The image itself, out of the gradient of a first layer that is fully connected.
//!
//! For one image x the gradient in row r of the weights is d_r·x, and d_r in its bias: any row with
//! d_r ≠ 0 gives x = dW_r/db_r exactly (Aono et al. 2017, "Privacy-preserving deep learning via
//! additively homomorphic encryption", Section 3).

use lapa::model::Network;

/// True if the first layer is fully connected, so that a gradient of one image holds the image.
pub fn is_fully_connected(network: &Network) -> bool {
    network.tensors().first().is_some_and(|weights| weights.name == "0.linear.weight")
}

/// The image as the network sees it; `None` for another first layer. All rows are used, by least
/// squares over r of dW_r − db_r·x: x = Σ db_r·dW_r / Σ db_r², which averages noise out.
pub fn image(network: &Network, gradient: &[f32]) -> Option<Vec<f32>> {
    let ([weights, biases, ..], true) = (network.tensors(), is_fully_connected(network)) else {
        return None;
    };
    let biases = &gradient[biases.range.clone()];
    let squares: f64 = biases.iter().map(|&b| f64::from(b).powi(2)).sum();
    let mut sums = vec![0.0; network.inputs()];
    let rows = gradient[weights.range.clone()].chunks_exact(network.inputs());
    for (row, &bias) in rows.zip(biases) {
        sums.iter_mut().zip(row).for_each(|(sum, &w)| *sum += f64::from(bias) * f64::from(w));
    }
    let pixel = |sum: f64| if squares > 0.0 { (sum / squares) as f32 } else { 0.0 };
    Some(sums.into_iter().map(pixel).collect())
}
