//! Single writes: what is sent, and what its answer means.
//!
//! An answer goes into the cache at once. A write that turns out to be done already, by ourselves
//! in an earlier life or by somebody else, counts as done. Must not know in which order writes go
//! out nor when they are tried again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::Semaphore;
use trainyard_api::Meta;
use trainyard_core::{Create, Delete, PodView, ServiceView, Write};

use crate::{
    cache::{Cache, Object, Store},
    calls::{Call, CallError, Calls, Turn, Verb},
    kind::JobKind,
    shared::Shared,
};

/// What a failed write means for the job, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Then {
    /// The job has changed meanwhile: plan again.
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

/// The kinds of object that belong to a job.
trait Child: Object + DeserializeOwned + Sized {
    const RESOURCE: &'static str;
    fn store<J>(cache: &mut Cache<J>) -> &mut Store<Self>;
}

impl Child for PodView {
    const RESOURCE: &'static str = "pods";

    fn store<J>(cache: &mut Cache<J>) -> &mut Store<Self> {
        &mut cache.pods
    }
}

impl Child for ServiceView {
    const RESOURCE: &'static str = "services";

    fn store<J>(cache: &mut Cache<J>) -> &mut Store<Self> {
        &mut cache.services
    }
}

/// Carries out writes, so many at a time.
pub(crate) struct Writes<K: JobKind> {
    calls: Calls,
    shared: Arc<Shared<K>>,
    slots: Semaphore,
}

impl<K: JobKind> Writes<K> {
    pub(crate) fn new(calls: Calls, shared: Arc<Shared<K>>, at_a_time: usize) -> Self {
        Self { calls, shared, slots: Semaphore::new(at_a_time.max(1)) }
    }

    /// Carries out one write. A status that was written gives back the job's new version.
    pub(crate) async fn carry_out(
        &self,
        target: &Target,
        write: &Write,
    ) -> Result<Option<String>, Failure> {
        let _slot = self.slots.acquire().await;
        match write {
            Write::CreatePod(create) => self.create::<PodView>(target, create).await,
            Write::CreateService(create) => self.create::<ServiceView>(target, create).await,
            Write::DeletePod(delete) => self.delete::<PodView>(target, delete).await,
            Write::DeleteService(delete) => self.delete::<ServiceView>(target, delete).await,
            Write::PatchStatus { patch, .. } => {
                return self.patch_status(target, patch).await.map(Some);
            }
            Write::DeleteJob(delete) => self.delete_job(target, delete).await,
        }
        .map(|()| None)
    }

    async fn create<C: Child>(&self, target: &Target, create: &Create) -> Result<(), Failure> {
        let path = format!("/api/v1/namespaces/{}/{}", target.namespace, C::RESOURCE);
        let call = call(Verb::Create, C::RESOURCE, path, &create.body);
        let error = match self.calls.send(call).await {
            Ok(answer) => return self.keep::<C>(&answer),
            Err(error) => error,
        };
        if error.refusal().is_some_and(|refusal| refusal.reason == "AlreadyExists") {
            return self.meet::<C>(target, &create.name).await;
        }
        Err(Failure::new(&error, Then::Retry))
    }

    /// Somebody has made an object of that name. If it was us, all is well.
    async fn meet<C: Child>(&self, target: &Target, name: &str) -> Result<(), Failure> {
        let path = format!("/api/v1/namespaces/{}/{}/{name}", target.namespace, C::RESOURCE);
        let call = Call {
            verb: Verb::Get,
            resource: C::RESOURCE,
            path,
            body: Vec::new(),
            turn: Turn::Usual,
        };
        let answer =
            self.calls.send(call).await.map_err(|error| Failure::new(&error, Then::Retry))?;
        let found: Found = read(&answer)?;
        let meta = found.metadata;
        let (label, value) = K::LABEL;
        let is_labelled = meta.labels.get(label).is_some_and(|found| found == value);
        let is_ours = meta.controller_uid() == Some(&target.uid);
        if is_ours && is_labelled {
            return self.keep::<C>(&answer);
        }
        let resource = C::RESOURCE;
        let text = if is_ours {
            format!(
                "{resource} {name:?} already exists without the label {label}={value}, by which \
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

    fn keep<C: Child>(&self, answer: &Bytes) -> Result<(), Failure> {
        let object: C = read(answer)?;
        C::store(&mut self.shared.cache()).own(object);
        Ok(())
    }

    async fn delete<C: Child>(&self, target: &Target, delete: &Delete) -> Result<(), Failure> {
        let path =
            format!("/api/v1/namespaces/{}/{}/{}", target.namespace, C::RESOURCE, delete.name);
        let call = call(Verb::Delete, C::RESOURCE, path, &DeleteOptions::of(delete));
        match self.calls.send(call).await {
            Ok(answer) if !is_gone(&answer) => self.keep::<C>(&answer),
            Ok(_) => {
                C::store(&mut self.shared.cache()).own_gone(&delete.uid);
                Ok(())
            }
            Err(error) if means_gone(&error) => {
                C::store(&mut self.shared.cache()).own_gone(&delete.uid);
                Ok(())
            }
            Err(error) => Err(Failure::new(&error, Then::Retry)),
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
