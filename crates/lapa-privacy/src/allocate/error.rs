//! Refusals of allocators.

use crate::OutOfRange;

/// An allocator that cannot be, or not in this state.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AllocateError {
    /// A number is out of its range.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// An allocator of the paper's basis alone.
    #[error("{allocator} divides one total budget over the devices: epsilon is required")]
    NeedsTotal {
        /// The allocator.
        allocator: &'static str,
    },
    /// The state cannot be read.
    #[error("the state of the allocator: {0}")]
    State(String),
    /// The state was taken from another allocator.
    #[error("the state belongs to the allocator {found}: expected {expected}")]
    OtherAllocator {
        /// The allocator to be restored.
        expected: &'static str,
        /// The one the state was taken from.
        found: String,
    },
}
