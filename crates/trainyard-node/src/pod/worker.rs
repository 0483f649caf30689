//! A pod's worker: takes it in, runs its containers, ends it, and cleans up behind it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodSpec, Volume};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use trainyard_holder::protocol::{Cgroups, PodSpec as Sandbox};
use trainyard_holder::sweep::sweep;

use super::container::{Role, grace_of, keep};
use super::launch::make_ahead;
use super::report::Report;
use super::stop::{Stopped, Stopper, Stopping, order};
use super::storage::Bounds;
use super::unsupported::unsupported;
use super::{Context, Live};
use super::{limits, loopback, reach, security};
use crate::env::Facts;
use crate::events::Weight;
use crate::net::hosts::Identity;
use crate::shared::Shared;
use crate::status::{State, Verdict, phase};
use crate::volumes::{self, Volumes};

/// How often a pod's tokens are looked at, and its disk use at the least.
const HOUSEKEEPING: Duration = Duration::from_secs(10);
/// How often its disk use is looked at where that is quick: a disk can be filled in seconds.
const QUICK: Duration = Duration::from_secs(1);
/// No more than one part in so many of the time is spent looking.
const LOOKING: u32 = 20;
/// What a pod that uses too much gets to end in.
const EVICTION_GRACE: Duration = Duration::from_secs(1);

/// Lives a pod's whole life here; returns when its object is gone, or nothing of it is to be done.
pub(crate) async fn run(shared: Arc<Shared>, live: Arc<Live>) {
    let mut report = Report::new(shared.client_of(&live.pod()).clone(), &live);
    if has_finished(&live.pod()) {
        // Under an agent before this one; what that wrote stands.
        return finish(&shared, &live, &mut report).await;
    }
    let (stopper, stopping) = order();
    let address = shared.address_for(&live.pod());
    live.change(|record| {
        record.started.get_or_insert_with(Timestamp::now);
        record.host_ip = Some(shared.node_address(&live.pod()));
    });
    let cleared = CancellationToken::new();
    let whole = async {
        tokio::select! {
            biased;
            () = life(&shared, &live, address, &stopping) => {}
            () = guard(&shared, &live, &stopper) => {}
        }
        clear_up(&shared, &live, address).await;
        cleared.cancel();
    };
    tokio::join!(whole, report.keep(&cleared));
    if shared.holder_ended() {
        // The agent ends too; the next one finds what was lost.
        live.over.cancel();
        return;
    }
    live.change(|record| record.ending |= stopping.is_given());
    report.write().await;
    finish(&shared, &live, &mut report).await;
}

/// Its object already says how it ended.
fn has_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Waits until a pod of which nothing runs is deleted, and removes its object then.
async fn finish(shared: &Shared, live: &Live, report: &mut Report<'_>) {
    tokio::select! {
        biased;
        () = until_deleted(live) => {}
        () = shared.closing.cancelled() => {
            live.over.cancel();
            return;
        }
    }
    if !has_finished(&live.pod()) {
        live.change(|record| record.ending = true);
        report.write().await;
    }
    if live.pod().metadata.deletion_timestamp.is_some() {
        report.remove().await;
    }
    live.over.cancel();
}

/// Takes the pod in and runs its containers to their end.
async fn life(shared: &Shared, live: &Live, address: Option<Ipv4Addr>, stopping: &Stopping) {
    let pod = live.pod();
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if phase(&live.record(), policy.unwrap_or("Always")).is_final() {
        return;
    }
    let Some(spec) = pod.spec.as_ref() else { return };
    let unsupported = unsupported(spec);
    let forbidden = security::check_pod(spec).err().map(|error| error.to_string());
    if let Some(words) = forbidden.or(unsupported.refusal) {
        shared.events.pod(&pod, None, Weight::Warning, "FailedValidation", words.clone());
        live.change(|record| record.verdict = Some(verdict("UnsupportedPod", words)));
        return;
    }
    for (reason, words) in unsupported.left_out {
        shared.events.pod(&pod, None, Weight::Warning, reason, words);
    }
    // Being told to stop is no failure; the record says how far it came.
    let _ = lived(shared, live, &pod, spec, address, stopping).await;
}

