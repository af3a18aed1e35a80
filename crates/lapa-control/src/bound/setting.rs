//! Every symbol of the bound, checked.

use lapa::blame::Blame;
use lapa::config::BoundForm;

/// Weights may sum to 1 up to this.
const SUM_TOLERANCE: f64 = 1e-6;

/// Constants of the loss and the devices that the bound assumes, and the learning rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// L: the gradient of F changes at most by L‖w − w'‖ (assumption A1).
    pub smoothness: f64,
    /// μ: ‖∇F‖² ≥ 2μ(F − F*), which follows from strong convexity (assumption A2). At most L.
    pub convexity: f64,
    /// δ: Σ_k G_k‖∇F_k‖² ≤ δ²‖∇F‖² (assumption A4). At least 1.
    pub dissimilarity: f64,
    /// λ
    pub learning_rate: f64,
}

impl Constants {
    /// Refuses constants without meaning.
    pub fn check(&self) -> Result<(), BoundError> {
        let Self { smoothness, convexity, dissimilarity, learning_rate } = *self;
        let above_0 = "a finite number above 0";
        symbol("smoothness", smoothness, smoothness > 0.0, above_0)?;
        symbol("convexity", convexity, convexity > 0.0, above_0)?;
        symbol("convexity", convexity, convexity <= smoothness, "at most the smoothness")?;
        symbol("dissimilarity", dissimilarity, dissimilarity >= 1.0, "a finite number from 1")?;
        symbol("learning rate", learning_rate, learning_rate > 0.0, above_0)
    }

    /// As [`Constants::check`], with ΣG_k².
    pub(super) fn check_with(&self, squared_weights: f64) -> Result<(), BoundError> {
        self.check()?;
        let fits = squared_weights > 0.0 && squared_weights <= 1.0;
        symbol("sum of squared weights", squared_weights, fits, "a number above 0 and at most 1")
    }

    /// Lλ²δ²/2 − λ, by which a step without noise changes F for each unit of ‖∇F‖², at most.
    pub(super) fn change_per_square(&self, shrink: f64) -> f64 {
        let Self { smoothness, dissimilarity, learning_rate, .. } = *self;
        let squares = learning_rate * dissimilarity;
        0.5 * smoothness * squares * squares * shrink - learning_rate
    }

    /// Lλ²/2, by which the noise of a round enters the bound.
    pub(super) fn noise_factor(&self) -> f64 {
        0.5 * self.smoothness * self.learning_rate * self.learning_rate
    }
}

/// A device in a round: its weight, and the variances of the noise on each real coordinate of its
/// update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceNoise {
    /// G_k
    pub weight: f64,
    /// Variance of the artificial noise: σ² = 2 ln(1.25/δ_dp)·Δs²/ε² in the theorem.
    pub artificial: f64,
    /// Variance of the channel's noise: σ_n²/(‖h_k‖²p_k²) in the theorem.
    pub channel: f64,
}

/// Inputs of the bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// F(w⁰) − F(w*)
    pub initial_gap: f64,
    /// L, μ, δ and λ.
    pub constants: Constants,
    /// q, the number of parameters.
    pub coordinates: usize,
    /// The devices of each round that sent something. A round without any leaves the model as it is.
    pub rounds: Vec<Vec<DeviceNoise>>,
}

impl Setting {
    /// Refuses symbols without meaning.
    pub fn check(&self) -> Result<(), BoundError> {
        self.constants.check()?;
        let (gap, coordinates) = (self.initial_gap, self.coordinates);
        symbol("initial gap", gap, gap >= 0.0, "a finite number from 0")?;
        symbol("coordinates", coordinates as f64, coordinates > 0, "at least 1")?;
        for (round, devices) in self.rounds.iter().enumerate().filter(|(_, d)| !d.is_empty()) {
            for (device, noise) in devices.iter().enumerate() {
                let DeviceNoise { weight, artificial, channel } = *noise;
                for (name, value) in [
                    ("weight", weight),
                    ("artificial noise", artificial),
                    ("channel noise", channel),
                ] {
                    if !(value.is_finite() && value >= 0.0) {
                        return Err(BoundError::Device { round, device, name, value });
                    }
                }
            }
            let sum: f64 = devices.iter().map(|device| device.weight).sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                return Err(BoundError::Weights { round, sum });
            }
        }
        Ok(())
    }

    /// The largest Σ_k G_k² of a round; 1 where no device ever sent.
    pub fn squared_weights(&self) -> f64 {
        let rounds = self.rounds.iter().filter(|devices| !devices.is_empty());
        let sums = rounds.map(|devices| squared_weights(devices.iter().map(|d| d.weight)));
        sums.reduce(f64::max).unwrap_or(1.0)
    }
}

/// Refuses a symbol that is not finite or does not fit.
fn symbol(
    name: &'static str,
    value: f64,
    fits: bool,
    allowed: &'static str,
) -> Result<(), BoundError> {
    if fits && value.is_finite() {
        Ok(())
    } else {
        Err(BoundError::Symbol { name, value, allowed })
    }
}

/// Σ_k G_k²
pub fn squared_weights(weights: impl IntoIterator<Item = f64>) -> f64 {
    weights.into_iter().map(|weight| weight * weight).sum()
}

/// Error of a bound.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BoundError {
    /// A symbol without meaning.
    #[error("{name} = {value}: expected {allowed}")]
    Symbol {
        /// Name of the symbol.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Allowed values.
        allowed: &'static str,
    },
    /// A weight or variance without meaning.
    #[error(
        "{name} {value} of device {device} in round {round}, both from 0: \
             expected a finite number from 0"
    )]
    Device {
        /// The round, from 0.
        round: usize,
        /// The place of the device in the round, from 0.
        device: usize,
        /// Name of the quantity.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Weights that are no shares.
    #[error("the weights of round {round}, from 0, sum to {sum}: expected 1")]
    Weights {
        /// The round, from 0.
        round: usize,
        /// Their sum.
        sum: f64,
    },
    /// A contraction below 0 would bound the loss by less than its minimum; one that is not finite
    /// bounds nothing.
    #[error("the {} bound has A = {value}: expected a finite number from 0", name(*form))]
    Contraction {
        /// Form of the bound.
        form: BoundForm,
        /// A
        value: f64,
    },
}

impl Blame for BoundError {}

fn name(form: BoundForm) -> &'static str {
    match form {
        BoundForm::Corrected => "corrected",
        BoundForm::Printed => "printed",
    }
}
