//! Angle between a device's gradient and the global one: eqs. (13) to (15).

use std::f64::consts::PI;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pid::Noisy;

/// ϑ_k = arccos(⟨g, g_k⟩ / (‖g‖·‖g_k‖)), eq. (13), of the gradients as received. Nothing if one of
/// them is 0.
///
/// Under heavy noise the angle measures noise alone: cos ϑ_k → G_kσ_k/√(ΣG_j²σ_j²).
pub fn deviation(global: &[f32], local: &[f32]) -> Option<f64> {
    let (mut inner, mut whole, mut own) = (0.0, 0.0, 0.0);
    for (&g, &l) in global.iter().zip(local) {
        let (g, l) = (f64::from(g), f64::from(l));
        inner += g * l;
        whole += g * g;
        own += l * l;
    }
    arccos(inner, whole, own)
}

/// The angle between a device's gradient and the sum of the others', g − G_k·g_k, with the noise's
/// expected part q·s² taken out of both squared norms. Nothing if that leaves no norm: there is no
/// update to be seen in the noise.
///
/// Differs from the paper's eq. (13), where the device's own noise is on both sides of the inner
/// product. Between independent noises its expectation is 0.
pub fn leave_one_out_deviation(global: Noisy<'_>, local: Noisy<'_>, weight: f64) -> Option<f64> {
    let (mut inner, mut rest, mut own) = (0.0, 0.0, 0.0);
    for (&g, &l) in global.gradient.iter().zip(local.gradient) {
        let l = f64::from(l);
        let others = f64::from(g) - weight * l;
        inner += others * l;
        rest += others * others;
        own += l * l;
    }
    // A sum of 32-bit numbers holds the others' part no more precisely.
    const ROUNDING: f64 = 1e-6;
    let rounding = (ROUNDING * weight).powi(2) * own;
    let q = global.gradient.len() as f64;
    let own = own - q * local.variance;
    rest -= q * (global.variance - weight * weight * local.variance).max(0.0);
    if rest > rounding { arccos(inner, rest, own) } else { None }
}

/// The angle by an inner product and two squared norms. The cosine is clamped, since rounding and
/// debiasing may take it past ±1.
fn arccos(inner: f64, one: f64, other: f64) -> Option<f64> {
    let angle = || (inner / (one.sqrt() * other.sqrt())).clamp(-1.0, 1.0).acos();
    (one > 0.0 && other > 0.0).then(angle)
}

/// ϑ̃_k: the mean of a device's angles so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Smoothed {
    /// The mean.
    pub angle: f64,
    /// Number of angles in the mean.
    pub rounds: u32,
}

/// `ϑ̃^[t] = ((t−1)/t)·ϑ̃^[t−1] + (1/t)·ϑ^[t]`, and `ϑ^[1]` at first, eq. (14).
///
/// Differs from the paper: t counts the rounds in which the device had an angle, which is all of
/// them there.
pub fn smooth(before: Option<Smoothed>, angle: f64) -> Smoothed {
    let Some(before) = before else { return Smoothed { angle, rounds: 1 } };
    let rounds = before.rounds.saturating_add(1);
    let t = f64::from(rounds);
    // The mean of angles up to π may round above it.
    Smoothed { angle: ((t - 1.0) / t * before.angle + angle / t).min(PI), rounds }
}

/// f(ϑ̃) = β(1 − exp(−exp(−β(ϑ̃ − 1)))), eq. (15), with the decay factor β: the dynamic
/// contribution of a device.
///
/// A smaller angle has a larger f. Two sentences of the paper say the opposite: [`Split::Text`].
pub fn contribution(angle: f64, decay: f64) -> f64 {
    -decay * (-(-decay * (angle - 1.0)).exp()).exp_m1()
}

/// Direction in which the angle moves the budget of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Eq. (15): a larger angle has a smaller f and so gets less budget.
    #[default]
    Formula,
    /// The text: a larger angle gets more budget, a smaller one stronger protection.
    Text,
    /// The same for all: LAPA's schedule alone. Not in the paper.
    Equal,
}

impl Split {
    /// f(ϑ̃) of eq. (15), f(π − ϑ̃) by the text, or 1.
    ///
    /// Differs from the paper, which prints no formula for its text: f "is a monotonically
    /// non-decreasing function with respect to the smoothed angle", and a device with a smaller
    /// angle "should receive stronger privacy protection". ϑ̃ ↦ π − ϑ̃ maps angles onto angles, so
    /// that f keeps its values and only their order is turned around.
    pub fn contribution(self, angle: f64, decay: f64) -> f64 {
        match self {
            Self::Formula => contribution(angle, decay),
            Self::Text => contribution(PI - angle, decay),
            Self::Equal => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state that is refused when it is read back would end a run that is resumed.
    #[test]
    fn means_of_angles_stay_angles() {
        let mut smoothed = None;
        for _ in 0..500 {
            smoothed = Some(smooth(smoothed, PI));
            assert!(smoothed.is_some_and(|s| s.angle <= PI && s.angle > PI - 1e-12));
        }
    }
}
