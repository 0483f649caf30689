//! What only definitions of custom resources have: writing one changes which kinds there are.

use serde_json::{Value, json};

use super::Ask;
use crate::api::{Api, DEFINITIONS};
use crate::crd;
use crate::kind::World as _;

/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether a request is about a definition.
pub(super) fn is_definition(ask: &Ask) -> bool {
    ask.target.kind.storage == DEFINITIONS
}

/// A new definition is served as soon as it is stored, so it says so from the start.
pub(super) fn before_create(api: &Api, ask: &Ask, object: &mut Value) {
    if is_definition(ask) {
        let others = api.list(DEFINITIONS, None);
        crd::definition::established(object, &others, &api.clock.text());
    }
}

/// A changed definition says which of its names and versions count.
pub(super) fn before_update(api: &Api, ask: &Ask, object: &mut Value, before: &Value) {
    if is_definition(ask) && ask.target.subresource.is_none() {
        object["status"] = before["status"].clone();
        let name = object["metadata"]["name"].clone();
        let mut others = api.list(DEFINITIONS, None);
        others.retain(|other| other["metadata"]["name"] != name);
        crd::definition::established(object, &others, &api.clock.text());
    }
}

/// A definition says that it goes. `now` is the time in the form of the API.
pub(super) fn begin_end(object: &mut Value, now: &str) {
    let condition = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    match object["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => object["status"]["conditions"] = json!([condition]),
    }
}

/// A definition that is deleted waits for its objects to go.
pub(super) fn before_delete(ask: &Ask, object: &mut Value) {
    if !is_definition(ask) || object["metadata"]["deletionTimestamp"].is_string() {
        return;
    }
    let finalizers = &mut object["metadata"]["finalizers"];
    match finalizers.as_array_mut() {
        Some(list) if list.iter().any(|finalizer| finalizer == CLEANUP) => {}
        Some(list) => list.push(json!(CLEANUP)),
        None => *finalizers = json!([CLEANUP]),
    }
}

/// Makes the table of kinds what the definitions say. What is left of a kind whose definition is gone
/// goes with it, and its watches end.
pub(super) async fn after_write(api: &Api, ask: &Ask) {
    if !is_definition(ask) {
        return;
    }
    for storage in api.define() {
        if let Err(error) = api.store.drop_storage(&storage).await {
            tracing::warn!(storage, %error, "the objects of a definition that is gone are kept");
        }
    }
}
