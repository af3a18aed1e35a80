//! The loss of the networks, as the attacker computes it.

/// softmax(logits) − one-hot(label): the gradient of the cross-entropy in the logits.
pub(super) fn loss_gradient(logits: &[f32], label: u8) -> Vec<f32> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut delta: Vec<f32> = logits.iter().map(|&z| (z - max).exp()).collect();
    let sum: f32 = delta.iter().sum();
    delta.iter_mut().for_each(|value| *value /= sum);
    delta[usize::from(label)] -= 1.0;
    delta
}
