//! What a failed replica means for the job: restart, and how soon; failure for good; or nothing.
//!
//! Every restart is recorded with the UID of the pod that ended, so that planning again after a
//! crash never counts it twice. Must not delete or create anything.

use jiff::{SignedDuration, Timestamp};
use trainyard_api::{
    Failure, FailureKind, JobStatus, ReplicaId, ReplicaRecord, ReplicaType, RestartPolicy,
    RestartScope, TfJobSpec,
};

use super::{
    counts::started,
    end::Cause,
    exit_code::is_retryable,
    failure::detail,
    in_place,
    roster::{Roster, Slot, Standing},
};
use crate::{config::Config, view::PodView};

/// Record of restarts of the whole job.
pub(super) const JOB: &str = "job";

/// What the failures seen in one pass mean.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Judgement {
    /// Replicas that failed for good.
    pub fatal: Vec<Lost>,
    /// The failure that was one too many.
    pub limit: Option<Failure>,
    /// Replicas that are restarted, with the failure that led to it.
    pub restarted: Vec<Lost>,
}

/// A replica that failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lost {
    /// Which.
    pub id: ReplicaId,
    /// How.
    pub failure: Failure,
    /// It was the cluster's doing.
    pub disrupted: bool,
}

/// Returns true if there is another run after this end. The policy judges how a program ended; what the
/// cluster ended is run again under every policy.
#[must_use]
pub(super) fn may_restart(policy: RestartPolicy, cause: &Cause) -> bool {
    cause.disrupted
        || match policy {
            RestartPolicy::Always | RestartPolicy::OnFailure => true,
            RestartPolicy::Never => false,
            RestartPolicy::ExitCode => cause.exit_code.is_none_or(is_retryable),
        }
}

/// Judges all failures of a pass, and records the restarts they lead to.
#[must_use]
pub(super) fn judge(
    spec: &TfJobSpec,
    roster: &Roster<'_>,
    in_place: &[&PodView],
    status: &mut JobStatus,
    now: Timestamp,
    config: &Config,
) -> Judgement {
    let limit = spec.run_policy.backoff_limit;
    let mut judgement = Judgement::default();
    if limit.is_some_and(|limit| status.restarts >= limit.max(1)) {
        judgement.limit = in_place.first().map(|pod| in_place::failure(pod));
    }
    let mut restarts: Vec<(Lost, &PodView, &Cause)> = Vec::new();
    for slot in &roster.slots {
        let (Some(pod), Some(replicas)) = (slot.pod, spec.replicas.get(&slot.id.kind)) else {
            continue;
        };
        if let Standing::Failed(cause) = &slot.standing {
            let kind = FailureKind::ReplicaFailed;
            let failure = detail(kind, &pod.name, cause);
            let lost = Lost { id: slot.id, failure, disrupted: cause.disrupted };
            if may_restart(replicas.restart_policy, cause) {
                restarts.push((lost, pod, cause));
            } else if !(spec.dynamic_workers && slot.id.kind == ReplicaType::Worker) {
                judgement.fatal.push(lost);
            }
        }
    }
    if judgement.fatal.is_empty() && judgement.limit.is_none() {
        match spec.run_policy.restart_scope {
            RestartScope::Replica => {
                restart_each(restarts, limit, status, &mut judgement, now, config);
            }
            RestartScope::Job => {
                let vanished = vanished(spec, roster, status);
                restart_all(restarts, vanished, limit, status, &mut judgement, now, config);
            }
        }
    }
    judgement
}

fn restart_each(
    restarts: Vec<(Lost, &PodView, &Cause)>,
    limit: Option<i64>,
    status: &mut JobStatus,
    judgement: &mut Judgement,
    now: Timestamp,
    config: &Config,
) {
    for (lost, pod, cause) in restarts {
        if is_one_too_many(&lost, limit, status) {
            judgement.limit.get_or_insert(lost.failure);
            continue;
        }
        let replica = lost.id.to_string();
        note_restart(status, &replica, &pod.uid, cause, now, config);
        judgement.restarted.push(lost);
    }
}

