//! Owners and their dependents.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::controllers::ground::{Ground, Place, delete, owned, propagated, uid, until};
use crate::harness::{Case, cases};

const HOLD: &str = "tests.trainyard.dev/hold";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "garbage": dependents_follow_their_owner,
        an_owner_that_never_was,
        one_owner_is_enough,
        foreground_waits,
        foreground_in_a_chain,
        foreground_needs_no_dependents,
        orphans_stay,
        another_namespace_is_out_of_reach,
        a_new_kind_at_once,
        a_successor_of_the_same_name_is_no_owner,
    )
}

async fn dependents_follow_their_owner(ground: &Ground) -> Result<()> {
    let place = ground.place("background").await?;
    let top = place.thing("top", &json!([])).await?;
    let middle = place.thing("middle", &json!([owned("top", &top, true)])).await?;
    for at in 0..20 {
        place.thing(&format!("leaf-{at}"), &json!([owned("middle", &middle, true)])).await?;
    }
    place.thing("stranger", &json!([])).await?;
    place.delete("configmaps/top", &propagated("Background")).await?;
    place.until_gone("configmaps/middle").await?;
    for at in 0..20 {
        place.until_gone(&format!("configmaps/leaf-{at}")).await?;
    }
    ensure!(!place.look("configmaps/stranger").await?.is_null(), "a stranger is gone");
    Ok(())
}

async fn an_owner_that_never_was(ground: &Ground) -> Result<()> {
    let place = ground.place("never").await?;
    let owner = owned("nobody", "00000000-0000-4000-8000-000000000000", false);
    place.thing("child", &json!([owner])).await?;
    place.until_gone("configmaps/child").await?;
    // Of a kind that nobody knows nobody can say that it is not there.
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Unknown", "name": "x",
        "uid": "00000000-0000-4000-8000-000000000001"});
    place.thing("kept", &json!([owner])).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(!place.look("configmaps/kept").await?.is_null(), "gone for an owner of unknown kind");
    Ok(())
}

