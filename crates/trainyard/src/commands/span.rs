//! Lengths of time as people write them: `30s`, `5m`, `1h30m`, `500ms`.

use std::time::Duration;

/// Reads one. A number alone is seconds.
pub(super) fn read(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no length of time: write it like 30s, 5m or 1h30m");
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .ok_or_else(wrong)?;
        let (number, unit_on) = rest.split_at(digits);
        let units = unit_on
            .find(|letter: char| letter.is_ascii_digit() || letter == '.')
            .unwrap_or(unit_on.len());
        let (unit, next) = unit_on.split_at(units);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = next;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        for (text, millis) in [
            ("30", 30_000),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("1.5m", 90_000),
            ("0", 0),
            ("1d", 86_400_000),
        ] {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5x", "-5s", "5m3", "1..5s", "99999999999999999999h"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
