//! A scheduler's scenario: a real scheduler of its own and gangs of pods.
//!
//! Must not know jobs, nor which server is behind the clients.

use std::ops::Deref;
use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trainyard_operator::scheduler;

use super::fence;
use super::gang::Gang;
use super::scene::Scene;
use super::supply::{Well, beat};
use crate::kubelet::presence::Pulse;
use crate::rest::Resource;
use crate::seen::{Seen, text};
use crate::world::World;

/// The world of a scenario with a scheduler of its own.
pub(crate) struct Floor {
    scene: Scene,
    pub(super) pulse: Pulse,
    pub(super) well: Well,
    scheduler: JoinSet<()>,
    _beats: JoinSet<()>,
}

impl Deref for Floor {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.scene
    }
}

/// Settings of schedulers in scenarios.
pub(crate) fn quick_scheduler() -> scheduler::Options {
    scheduler::Options {
        names: vec!["volcano".to_owned()],
        time: trainyard_operator::Time::OfRuntime,
        ..scheduler::Options::default()
    }
}

impl Floor {
    /// A floor with a scheduler and no node yet.
    pub(crate) async fn open(world: World) -> Result<Self> {
        Self::open_with(world, |_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn open_with(
        world: World,
        edit: impl FnOnce(&mut scheduler::Options),
    ) -> Result<Self> {
        let scene = Scene::open(world).await?;
        let well = Well::default();
        let mut beats = JoinSet::new();
        let pulse = Pulse::start();
        beats.spawn(beat(scene.kubelet.rest().clone(), pulse, Arc::clone(&well)));
        let mut floor = Self { scene, pulse, well, scheduler: JoinSet::new(), _beats: beats };
        let mut options = quick_scheduler();
        edit(&mut options);
        floor.start_scheduler(options);
        Ok(floor)
    }

    /// Starts a scheduler, which sees this floor only.
    pub(crate) fn start_scheduler(&mut self, options: scheduler::Options) {
        self.scheduler = self.another_scheduler(options);
    }

    /// A scheduler beside the floor's own; it crashes when it is dropped.
    pub(crate) fn another_scheduler(&self, options: scheduler::Options) -> JoinSet<()> {
        let client = fence::client(self.scheduler_client(), &self.namespace);
        let mut running = JoinSet::new();
        running.spawn(async move {
            let ended = scheduler::run(client, options, CancellationToken::new()).await;
            tracing::warn!(?ended, "a scenario's scheduler has ended");
        });
        running
    }

    /// Ends the scheduler between two instructions, as a crash does.
    pub(crate) async fn crash_scheduler(&mut self) {
        self.scheduler.shutdown().await;
    }

    /// Makes a PodGroup and its pods.
    pub(crate) async fn gang(&self, gang: Gang) -> Result<()> {
        self.group(&gang).await?;
        self.members(&gang).await
    }

    /// Makes a PodGroup.
    pub(crate) async fn group(&self, gang: &Gang) -> Result<()> {
        self.create(Resource::Groups, &gang.group()).await.map(drop)
    }

    /// Makes the pods of a PodGroup.
    pub(crate) async fn members(&self, gang: &Gang) -> Result<()> {
        for name in gang.names() {
            self.create(Resource::Pods, &gang.member(&name)).await?;
        }
        Ok(())
    }

    /// Why a PodGroup waits, as `trainyard explain -o json` tells it.
    pub(crate) async fn explain(&self, group: &str) -> Result<Value> {
        let client = fence::client(self.scheduler_client(), &self.namespace);
        let told = scheduler::explain(client, &quick_scheduler(), &self.namespace, group).await?;
        Ok(serde_json::to_value(told)?)
    }

    /// Waits until these pods and no others have nodes.
    pub(crate) async fn placed(&self, wanted: &[&str]) -> Result<Arc<Seen>> {
        let what = format!("the pods {wanted:?} have nodes");
        self.wait_until(&what, |seen| seen.placed() == wanted).await
    }

    /// No other pods than these get a node for a while.
    pub(crate) async fn stays_placed(&self, wanted: &[&str]) -> Result<()> {
        let what = format!("others than {wanted:?} have nodes");
        self.never_within(400, &what, |seen| seen.placed() != wanted).await
    }

    /// Waits until it is said why a pod has no node, in words with this in them.
    pub(crate) async fn waits(&self, pod: &str, part: &str) -> Result<Arc<Seen>> {
        let what = format!("{pod} waits: {part}");
        self.wait_until(&what, |seen| seen.unplaced(pod).contains(part)).await
    }

    /// Waits until a PodGroup has a phase.
    pub(crate) async fn group_is(&self, group: &str, phase: &str) -> Result<Arc<Seen>> {
        let what = format!("PodGroup {group} is {phase}");
        self.wait_until(&what, |seen| {
            text(&seen.object(Resource::Groups, group)["status"]["phase"]) == phase
        })
        .await
    }

    /// Waits until a PodGroup says that it cannot be scheduled, with this reason and these words.
    pub(crate) async fn group_says(&self, group: &str, reason: &str, part: &str) -> Result<()> {
        let what = format!("PodGroup {group} says {reason}: {part}");
        let says = |seen: &Seen| {
            let conditions = &seen.object(Resource::Groups, group)["status"]["conditions"];
            conditions.as_array().into_iter().flatten().any(|one| {
                one["type"] == "Unschedulable"
                    && one["status"] == "True"
                    && one["reason"] == reason
                    && text(&one["message"]).contains(part)
            })
        };
        self.wait_until(&what, says).await.map(drop)
    }
}
