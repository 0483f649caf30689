//! One container of a pod from its first attempt to its last: image, start, run, end, back-off. What
//! it finds goes into the pod's record; what is made of that is not its business.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::time::{Instant, sleep};
use trainyard_holder::protocol::{Ending, Reach, Refusal, RefusalKind};

use super::backoff::Backoff;
use super::launch::{self, Launched};
use super::stop::{Stopped, Stopping};
use super::{Context, probing};
use crate::events::Weight;
use crate::status::{State, Terminated, restarts};
use crate::yard::Exit;

/// The exit codes of a program that is not there, and of one that cannot be executed, as shells and
/// container engines have them; containerd says 128 for both.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;
/// Why an image that is not there is not had either: an event's reason and a container's.
const NEVER_PULL: &str = "ErrImageNeverPull";
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// Why a container could not be started this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// The waiting reason, as `ErrImagePull`.
    pub(crate) reason: String,
    /// In words.
    pub(crate) message: String,
}

/// What came of one attempt.
enum Attempt {
    /// It ran, or could not be executed; the record says how it ended.
    Ended { ran: Duration },
    /// It did not get that far; it may next time.
    Hindered(Obstacle),
}

/// Which containers run one after the other, and which together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs to success before the next one begins.
    Init,
    /// The others.
    Main,
}

/// Runs a container as often as the pod's policy says; returns when it will not run again. Its state
/// then stands in the record.
pub(crate) async fn keep(
    context: &Context<'_>,
    container: &Container,
    role: Role,
    stopping: &Stopping,
) -> Result<(), Stopped> {
    let policy = policy_of(context.restart_policy(), role);
    let mut crashes = context.shared.timing.crash;
    let mut hindrances = context.shared.timing.image;
    let mut ended = None;
    loop {
        let last = context.live.record().find(&container.name).and_then(|c| c.last_run().cloned());
        if last.is_some_and(|last| !restarts(policy, last.exit_code)) {
            return Ok(());
        }
        // An attempt that was hindered has had its own wait.
        if let Some(ran) = ended.take() {
            back_off(context, container, crashes.after(ran), stopping).await?;
        }
        match attempt(context, container, stopping).await? {
            Attempt::Ended { ran } => {
                ended = Some(ran);
                if stopping.is_given() {
                    return Err(Stopped);
                }
            }
            Attempt::Hindered(obstacle) => {
                hindered(context, container, obstacle, &mut hindrances, stopping).await?;
            }
        }
    }
}

