//! Sums of costs that are never rounded down.

use crate::rounding::sub_down;

/// capacity − spent, rounded down and at least 0: the most that can be added to `spent` by
/// [`add_up`](super::add_up) without passing `capacity`. Nothing is enforced under an infinite capacity.
pub(super) fn left(capacity: f64, spent: f64) -> f64 {
    if capacity == f64::INFINITY {
        return capacity;
    }
    if spent >= capacity {
        return 0.0;
    }
    sub_down(capacity, spent)
}
