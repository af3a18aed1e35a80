//! Errors of the radio.

use lapa_privacy::sampler::EntropyError;
use lapa_wireless::uplink::UplinkError;

use super::{LinkError, Threshold};

/// Updates that cannot be received.
#[derive(Debug, thiserror::Error)]
pub enum RadioError {
    /// Devices cannot be placed or separated.
    #[error(transparent)]
    Links(#[from] LinkError),
    /// An update cannot be sent.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// No device has a link that is good enough.
    #[error(
        "round {round}: no device passes {threshold}; the best has an SINR of {best_sinr_db:.1} dB \
         and a symbol error rate of {best_ser:.2e} (`lapa link` shows all)"
    )]
    NoneSelected {
        /// The round, from 1.
        round: u32,
        /// The threshold.
        threshold: Threshold,
        /// The best link's SINR.
        best_sinr_db: f64,
        /// The best link's symbol error rate.
        best_ser: f64,
    },
    /// The operating system gives no entropy.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}
