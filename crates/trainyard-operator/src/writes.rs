//! Single writes: what is sent, and what its answer means.
//!
//! An answer goes into the cache at once. A write that turns out to be done already, by ourselves
//! in an earlier life or by somebody else, counts as done. Must not know in which order writes go
//! out nor when they are tried again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use trainyard_api::Meta;
use trainyard_core::{Child, Create, Delete, Patch, Write};

use crate::{
    beside::{is_labelled, remedy},
    cache::Object,
    calls::{Call, CallError, Calls, Turn, Verb},
    kind::JobKind,
    shared::{Pick, Shared},
};

/// What a failed write means for the job, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Then {
    /// What was planned for has changed meanwhile: plan again.
    Conflict,
    /// Try again.
    Retry,
    /// It will never work as the job is.
    Never,
    /// The job does not exist any more.
    Gone,
}

/// Why a write failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One word for logs and metric labels.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    pub(crate) at_least: Duration,
    /// It may have been done all the same.
    pub(crate) in_doubt: bool,
    pub(crate) then: Then,
}

impl Failure {
    fn new(error: &CallError, then: Then) -> Self {
        Self {
            kind: error.kind(),
            text: error.to_string(),
            at_least: error.retry_after().unwrap_or_default(),
            in_doubt: error.in_doubt(),
            then,
        }
    }

    /// Returns true if the API server has looked at the object and does not want it, or its name is taken. The
    /// object's specification may be at fault, or something around it that can change.
    pub(crate) fn is_a_refusal(&self) -> bool {
        match self.kind {
            "invalid" | "refused" | "forbidden" | "not_found" | "name_taken" => true,
            "server" => self.is_by_policy(),
            _ => false,
        }
    }

    /// Returns true if the object as it is can never be created. What a webhook or a policy refuses today it
    /// may let pass tomorrow.
    pub(crate) fn is_for_good(&self) -> bool {
        matches!(self.kind, "invalid" | "refused") && !self.is_by_policy()
    }

    /// Returns true if a webhook or a policy of the cluster refused, with whatever code it likes, or could
    /// not be asked.
    fn is_by_policy(&self) -> bool {
        self.text.contains("admission webhook")
            || self.text.contains("failed calling webhook")
            || self.text.contains("ValidatingAdmissionPolicy")
    }

    /// Whether the next write of the same kind would fail likewise.
    pub(crate) fn is_general(&self) -> bool {
        matches!(self.kind, "timeout" | "connection" | "throttled" | "server" | "forbidden")
    }
}

/// The job that is written for.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The version that the next write of the status replaces.
    pub(crate) version: String,
}

/// Carries out writes, so many at a time.
pub(crate) struct Writes<K: JobKind> {
    calls: Calls,
    shared: Arc<Shared<K>>,
    slots: Arc<Semaphore>,
}

impl<K: JobKind> Writes<K> {
    pub(crate) fn new(calls: Calls, shared: Arc<Shared<K>>, slots: Arc<Semaphore>) -> Self {
        Self { calls, shared, slots }
    }

    /// Carries out one write. A status that was written gives back the job's new version.
    pub(crate) async fn carry_out(
        &self,
        target: &Target,
        write: &Write,
    ) -> Result<Option<String>, Failure> {
        let _slot = self.slots.acquire().await;
        match write {
            Write::Create(child, create) => self.create(target, *child, create).await,
            Write::Patch(child, patch) => self.patch(target, *child, patch).await,
            Write::Delete(child, delete) => self.delete(target, *child, delete).await,
            Write::PatchStatus { patch, .. } => {
                return self.patch_status(target, patch).await.map(Some);
            }
            Write::DeleteJob(delete) => self.delete_job(target, delete).await,
        }
        .map(|()| None)
    }

    async fn create(&self, target: &Target, child: Child, create: &Create) -> Result<(), Failure> {
        let call = call(Verb::Create, child.resource(), path(target, child), &create.body);
        let error = match self.calls.send(call).await {
            Ok(answer) => return self.keep(child, &answer),
            Err(error) => error,
        };
        if error.refusal().is_some_and(|refusal| refusal.reason == "AlreadyExists") {
            return self.meet(target, child, &create.name).await;
        }
        Err(unserved(child, &error))
    }