fn restart_all(
    restarts: Vec<(Lost, &PodView, &Cause)>,
    vanished: bool,
    limit: Option<i64>,
    status: &mut JobStatus,
    judgement: &mut Judgement,
    now: Timestamp,
    config: &Config,
) {
    // Peers of a failed replica fail with it; the attempt counts once, and not at all when
    // everything that happened was the cluster's doing.
    let guilty = restarts.iter().position(|(lost, ..)| !lost.disrupted).unwrap_or(0);
    let disruption = Cause { disrupted: true, ..Cause::default() };
    let (uid, cause) = match restarts.get(guilty) {
        Some((lost, pod, cause)) => {
            if is_one_too_many(lost, limit, status) {
                judgement.limit.get_or_insert(lost.failure.clone());
                return;
            }
            (pod.uid.to_string(), *cause)
        }
        None if vanished => (String::new(), &disruption),
        None => return,
    };
    note_restart(status, JOB, &uid, cause, now, config);
    status.attempt += 1;
    for counts in status.replica_statuses.values_mut() {
        counts.completed_indexes.clear();
        counts.started_indexes.clear();
    }
    judgement.restarted.extend(restarts.into_iter().map(|(lost, ..)| lost));
}

fn is_one_too_many(lost: &Lost, limit: Option<i64>, status: &JobStatus) -> bool {
    !lost.disrupted && limit.is_some_and(|limit| status.restarts >= limit)
}

/// Returns true if a replica that had started is neither there nor completed.
fn vanished(spec: &TfJobSpec, roster: &Roster<'_>, status: &JobStatus) -> bool {
    spec.replicas.keys().any(|kind| {
        let started = started(status, *kind, spec.count(*kind));
        roster.of(*kind).any(|slot| {
            matches!(slot.standing, Standing::Missing | Standing::Leaving)
                && started.contains(&slot.id.index)
        })
    })
}

fn note_restart(
    status: &mut JobStatus,
    replica: &str,
    uid: &str,
    cause: &Cause,
    now: Timestamp,
    config: &Config,
) {
    if !cause.disrupted {
        status.restarts += 1;
    }
    let record = record(status, replica);
    if record.uid != uid {
        uid.clone_into(&mut record.uid);
        record.in_place = 0;
    }
    record.replaced = true;
    if cause.disrupted {
        record.disruptions += 1;
    } else {
        record.restarts += 1;
    }
    if cause.ran_ms.is_some_and(|ran| ran >= config.restart_reset_ms) {
        record.streak = 0;
    }
    record.streak += 1;
    record.last_restart_time = Some(milliseconds(now));
}

/// When the next pod of a replica may be created.
#[must_use]
pub(super) fn due(
    status: &JobStatus,
    slot: &Slot<'_>,
    scope: RestartScope,
    config: &Config,
) -> Timestamp {
    let replica = match scope {
        RestartScope::Replica => slot.id.to_string(),
        RestartScope::Job => JOB.to_owned(),
    };
    due_for(status, &replica, config)
}

/// When the next pod under this record may be created.
#[must_use]
pub(super) fn due_for(status: &JobStatus, replica: &str, config: &Config) -> Timestamp {
    find(status, replica)
        .and_then(|record| {
            let pause = SignedDuration::from_millis(pause_ms(record.streak, config));
            record.last_restart_time?.checked_add(pause).ok()
        })
        .unwrap_or(Timestamp::MIN)
}

/// Pause before the n-th new pod in a row.
#[must_use]
pub(super) fn pause_ms(streak: i64, config: &Config) -> i64 {
    match u32::try_from(streak.clamp(0, 64) - 2) {
        Err(_) => 0,
        Ok(doublings) => 2_i64
            .checked_pow(doublings)
            .and_then(|factor| config.restart_backoff_ms.checked_mul(factor))
            .map_or(config.restart_backoff_ms_max, |ms| ms.min(config.restart_backoff_ms_max)),
    }
}

/// The record of a replica, if there is one; records are in order of their names.
#[must_use]
pub(super) fn find<'s>(status: &'s JobStatus, replica: &str) -> Option<&'s ReplicaRecord> {
    let records = &status.replica_records;
    let at = records.binary_search_by(|record| record.replica.as_str().cmp(replica)).ok()?;
    records.get(at)
}

/// The record of a replica, made if there is none; records stay in order of their names.
pub(super) fn record<'s>(status: &'s mut JobStatus, replica: &str) -> &'s mut ReplicaRecord {
    let records = &mut status.replica_records;
    let at = match records.binary_search_by(|record| record.replica.as_str().cmp(replica)) {
        Ok(at) => at,
        Err(at) => {
            records.insert(
                at,
                ReplicaRecord { replica: replica.to_owned(), ..ReplicaRecord::default() },
            );
            at
        }
    };
    &mut records[at]
}

/// Notes that a pod which does not belong to the training is replaced.
pub(super) fn note_disruption(
    status: &mut JobStatus,
    replica: &str,
    uid: &str,
    now: Timestamp,
    config: &Config,
) {
    let cause = Cause { disrupted: true, ..Cause::default() };
    note_restart(status, replica, uid, &cause, now, config);
}

fn milliseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
