//! What a scenario gets: a namespace of its own, played kubelets, and ways to act and to wait.
//!
//! Must not know which server is behind the clients: the same scenarios run on any.

mod operators;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

pub use operators::{RunningOperator, quick_options};

use crate::kubelet::Kubelet;
use crate::rest::{Resource, Rest, is_missing};
use crate::seen::Seen;
use crate::view::View;

/// How long anything that must happen may take; a loaded machine is slow, not wrong.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than any interval at which the operator or the scheduler looks at what it keeps.
const SILENCE_MS: u64 = 5_000;
/// What is decided is written sooner, on a busy machine too.
const SETTLED_MS: u64 = 1_500;

/// The clients a scenario acts through.
#[derive(Clone)]
pub struct Clients {
    /// The person who submits jobs.
    pub user: Client,
    /// The played kubelets.
    pub kubelet: Client,
    /// The operators that a scenario starts itself.
    pub operator: Client,
    /// The schedulers that a scenario starts itself.
    pub scheduler: Client,
    /// Who holds it may use the server's leases of operators and schedulers.
    pub turn: Arc<Mutex<()>>,
}

/// One scenario's world.
#[derive(Clone)]
pub struct World {
    /// Its namespace.
    pub namespace: String,
    /// The person who submits jobs.
    pub rest: Rest,
    /// The played kubelets.
    pub kubelet: Kubelet,
    clients: Clients,
    view: View,
}

impl World {
    /// A world in a new namespace.
    pub async fn open(clients: &Clients, namespace: &str) -> Result<Self> {
        let rest = Rest::new(clients.user.clone(), namespace);
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        rest.send(Method::POST, "/api/v1/namespaces", Some(&object))
            .await
            .with_context(|| format!("creating namespace {namespace}"))?;
        Self::enter(clients, namespace).await
    }

    /// Waits until a controller has made the account that pods have.
    pub(crate) async fn has_its_account(&self) -> Result<()> {
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/default", self.namespace);
        for _ in 0..300 {
            match self.rest.send(Method::GET, &path, None).await {
                Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
                other => return Ok(other.map(drop)?),
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        anyhow::bail!("{} has no account", self.namespace)
    }

    /// A world in a namespace that is there.
    pub async fn enter(clients: &Clients, namespace: &str) -> Result<Self> {
        Self::enter_with(clients, namespace, &Resource::OF_TFJOBS).await
    }

    /// The same world, in which Volcano's kinds and all that belongs to them are looked at too.
    pub async fn widened(self) -> Result<Self> {
        Self::enter_with(&self.clients, &self.namespace, &Resource::ALL).await
    }

    async fn enter_with(
        clients: &Clients,
        namespace: &str,
        resources: &[Resource],
    ) -> Result<Self> {
        let rest = Rest::new(clients.user.clone(), namespace);
        let view = View::open(&rest, resources).await?;
        let kubelet = Kubelet::new(Rest::new(clients.kubelet.clone(), namespace), view.clone());
        let namespace = namespace.to_owned();
        Ok(Self { namespace, rest, kubelet, clients: clients.clone(), view })
    }

    /// The same people in another namespace that is there.
    pub async fn next_door(&self, namespace: &str) -> Result<Self> {
        Self::enter(&self.clients, namespace).await
    }

    /// Waits for the turn to use the leases of operators and schedulers, of which there is one each.
    pub async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.clients.turn).lock_owned().await
    }

    /// What is there now.
    #[must_use]
    pub fn seen(&self) -> Arc<Seen> {
        self.view.now()
    }

    /// What is there, kept current.
    pub(crate) fn view(&self) -> View {
        self.view.clone()
    }

    /// Submits a job.
    pub async fn submit(&self, job: impl Into<Value>) -> Result<Value> {
        let created = self
            .rest
            .create(Resource::Jobs, &job.into())
            .await
            .context("submitting a job that should be accepted")?;
        self.view.reach(Resource::Jobs, &created).await?;
        Ok(created)
    }

    /// Creates any other object of a resource.
    pub async fn create(&self, resource: Resource, object: &Value) -> Result<Value> {
        let created = self.rest.create(resource, object).await.context("creating an object")?;
        self.view.reach(resource, &created).await?;
        Ok(created)
    }

    /// Merges into the specification of a job.
    pub async fn patch_spec(&self, job: &str, spec: Value) -> Result<()> {
        let patch = json!({"spec": spec});
        let written = self
            .rest
            .merge(Resource::Jobs, job, &patch)
            .await
            .with_context(|| format!("editing job {job}"))?;
        self.view.reach(Resource::Jobs, &written).await
    }

    /// Merges into any object.
    pub async fn merge(&self, resource: Resource, name: &str, patch: &Value) -> Result<Value> {
        let written = self.rest.merge(resource, name, patch).await;
        let written = written.with_context(|| format!("editing {name}"))?;
        self.view.reach(resource, &written).await?;
        Ok(written)
    }

