//! Times as Kubernetes objects carry them: RFC 3339, whole seconds.
//!
//! Must not read a clock.

use jiff::{SignedDuration, Timestamp};

/// The time cut to whole seconds, as `metav1.Time` stores it.
#[must_use]
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The time some seconds later; saturates at the end of time.
#[must_use]
pub fn after_seconds(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