/// By which policy a container is run again.
fn policy_of(pod: &'static str, role: Role) -> &'static str {
    match (pod, role) {
        // An init container that succeeded has done its work, whatever the policy.
        ("Always", Role::Init) => "OnFailure",
        (policy, _) => policy,
    }
}

/// Waits before a container is started again, and says so.
async fn back_off(
    context: &Context<'_>,
    container: &Container,
    wait: Duration,
    stopping: &Stopping,
) -> Result<(), Stopped> {
    if wait.is_zero() {
        return Ok(());
    }
    let live = context.live;
    let message = format!(
        "back-off {} restarting failed container={} pod={}_{}({})",
        words(wait),
        container.name,
        live.name,
        live.namespace,
        live.uid
    );
    context.tell(container, Weight::Warning, "BackOff", back_off_event(context, container));
    context.wait_state(container, "CrashLoopBackOff", &message);
    stopping.or(sleep(wait)).await
}

fn back_off_event(context: &Context<'_>, container: &Container) -> String {
    let live = context.live;
    format!(
        "Back-off restarting failed container {} in pod {}_{}({})",
        container.name, live.name, live.namespace, live.uid
    )
}

/// Go's way to write a duration, which people know from these messages.
fn words(wait: Duration) -> String {
    let seconds = wait.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, 0) => format!("{}ms", wait.as_millis()),
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// Says why a container could not be started, and waits before the next attempt.
async fn hindered(
    context: &Context<'_>,
    container: &Container,
    obstacle: Obstacle,
    hindrances: &mut Backoff,
    stopping: &Stopping,
) -> Result<(), Stopped> {
    let image = container.image.as_deref().unwrap_or_default();
    context.wait_state(container, &obstacle.reason, &obstacle.message);
    if obstacle.reason != "ErrImagePull" {
        let mut words = obstacle.message;
        if obstacle.reason == NEVER_PULL {
            context.tell(container, Weight::Warning, NEVER_PULL, words);
            words = obstacle.reason;
        }
        context.tell(container, Weight::Warning, "Failed", format!("Error: {words}"));
        return stopping.or(sleep(context.shared.timing.config_retry)).await;
    }
    let words = format!("Failed to pull image \"{image}\": {}", obstacle.message);
    context.tell(container, Weight::Warning, "Failed", words);
    context.tell(container, Weight::Warning, "Failed", "Error: ErrImagePull".to_owned());
    let wait = hindrances.after(Duration::ZERO).max(hindrances.first);
    // The error is seen for a moment under its own name, then under that of the wait.
    stopping.or(sleep((wait / 5).min(Duration::from_secs(5)))).await?;
    let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {}", obstacle.message);
    context.tell(
        container,
        Weight::Normal,
        "BackOff",
        format!("Back-off pulling image \"{image}\""),
    );
    context.wait_state(container, "ImagePullBackOff", &message);
    stopping.or(sleep(wait)).await
}

async fn attempt(
    context: &Context<'_>,
    container: &Container,
    stopping: &Stopping,
) -> Result<Attempt, Stopped> {
    let prepared = match stopping.or(launch::prepare(context, container)).await? {
        Ok(prepared) => prepared,
        Err(obstacle) => return Ok(Attempt::Hindered(obstacle)),
    };
    let id = prepared.id().to_owned();
    let launched = match launch::start(context, container, prepared).await {
        Ok(launched) => launched,
        Err(refusal) => return Ok(not_started(context, container, &id, &refusal)),
    };
    let since = Instant::now();
    let started = Timestamp::now();
    let taken_in = context.live.record().started.unwrap_or(started);
    let micros = u64::try_from(started.duration_since(taken_in).as_micros()).unwrap_or_default();
    tracing::debug!(container = id, micros, "the program was started");
    context.tell(container, Weight::Normal, "Created", "Container created".to_owned());
    context.tell(container, Weight::Normal, "Started", "Container started".to_owned());
    context.change(container, |record| {
        record.count_run();
        record.id.clone_from(&id);
        record.move_to(State::Running(started));
        record.started = container.startup_probe.is_none();
        record.ready = record.started && container.readiness_probe.is_none();
    });
    let Some(exit) = supervise(context, container, &launched, stopping.clone()).await else {
        // The holder has ended, and every container with it. The agent ends too: the next one finds
        // what was lost.
        return Err(Stopped);
    };
    let terminated = ending(context, container, launched, &exit, started).await;
    context.change(container, |record| record.move_to(State::Terminated(terminated)));
    Ok(Attempt::Ended { ran: since.elapsed() })
}

/// The program could not be executed: a run that failed, or something that may be mended.
fn not_started(
    context: &Context<'_>,
    container: &Container,
    id: &str,
    refusal: &Refusal,
) -> Attempt {
    let message = refusal.to_string();
    let start_error = match refusal.kind {
        RefusalKind::NoSuchProgram => Some(NOT_FOUND),
        RefusalKind::NotExecutable => Some(NOT_EXECUTABLE),
        _ => None,
    };
    if let Some(exit_code) = start_error {
        context.tell(container, Weight::Warning, "Failed", format!("Error: {message}"));
        let now = Timestamp::now();
        context.change(container, |record| {
            record.count_run();
            id.clone_into(&mut record.id);
            record.move_to(State::Terminated(Terminated {
                exit_code,
                signal: None,
                reason: "StartError".to_owned(),
                message,
                started: None,
                finished: now,
                id: id.to_owned(),
            }));
        });
        return Attempt::Ended { ran: Duration::ZERO };
    }
    Attempt::Hindered(Obstacle { reason: reason_of(refusal.kind).to_owned(), message })
}

/// What a container waits with that the holder refused: whether the pod or the machine is at fault.
const fn reason_of(refusal: RefusalKind) -> &'static str {
    match refusal {
        RefusalKind::NotPermitted | RefusalKind::BadRequest | RefusalKind::Part => {
            "CreateContainerConfigError"
        }
        _ => "CreateContainerError",
    }
}

/// Waits for the end of a run, and brings it about when told to or when its probes say so.
async fn supervise(
    context: &Context<'_>,
    container: &Container,
    launched: &Launched,
    mut stopping: Stopping,
) -> Option<Exit> {
    let probes = probing::watch(context, container);
    tokio::pin!(probes);
    let exited = launched.exited();
    tokio::pin!(exited);
    let grace = tokio::select! {
        exit = &mut exited => return exit,
        _ = stopping.given() => {
            let words = format!("Stopping container {}", container.name);
            context.tell(container, Weight::Normal, "Killing", words);
            None
        }
        grace = &mut probes => {
            Some(grace)
        }
    };
    context.change(container, |record| record.ready = false);
    signal(context, &launched.id, SIGTERM).await;
    let out_of_time = async {
        match grace {
            // A container that is only restarted has the pod's grace, unless the pod is ended sooner.
            Some(grace) => tokio::select! {
                () = sleep(grace) => {}
                () = stopping.out_of_time() => {}
            },
            None => stopping.out_of_time().await,
        }
    };
    tokio::select! {
        exit = &mut exited => return exit,
        () = out_of_time => {}
    }
    signal(context, &launched.id, SIGKILL).await;
    exited.await
}

