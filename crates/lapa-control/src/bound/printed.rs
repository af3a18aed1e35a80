//! Theorem 1 as the paper prints it.

use lapa::config::BoundForm;

use super::setting::{BoundError, Constants, Setting};
use super::terms::{Bound, Terms, noise, scaled};

/// A = 1 + μLλ²δ²·ΣG_k² − 2λμ, as in Theorem 1. Below 0 it is refused: the recursion multiplies by
/// it a gap that is not negative.
pub fn contraction(constants: &Constants, squared_weights: f64) -> Result<f64, BoundError> {
    constants.check_with(squared_weights)?;
    let value = 1.0 + 2.0 * constants.convexity * constants.change_per_square(squared_weights);
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(BoundError::Contraction { form: BoundForm::Printed, value })
    }
}

/// Theorem 1 as printed, after each round t:
///
/// A^t·(F(w⁰) − F(w*)) + (Lλ²/2)·Σ_{m<t} A^m·Σ_k G_k²σ²_channel
/// + (Lλ²/2)·Σ_{m<min(t, T_th)} A^m·Σ_k G_k²σ²_artificial
///
/// with variances per real coordinate. For channel noise that stays the same the second sum is
/// (1 − A^t)/(1 − A) times it, and t times it for A = 1. `switching_round` is the number of rounds
/// with artificial noise, so that the printed sum over m = 0..T_th ends with the last of them;
/// without it every variance counts as it is given.
///
/// It is no upper bound: see [`corrected`](super::corrected()).
///
/// Differs from the paper: weights and channel may change from round to round; A has the largest
/// ΣG_k² of a round, which is in favor of the bound.
pub fn printed(setting: &Setting, switching_round: Option<u32>) -> Result<Bound, BoundError> {
    setting.check()?;
    let contraction = contraction(&setting.constants, setting.squared_weights().min(1.0))?;
    let factor = setting.constants.noise_factor();
    let artificial_rounds = switching_round.map_or(usize::MAX, |round| round as usize);
    let mut terms = Terms { initial: setting.initial_gap, ..Terms::default() };
    let mut after = vec![terms];
    let mut weight = factor;
    for (m, devices) in setting.rounds.iter().enumerate() {
        terms.initial = scaled(contraction, terms.initial);
        terms.channel += noise(weight, devices, |device| device.channel);
        if m < artificial_rounds {
            terms.artificial += noise(weight, devices, |device| device.artificial);
        }
        weight = scaled(contraction, weight);
        after.push(terms);
    }
    Ok(Bound { contraction, after })
}