async fn one_owner_is_enough(ground: &Ground) -> Result<()> {
    let place = ground.place("two").await?;
    let one = place.thing("one", &json!([])).await?;
    let other = place.thing("other", &json!([])).await?;
    let owners = json!([owned("one", &one, false), owned("other", &other, false)]);
    place.thing("child", &owners).await?;
    place.delete("configmaps/one", &propagated("Background")).await?;
    let trimmed = |found: &Value| {
        let owners = found["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.len() == 1 && owners[0]["name"] == "other")
    };
    place.until("configmaps/child", "owned by the other", trimmed).await?;
    place.delete("configmaps/other", &propagated("Background")).await?;
    place.until_gone("configmaps/child").await
}

/// Puts a finalizer of the tests on a config map, or takes it off.
async fn hold(place: &Place, name: &str, held: bool) -> Result<()> {
    let finalizers = if held { json!([HOLD]) } else { json!([]) };
    let patch = json!({"metadata": {"finalizers": finalizers}});
    place.change(&format!("configmaps/{name}"), &patch).await
}

async fn foreground_waits(ground: &Ground) -> Result<()> {
    let place = ground.place("foreground").await?;
    let owner = place.thing("owner", &json!([])).await?;
    place.thing("blocks", &json!([owned("owner", &owner, true)])).await?;
    place.thing("free", &json!([owned("owner", &owner, false)])).await?;
    hold(&place, "blocks", true).await?;
    place.delete("configmaps/owner", &propagated("Foreground")).await?;
    place.until_gone("configmaps/free").await?;
    let deleting = |found: &Value| found["metadata"]["deletionTimestamp"].is_string();
    place.until("configmaps/blocks", "being deleted", deleting).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let waiting = place.look("configmaps/owner").await?;
    ensure!(waiting["metadata"]["finalizers"][0] == "foregroundDeletion", "{waiting:#}");
    hold(&place, "blocks", false).await?;
    place.until_gone("configmaps/blocks").await?;
    place.until_gone("configmaps/owner").await
}

async fn foreground_in_a_chain(ground: &Ground) -> Result<()> {
    let place = ground.place("chain").await?;
    let top = place.thing("top", &json!([])).await?;
    let middle = place.thing("middle", &json!([owned("top", &top, true)])).await?;
    place.thing("leaf", &json!([owned("middle", &middle, true)])).await?;
    hold(&place, "leaf", true).await?;
    place.delete("configmaps/top", &propagated("Foreground")).await?;
    let waits = |found: &Value| found["metadata"]["finalizers"][0] == "foregroundDeletion";
    place.until("configmaps/middle", "waiting in turn", waits).await?;
    ensure!(!place.look("configmaps/top").await?.is_null(), "the top did not wait");
    hold(&place, "leaf", false).await?;
    for name in ["leaf", "middle", "top"] {
        place.until_gone(&format!("configmaps/{name}")).await?;
    }
    Ok(())
}

async fn foreground_needs_no_dependents(ground: &Ground) -> Result<()> {
    let place = ground.place("alone").await?;
    place.thing("owner", &json!([])).await?;
    place.delete("configmaps/owner", &propagated("Foreground")).await?;
    place.until_gone("configmaps/owner").await
}

async fn orphans_stay(ground: &Ground) -> Result<()> {
    let place = ground.place("orphan").await?;
    let owner = place.thing("owner", &json!([])).await?;
    place.thing("child", &json!([owned("owner", &owner, true)])).await?;
    // The collector must have seen the child; as everywhere, nothing tells when.
    tokio::time::sleep(Duration::from_secs(1)).await;
    place.delete("configmaps/owner", &propagated("Orphan")).await?;
    place.until_gone("configmaps/owner").await?;
    let free = |found: &Value| {
        !found.is_null()
            && found["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty)
    };
    place.until("configmaps/child", "without owner", free).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(!place.look("configmaps/child").await?.is_null(), "the orphan is gone");
    Ok(())
}

async fn another_namespace_is_out_of_reach(ground: &Ground) -> Result<()> {
    let there = ground.place("there").await?;
    let here = ground.place("here").await?;
    let owner = there.thing("owner", &json!([])).await?;
    here.thing("child", &json!([owned("owner", &owner, false)])).await?;
    here.until_gone("configmaps/child").await?;
    let message = here.until_event("child", "OwnerRefInvalidNamespace").await?;
    ensure!(
        message.contains(&format!("does not exist in namespace \"{}\"", here.name)),
        "{message}"
    );
    ensure!(!there.look("configmaps/owner").await?.is_null(), "the owner is gone");
    Ok(())
}

async fn a_new_kind_at_once(ground: &Ground) -> Result<()> {
    let place = ground.place("kind").await?;
    let rest = ground.cluster();
    let group = format!("{}.trainyard.dev", place.name);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("wagons.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "wagons", "singular": "wagon", "kind": "Wagon"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object"}}}],
        },
    });
    rest.send(Method::POST, DEFINITIONS, Some(&definition)).await?;
    let path = format!("{DEFINITIONS}/wagons.{group}");
    let established = |found: &Value| {
        let all = found["status"]["conditions"].as_array().into_iter().flatten();
        all.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
    };
    until(&rest, &path, "established", established).await?;
    let collection = format!("{group}/v1/wagons");
    place.until(&collection, "served", |found| !found.is_null()).await?;
    let wagon = |name: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Wagon", "metadata": {"name": name}});
    let owner = |name: &str, uid: &str| json!([{"apiVersion": format!("{group}/v1"), "kind": "Wagon", "name": name, "uid": uid}]);
    let first = uid(&place.make(&collection, &wagon("first")).await?)?;
    let last = uid(&place.make(&collection, &wagon("last")).await?)?;
    place.thing("of-first", &owner("first", &first)).await?;
    place.thing("of-last", &owner("last", &last)).await?;
    // Its kind has been known for moments only.
    place.delete(&format!("{collection}/first"), &propagated("Background")).await?;
    place.until_gone("configmaps/of-first").await?;
    ensure!(!place.look("configmaps/of-last").await?.is_null(), "the wrong one is gone");
    // A kind that goes takes its objects with it, and they their dependents.
    delete(&rest, &path, &json!({})).await?;
    place.until_gone("configmaps/of-last").await
}

async fn a_successor_of_the_same_name_is_no_owner(ground: &Ground) -> Result<()> {
    let place = ground.place("successor").await?;
    let first = place.thing("owner", &json!([])).await?;
    place.delete("configmaps/owner", &propagated("Background")).await?;
    place.until_gone("configmaps/owner").await?;
    let second = place.thing("owner", &json!([])).await?;
    place.thing("late", &json!([owned("owner", &first, false)])).await?;
    place.thing("right", &json!([owned("owner", &second, false)])).await?;
    place.until_gone("configmaps/late").await?;
    ensure!(!place.look("configmaps/right").await?.is_null(), "a child of the living is gone");
    Ok(())
}
