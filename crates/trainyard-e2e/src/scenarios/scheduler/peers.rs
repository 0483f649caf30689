//! Pods that want to be near others, away from others, or spread.

use anyhow::Result;
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::volcano::{Floor, Gang};

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/peers": away_from_each_other, near_another, spread_evenly]
}

fn peers(gang: &str) -> Value {
    json!([{"topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"gang": gang}}}])
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

async fn away_from_each_other(floor: Floor) -> Result<()> {
    for name in ["a", "b"] {
        floor.node(name, json!({"cpu": "4"})).await?;
    }
    let apart = |name: &str, pods| {
        Gang::new(name, pods).pod("affinity", json!({"podAntiAffinity": {REQUIRED: peers(name)}}))
    };
    floor.gang(apart("two", 2)).await?;
    let seen = floor.placed(&["two-0", "two-1"]).await?;
    equal("apart", seen.node_of("two-0") == seen.node_of("two-1"), false)?;
    floor.gang(apart("three", 3)).await?;
    floor.waits("three-0", "anti-affinity rules").await?;
    floor.stays_placed(&["two-0", "two-1"]).await
}

async fn near_another(floor: Floor) -> Result<()> {
    for name in ["a", "b", "c"] {
        floor.node(name, json!({"cpu": "4"})).await?;
    }
    let near = json!({"podAffinity": {REQUIRED: peers("ps")}});
    floor.gang(Gang::new("w", 2).pod("affinity", near)).await?;
    floor.waits("w-0", "pod affinity rules").await?;
    floor.gang(Gang::new("ps", 1)).await?;
    let seen = floor.placed(&["ps-0", "w-0", "w-1"]).await?;
    equal("beside it", seen.node_of("w-1"), seen.node_of("ps-0"))
}

async fn spread_evenly(floor: Floor) -> Result<()> {
    for name in ["a", "b"] {
        floor.node(name, json!({"cpu": "8"})).await?;
    }
    let even = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"gang": "one"}}}]);
    floor.gang(Gang::new("one", 4).pod("topologySpreadConstraints", even)).await?;
    let seen = floor.placed(&["one-0", "one-1", "one-2", "one-3"]).await?;
    let first = seen.node_of("one-0");
    let beside = ["one-0", "one-1", "one-2", "one-3"]
        .iter()
        .filter(|pod| seen.node_of(pod) == first)
        .count();
    equal("half of them on one node", beside, 2)
}
