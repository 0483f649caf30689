//! The parameters of a request for logs, as the API server sends them.

use jiff::{SignedDuration, Timestamp};

use crate::logs::{LogQuery, Streams};

/// Reads the query string. An error says which parameter is wrong and how.
pub(super) fn parse(query: &str, now: Timestamp) -> Result<LogQuery, String> {
    let mut found = LogQuery::default();
    let mut since_seconds = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "follow" => found.follow = truth(&value),
            "previous" => found.previous = truth(&value),
            "timestamps" => found.timestamps = truth(&value),
            "tailLines" => found.tail_lines = Some(number("tailLines", &value, 0)?),
            // The old name, whose "all" means no limit.
            "tail" if value == "all" => found.tail_lines = None,
            "tail" if !value.is_empty() => found.tail_lines = Some(number("tail", &value, 0)?),
            "limitBytes" => found.limit_bytes = Some(number("limitBytes", &value, 1)?),
            "sinceSeconds" => since_seconds = Some(number("sinceSeconds", &value, 1)?),
            "sinceTime" if !value.is_empty() => {
                let time = value.parse().map_err(|_| {
                    format!("sinceTime {value:?} is no time like 2026-11-15T09:30:00Z")
                })?;
                found.since = Some(time);
            }
            "stream" => {
                found.streams = match &*value {
                    "All" | "" => Streams::All,
                    "Stdout" => Streams::Stdout,
                    "Stderr" => Streams::Stderr,
                    _ => return Err(format!("stream {value:?} is none of All, Stdout, Stderr")),
                }
            }
            _ => {}
        }
    }
    if let Some(seconds) = since_seconds {
        if found.since.is_some() {
            return Err("at most one of sinceTime and sinceSeconds may be given".to_owned());
        }
        let back = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        // Further back than times go is everything.
        found.since = now.checked_sub(back).ok();
    }
    Ok(found)
}

/// As Kubernetes reads a switch: given means on, unless it says `false` or `0`.
fn truth(value: &str) -> bool {
    !(value.eq_ignore_ascii_case("false") || value == "0")
}

fn number(name: &str, value: &str, least: u64) -> Result<u64, String> {
    match value.parse::<u64>() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("{name} {value:?} is no whole number of at least {least}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T09:30:00Z".parse().unwrap()
    }

    #[test]
    fn parameters_mean_what_they_mean_to_a_kubelet() {
        let none = LogQuery::default();
        let cases = [
            ("", none.clone()),
            ("follow=true&unknown=1", LogQuery { follow: true, ..none.clone() }),
            ("follow=True", LogQuery { follow: true, ..none.clone() }),
            ("follow=&previous=1", LogQuery { follow: true, previous: true, ..none.clone() }),
            ("follow=FALSE&timestamps=0", none.clone()),
            ("timestamps=true", LogQuery { timestamps: true, ..none.clone() }),
            ("tailLines=0", LogQuery { tail_lines: Some(0), ..none.clone() }),
            ("tail=10", LogQuery { tail_lines: Some(10), ..none.clone() }),
            ("tail=all", none.clone()),
            ("limitBytes=1", LogQuery { limit_bytes: Some(1), ..none.clone() }),
            (
                "sinceSeconds=60",
                LogQuery { since: Some("2026-11-15T09:29:00Z".parse().unwrap()), ..none.clone() },
            ),
            (
                "sinceTime=2026-11-15T10:00:00%2B01:00",
                LogQuery { since: Some("2026-11-15T09:00:00Z".parse().unwrap()), ..none.clone() },
            ),
            ("sinceSeconds=9223372036854775807", none.clone()),
            ("stream=Stderr", LogQuery { streams: Streams::Stderr, ..none.clone() }),
            ("stream=All", none),
        ];
        for (query, expected) in cases {
            assert_eq!(parse(query, now()), Ok(expected), "{query}");
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (query, word) in [
            ("tailLines=-1", "tailLines"),
            ("tailLines=ten", "\"ten\""),
            ("limitBytes=0", "at least 1"),
            ("sinceSeconds=0", "sinceSeconds"),
            ("sinceTime=yesterday", "sinceTime"),
            ("sinceTime=2026-11-15T10:00:00Z&sinceSeconds=3", "at most one"),
            ("stream=stdin", "Stdout"),
        ] {
            let error = parse(query, now()).unwrap_err();
            assert!(error.contains(word), "{query}: {error}");
        }
    }
}
