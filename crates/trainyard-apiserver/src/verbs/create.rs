//! Creating an object.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::write::{self, Incoming};
use super::{Ask, definitions, reviews};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::Failure;
use crate::http::escalation;
use crate::http::nodes::restriction::{self, Deed};
use crate::kinds::{admission, pod_security};
use crate::names;
use crate::store::{Change, CommitError, Expect};

/// A generated name that is taken is made anew, so often.
const TRIES: usize = 8;

/// Creates an object.
pub(super) async fn create(api: &Api, ask: &Ask, body: &Bytes) -> Result<Response<Body>, Failure> {
    if ask.target.kind.namespaced && ask.target.namespace.is_empty() {
        return Err(super::not_allowed());
    }
    let dry = ask.dry_run()?;
    let incoming = write::incoming(ask, body)?;
    let (stored, warnings) = store_new(api, ask, incoming, dry).await?;
    Ok(write::answer(api, ask, 201, &stored, &warnings))
}

/// Answers to an object that is never stored.
pub(super) fn answer(api: &Api, ask: &Ask, body: &Bytes) -> Result<Response<Body>, Failure> {
    let object = write::incoming(ask, body)?.object;
    let answered = match reviews::answer(api, ask, &object)? {
        Some(answered) => answered,
        None => ask.target.kind.rules.answer(object, &ask.caller)?,
    };
    Ok(answer::value(201, &answered))
}

/// Completes, checks and stores a new object.
pub(super) async fn store_new(
    api: &Api,
    ask: &Ask,
    incoming: Incoming,
    dry: bool,
) -> Result<(crate::object::Object, Vec<String>), Failure> {
    let Incoming { mut object, mut warnings } = incoming;
    let kind = &ask.target.kind;
    place(ask, &mut object)?;
    admission::namespace(kind, &ask.target.namespace, &object, api)?;
    let prefix = generated_prefix(&object);
    if let Some(prefix) = &prefix {
        object["metadata"]["name"] = json!(names::generated(prefix));
    }
    restriction::check(api, &ask.caller, kind, Deed::Create(&object))?;
    escalation::check(api, &ask.caller, (&kind.group, &kind.plural), &object, None)?;
    let _alone = api.alone(kind, &object).await;
    kind.rules.admit(&mut object, api)?;
    complete(api, &mut object)?;
    kind.rules.prepare_create(&mut object);
    definitions::before_create(api, ask, &mut object);
    write::check_new(ask, &object)?;
    warnings.extend(kind.rules.warnings(&object));
    let write = pod_security::Write { kind, object: &object, before: None };
    warnings.extend(pod_security::admit(&write, api)?);
    if dry {
        let taken = api.store.get(&kind.storage, &ask.target.namespace, name_of(&object));
        return match taken {
            Some(_) => Err(Failure::already_exists(ask.target.about(name_of(&object)))),
            None => Ok((write::draft(ask, &object)?.unwritten().into(), warnings)),
        };
    }
    for _ in 1..TRIES {
        let draft = write::draft(ask, &object)?;
        let key = write::key(ask, &object);
        match (api.store.commit(key, Expect::Absent, Change::Put(draft)).await, &prefix) {
            (Ok(stored), _) => {
                definitions::after_write(api, ask).await;
                return Ok((stored, warnings));
            }
            (Err(CommitError::Exists(_)), Some(prefix)) => {
                object["metadata"]["name"] = json!(names::generated(prefix));
            }
            (Err(error), _) => return Err(write::refused(ask, name_of(&object), &error)),
        }
    }
    Err(Failure::already_exists(ask.target.about(name_of(&object))))
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The object is where the path says.
pub(super) fn place(ask: &Ask, object: &mut Value) -> Result<(), Failure> {
    let metadata = &mut object["metadata"];
    let said = metadata["namespace"].as_str().unwrap_or_default();
    if !ask.target.kind.namespaced {
        if !said.is_empty() {
            // The real server drops it without a word.
            metadata.as_object_mut().map(|metadata| metadata.remove("namespace"));
        }
        return Ok(());
    }
    if !said.is_empty() && said != ask.target.namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata["namespace"] = json!(ask.target.namespace);
    Ok(())
}

fn generated_prefix(object: &Value) -> Option<String> {
    let metadata = &object["metadata"];
    let named = metadata["name"].as_str().is_some_and(|name| !name.is_empty());
    let prefix = metadata["generateName"].as_str().filter(|prefix| !prefix.is_empty())?;
    (!named).then(|| prefix.to_owned())
}

/// What only the server says of a new object.
pub(super) fn complete(api: &Api, object: &mut Value) -> Result<(), Failure> {
    let Some(metadata) = object["metadata"].as_object_mut() else { return Ok(()) };
    if metadata.get("resourceVersion").and_then(Value::as_str).is_some_and(|rv| !rv.is_empty()) {
        return Err(Failure::unreasoned(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    for key in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.remove(key);
    }
    metadata.insert("uid".to_owned(), json!(names::uid()));
    metadata.insert("creationTimestamp".to_owned(), json!(api.clock.text()));
    Ok(())
}
