//! How long ago something was, as people read it: `5s`, `3m20s`, `47h`, `2y3d`.
//!
//! Must not know what happened then.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// A length of time with two or three significant digits.
pub(crate) fn human(length: SignedDuration) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    let seconds = length.as_secs();
    let (minutes, hours) = (seconds / MINUTE, seconds / HOUR);
    let days = hours / 24;
    // The larger unit, and the smaller one only where it is not zero.
    let both = |large: i64, unit: char, small: i64, smaller: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{smaller}") }
    };
    match seconds {
        // Clocks differ a little.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => both(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => both(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => both(days, 'd', hours % 24, 'h'),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => both(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

/// A time as objects write it. What is absent, unreadable or the year 1 is no time.
pub(crate) fn time(value: Option<&Value>) -> Option<Timestamp> {
    let text = value?.as_str()?;
    let time: Timestamp = text.parse().ok()?;
    (!text.starts_with("0001-01-01T00:00:00")).then_some(time)
}

/// How long ago a time was; `<unknown>` when there is none.
pub(crate) fn since(value: Option<&Value>, now: Timestamp) -> String {
    time(value).map_or_else(|| "<unknown>".to_owned(), |time| human(now.duration_since(time)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lengths() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (599, "9m59s"),
            (600, "10m"),
            (179 * 60 + 59, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (8 * 3600, "8h"),
            (47 * 3600 + 3599, "47h"),
            (48 * 3600, "2d"),
            (49 * 3600, "2d1h"),
            (8 * 86400, "8d"),
            (729 * 86400, "729d"),
            (730 * 86400, "2y"),
            (731 * 86400, "2y1d"),
            (365 * 8 * 86400, "8y"),
            (365 * 9 * 86400 + 86400, "9y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
        assert_eq!(human(SignedDuration::from_millis(-1900)), "0s");
    }

    #[test]
    fn times() {
        let now: Timestamp = "2026-11-16T06:00:00Z".parse().unwrap();
        assert_eq!(since(Some(&json!("2026-11-16T05:59:00Z")), now), "60s");
        assert_eq!(since(Some(&json!("2026-11-16T07:59:00+02:00")), now), "60s");
        assert_eq!(since(Some(&json!("2026-11-16T05:59:00.000001Z")), now), "59s");
        for nothing in [json!(null), json!("soon"), json!("0001-01-01T00:00:00Z")] {
            assert_eq!(since(Some(&nothing), now), "<unknown>");
        }
        assert_eq!(since(None, now), "<unknown>");
    }
}
