//! Refusals of a device.

/// Refusal of a device. Nothing was released, and nothing spent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A cost without meaning.
    #[error("device {device} refuses: it was asked for a cost of {cost}, allowed is {allowed}")]
    Cost {
        /// The device.
        device: u32,
        /// The requested cost.
        cost: f64,
        /// The allowed range.
        allowed: String,
    },
    /// More than is left.
    #[error(
        "device {device} refuses: it was asked for a cost of {cost}, and {left} is left of its \
         budget of {capacity} (epsilon {epsilon})"
    )]
    MoreThanLeft {
        /// The device.
        device: u32,
        /// The requested cost.
        cost: f64,
        /// The rest, in the currency of its filter.
        left: f64,
        /// The budget.
        capacity: f64,
        /// The budget ε.
        epsilon: f64,
    },
    /// A round that the run does not have.
    #[error("device {device} refuses: it was asked for round {round}, allowed is 1 to {rounds}")]
    Round {
        /// The device.
        device: u32,
        /// The requested cost.
        round: u32,
        /// Rounds of its configuration.
        rounds: u32,
    },
    /// A round before one that is over.
    #[error(
        "device {device} refuses: it was asked for round {round} of run {run}, but has answered \
         round {last}"
    )]
    Past {
        /// The device.
        device: u32,
        /// The run.
        run: String,
        /// The requested cost.
        round: u32,
        /// The last round that was answered.
        last: u32,
    },
    /// Another question for a round that was answered.
    #[error(
        "device {device} refuses: it has answered round {round} of run {run}, and this is another \
         question"
    )]
    Answered {
        /// The device.
        device: u32,
        /// The run.
        run: String,
        /// The round.
        round: u32,
    },
    /// Not the model of the configuration.
    #[error("device {device} refuses: it was given {given} {what}, its model has {expected}")]
    Length {
        /// The device.
        device: u32,
        /// "parameters" or "values".
        what: &'static str,
        /// The number given.
        given: usize,
        /// The number expected.
        expected: usize,
    },
    /// A model that is not a number.
    #[error("device {device} refuses: parameter {index} is {value}, allowed is a finite number")]
    NotFinite {
        /// The device.
        device: u32,
        /// The position.
        index: usize,
        /// The value.
        value: f32,
    },
}
