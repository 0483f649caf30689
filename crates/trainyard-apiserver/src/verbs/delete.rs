//! Deleting an object: at once, after a grace period, or when the last finalizer is gone.

use bytes::Bytes;
use http::Response;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::options::{DeleteOptions, Propagation};
use super::{Ask, definitions, read, update, write};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::clock;
use crate::failure::Failure;
use crate::http::nodes;
use crate::http::nodes::restriction::{self, Deed};
use crate::kind::Grace;
use crate::kinds::admission;
use crate::object::{Draft, Object};
use crate::store::{Change, CommitError, Expect, Key};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// A deletion that meets another write is tried again, so often.
const TRIES: usize = 8;

/// Kinds whose deletion is answered with the object instead of a word of success.
const SHOWN: [&str; 10] = [
    "pods",
    "services",
    "serviceaccounts",
    "namespaces",
    "persistentvolumes",
    "persistentvolumeclaims",
    "resourcequotas",
    "podtemplates",
    "storageclasses.storage.k8s.io",
    "csidrivers.storage.k8s.io",
];

/// What became of an object.
pub(super) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Object),
    /// It waits for its kubelet or its finalizers.
    Marked(Object),
}

/// Deletes an object.
pub(super) async fn delete(
    api: &Api,
    ask: &Ask,
    name: &str,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    let options = DeleteOptions::read(ask, body)?;
    let deleted = remove(api, ask, name, &options).await?;
    let mut response = match deleted {
        Deleted::Gone(last) if !SHOWN.contains(&ask.target.kind.storage.as_str()) => {
            answer::success(200, Some((&ask.target.about(name), &last.meta.uid)))
        }
        Deleted::Gone(object) | Deleted::Marked(object) => {
            write::answer(api, ask, 200, &object, &[])
        }
    };
    warn_of_orphans(ask, &options, &mut response);
    Ok(response)
}

/// Warns those who did not say what is to become of dependents that stay.
pub(super) fn warn_of_orphans(ask: &Ask, options: &DeleteOptions, response: &mut Response<Body>) {
    let words = ask.target.kind.rules.leaves_dependents();
    if let Some(words) = words.filter(|_| options.propagation.is_none()) {
        answer::warn(response, &[words.to_owned()]);
    }
}