async fn lived(
    shared: &Shared,
    live: &Live,
    pod: &Pod,
    spec: &PodSpec,
    address: Option<Ipv4Addr>,
    stopping: &Stopping,
) -> Result<(), Stopped> {
    let facts = shared.facts(pod, address);
    let identity = match Identity::of(pod, &facts.node_name) {
        Ok(identity) => identity,
        Err(error) => {
            let words = format!("Failed to create pod sandbox: {error}");
            shared.events.pod(pod, None, Weight::Warning, "FailedCreatePodSandBox", words);
            live.change(|record| record.verdict = Some(verdict(error.kind(), error.to_string())));
            return Ok(());
        }
    };
    let sandbox = Sandbox {
        pod: live.uid.clone(),
        node: facts.node_name.clone(),
        hostname: identity.kernel_name.clone(),
        address,
        share_processes: spec.share_process_namespace == Some(true),
        ephemeral: shared.folders(&live.uid).ephemeral,
        memory_volumes: Vec::new(),
        shared_memory: limits::SHARED_MEMORY,
        limits: limits::of_pod(spec, shared.pod_pids_limit),
    };
    let prepared = prepared_volumes(shared, live, pod, &facts);
    let ahead = make_ahead(shared, live, spec);
    let furnished = stopping.or(furnished(shared, pod, spec, sandbox, prepared)).await;
    // A panic in there has been reported where it happened.
    let _ = ahead.await;
    let volumes = Arc::new(furnished?);
    live.change(|record| record.pod_ip = facts.pod_ip);
    tell_of_limits(shared, pod, spec);
    let context = Context { shared, live, volumes: &volumes, facts: &facts, identity: &identity };
    tokio::select! {
        ended = containers(&context, spec, stopping) => ended,
        never = tend(shared, live, pod, &volumes) => match never {},
        never = loopback::follow_names(&context, pod) => match never {},
        never = reach::keep_open(&context, pod) => match never {},
    }
}

/// Runs the containers: init ones in their order, then the others together.
async fn containers(
    context: &Context<'_>,
    spec: &PodSpec,
    stopping: &Stopping,
) -> Result<(), Stopped> {
    let live = context.live;
    for container in spec.init_containers.iter().flatten() {
        keep(context, container, Role::Init, stopping).await?;
        let failed = |run: &crate::status::Terminated| run.exit_code != 0;
        if live.record().find(&container.name).and_then(|c| c.last_run()).is_some_and(failed) {
            return Ok(());
        }
    }
    if spec.init_containers.is_some() {
        live.change(|record| {
            for container in &mut record.containers {
                if let State::Waiting { reason, .. } = &mut container.state {
                    "ContainerCreating".clone_into(reason);
                }
            }
        });
    }
    let all = spec.containers.iter().map(|c| keep(context, c, Role::Main, stopping));
    join_all(all).await.into_iter().collect()
}

/// Says once that what the pod relies on is not so.
fn tell_of_limits(shared: &Shared, pod: &Pod, spec: &PodSpec) {
    let level = shared.yard.level();
    if level.cgroups == Cgroups::None && limits::are_asked(spec) {
        let reason = level.cgroups_reason.as_deref().unwrap_or("there are no cgroups to use");
        let words = format!("the pod's limits are not enforced on this node: {reason}");
        shared.events.pod(pod, None, Weight::Warning, "LimitsNotEnforced", words);
    }
}

/// The sandbox and the volumes, which need not wait for each other unless some are in memory: those
/// are a part of the sandbox.
async fn furnished(
    shared: &Shared,
    pod: &Pod,
    spec: &PodSpec,
    mut sandbox: Sandbox,
    prepared: impl Future<Output = Volumes>,
) -> Volumes {
    let in_memory = |volume: &Volume| {
        volume.empty_dir.as_ref().is_some_and(|dir| dir.medium.as_deref() == Some("Memory"))
    };
    if spec.volumes.iter().flatten().any(in_memory) {
        let volumes = prepared.await;
        sandbox.memory_volumes = volumes.memory();
        sandboxed(shared, pod, sandbox).await;
        return volumes;
    }
    tokio::join!(sandboxed(shared, pod, sandbox), prepared).1
}

