//! A scenario's world with Volcano Jobs in it: a played scheduler that lets every PodGroup in, and
//! ways to act on jobs.
//!
//! Must not know queues or nodes: those are the scheduler's, whose scenarios have a
//! [`Floor`](super::Floor).

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::rest::Resource;
use crate::seen::{Seen, terminating, text};
use crate::world::World;

/// A failed move is tried again after this pause.
const AGAIN: Duration = Duration::from_millis(20);

/// The world of a scenario with Volcano Jobs.
#[derive(Clone)]
pub(crate) struct Scene {
    world: World,
}

impl Deref for Scene {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// Lets every PodGroup in; stops when it is dropped.
#[must_use = "nobody is let in after this is dropped"]
pub(crate) struct Door {
    _task: JoinSet<()>,
}

impl Scene {
    /// A scene in a world.
    pub(crate) async fn open(world: World) -> Result<Self> {
        Ok(Self { world: world.widened().await? })
    }

    /// A scene in a world that is looked at widely already.
    pub(crate) const fn over(world: World) -> Self {
        Self { world }
    }

    /// The world of it, for jobs of other kinds.
    pub(crate) const fn world(&self) -> &World {
        &self.world
    }

    /// Lets every PodGroup in from now on.
    pub(crate) fn admit_all(&self) -> Door {
        let mut task = JoinSet::new();
        task.spawn(admit(self.clone()));
        Door { _task: task }
    }

    /// Writes the phase of a job's PodGroup, as a scheduler does.
    pub(crate) async fn set_group(&self, job: &str, phase: &str) -> Result<()> {
        let seen =
            self.wait_until("there is a PodGroup", |seen| !seen.vc(job).group().is_null()).await?;
        self.mark_group(&seen.vc(job).group_name(), json!({"phase": phase})).await
    }

    /// Merges into the status of a PodGroup.
    pub(crate) async fn mark_group(&self, group: &str, status: Value) -> Result<()> {
        self.merge(Resource::Groups, group, &json!({"status": status})).await.map(drop)
    }

    /// Submits a Volcano Job.
    pub(crate) async fn submit(&self, job: impl Into<Value>) -> Result<Value> {
        self.create(Resource::VolcanoJobs, &job.into()).await.context("submitting a Volcano Job")
    }

    /// Submits it and waits until it runs with so many pods, all of them running.
    pub(crate) async fn run(&self, job: impl Into<Value>, pods: i64) -> Result<Arc<Seen>> {
        self.submit(job).await?;
        self.runs("a", pods).await
    }

    /// Waits until a job runs with so many pods, all of them running.
    pub(crate) async fn runs(&self, job: &str, pods: i64) -> Result<Arc<Seen>> {
        let what = format!("{job} runs with {pods} pods");
        self.wait_until(&what, |seen| {
            seen.vc(job).phase() == "Running" && seen.vc(job).counts() == [0, pods, 0, 0, 0]
        })
        .await
    }

    /// Waits until a job is in a phase.
    pub(crate) async fn phase(&self, job: &str, phase: &str) -> Result<Arc<Seen>> {
        let what = format!("{job} is {phase}");
        self.wait_until(&what, |seen| seen.vc(job).phase() == phase).await
    }

    /// Waits until a job has gone through these phases, the last visit of each counted.
    pub(crate) async fn phases(&self, job: &str, wanted: &[&str]) -> Result<Arc<Seen>> {
        let what = format!("{job} went through {wanted:?}");
        self.wait_until(&what, |seen| seen.vc(job).phases() == wanted).await
    }

    /// Merges into the specification of a job.
    pub(crate) async fn edit(&self, job: &str, spec: Value) -> Result<()> {
        self.merge(Resource::VolcanoJobs, job, &json!({"spec": spec})).await.map(drop)
    }

    /// Sets the number of pods of the task at that place.
    pub(crate) async fn resize(&self, job: &str, task: usize, replicas: i64) -> Result<()> {
        let mut tasks = self.seen().vc(job).object()["spec"]["tasks"].clone();
        tasks[task]["replicas"] = replicas.into();
        tasks[task]["minAvailable"] = replicas.into();
        let sum = tasks.as_array().into_iter().flatten();
        let sum: i64 = sum.filter_map(|task| task["replicas"].as_i64()).sum();
        self.edit(job, json!({"tasks": tasks, "minAvailable": sum})).await
    }

    /// Gives a Command for a job; its name.
    pub(crate) async fn command(&self, job: &str, action: &str) -> Result<String> {
        let uid = self.seen().vc(job).uid().to_owned();
        let target = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": uid,
            "controller": true,
        });
        let made = self
            .create(
                Resource::Commands,
                &json!({
                    "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
                    "metadata": {"generateName": format!("{job}-{}-", action.to_lowercase()),
                        "ownerReferences": [target]},
                    "action": action, "target": target,
                }),
            )
            .await?;
        Ok(text(&made["metadata"]["name"]).to_owned())
    }

    /// Deletes a job.
    pub(crate) async fn delete_job(&self, job: &str) -> Result<()> {
        let deleted = self.rest.delete(Resource::VolcanoJobs, job, None).await;
        deleted.with_context(|| format!("deleting job {job}")).map(drop)
    }

    /// Waits until a job has these counts (see [`super::Look::counts`]).
    pub(crate) async fn counts(&self, job: &str, wanted: [i64; 5]) -> Result<Arc<Seen>> {
        let what = format!("{job} has the counts {wanted:?}");
        self.wait_until(&what, |seen| seen.vc(job).counts() == wanted).await
    }

    /// Waits until all pods of these names have others in their stead.
    pub(crate) async fn successors(&self, before: &Seen, pods: &[&str]) -> Result<()> {
        for pod in pods {
            self.wait_successor(pod, &before.uid(pod)).await?;
        }
        Ok(())
    }

    /// Nothing of a job is left but these pods.
    pub(crate) async fn cleared(&self, job: &str, pods: &[&str]) -> Result<Arc<Seen>> {
        let what = format!("of {job} only the pods {pods:?} are left");
        self.wait_until(&what, |seen| seen.vc(job).is_cleared() && seen.pods() == pods).await
    }
}

async fn admit(scene: Scene) {
    let mut view = scene.view();
    loop {
        let seen = view.now();
        let asks = |group: &Value| matches!(text(&group["status"]["phase"]), "" | "Pending");
        let mut failed = false;
        for (name, group) in seen.all(Resource::Groups) {
            if asks(group) && !terminating(group) {
                // One that has gone meanwhile needs no place.
                failed |= scene.mark_group(name, json!({"phase": "Inqueue"})).await.is_err();
            }
        }
        drop(seen);
        if failed {
            tokio::time::sleep(AGAIN).await;
        } else {
            view.change().await;
        }
    }
}