/// Deletes an object, trying again when it is written in between.
pub(super) async fn remove(
    api: &Api,
    ask: &Ask,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Failure> {
    admission::delete(&ask.target.kind, name)?;
    let mut own: Option<Object> = None;
    for _ in 0..TRIES {
        let old = match (read::find(api, ask, name), own.clone()) {
            // What was marked to go at once may be taken by another who saw that, and what has its name
            // by then is another.
            (Err(_), Some(marked)) => return Ok(Deleted::Gone(marked)),
            (Ok(next), Some(marked)) if next.meta.uid != marked.meta.uid => {
                return Ok(Deleted::Gone(marked));
            }
            // What this deletion itself wrote is still what it is about.
            (Ok(old), Some(marked)) if old.revision == marked.revision => old,
            (found, _) => {
                let old = found?;
                if nodes::node(&ask.caller).is_some() {
                    let there = old.value();
                    let deed = Deed::Delete(&there);
                    restriction::check(api, &ask.caller, &ask.target.kind, deed)?;
                }
                check(ask, name, &old, options)?;
                old
            }
        };
        let mut object = old.value();
        let step = step(api, ask, &mut object, options);
        let draft = write::draft(ask, &object)?;
        let change = match step {
            Step::Mark if options.dry => {
                return Ok(Deleted::Marked(draft.at(old.revision).into()));
            }
            _ if options.dry => return Ok(Deleted::Gone(old)),
            Step::Pending => return Ok(Deleted::Marked(old)),
            Step::Mark if draft.clone().at(old.revision).text == old.text => {
                return Ok(Deleted::Marked(old));
            }
            Step::Mark => Change::Put(draft),
            // Whoever watches sees that it ends before it is gone.
            Step::Remove if was_given_grace(&object, &old) => {
                let key = write::key(ask, &object);
                let expect = Expect::Revision(old.revision);
                match api.store.commit(key, expect, Change::Put(draft)).await {
                    Ok(marked) => {
                        own = Some(marked);
                        continue;
                    }
                    Err(CommitError::Changed(_)) => continue,
                    Err(error) => return Err(write::refused(ask, name, &error)),
                }
            }
            Step::Remove => Change::Delete(draft),
        };
        let gone = matches!(change, Change::Delete(_));
        let key = write::key(ask, &object);
        match api.store.commit(key, Expect::Revision(old.revision), change).await {
            Ok(stored) => {
                definitions::after_write(api, ask).await;
                if gone {
                    with_service(api, ask, name).await;
                }
                return Ok(if gone { Deleted::Gone(stored) } else { Deleted::Marked(stored) });
            }
            // Looked up once more, one that is missing is known as gone by whoever has marked it.
            Err(CommitError::Changed(_) | CommitError::Missing) => {}
            Err(error) => return Err(write::refused(ask, name, &error)),
        }
    }
    Err(Failure::stale(ask.target.about(name)))
}

/// Whether an object got its last grace, of none at all, by this very deletion.
fn was_given_grace(object: &Value, old: &Object) -> bool {
    let before = &old.value()["metadata"];
    let now = &object["metadata"];
    now["deletionTimestamp"].is_string()
        && (before["deletionTimestamp"].is_null()
            || now["deletionGracePeriodSeconds"] != before["deletionGracePeriodSeconds"])
}

/// A service takes the endpoints of its name with it.
async fn with_service(api: &Api, ask: &Ask, name: &str) {
    if ask.target.kind.storage != "services" {
        return;
    }
    let namespace = ask.target.namespace.as_str();
    let Some(endpoints) = api.store.get("endpoints", namespace, name) else { return };
    let value = endpoints.value();
    let empty = serde_json::Map::new();
    let members = value.as_object().unwrap_or(&empty);
    let last = Draft::of("v1", "Endpoints", members, Box::default());
    let key = Key::new("endpoints", namespace, name);
    let expect = Expect::Revision(endpoints.revision);
    // Whoever wrote in between is their owner now.
    if let Err(error) = api.store.commit(key, expect, Change::Delete(last)).await {
        tracing::debug!(%error, "the endpoints of a service stay");
    }
}

/// What a deletion relies on holds.
pub(super) fn check(
    ask: &Ask,
    name: &str,
    old: &Object,
    options: &DeleteOptions,
) -> Result<(), Failure> {
    let about = || crate::failure::About::new(&ask.target.kind.group, &ask.target.kind.kind, name);
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != &*old.meta.uid) {
        return Err(Failure::conflict(
            about(),
            &format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                old.meta.uid
            ),
        ));
    }
    let revision = old.revision.to_string();
    if let Some(said) = options.resource_version.as_deref().filter(|said| *said != revision) {
        return Err(Failure::conflict(
            about(),
            &format!(
                "the ResourceVersion in the precondition ({said}) does not match the ResourceVersion in record ({revision}). The object might have been modified"
            ),
        ));
    }
    Ok(())
}

/// What a deletion does to an object.
enum Step {
    /// It goes.
    Remove,
    /// It is marked.
    Mark,
    /// It was marked before, and nothing becomes shorter by this.
    Pending,
}

