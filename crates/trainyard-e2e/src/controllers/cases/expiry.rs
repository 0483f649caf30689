//! Events go when they are old.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::controllers::ground::{Ground, second};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!("expiry": old_events_go)
}

async fn old_events_go(ground: &Ground) -> Result<()> {
    let place = ground.place("expiry").await?;
    let event = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "namespace": place.name, "name": "p"},
            "reason": "R", "message": "m", "type": "Normal",
        })
    };
    place.make("events", &event("forgotten")).await?;
    place.make("events", &event("counted")).await?;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let now = second(jiff::Timestamp::now());
    place.change("events/counted", &json!({"count": 2, "lastTimestamp": now})).await?;
    place.until_gone("events/forgotten").await?;
    let counted: Value = place.look("events/counted").await?;
    ensure!(!counted.is_null(), "an event that was written again is gone");
    place.until_gone("events/counted").await
}