    /// Sets the number of replicas of a type.
    pub async fn set_replicas(&self, job: &str, kind: &str, count: i64) -> Result<()> {
        self.patch_spec(job, json!({"tfReplicaSpecs": {kind: {"replicas": count}}})).await
    }

    /// Sets the number of workers through the scale subresource.
    pub async fn scale(&self, job: &str, count: i64) -> Result<()> {
        let patch = json!({"spec": {"replicas": count}});
        self.rest
            .merge(Resource::Jobs, &format!("{job}/scale"), &patch)
            .await
            .with_context(|| format!("scaling job {job}"))?;
        Ok(())
    }

    /// Merges into the status of a job, as another operator would have left it.
    pub async fn patch_status(&self, job: &str, status: Value) -> Result<()> {
        let patch = json!({"status": status});
        let written = self
            .rest
            .merge(Resource::Jobs, &format!("{job}/status"), &patch)
            .await
            .with_context(|| format!("writing the status of job {job}"))?;
        self.view.reach(Resource::Jobs, &written).await
    }

    /// Deletes a job.
    pub async fn delete(&self, job: &str) -> Result<()> {
        let deleted = self.rest.delete(Resource::Jobs, job, None).await;
        deleted.with_context(|| format!("deleting job {job}"))?;
        Ok(())
    }

    /// Waits until it holds; the error tells what was there at the end.
    pub async fn wait_until(
        &self,
        what: &str,
        holds: impl Fn(&Seen) -> bool + Send,
    ) -> Result<Arc<Seen>> {
        let mut view = self.view.clone();
        let until = Instant::now() + PATIENCE;
        loop {
            let seen = view.now();
            if holds(&seen) {
                return Ok(seen);
            }
            drop(seen);
            let left = until.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, view.change()).await.is_err() {
                bail!("never came true: {what}; last seen:\n{}", view.now().story());
            }
        }
    }

    /// Fails when it comes true within that time.
    pub async fn never_within(
        &self,
        ms: u64,
        what: &str,
        holds: impl Fn(&Seen) -> bool + Send,
    ) -> Result<()> {
        let mut view = self.view.clone();
        let until = Instant::now() + Duration::from_millis(ms);
        loop {
            let seen = view.now();
            if holds(&seen) {
                bail!("came true and must not: {what}; seen:\n{}", seen.story());
            }
            drop(seen);
            let left = until.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, view.change()).await.is_err() {
                return Ok(());
            }
        }
    }

    /// Waits until nothing has been written in this world for more than a second: what was decided has been written.
    pub async fn settles(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let before = positions(&self.seen());
            let changes = |seen: &Seen| positions(seen) != before;
            if self.never_within(SETTLED_MS, "it goes on", changes).await.is_ok() {
                return Ok(());
            }
        }
        bail!("something is still written after {PATIENCE:?}; seen:\n{}", self.seen().story())
    }

    /// Fails when anything at all is written in this world for five seconds.
    pub async fn stays_silent(&self) -> Result<()> {
        let before = positions(&self.seen());
        let what = "something is written although all is done";
        self.never_within(SILENCE_MS, what, |seen| positions(seen) != before).await
    }

    /// Waits until a job has these conditions, in this order.
    pub async fn wait_conditions(&self, job: &str, wanted: &[&str]) -> Result<Arc<Seen>> {
        let what = format!("{job} has the conditions {wanted:?}");
        self.wait_until(&what, |seen| seen.conditions(job) == wanted).await
    }

    /// Waits until these and no other pods are there.
    pub async fn wait_pods(&self, wanted: &[&str]) -> Result<Arc<Seen>> {
        self.wait_until(&format!("the pods are {wanted:?}"), |seen| seen.pods() == wanted).await?;
        self.catch_up().await
    }

    /// Waits until these and no other services are there.
    pub async fn wait_services(&self, wanted: &[&str]) -> Result<Arc<Seen>> {
        let what = format!("the services are {wanted:?}");
        self.wait_until(&what, |seen| seen.services() == wanted).await?;
        self.catch_up().await
    }

    /// Waits until another pod of that name than the one with this UID is there.
    pub async fn wait_successor(&self, pod: &str, uid: &str) -> Result<Arc<Seen>> {
        let what = format!("pod {pod} has a successor");
        self.wait_until(&what, |seen| !seen.pod(pod).is_null() && seen.uid(pod) != uid).await?;
        self.catch_up().await
    }

    /// The watches of different resources run apart. After this, what the operator wrote about a
    /// job before it made the pods and services that are seen is seen as well.
    async fn catch_up(&self) -> Result<Arc<Seen>> {
        let seen = self.seen();
        for kind in [Resource::Jobs, Resource::VolcanoJobs] {
            for (name, _) in seen.all(kind) {
                match self.rest.get(kind, name).await {
                    Ok(job) => self.view.reach(kind, &job).await?,
                    Err(error) if is_missing(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(self.seen())
    }
}

fn positions(seen: &Seen) -> Vec<u64> {
    Resource::ALL.map(|resource| seen.position(resource)).to_vec()
}
