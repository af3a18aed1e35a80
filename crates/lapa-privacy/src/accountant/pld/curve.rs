//! ε at δ from a composed loss: δ(ε) = E (1 − e^{ε−S})₊.

use super::convolve::Composed;

/// Relative error of the sums below, with room: each adds up at most 2²² rounded numbers.
const SUM_ERROR: f64 = 1e-8;

/// Point at which δ(ε), seen from above, reaches a target.
enum Crossing {
    /// Here.
    At(f64),
    /// Not above this loss; no statement below.
    NotAbove(f64),
}

impl Composed {
    /// An ε ≥ 0 at which δ is at most `delta`: every error counts against us. `Err` has the least
    /// δ for which there is one.
    pub(super) fn upper_epsilon(&self, delta: f64) -> Result<f64, f64> {
        let reference = self.reference;
        let ln_unit = self.ln_scale - self.theta * reference + self.ln_error(reference);
        // The tail above the window may lie anywhere above, with (1 − e^{ε−l}) up to 1.
        let top = self.loss(self.tilted.len()) - reference;
        let tail = if self.above > 0.0 { self.above * (-self.theta * top).exp() } else { 0.0 };
        let target = (delta.ln() - ln_unit).exp() - tail;
        let spoiled = self.spoiled_at(self.tilted.len(), reference, self.rounding);
        if target.is_nan() || target <= spoiled {
            return Err((ln_unit + (spoiled + tail).ln()).exp() * (1.0 + SUM_ERROR));
        }
        let epsilon = match self.crossing(reference, target, self.rounding) {
            Crossing::At(epsilon) | Crossing::NotAbove(epsilon) => epsilon,
        };
        Ok(epsilon.max(0.0) * (1.0 + 1e-12))
    }

    /// An ε ≥ 0 at which δ is at least `delta`, or 0: every error counts for us.
    pub(super) fn lower_epsilon(&self, delta: f64) -> f64 {
        let reference = self.reference;
        let ln_unit = self.ln_scale - self.theta * reference - self.ln_error(reference);
        let target = (delta.ln() - ln_unit).exp();
        // Masses that alias into the window may have landed anywhere.
        let error = self.rounding + self.above + self.below;
        match self.crossing(reference, target, -error) {
            Crossing::At(epsilon) => (epsilon * (1.0 - 1e-12)).max(0.0),
            Crossing::NotAbove(_) => 0.0,
        }
    }

    /// The loss of a point, by its place in the window.
    fn loss(&self, i: usize) -> f64 {
        (self.lowest + i as i64) as f64 * self.h - self.shift
    }

    /// Bound on the logarithm of what all relative errors amount to.
    fn ln_error(&self, reference: f64) -> f64 {
        let exponents = self.ln_scale.abs() + (self.theta * reference).abs();
        self.ln_relative + SUM_ERROR + 4.0 * f64::EPSILON * exponents
    }

    /// Largest effect on δ(ε) of an error of `size` in `tilted`, ε being the i-th point:
    /// (1 − e^{−x})·e^{−θx} is largest, for x ≥ 0, where e^{−x} = θ/(1+θ).
    fn spoiled_at(&self, i: usize, reference: f64, size: f64) -> f64 {
        let theta = self.theta;
        let ln_most = -theta * (1.0 / theta).ln_1p() - theta.ln_1p();
        size * (ln_most - theta * (self.loss(i) - reference)).exp()
    }

    /// Crossing of δ(ε) plus the effect of `error` with `target`, both in units of
    /// e^{ln_scale − θ·reference}.
    ///
    /// With A = Σ m and D = Σ m·(1 − e^{ε−l}) over the points above ε, a step down by h makes D to
    /// e^{−h}·D + (1 − e^{−h})·A: nothing cancels and nothing overflows.
    fn crossing(&self, reference: f64, target: f64, error: f64) -> Crossing {
        let (keep, gain) = ((-self.h).exp(), -(-self.h).exp_m1());
        // The untilting factors from the top down.
        let top = self.tilted.len() - 1;
        let step = self.theta * self.h;
        let run = (32.0 / step).clamp(1.0, 64.0) as usize;
        let ratio = step.exp();
        let worst = self.spoiled_at(0, self.loss(0), error);
        let (mut mass, mut delta, mut untilt) = (0.0, 0.0, 0.0);
        for (below_top, tilted) in self.tilted.iter().rev().enumerate() {
            let i = top - below_top;
            // Anew every few, against rounding errors and underflow.
            if below_top % run == 0 {
                untilt = (-self.theta * (self.loss(i) - reference)).exp();
                if untilt > 1e250 {
                    return Crossing::NotAbove(self.loss(i + 1));
                }
            }
            let with_error = delta + worst * untilt;
            if with_error > target {
                let step = ((with_error - target) / (mass - delta)).ln_1p();
                return Crossing::At(self.loss(i) + if step < self.h { step } else { self.h });
            }
            mass += tilted * untilt;
            delta = keep * delta + gain * mass;
            untilt *= ratio;
        }
        Crossing::NotAbove(self.loss(0))
    }
}
