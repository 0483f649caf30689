//! Events: when they were, whom they are about, how they stand in a table.

use jiff::Timestamp;
use serde_json::Value;

use super::time::{ago, time};
use super::{lines, one_line, text};

/// When an event last happened.
pub(crate) fn last(event: &Value) -> Option<Timestamp> {
    last_value(event).and_then(time)
}

fn last_value(event: &Value) -> Option<&Value> {
    [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
        &event["metadata"]["creationTimestamp"],
    ]
    .into_iter()
    .find(|value| time(value).is_some())
}

fn first_value(event: &Value) -> &Value {
    [&event["firstTimestamp"], &event["eventTime"]]
        .into_iter()
        .find(|value| time(value).is_some())
        .unwrap_or(&event["metadata"]["creationTimestamp"])
}

/// Puts events into the order in which they happened.
pub(crate) fn sort(events: &mut [Value]) {
    events.sort_by_cached_key(|event| {
        (last(event), text(event, &["metadata", "resourceVersion"]).parse::<u64>().ok())
    });
}

/// Whether an event is older than an object of the name that it is about: it tells of another one.
pub(crate) fn precedes(event: &Value, object: &Value) -> bool {
    let made = time(&object["metadata"]["creationTimestamp"]);
    // The clock of a node may be behind; that of the server is in both.
    let last = last(event).max(time(&event["metadata"]["creationTimestamp"]));
    last.zip(made).is_some_and(|(last, made)| last < made)
}

/// How long ago it was, and how often: `3s`, `2m (x5 over 10m)`.
pub(crate) fn seen(event: &Value, now: Timestamp) -> String {
    let last = last_value(event).map_or_else(|| "<unknown>".to_owned(), |value| ago(value, now));
    match count(event) {
        Some(count) if count > 1 => {
            format!("{last} (x{count} over {})", ago(first_value(event), now))
        }
        _ => last,
    }
}

/// When it was, and how often, in a sentence: `3s ago`, `2m ago, 5 times in 10m`.
pub(crate) fn when(event: &Value, now: Timestamp) -> String {
    let Some(last) = last_value(event) else { return "at an unknown time".to_owned() };
    let last = ago(last, now);
    match count(event) {
        Some(count) if count > 1 => {
            format!("{last} ago, {count} times in {}", ago(first_value(event), now))
        }
        _ => format!("{last} ago"),
    }
}

/// How often it has happened, where it is counted.
pub(crate) fn count(event: &Value) -> Option<i64> {
    event["series"]["count"].as_i64().or_else(|| event["count"].as_i64())
}

/// The first line of a table of events.
pub(crate) fn header(with_namespace: bool) -> Vec<String> {
    let names = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
    let space = with_namespace.then_some("NAMESPACE");
    space.into_iter().chain(names).map(str::to_owned).collect()
}

/// The line of an event, as `kubectl events` has it.
pub(crate) fn row(event: &Value, now: Timestamp, with_namespace: bool) -> Vec<String> {
    let object = format!(
        "{}/{}",
        text(event, &["involvedObject", "kind"]),
        text(event, &["involvedObject", "name"])
    );
    let space = with_namespace.then(|| text(event, &["metadata", "namespace"]).to_owned());
    let cells = [
        seen(event, now),
        text(event, &["type"]).to_owned(),
        text(event, &["reason"]).to_owned(),
        object,
        one_line(text(event, &["message"])),
    ];
    space.into_iter().chain(cells).collect()
}

/// The lines of a description: type, reason, age, source, message. A message keeps its line breaks.
pub(crate) fn described(events: &[Value], now: Timestamp, with_object: bool) -> Vec<Vec<String>> {
    let mut names = vec!["Type", "Reason", "Age", "From"];
    let mut dashes = vec!["----", "------", "----", "----"];
    if with_object {
        names.push("Object");
        dashes.push("------");
    }
    names.push("Message");
    dashes.push("-------");
    let own = |cells: Vec<&str>| cells.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut rows = vec![own(names), own(dashes)];
    for event in events {
        let from = [text(event, &["source", "component"]), text(event, &["reportingComponent"])]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        let mut cells = vec![
            text(event, &["type"]).to_owned(),
            text(event, &["reason"]).to_owned(),
            seen(event, now),
            from.to_owned(),
        ];
        if with_object {
            let kind = text(event, &["involvedObject", "kind"]).to_lowercase();
            cells.push(format!("{kind}/{}", text(event, &["involvedObject", "name"])));
        }
        cells.push(lines(text(event, &["message"])));
        rows.push(cells);
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_come_in_order_with_how_often_they_were() {
        let mut events = [
            json!({"lastTimestamp": "2026-01-01T00:01:00Z", "firstTimestamp": "2026-01-01T00:00:00Z",
                   "count": 5, "type": "Warning", "reason": "BackOff", "message": "again\n\r\n  and again\n",
                   "involvedObject": {"kind": "Pod", "name": "a"}}),
            json!({"eventTime": "2026-01-01T00:00:30.5Z", "lastTimestamp": null}),
        ];
        sort(&mut events);
        let now = "2026-01-01T00:02:00Z".parse().unwrap();
        assert_eq!(seen(&events[0], now), "89s");
        let cells = row(&events[1], now, false);
        assert_eq!(cells, ["60s (x5 over 2m)", "Warning", "BackOff", "Pod/a", "again and again"]);
        assert_eq!(when(&events[1], now), "60s ago, 5 times in 2m");
        let told = described(&events[1..], now, false);
        assert_eq!(told[2].last().map(String::as_str), Some("again\n  and again"));
        assert_eq!(last(&json!({})), None);
        let made = |at: &str| json!({"metadata": {"creationTimestamp": at}});
        assert!(precedes(&events[0], &made("2026-01-01T00:00:31Z")));
        assert!(!precedes(&events[0], &made("2026-01-01T00:00:30Z")));
        assert!(!precedes(&events[0], &json!({})));
        assert_eq!(seen(&json!({}), now), "<unknown>");
    }
}