fn step(api: &Api, ask: &Ask, object: &mut Value, options: &DeleteOptions) -> Step {
    let now = api.clock.now();
    let finalizers = set_finalizers(object, propagation(ask, object, options));
    definitions::before_delete(ask, object);
    let asked = options.grace.map(|n| if n < 0 { 1 } else { n });
    let grace = match ask.target.kind.rules.grace(object, asked) {
        // What nothing holds goes as it is.
        Grace::None if !is_held(object) => return Step::Remove,
        Grace::None => 0,
        Grace::Seconds(seconds) => seconds,
    };
    let marked = marked_seconds(object);
    match marked {
        Some(left) if left > 0 && grace >= left && !finalizers => return Step::Pending,
        Some(left) if left > 0 && grace < left => shorten(object, left, grace, now),
        None => {
            let generation = object["metadata"]["generation"].clone();
            mark(object, grace, now);
            if definitions::is_definition(ask) {
                object["metadata"]["generation"] = generation;
                definitions::begin_end(object, &clock::seconds(now));
            }
        }
        Some(_) => {}
    }
    let held_by_namespace = begin_namespace_end(ask, object);
    let has_own_end = held_by_namespace || definitions::is_definition(ask);
    if has_own_end && let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("deletionGracePeriodSeconds");
    }
    if update::is_finished(object) && !held_by_namespace { Step::Remove } else { Step::Mark }
}

/// Whether something must be done before an object goes.
fn is_held(object: &Value) -> bool {
    let some = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    some(&object["metadata"]["finalizers"]) || some(&object["spec"]["finalizers"])
}

/// How many seconds an object that is marked was given.
fn marked_seconds(object: &Value) -> Option<i64> {
    let metadata = &object["metadata"];
    metadata["deletionTimestamp"].as_str()?;
    Some(metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0))
}

fn mark(object: &mut Value, grace: i64, now: Timestamp) {
    let metadata = &mut object["metadata"];
    let at = now.checked_add(grace.seconds()).unwrap_or(now);
    metadata["deletionTimestamp"] = json!(clock::seconds(at));
    metadata["deletionGracePeriodSeconds"] = json!(grace);
    if let Some(generation) = metadata["generation"].as_i64().filter(|generation| *generation > 0) {
        metadata["generation"] = json!(generation + 1);
    }
}

/// A shorter grace period counts from when the deletion began.
fn shorten(object: &mut Value, left: i64, grace: i64, now: Timestamp) {
    let metadata = &mut object["metadata"];
    let was = metadata["deletionTimestamp"].as_str().and_then(|text| text.parse().ok());
    let at = was.and_then(|was: Timestamp| was.checked_sub((left - grace).seconds()).ok());
    let at = at.unwrap_or(now).max(now);
    metadata["deletionTimestamp"] = json!(clock::seconds(at));
    metadata["deletionGracePeriodSeconds"] = json!(grace);
}

/// What is to become of an object's dependents.
fn propagation(ask: &Ask, object: &Value, options: &DeleteOptions) -> Option<Propagation> {
    let leaves = ask.target.kind.rules.leaves_dependents().is_some();
    let decided = object["metadata"]["finalizers"].as_array().is_some_and(|all| {
        all.iter().any(|finalizer| finalizer == FOREGROUND || finalizer == ORPHAN)
    });
    options.propagation.or_else(|| (leaves && !decided).then_some(Propagation::Orphan))
}

/// Sets what the garbage collector is to do; whether that changed anything.
fn set_finalizers(object: &mut Value, propagation: Option<Propagation>) -> bool {
    let Some(propagation) = propagation else { return false };
    let metadata = &mut object["metadata"];
    let had: Vec<String> = metadata["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|finalizer| finalizer.as_str().map(str::to_owned))
        .collect();
    let mut has: Vec<String> = had
        .iter()
        .filter(|finalizer| *finalizer != ORPHAN && *finalizer != FOREGROUND)
        .cloned()
        .collect();
    match propagation {
        Propagation::Orphan => has.push(ORPHAN.to_owned()),
        Propagation::Foreground => has.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    let changed = had != has;
    if let (true, Some(metadata)) = (changed, metadata.as_object_mut()) {
        if has.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".to_owned(), json!(has));
        }
    }
    changed
}

/// A namespace is emptied before it goes.
fn begin_namespace_end(ask: &Ask, object: &mut Value) -> bool {
    if ask.target.kind.storage != "namespaces" {
        return false;
    }
    let held = object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    if held {
        object["status"]["phase"] = json!("Terminating");
    }
    held
}