    /// Somebody has made an object of that name. If it was us, all is well.
    async fn meet(&self, target: &Target, child: Child, name: &str) -> Result<(), Failure> {
        let resource = child.resource();
        let call = Call {
            verb: Verb::Get,
            resource,
            path: format!("{}/{name}", path(target, child)),
            body: Vec::new(),
            turn: Turn::Usual,
        };
        let answer =
            self.calls.send(call).await.map_err(|error| Failure::new(&error, Then::Retry))?;
        let found: Found = read(&answer)?;
        let meta = found.metadata;
        let is_watched = !is_labelled(child) || K::SELECTOR.finds(&meta.labels);
        let is_ours = meta.controller_uid() == Some(&target.uid);
        if is_ours && is_watched {
            return self.keep(child, &answer);
        }
        let text = if is_ours {
            let label = K::SELECTOR;
            format!(
                "{resource} {name:?} already exists without the label {label}, by which \
                 it is watched; put the label back or delete it"
            )
        } else {
            let owner = meta.owner_references.iter().find(|owner| owner.controller == Some(true));
            let owner = owner.map_or_else(
                || "nobody".to_owned(),
                |owner| format!("{}/{}", owner.kind, owner.name),
            );
            format!(
                "{resource} {name:?} already exists and is controlled by {owner}; waiting for it \
                 to go away"
            )
        };
        let (job, uid) = (&target.name, &target.uid);
        tracing::warn!(job = %format_args!("{}/{job}", target.namespace), uid, "{text}");
        Err(Failure {
            kind: "name_taken",
            text,
            at_least: Duration::ZERO,
            in_doubt: false,
            then: Then::Retry,
        })
    }

    /// Changes an object if it is still the one that was planned for.
    async fn patch(&self, target: &Target, child: Child, patch: &Patch) -> Result<(), Failure> {
        let mut body = patch.body.clone();
        if let Some(fields) = body.as_object_mut() {
            let meta = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("uid".to_owned(), Value::String(patch.uid.clone()));
            }
        }
        let url = format!("{}/{}", path(target, child), patch.name);
        let error = match self.calls.send(call(Verb::Patch, child.resource(), url, &body)).await {
            Ok(answer) => return self.keep(child, &answer),
            Err(error) => error,
        };
        if means_gone(&error) {
            self.forget(child, &patch.uid);
            return Err(Failure::new(&error, Then::Conflict));
        }
        if error.code() == 409 {
            return Err(Failure::new(&error, Then::Conflict));
        }
        Err(unserved(child, &error))
    }

    async fn delete(&self, target: &Target, child: Child, delete: &Delete) -> Result<(), Failure> {
        let path = format!("{}/{}", path(target, child), delete.name);
        let call = call(Verb::Delete, child.resource(), path, &DeleteOptions::of(delete));
        match self.calls.send(call).await {
            Ok(answer) if !is_gone(&answer) => return self.keep(child, &answer),
            Ok(_) => {}
            Err(error) if means_gone(&error) => {}
            Err(error) => return Err(Failure::new(&error, Then::Retry)),
        }
        self.forget(child, &delete.uid);
        Ok(())
    }

    /// Holds the object that an answer tells of.
    fn keep(&self, child: Child, answer: &Bytes) -> Result<(), Failure> {
        match child {
            Child::Pod => self.keep_in(|cache| &mut cache.pods, answer),
            Child::Service => self.keep_in(|cache| &mut cache.services, answer),
            Child::ConfigMap => self.keep_in(|cache| &mut cache.config_maps, answer),
            Child::NetworkPolicy => self.keep_in(|cache| &mut cache.policies, answer),
            Child::Claim => self.keep_in(|cache| &mut cache.claims, answer),
            Child::PodGroup | Child::PluginsPodGroup => {
                self.keep_in(|cache| &mut cache.groups, answer)
            }
            Child::Command => self.keep_in(|cache| &mut cache.commands, answer),
        }
    }

    fn keep_in<T>(&self, store: Pick<K::Job, T>, answer: &Bytes) -> Result<(), Failure>
    where
        T: Object + DeserializeOwned,
    {
        let object: T = read(answer)?;
        store(&mut self.shared.cache()).own(object);
        Ok(())
    }

    /// An answer told that an object is gone.
    fn forget(&self, child: Child, uid: &str) {
        let mut cache = self.shared.cache();
        match child {
            Child::Pod => drop(cache.pods.own_gone(uid)),
            Child::Service => drop(cache.services.own_gone(uid)),
            Child::ConfigMap => drop(cache.config_maps.own_gone(uid)),
            Child::NetworkPolicy => drop(cache.policies.own_gone(uid)),
            Child::Claim => drop(cache.claims.own_gone(uid)),
            Child::PodGroup | Child::PluginsPodGroup => drop(cache.groups.own_gone(uid)),
            Child::Command => drop(cache.commands.own_gone(uid)),
        }
    }

    async fn delete_job(&self, target: &Target, delete: &Delete) -> Result<(), Failure> {
        let path = job_path::<K>(target);
        let call = call(Verb::Delete, K::RESOURCE, path, &DeleteOptions::of(delete));
        match self.calls.send(call).await {
            Ok(answer) if !is_gone(&answer) => {
                let job: K::Job = read(&answer)?;
                self.shared.cache().jobs.own(job);
                Ok(())
            }
            Ok(_) => {
                self.shared.own_job_gone(&delete.uid);
                Ok(())
            }
            Err(error) if means_gone(&error) => {
                self.shared.own_job_gone(&delete.uid);
                Ok(())
            }
            Err(error) => Err(Failure::new(&error, Then::Retry)),
        }
    }

    async fn patch_status(&self, target: &Target, patch: &Value) -> Result<String, Failure> {
        let url = format!("{}/status", job_path::<K>(target));
        let body = StatusPatch {
            metadata: PatchMeta { uid: &target.uid, resource_version: &target.version },
            status: patch,
        };
        let error = match self.calls.send(call(Verb::Patch, K::STATUS, url, &body)).await {
            Ok(answer) => {
                let job: K::Job = read(&answer)?;
                let version = K::meta(&job).resource_version.clone();
                self.shared.cache().jobs.own(job);
                return Ok(version);
            }
            Err(error) => error,
        };
        let then = match error.code() {
            409 => Then::Conflict,
            404 if means_gone(&error) => {
                self.shared.own_job_gone(&target.uid);
                Then::Gone
            }
            422 => Then::Never,
            _ => Then::Retry,
        };
        let mut failure = Failure::new(&error, then);
        if error.code() == 404 && then == Then::Retry {
            failure.text = format!("the status of {} is not served; {}", K::RESOURCE, K::REMEDY);
        }
        Err(failure)
    }
}

