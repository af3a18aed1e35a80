//! The only clocks. They measure how long things take and date a run; no result depends on them.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The start of something to be timed.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for it")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for it")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