/// Volumes, tried until they are there: a `ConfigMap` may come after the pod that wants it.
async fn prepared_volumes(shared: &Shared, live: &Live, pod: &Pod, facts: &Facts) -> Volumes {
    let mut wait = shared.timing.config_retry / 10;
    let objects = shared.objects_of(pod);
    loop {
        let folders = shared.folders(&live.uid);
        match Box::pin(volumes::prepare(pod, facts, &objects, &folders)).await {
            Ok(volumes) => {
                for notice in volumes.notices() {
                    shared.events.pod(pod, None, Weight::Normal, "VolumeStandIn", notice.clone());
                }
                return volumes;
            }
            Err(error) => {
                shared.events.pod(pod, None, Weight::Warning, "FailedMount", error.to_string());
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(shared.timing.config_retry);
    }
}

/// The sandbox, tried until the machine can give one. A pod that is told to stop meanwhile leaves none
/// behind: what the holder has begun, `clear_up` removes.
async fn sandboxed(shared: &Shared, pod: &Pod, sandbox: Sandbox) {
    let mut wait = shared.timing.config_retry / 10;
    while let Err(error) = shared.yard.add_pod(sandbox.clone()).await {
        let words = format!("Failed to create pod sandbox: {error}");
        shared.events.pod(pod, None, Weight::Warning, "FailedCreatePodSandBox", words);
        sleep(wait).await;
        wait = (wait * 2).min(shared.timing.config_retry);
    }
}

/// Looks after a running pod: disk use within its limits, tokens fresh.
async fn tend(
    shared: &Shared,
    live: &Live,
    pod: &Pod,
    volumes: &Arc<Volumes>,
) -> std::convert::Infallible {
    let bounds = pod.spec.as_ref().and_then(Bounds::of).map(Arc::new);
    let mut pause = if bounds.is_some() { QUICK } else { HOUSEKEEPING };
    loop {
        sleep(pause).await;
        let began = Instant::now();
        let over = match &bounds {
            Some(bounds) => exceeded(shared, live, bounds, volumes).await,
            None => None,
        };
        if bounds.is_some() {
            pause = (began.elapsed() * LOOKING).clamp(QUICK, HOUSEKEEPING);
        }
        if let Some(message) = over
            && live.record().verdict.is_none()
        {
            shared.events.pod(pod, None, Weight::Warning, "Evicted", message.clone());
            live.change(|record| record.verdict = Some(verdict("Evicted", message)));
        }
        let now = Timestamp::now();
        if volumes.next_renewal().is_some_and(|due| due <= now) {
            for error in volumes.renew_tokens(pod, &shared.objects_of(pod), now).await.problems {
                let words = format!("a service account token could not be renewed: {error}");
                shared.events.pod(pod, None, Weight::Warning, "FailedMount", words);
            }
        }
    }
}

/// What of a pod holds more than it may.
async fn exceeded(
    shared: &Shared,
    live: &Live,
    bounds: &Arc<Bounds>,
    volumes: &Arc<Volumes>,
) -> Option<String> {
    let (bounds, volumes) = (Arc::clone(bounds), Arc::clone(volumes));
    let (record, ephemeral) = (live.record(), shared.folders(&live.uid).ephemeral);
    let looked = move || bounds.exceeded(&volumes, &record, &ephemeral);
    // A panic in there has been reported where it happened.
    tokio::task::spawn_blocking(looked).await.ok().flatten()
}

fn verdict(reason: &str, message: String) -> Verdict {
    // A pod that used more than it may is not the machine's victim.
    let disruption = reason == "Terminated";
    Verdict { reason: reason.to_owned(), message, disruption }
}

/// Watches for what ends a pod from outside and gives the order; never returns.
async fn guard(shared: &Shared, live: &Live, stopper: &Stopper) {
    let mut versions = live.versions();
    let mut changes = live.changes();
    loop {
        let pod = Arc::clone(&versions.borrow_and_update());
        changes.borrow_and_update();
        let record = live.record();
        if pod.metadata.deletion_timestamp.is_some() {
            stopper.stop(grace_of(&pod));
        } else if let Some(verdict) = &record.verdict {
            let evicted = verdict.reason == "Evicted";
            stopper.stop(if evicted { EVICTION_GRACE } else { grace_of(&pod) });
        }
        let deadline = deadline(&pod, record.started).filter(|_| record.verdict.is_none());
        let passed = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = versions.changed() => {}
            _ = changes.changed() => {}
            () = passed => {
                let message =
                    "Pod was active on the node longer than the specified deadline".to_owned();
                shared.events.pod(&pod, None, Weight::Normal, "DeadlineExceeded", message.clone());
                live.change(|record| record.verdict = Some(verdict("DeadlineExceeded", message)));
            }
            () = live.gone.cancelled() => {
                // Removed by force: nobody waits for it.
                stopper.stop(shared.timing.forced_grace);
                std::future::pending::<()>().await;
            }
            () = shared.closing.cancelled() => {
                if shared.holder_ended() {
                    // It was lost, not ended; the next agent says so.
                    std::future::pending::<()>().await;
                }
                let message =
                    "Pod was terminated in response to imminent node shutdown.".to_owned();
                live.change(|record| {
                    record.verdict.get_or_insert_with(|| verdict("Terminated", message));
                });
                stopper.stop(grace_of(&pod).min(shared.timing.closing_grace));
                std::future::pending::<()>().await;
            }
        }
    }
}

fn deadline(pod: &Pod, started: Option<Timestamp>) -> Option<Instant> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    let passed = Timestamp::now().duration_since(started?).as_secs();
    let left = u64::try_from(seconds.saturating_sub(passed)).unwrap_or(0);
    Some(Instant::now() + Duration::from_secs(left))
}

async fn clear_up(shared: &Shared, live: &Live, address: Option<Ipv4Addr>) {
    let (pod, namespace) = (&live.name, &live.namespace);
    if let Err(error) = shared.yard.remove_pod(&live.uid).await
        && !shared.holder_ended()
    {
        tracing::error!(pod, namespace, %error, "something of a pod could not be removed");
    }
    // Of a pod that never came to a sandbox the holder knows nothing; its volumes may be there.
    let folder = shared.folders(&live.uid).ephemeral;
    if folder.exists() && !shared.holder_ended() {
        let removed = tokio::task::spawn_blocking(move || sweep(&folder)).await;
        if let Ok(Err(error)) = removed {
            tracing::error!(pod, namespace, %error, "a pod's folder could not be removed");
        }
    }
    if let Some(address) = address {
        shared.give_back(address);
    }
}

/// Waits until a pod that has ended here is deleted.
async fn until_deleted(live: &Live) {
    let mut versions = live.versions();
    loop {
        if versions.borrow_and_update().metadata.deletion_timestamp.is_some() {
            return;
        }
        tokio::select! {
            changed = versions.changed() => if changed.is_err() { return },
            () = live.gone.cancelled() => return,
        }
    }
}
