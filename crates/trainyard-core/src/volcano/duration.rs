//! Durations as Go writes them: `1h0m0s`, `1.5s`.
//!
//! Must not know what is measured.

/// The text of so many milliseconds.
#[must_use]
pub(super) fn text(ms: i64) -> String {
    let (seconds, rest) = (ms / 1_000, ms % 1_000);
    if ms == 0 {
        return "0s".to_owned();
    }
    if seconds == 0 {
        return format!("{rest}ms");
    }
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let fraction = match rest {
        0 => String::new(),
        rest => format!(".{rest:03}").trim_end_matches('0').to_owned(),
    };
    let last = format!("{}{fraction}s", seconds % 60);
    match (hours, minutes) {
        (0, 0) => last,
        (0, minutes) => format!("{minutes}m{last}"),
        (hours, minutes) => format!("{hours}h{minutes}m{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_does() {
        for (ms, said) in [
            (0, "0s"),
            (250, "250ms"),
            (1_500, "1.5s"),
            (60_000, "1m0s"),
            (600_000, "10m0s"),
            (3_600_000, "1h0m0s"),
            (5_405_050, "1h30m5.05s"),
        ] {
            assert_eq!(text(ms), said);
        }
    }
}
