//! How Go programs spell flags and values, so that command lines of the reference operator work.
//!
//! Owns one dash for long flags, booleans with and without a value, and durations.

use std::{ffi::OsString, time::Duration};

/// `-leader-elect` becomes `--leader-elect`; single letters and negative numbers stay.
pub(crate) fn two_dashes(argument: &mut OsString) {
    let is_long = argument.to_str().is_some_and(|text| {
        text.strip_prefix('-').is_some_and(|name| {
            name.len() > 1 && name.starts_with(|c: char| c.is_ascii_alphabetic())
        })
    });
    if is_long {
        let mut long = OsString::from("-");
        long.push(&argument);
        *argument = long;
    }
}

/// A boolean as Go's `flag` package reads it.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

/// A duration such as `15s`, `1m30s`, `1.5h` or `0`. Never negative.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "write a duration with units, for example 15s, 1m30s or 250ms";
    /// Longest units first among those that begin alike.
    const UNITS: [(&str, f64); 7] = [
        ("ms", 1e-3),
        ("µs", 1e-6),
        ("us", 1e-6),
        ("ns", 1e-9),
        ("h", 3600.0),
        ("m", 60.0),
        ("s", 1.0),
    ];
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err(WRONG.to_owned());
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| WRONG.to_owned())?;
        let (unit, seconds) = UNITS
            .iter()
            .find(|(unit, _)| tail.starts_with(unit))
            .ok_or_else(|| WRONG.to_owned())?;
        total += number * seconds;
        rest = &tail[unit.len()..];
    }
    Duration::try_from_secs_f64(total).map_err(|_| "the duration is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dash_becomes_two() {
        for (given, read) in [
            ("-leader-elect", "--leader-elect"),
            ("-leader-elect=true", "--leader-elect=true"),
            ("--leader-elect", "--leader-elect"),
            ("-h", "-h"),
            ("-1", "-1"),
            ("-10s", "-10s"),
            ("-", "-"),
            ("tfjob", "tfjob"),
        ] {
            let mut argument = OsString::from(given);
            two_dashes(&mut argument);
            assert_eq!(argument, read);
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in ["", "15", "s", "-1s", "1x", "1s2", "1..5s", "9e9h", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn booleans() {
        assert_eq!(boolean("T"), Ok(true));
        assert_eq!(boolean("0"), Ok(false));
        assert!(boolean("yes").is_err());
    }
}
