//! Normalizations of the features of one record: they have no parameters and see no other record.

use half::f16;

/// ε under the root, as in the layers.
const EPSILON: f64 = 1e-5;

/// x ← (x − mean)/√(variance + ε) in each of `groups` equal parts (Wu & He 2018, without scale and
/// shift).
pub fn groups(features: &mut [f32], groups: usize) {
    let len = features.len() / groups;
    for group in features.chunks_exact_mut(len) {
        let count = group.len() as f64;
        let mean = group.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let square = |&x: &f32| (f64::from(x) - mean) * (f64::from(x) - mean);
        let variance = group.iter().map(square).sum::<f64>() / count;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        group.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * scale) as f32);
    }
}

/// x ← x/‖x‖; zero stays zero.
pub fn unit(features: &mut [f32]) {
    let square: f64 = features.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    if square > 0.0 {
        let scale = 1.0 / square.sqrt();
        features.iter_mut().for_each(|x| *x = (f64::from(*x) * scale) as f32);
    }
}

/// Values within what a half holds; no number becomes 0.
pub fn bound(features: &mut [f32]) {
    let most = f16::MAX.to_f32();
    features.iter_mut().for_each(|x| *x = if x.is_nan() { 0.0 } else { x.clamp(-most, most) });
}
