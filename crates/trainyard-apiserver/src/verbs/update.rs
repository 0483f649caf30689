//! Replacing an object, and what replacing and patching have in common.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{Ask, create, definitions, read, write};
use crate::answer::Body;
use crate::api::Api;
use crate::failure::Failure;
use crate::http::escalation;
use crate::http::nodes::restriction::{self, Deed};
use crate::kind::Part;
use crate::kinds::pod_security;
use crate::object::Object;
use crate::store::{Change, Expect};

/// A write that meets another one is done again, so often.
pub(super) const TRIES: usize = 8;

/// Kinds that a `PUT` creates where there is none.
const CREATED_BY_PUT: [&str; 10] = [
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "runtimeclasses.node.k8s.io",
    "leases.coordination.k8s.io",
    "limitranges",
    "events",
    "services",
    "endpoints",
];

/// Built-in kinds whose update must say which revision it replaces, as custom resources' must.
const CONDITIONAL: [&str; 3] =
    ["leases.coordination.k8s.io", "poddisruptionbudgets.policy", "runtimeclasses.node.k8s.io"];

/// Replaces an object.
pub(super) async fn replace(
    api: &Api,
    ask: &Ask,
    name: &str,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    let dry = ask.dry_run()?;
    let mut incoming = write::incoming(ask, body)?;
    same_name(name, &incoming.object)?;
    create::place(ask, &mut incoming.object)?;
    for _ in 1..TRIES {
        let said = &incoming.object["metadata"]["resourceVersion"];
        let is_for_any = said.as_str().is_none_or(str::is_empty);
        match replace_once(api, ask, name, incoming.clone(), dry).await {
            // Someone else wrote in between what was to be replaced in any case.
            Err(failure) if is_for_any && failure.reason == "Conflict" => {}
            other => return other,
        }
    }
    replace_once(api, ask, name, incoming, dry).await
}

async fn replace_once(
    api: &Api,
    ask: &Ask,
    name: &str,
    incoming: write::Incoming,
    dry: bool,
) -> Result<Response<Body>, Failure> {
    let old = match read::find(api, ask, name) {
        Ok(old) => old,
        Err(missing) => {
            let creates = CREATED_BY_PUT.contains(&ask.target.kind.storage.as_str());
            if !creates || ask.target.subresource.is_some() {
                return Err(missing);
            }
            let (stored, warnings) = create::store_new(api, ask, incoming, dry).await?;
            return Ok(write::answer(api, ask, 201, &stored, &warnings));
        }
    };
    said_uid(ask, &incoming.object, &old)?;
    check_revision(ask, name, &incoming.object, &old)?;
    let (stored, warnings) = change(api, ask, &old, incoming, dry).await?;
    Ok(write::answer(api, ask, 200, &stored, &warnings))
}

/// The name in the object is the one in the path.
pub(super) fn same_name(name: &str, object: &Value) -> Result<(), Failure> {
    let said = object["metadata"]["name"].as_str().unwrap_or_default();
    if said.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if said != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// The revision that a write says it replaces is the present one.
fn check_revision(ask: &Ask, name: &str, object: &Value, old: &Object) -> Result<(), Failure> {
    let said = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if said.is_empty() {
        let storage = ask.target.kind.storage.as_str();
        if ask.target.kind.defined || CONDITIONAL.contains(&storage) {
            let words = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", 0, words);
            return Err(Failure::invalid(ask.target.about(name), &[error]));
        }
        return Ok(());
    }
    if said != old.revision.to_string() {
        return Err(Failure::stale(ask.target.about(name)));
    }
    Ok(())
}

/// What was to be written, and what it replaces.
pub(super) async fn change(
    api: &Api,
    ask: &Ask,
    old: &Object,
    incoming: write::Incoming,
    dry: bool,
) -> Result<(Object, Vec<String>), Failure> {
    let part =
        if ask.target.subresource.as_deref() == Some("status") { Part::Status } else { Part::Main };
    let write::Incoming { mut object, mut warnings } = incoming;
    let before = old.value();
    keep_metadata(&mut object, &before);
    ask.target.kind.rules.prepare_update(&mut object, &before, part);
    let kind = &ask.target.kind;
    let described = (kind.group.as_str(), kind.plural.as_str());
    let deed = Deed::Update(&object, &before, part == Part::Status);
    restriction::check(api, &ask.caller, kind, deed)?;
    escalation::check(api, &ask.caller, described, &object, Some(&before))?;
    let _alone = api.alone(kind, &object).await;
    ask.target.kind.rules.admit_update(&mut object, &before, part, api)?;
    definitions::before_update(api, ask, &mut object, &before);
    write::check_change(ask, &object, &before, part)?;
    warnings.extend(ask.target.kind.rules.warnings(&object));
    if part == Part::Main {
        let write = pod_security::Write { kind, object: &object, before: Some(&before) };
        warnings.extend(pod_security::admit(&write, api)?);
    }
    let draft = write::draft(ask, &object)?;
    if draft.clone().at(old.revision).text == old.text {
        return Ok((old.clone(), warnings));
    }
    if dry {
        return Ok((draft.at(old.revision).into(), warnings));
    }
    let expect = Expect::Revision(old.revision);
    if is_finished(&object) {
        // What goes by this is shown as it would have been, at the revision it had.
        let shown = draft.clone().at(old.revision).into();
        write::commit(api, ask, &object, expect, Change::Delete(draft)).await?;
        return Ok((shown, warnings));
    }
    let stored = write::commit(api, ask, &object, expect, Change::Put(draft)).await?;
    Ok((stored, warnings))
}

/// A write that names another identity is about an object that is gone.
fn said_uid(ask: &Ask, object: &Value, old: &Object) -> Result<(), Failure> {
    let said = object["metadata"]["uid"].as_str().unwrap_or_default();
    let is = &*old.meta.uid;
    if said.is_empty() || said == is {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(Failure::conflict(
        ask.target.about(name),
        &format!("Precondition failed: UID in precondition: {said}, UID in object meta: {is}"),
    ))
}

/// What only the server says.
fn keep_metadata(object: &mut Value, before: &Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let before = &before["metadata"];
    let mut keep = |key: &str| match &before[key] {
        Value::Null => metadata.remove(key),
        kept => metadata.insert(key.to_owned(), kept.clone()),
    };
    for key in ["creationTimestamp", "generation", "namespace"] {
        keep(key);
    }
    // The rest may be repeated, and is refused when it is said otherwise.
    if before["deletionTimestamp"].is_string() {
        keep("deletionTimestamp");
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        if metadata.get(key).is_none_or(|said| said.is_null() || said == "") {
            match &before[key] {
                Value::Null => metadata.remove(key),
                kept => metadata.insert(key.to_owned(), kept.clone()),
            };
        }
    }
    metadata.insert("resourceVersion".to_owned(), json!(""));
    // A name once generated keeps telling so.
    if let (None, Some(prefix)) = (metadata.get("generateName"), before.get("generateName")) {
        metadata.insert("generateName".to_owned(), prefix.clone());
    }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether nothing holds an object any more that was to be deleted.
pub(super) fn is_finished(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["deletionTimestamp"].is_string()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && texts(&metadata["finalizers"]).is_empty()
        && texts(&object["spec"]["finalizers"]).is_empty()
}
