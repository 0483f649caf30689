//! Times as the API server writes them, as numbers.

/// Seconds since 1970; 0 for what is no time.
pub(crate) fn seconds(written: Option<&str>) -> i64 {
    let time = written.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    time.map_or(0, jiff::Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_others_are_zero() {
        assert_eq!(seconds(Some("1970-01-02T00:00:01Z")), 86_401);
        assert_eq!((seconds(Some("soon")), seconds(None)), (0, 0));
    }
}
