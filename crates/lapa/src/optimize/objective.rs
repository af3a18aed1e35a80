//! Evaluation of a power allocation, and the objectives that make it.

use super::Limits;

/// Evaluation of one vector of amplitudes.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// J: the noise terms of the bound (without the constant Lλ²q/2). Less is better; ∞ where a
    /// device with weight sends with no power.
    pub objective: f64,
    /// T_th of each device: the last round with artificial noise, 0 if there is none, T if it never
    /// ends. The same for all under the sum rule.
    pub switching_round: Vec<u32>,
    /// Largest σ_required/σ over devices and rounds, each round with the noise it gets in a run; 1
    /// where every device has what it needs.
    pub worst_under_noising: f64,
}

/// Error of an objective.
#[derive(Debug, thiserror::Error)]
pub enum ObjectiveError {
    /// The wrong number of amplitudes.
    #[error("{given} amplitudes for {devices} devices")]
    Length {
        /// Amplitudes given.
        given: usize,
        /// Devices.
        devices: usize,
    },
    /// An amplitude without meaning.
    #[error("amplitude {value} of device {device}: expected a finite number from 0")]
    Amplitude {
        /// The device.
        device: usize,
        /// Its amplitude.
        value: f64,
    },
    /// Training with these powers failed.
    #[error("training with these powers failed: {0}")]
    Training(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Something that judges power allocations: a recorded pilot run, or training anew each time.
pub trait Objective {
    /// Limits of the amplitudes.
    fn limits(&self) -> &Limits;

    /// Rounds T.
    fn rounds(&self) -> u32;

    /// Judges feasible amplitudes.
    fn evaluate(&mut self, amplitudes: &[f64]) -> Result<Evaluation, ObjectiveError>;
}
