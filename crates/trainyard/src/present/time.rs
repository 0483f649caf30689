//! Times as people read them.

use jiff::Timestamp;
use serde_json::Value;

/// A time as objects write it; none when it is absent or cannot be read.
pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// How long ago that was: `5s`, `3m20s`, `47h`.
pub(crate) fn ago(value: &Value, now: Timestamp) -> String {
    trainyard_apiserver::age(Some(value), now)
}

/// The same of a time that has been read.
pub(crate) fn since(then: Timestamp, now: Timestamp) -> String {
    ago(&then.to_string().into(), now)
}

/// How long it took from one time to another; none when one is not known.
pub(crate) fn between(from: &Value, to: &Value) -> Option<String> {
    let to = time(to)?;
    time(from)?;
    Some(trainyard_apiserver::age(Some(from), to))
}