async fn signal(context: &Context<'_>, id: &str, signal: i32) {
    if let Err(error) = context.shared.yard.signal(id, signal, Reach::All).await {
        tracing::warn!(container = id, signal, %error, "a signal could not be sent");
    }
}

/// What is to be said of a run that has ended.
async fn ending(
    context: &Context<'_>,
    container: &Container,
    launched: Launched,
    exit: &Exit,
    started: Timestamp,
) -> Terminated {
    let (exit_code, signal, reason) = told(exit);
    let id = launched.id.clone();
    let message = launched.last_words(context, container, exit_code).await;
    context.shared.release_devices(&id);
    Terminated {
        exit_code,
        signal,
        reason: reason.to_owned(),
        message,
        started: Some(started),
        finished: Timestamp::now(),
        id,
    }
}

/// Exit code, signal and reason of a run that ended so.
fn told(exit: &Exit) -> (i32, Option<i32>, &'static str) {
    let (exit_code, signal) = match exit.ending {
        Ending::Code(code) => (code, None),
        Ending::Signal(signal) => (128 + signal, Some(signal)),
    };
    let reason = match (exit_code, exit.oom_killed) {
        (0, _) => "Completed",
        (_, true) => "OOMKilled",
        (_, false) => "Error",
    };
    (exit_code, signal, reason)
}

/// How long a pod's programs may take to end.
pub(crate) fn grace_of(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let seconds = pod.metadata.deletion_grace_period_seconds.or(spec).unwrap_or(30);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_as_a_kubelet_does() {
        let ended = |ending, oom_killed| Exit { ending, oom_killed };
        for (exit, expected) in [
            (ended(Ending::Code(0), false), (0, None, "Completed")),
            // A child was killed, and the program went on to succeed.
            (ended(Ending::Code(0), true), (0, None, "Completed")),
            (ended(Ending::Code(3), false), (3, None, "Error")),
            (ended(Ending::Code(3), true), (3, None, "OOMKilled")),
            (ended(Ending::Signal(9), true), (137, Some(9), "OOMKilled")),
            (ended(Ending::Signal(11), false), (139, Some(11), "Error")),
        ] {
            assert_eq!(told(&exit), expected, "{exit:?}");
        }
    }

    #[test]
    fn only_what_the_pod_can_mend_is_its_configuration() {
        let mended = "CreateContainerConfigError";
        assert_eq!(reason_of(RefusalKind::NotPermitted), mended);
        assert_eq!(reason_of(RefusalKind::BadRequest), mended);
        assert_eq!(reason_of(RefusalKind::Part), mended);
        assert_eq!(reason_of(RefusalKind::Machine), "CreateContainerError");
        assert_eq!(reason_of(RefusalKind::Mount), "CreateContainerError");
    }

    #[test]
    fn an_init_container_that_succeeded_is_not_run_again() {
        assert!(!restarts(policy_of("Always", Role::Init), 0));
        assert!(restarts(policy_of("Always", Role::Init), 1));
        assert!(restarts(policy_of("Always", Role::Main), 0));
        assert!(!restarts(policy_of("Never", Role::Init), 1));
    }

    #[test]
    fn a_deletion_says_how_long_an_end_may_take() {
        let pod = |own: Option<i64>, asked: Option<i64>| {
            serde_json::from_value::<Pod>(serde_json::json!({
                "metadata": {"deletionGracePeriodSeconds": asked},
                "spec": {"containers": [], "terminationGracePeriodSeconds": own},
            }))
            .unwrap()
        };
        for (own, asked, expected) in
            [(None, None, 30), (Some(5), None, 5), (Some(5), Some(60), 60), (Some(-1), None, 0)]
        {
            assert_eq!(grace_of(&pod(own, asked)).as_secs(), expected, "{own:?} {asked:?}");
        }
    }

    #[test]
    fn waits_are_written_as_people_know_them() {
        for (wait, expected) in [(10, "10s"), (40, "40s"), (80, "1m20s"), (300, "5m0s")] {
            assert_eq!(words(Duration::from_secs(wait)), expected);
        }
    }
}
