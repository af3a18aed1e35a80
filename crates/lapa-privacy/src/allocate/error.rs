//! What an allocator refuses.

use crate::OutOfRange;

/// Why there is no allocator with these settings, or none in this state.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AllocateError {
    /// A number is out of its range.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// An allocator of the paper's basis alone.
    #[error("optimal-split shares one pot over the devices: it needs epsilon")]
    OnePot,
    /// The state was taken from another allocator.
    #[error("the state belongs to the allocator {found}: expected {expected}")]
    OtherAllocator {
        /// The allocator to be restored.
        expected: &'static str,
        /// The one the state was taken from.
        found: &'static str,
    },
}
