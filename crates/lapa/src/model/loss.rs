//! Softmax cross-entropy.

/// Loss and prediction of one sample.
pub(super) struct SampleLoss {
    /// −ln softmax(logits)\[label\]
    pub loss: f32,
    /// The class of the largest logit (the first one on ties); `None` if no logit is a number.
    pub predicted: Option<usize>,
}

/// The loss of one sample.
pub(super) fn cross_entropy(logits: &[f32], label: usize) -> SampleLoss {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|&z| (z - max).exp()).sum();
    let predicted = logits.iter().position(|&z| z == max);
    SampleLoss { loss: sum.ln() - (logits[label] - max), predicted }
}

/// The loss of one sample; `delta` becomes `scale` times its gradient in the logits,
/// softmax(logits) − one-hot(label).
pub(super) fn cross_entropy_gradient(
    logits: &[f32],
    label: usize,
    scale: f32,
    delta: &mut [f32],
) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for (delta, &z) in delta.iter_mut().zip(logits) {
        *delta = (z - max).exp();
        sum += *delta;
    }
    let factor = scale / sum;
    for delta in delta.iter_mut() {
        *delta *= factor;
    }
    delta[label] -= scale;
    sum.ln() - (logits[label] - max)
}
