//! Errors of a federation.

use lapa_privacy::sampler::EntropyError;

use crate::budget::PrivacyError;
use crate::device::NoiseError;
use crate::model::{ModelName, Shape};
use crate::observe::Cancelled;
use crate::pool::PoolError;
use crate::radio::{LinkError, RadioError, UplinkError};

/// Result of work on a federation.
pub type Result<T, E = FederationError> = std::result::Result<T, E>;

/// A federation cannot be set up, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FederationError {
    /// The data set does not have the features asked for.
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    /// The partition asked for cannot be had.
    #[error(transparent)]
    Partition(#[from] crate::partition::PartitionError),
    /// The model does not fit the samples.
    #[error(
        "the model does not fit samples of {}: {source}",
        shape.of_image()
    )]
    Model {
        /// Shape of an image.
        shape: Shape,
        /// The mismatch.
        source: Box<crate::model::ModelError>,
    },
    /// The model is too large for the images, devices and threads.
    #[error(transparent)]
    TooLarge(Box<TooLarge>),
    /// A network of one's own does not fit the data.
    #[error(
        "the network has {has_inputs} inputs and {has_outputs} outputs, \
         but the data need {inputs} inputs and at least {outputs} outputs"
    )]
    Network {
        /// Inputs of the network.
        has_inputs: usize,
        /// Outputs of the network.
        has_outputs: usize,
        /// Pixels per image.
        inputs: usize,
        /// Classes.
        outputs: usize,
    },
    /// A network of one's own has batch norm, and samples are to be clipped.
    #[error("learn.clip = \"sample\" does not go with batch norm: use group norm")]
    NoSampleGradients,
    /// Digits do not fit the data.
    #[error(
        "model.start = \"digits\" trains on images of 28×28 in 10 classes, but the data set has \
         {} in {classes}: use model.start = \"random\"",
        shape.of_image()
    )]
    OtherImages {
        /// Shape of an image.
        shape: Shape,
        /// Classes.
        classes: usize,
    },
    /// An allocator of one's own in place of a schedule that is promised.
    #[error(
        "privacy.allocator declares no budgets, or a schedule that is fixed in advance: an \
         allocator of one's own needs another, such as \"lapa\""
    )]
    FixedSchedule,
    /// An uplink of one's own in place of one whose noise counts as privacy.
    #[error(
        "privacy.channel_trust counts the noise of the configured uplink, which an uplink of one's \
         own need not add: set privacy.channel_trust = 0"
    )]
    TrustedUplink,
    /// Powers that are still to be chosen.
    #[error(
        "control.power = {} has powers chosen after a pilot run, which a single run does not have: \
         use lapa_control::Job, or set control.power = \"file\"",
        serde_json::to_string(power).unwrap_or_default()
    )]
    PowersNotChosen {
        /// `control.power`
        power: crate::optimize::PowerChoice,
    },
    /// No threads.
    #[error(transparent)]
    Threads(#[from] PoolError),
    /// Noise cannot be set or recorded.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// Updates cannot be received.
    #[error(transparent)]
    Radio(#[from] RadioError),
    /// Noise cannot be drawn.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// A listener broke off.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Training has diverged.
    #[error(
        "training diverged: the update of device {device} in round {round} is not finite; \
         lower learn.learning_rate (now {learning_rate}), or look at the links (`lapa link`)"
    )]
    Diverged {
        /// The round, from 1.
        round: u32,
        /// The device, from 0.
        device: u32,
        /// λ
        learning_rate: f64,
    },
    /// Training has diverged: every update was finite, the model they led to is of no use.
    #[error(
        "training diverged: the test loss after round {round} is not finite; \
         lower learn.learning_rate (now {learning_rate}), or look at the links (`lapa link`)"
    )]
    LossNotFinite {
        /// The round, from 1.
        round: u32,
        /// λ
        learning_rate: f64,
    },
}

impl From<LinkError> for FederationError {
    fn from(error: LinkError) -> Self {
        RadioError::from(error).into()
    }
}

impl FederationError {
    /// True if numbers grew beyond what can be computed with: the loss, an update, the noise that it asks
    /// for, or the channel's noise on it.
    pub fn has_diverged(&self) -> bool {
        let is_out_of_range = |error: &UplinkError| matches!(error, UplinkError::Parameter(_));
        match self {
            Self::LossNotFinite { .. } | Self::Diverged { .. } => true,
            Self::Noise(NoiseError::Sigma(_)) => true,
            Self::Privacy(PrivacyError::Uplink(error)) => is_out_of_range(error),
            Self::Radio(RadioError::Uplink(error)) => is_out_of_range(error),
            _ => false,
        }
    }
}

impl From<EntropyError> for FederationError {
    fn from(error: EntropyError) -> Self {
        PrivacyError::from(error).into()
    }
}

/// A model that is too large for the images, devices and threads.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "model.name = {} on images of {} in {classes} classes needs about {needed} bytes, \
     and {allowed} are allowed: {model_bytes} for {parameters} parameters, {update_bytes} for the \
     updates of {updates} devices at a time{}, {buffer_bytes} for batches of up to {batch} images on \
     {threads} threads. Use smaller images or another model; or lower run.participation, \
     learn.batch_fraction or run.threads",
    serde_json::to_string(model).unwrap_or_default(),
    shape.of_image(),
    reader.as_ref().map_or_else(String::new, |reader| format!(" ({reader} needs each of them)"))
)]
pub struct TooLarge {
    /// `model.name`
    pub model: ModelName,
    /// Shape of an image.
    pub shape: Shape,
    /// Classes.
    pub classes: usize,
    /// Parameters q.
    pub parameters: u64,
    /// Bytes for them.
    pub model_bytes: u64,
    /// Updates at a time.
    pub updates: usize,
    /// Key and value of what needs each of them.
    pub reader: Option<String>,
    /// Bytes for them.
    pub update_bytes: u64,
    /// Images of the largest batch.
    pub batch: usize,
    /// Threads.
    pub threads: usize,
    /// Bytes for their batches.
    pub buffer_bytes: u64,
    /// Bytes in all.
    pub needed: u64,
    /// The most there may be.
    pub allowed: u64,
}
