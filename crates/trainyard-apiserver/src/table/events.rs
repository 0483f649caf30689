//! The cells of events, in either of their two forms.
//!
//! Must not know other kinds.

use serde_json::{Value, json};

use super::Shown;
use super::duration;
use super::read::{has, number, text, text_or};

/// The first of several texts that is there.
fn first<'a>(event: &'a Value, pointers: &[&str]) -> &'a str {
    pointers.iter().map(|pointer| text(event, pointer)).find(|text| !text.is_empty()).unwrap_or("")
}

pub(super) fn event(shown: &Shown<'_>) -> Vec<Value> {
    let event = shown.object;
    let times = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    let began = times.iter().find(|pointer| duration::time(event.pointer(pointer)).is_some());
    let began = shown.since(began.unwrap_or(&"/eventTime"));
    let times = ["/lastTimestamp", "/deprecatedLastTimestamp"];
    let last = times.iter().find(|pointer| duration::time(event.pointer(pointer)).is_some());
    let mut last = last.map_or_else(|| began.clone(), |pointer| shown.since(pointer));
    let mut count = number(event, "/count").max(number(event, "/deprecatedCount"));
    if has(event, "/series") {
        last = shown.since("/series/lastObservedTime");
        count = number(event, "/series/count");
    } else if count == 0 {
        // Events of the newer form do not count what happened once.
        count = 1;
    }
    let target = if has(event, "/involvedObject") { "/involvedObject" } else { "/regarding" };
    let about = |field: &str| text(event, &format!("{target}/{field}"));
    let kind = about("kind").to_lowercase();
    let object = if about("name").is_empty() { kind } else { format!("{kind}/{}", about("name")) };
    vec![
        json!(last),
        json!(text(event, "/type")),
        json!(text(event, "/reason")),
        json!(object),
        json!(about("fieldPath")),
        json!(source(event)),
        json!(text_or(event, "/message", text(event, "/note")).trim()),
        json!(began),
        json!(count),
        json!(shown.name()),
    ]
}

/// Who says it, and from where.
fn source(event: &Value) -> String {
    let component = first(
        event,
        &[
            "/source/component",
            "/deprecatedSource/component",
            "/reportingComponent",
            "/reportingController",
        ],
    );
    let instance = first(event, &["/source/host", "/deprecatedSource/host", "/reportingInstance"]);
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}
