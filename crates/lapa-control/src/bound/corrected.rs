//! Theorem 1 as its recursion gives it.

use lapa::config::BoundForm;

use super::setting::{BoundError, Constants, Setting};
use super::terms::{Bound, Terms, noise, scaled};

/// A = 1 + μLλ²δ² − 2λμ where λ ≤ 2/(Lδ²), else 1 + L²λ²δ² − 2λL. Never below 0, since μ ≤ L and
/// δ ≥ 1.
///
/// A step without noise changes F by at most c·‖∇F‖² with c = Lλ²δ²/2 − λ. Where c ≤ 0,
/// ‖∇F‖² ≥ 2μ(F − F*) turns that into a contraction; where c > 0 it is of no use, and
/// ‖∇F‖² ≤ 2L(F − F*) limits the growth.
///
/// Differs from the paper: no ΣG_k² beside δ². What follows from A4 is, by Jensen's inequality,
/// ‖ΣG_k∇F_k‖² ≤ ΣG_k‖∇F_k‖² ≤ δ²‖∇F‖²; the printed ‖ΣG_k∇F_k‖² ≤ ΣG_k²‖∇F_k‖² is wrong for any
/// two devices that agree. The proof also uses the lower bound on ‖∇F‖² where c > 0.
pub fn contraction(constants: &Constants) -> Result<f64, BoundError> {
    constants.check()?;
    let change = constants.change_per_square(1.0);
    let slope = if change <= 0.0 { constants.convexity } else { constants.smoothness };
    let value = 1.0 + 2.0 * slope * change;
    if value.is_finite() {
        // Rounding may leave −10⁻¹⁶ of a 0.
        Ok(value.max(0.0))
    } else {
        Err(BoundError::Contraction { form: BoundForm::Corrected, value })
    }
}

/// Theorem 1 corrected, after each round t:
///
/// A^t·(F(w⁰) − F(w*)) + (Lλ²/2)·q·Σ_{m<t} A^{t−1−m}·Σ_k G_k²(σ²_channel + σ²_artificial)
///
/// with variances per real coordinate. It follows from the appendix's recursion,
/// E[F(w^{t+1}) − F*] ≤ A·E[F(w^t) − F*] + (Lλ²/2)·E‖ΣG_k N_k‖², for F = ΣG_kF_k and full
/// gradients.
///
/// Differs from the paper: the noise of round m is multiplied by A in every *later* round, so it
/// weighs A^{t−1−m}, not A^m, and late noise weighs most; the noise is a vector, so
/// E‖N‖² = q·σ², not σ²; and A is that of
/// [`corrected_contraction`](super::corrected_contraction). A round in which no device sends takes
/// no step, so it neither contracts nor adds.
pub fn corrected(setting: &Setting) -> Result<Bound, BoundError> {
    setting.check()?;
    let contraction = contraction(&setting.constants)?;
    let factor = setting.constants.noise_factor() * setting.coordinates as f64;
    let mut terms = Terms { initial: setting.initial_gap, ..Terms::default() };
    let mut after = vec![terms];
    for devices in &setting.rounds {
        if !devices.is_empty() {
            let channel = noise(factor, devices, |device| device.channel);
            let artificial = noise(factor, devices, |device| device.artificial);
            terms = Terms {
                initial: scaled(contraction, terms.initial),
                channel: scaled(contraction, terms.channel) + channel,
                artificial: scaled(contraction, terms.artificial) + artificial,
            };
        }
        after.push(terms);
    }
    Ok(Bound { contraction, after })
}
