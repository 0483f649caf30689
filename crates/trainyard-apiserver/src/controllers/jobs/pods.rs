//! A job's pods: found, taken over and let go, made and removed.

use futures::future::join_all;
use serde_json::{Value, json};
use trainyard_schema::select::labels::Selector;

use super::view::{Job, Pod, TRACKING, controller};
use super::{Controller, selector, selects, template};
use crate::controllers::calls::{WHOLE, core, segment};
use crate::controllers::error::{Error, unless_missing};
use crate::controllers::events::Weight;
use crate::controllers::held;
use crate::controllers::view::Meta;

const PAGE: u32 = 500;

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Page {
    metadata: PageMeta,
    items: Vec<Pod>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct PageMeta {
    r#continue: String,
}

/// What came of work on several pods: how many were done, and what went wrong first.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) all: usize,
    /// Those among them that were ready.
    pub(super) ready: usize,
    pub(super) error: Option<Error>,
}

impl Controller {
    /// All pods of a job. Those that match its selector and have no owner become its own; those that
    /// no longer match are no longer.
    pub(super) async fn pods(&self, job: &Job) -> Result<Vec<Pod>, Error> {
        let selector = selector(&job.spec.selector);
        let mut pods = Vec::new();
        for mut pod in self.list(&job.metadata.namespace, &selector.to_string()).await? {
            let owner = controller(&pod.metadata).map(|owner| &*owner.uid);
            let is_free = owner.is_none()
                && !pod.metadata.is_deleting()
                && !job.metadata.is_deleting()
                && selects(&selector, &pod.metadata);
            if is_free && self.adopt(job, &pod.metadata).await? {
                if !pod.is_tracked() {
                    pod.metadata.finalizers.push(TRACKING.to_owned());
                }
                pods.push(pod);
            } else if owner == Some(&job.metadata.uid) {
                pods.push(pod);
            }
        }
        if !job.metadata.is_deleting() {
            self.part_with_others(job, &selector).await?;
        }
        Ok(pods)
    }

    async fn list(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        let selector = segment(selector);
        let mut pods = Vec::new();
        let mut after = String::new();
        loop {
            let mut path = core(namespace, "pods", "");
            path = format!("{path}?limit={PAGE}&labelSelector={selector}");
            if !after.is_empty() {
                path = format!("{path}&continue={}", segment(&after));
            }
            let page: Page = self.context.calls.read(&path, WHOLE).await?;
            pods.extend(page.items);
            if page.metadata.r#continue.is_empty() {
                return Ok(pods);
            }
            after = page.metadata.r#continue;
        }
    }

    /// Takes a pod over; false when it is gone.
    async fn adopt(&self, job: &Job, pod: &Meta) -> Result<bool, Error> {
        let owner = json!({"name": job.metadata.name, "uid": job.metadata.uid});
        let edit = json!({"metadata": {
            "uid": pod.uid, "ownerReferences": [template::owner(&owner)], "finalizers": [TRACKING],
        }});
        let path = core(&pod.namespace, "pods", &pod.name);
        let taken = unless_missing(self.context.calls.merge_parts(&path, &edit).await)?;
        Ok(taken.is_some())
    }

    /// Parts with pods whose labels no longer match.
    async fn part_with_others(&self, job: &Job, selector: &Selector) -> Result<(), Error> {
        let strangers: Vec<Meta> = {
            let known = held(&self.known);
            let ours = |pod: &Meta| {
                controller(pod).is_some_and(|owner| owner.uid == job.metadata.uid)
                    && !selects(selector, pod)
            };
            let pods = known.pods_of(&job.metadata.namespace).map(|(_, pod)| pod);
            pods.filter(|pod| ours(pod)).cloned().collect()
        };
        for pod in strangers {
            let edit = json!({"metadata": {
                "uid": pod.uid,
                "ownerReferences": [{"$patch": "delete", "uid": job.metadata.uid}],
                "$deleteFromPrimitiveList/finalizers": [TRACKING],
            }});
            let path = core(&pod.namespace, "pods", &pod.name);
            match self.context.calls.merge_parts(&path, &edit).await {
                // Gone, or another of the same name.
                Err(error) if matches!(error.code(), 404 | 409 | 422) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Makes pods: one, then two, then four, so that a job whose pods are refused asks once only.
    pub(super) async fn make(&self, job: &Job, object: &Value, indexes: &[Option<u32>]) -> Done {
        let mut done = Done::default();
        let (mut rest, mut width) = (indexes, 1);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(width.min(rest.len()));
            let made = now.iter().map(|index| self.make_one(job, object, *index));
            for result in join_all(made).await {
                match result {
                    Ok(()) => done.all += 1,
                    Err(error) => done.error = done.error.or(Some(error)),
                }
            }
            if done.error.is_some() {
                break;
            }
            (rest, width) = (later, width * 2);
        }
        // In a namespace that goes, nothing can be made, and nothing needs to be.
        done.error = done.error.filter(|error| !error.is_ending_namespace());
        done
    }

    async fn make_one(&self, job: &Job, object: &Value, index: Option<u32>) -> Result<(), Error> {
        let meta = &job.metadata;
        let pod = template::pod(object, index);
        match self.context.calls.create(&core(&meta.namespace, "pods", ""), &pod).await {
            Ok(made) => {
                let words = format!("Created pod: {}", made.name);
                self.tell(meta, Weight::Normal, "SuccessfulCreate", &words).await;
                Ok(())
            }
            Err(error) => {
                if !error.is_ending_namespace() {
                    let words = format!("Error creating: {}", error.words());
                    self.tell(meta, Weight::Warning, "FailedCreate", &words).await;
                }
                Err(error)
            }
        }
    }

    /// Removes pods; with `counted`, they stay until they have been counted.
    pub(super) async fn remove(&self, job: &Job, pods: &[&Pod], counted: bool) -> Done {
        let mut done = Done::default();
        for some in pods.chunks(PAGE as usize) {
            let removed = some.iter().map(|pod| self.remove_one(job, pod, counted));
            for (pod, result) in some.iter().zip(join_all(removed).await) {
                match result {
                    Ok(()) => {
                        done.all += 1;
                        done.ready += usize::from(pod.is_ready());
                    }
                    Err(error) => done.error = done.error.or(Some(error)),
                }
            }
        }
        done
    }

    async fn remove_one(&self, job: &Job, pod: &Pod, counted: bool) -> Result<(), Error> {
        let meta = &pod.metadata;
        if !counted && pod.is_tracked() && !self.let_go(meta).await? {
            return Ok(());
        }
        let path = core(&meta.namespace, "pods", &meta.name);
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": meta.uid},
        });
        match unless_missing(self.context.calls.delete(&path, &options).await) {
            Ok(Some(())) => {
                let words = format!("Deleted pod: {}", meta.name);
                self.tell(&job.metadata, Weight::Normal, "SuccessfulDelete", &words).await;
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => {
                let words = format!("Error deleting: {}", error.words());
                self.tell(&job.metadata, Weight::Warning, "FailedDelete", &words).await;
                Err(error)
            }
        }
    }

    /// Takes the finalizer off a pod; false when the pod is gone.
    pub(super) async fn let_go(&self, pod: &Meta) -> Result<bool, Error> {
        let edit = json!({"metadata": {
            "uid": pod.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING],
        }});
        let path = core(&pod.namespace, "pods", &pod.name);
        Ok(unless_missing(self.context.calls.merge_parts(&path, &edit).await)?.is_some())
    }
}