/// Where objects of a kind are, in the job's namespace.
fn path(target: &Target, child: Child) -> String {
    format!("{}/namespaces/{}/{}", child.prefix(), target.namespace, child.resource())
}

/// A failure that says what to do if the kind itself is not known.
fn unserved(child: Child, error: &CallError) -> Failure {
    let mut failure = Failure::new(error, Then::Retry);
    if error.code() == 404 && !means_gone(error) {
        failure.text = format!("{} is not served; {}", child.kind(), remedy(child));
    }
    failure
}

fn job_path<K: JobKind>(target: &Target) -> String {
    let (namespace, name) = (&target.namespace, &target.name);
    format!("/apis/{}/namespaces/{namespace}/{}/{name}", K::API_VERSION, K::RESOURCE)
}

fn call(verb: Verb, resource: &'static str, path: String, body: &impl Serialize) -> Call {
    // JSON values and text always become JSON.
    let body = serde_json::to_vec(body).unwrap_or_default();
    Call { verb, resource, path, body, turn: Turn::Usual }
}

/// Reads an answer. If it cannot be read the write was done, but we do not know with what result.
fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer)
        .map_err(|error| Failure::new(&CallError::Answer(error.to_string()), Then::Retry))
}

/// Whether the answer to a deletion says that the object is gone and not merely ending.
fn is_gone(answer: &[u8]) -> bool {
    let Ok(found) = serde_json::from_slice::<Deleted>(answer) else { return false };
    let ends_now = found.metadata.deletion_grace_period_seconds == Some(0);
    found.kind == "Status"
        || found.metadata.deletion_timestamp.is_none()
        || (ends_now && found.metadata.finalizers.is_empty())
}

/// Whether a refusal says that the object of that identity does not exist.
fn means_gone(error: &CallError) -> bool {
    error.refusal().is_some_and(|refusal| match refusal.code {
        // Without a name it is the path that is not known.
        404 => !refusal.name.is_empty(),
        409 => refusal.message.to_ascii_lowercase().contains("uid"),
        _ => false,
    })
}

#[derive(Deserialize)]
struct Found {
    metadata: Meta,
}

#[derive(Deserialize)]
struct Deleted {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: DeletedMeta,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeletedMeta {
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions<'a> {
    api_version: &'static str,
    kind: &'static str,
    preconditions: Preconditions<'a>,
    propagation_policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<i64>,
}

#[derive(Serialize)]
struct Preconditions<'a> {
    uid: &'a str,
}

impl<'a> DeleteOptions<'a> {
    fn of(delete: &'a Delete) -> Self {
        Self {
            api_version: "v1",
            kind: "DeleteOptions",
            preconditions: Preconditions { uid: &delete.uid },
            propagation_policy: "Background",
            grace_period_seconds: delete.grace_seconds,
        }
    }
}

#[derive(Serialize)]
struct StatusPatch<'a> {
    metadata: PatchMeta<'a>,
    status: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchMeta<'a> {
    uid: &'a str,
    resource_version: &'a str,
}

#[cfg(test)]
#[path = "writes_tests.rs"]
mod tests;
