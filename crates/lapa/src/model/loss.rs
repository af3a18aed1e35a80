//! Softmax cross-entropy.

/// Loss and prediction of one sample.
pub(super) struct SampleLoss {
    /// −ln softmax(logits)\[label\]
    pub loss: f32,
    /// True if the largest logit is the label's (the first one on ties).
    pub correct: bool,
}

/// The loss of one sample.
pub(super) fn cross_entropy(logits: &[f32], label: usize) -> SampleLoss {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|&z| (z - max).exp()).sum();
    let best = logits.iter().position(|&z| z == max);
    SampleLoss { loss: sum.ln() - (logits[label] - max), correct: best == Some(label) }
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
