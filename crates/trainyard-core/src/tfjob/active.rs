//! A pass over a job that has not ended.
//!
//! Success first, then suspension, then failures and limits; what remains is a job to be kept as
//! it was asked for. Must not know how objects are built.

use jiff::{SignedDuration, Timestamp};
use trainyard_api::{ConditionType, Failure, FailureKind, JobStatus, RestartScope, TfJobSpec};

use super::{
    Observed, counts,
    draft::Draft,
    failure::sentence,
    gang::{self, Gang},
    in_place, limits,
    objects::Builder,
    refused,
    removal::{pod_removal, service_removal},
    restart::{Judgement, Lost, due, judge},
    roster::{Roster, Slot, Standing},
    running::{first_waiting, runs, warnings},
    success::{out_of_workers, succeeded},
    suspend, tensorboard, unavailable,
};
use crate::{
    batch::Batch,
    child::Child,
    config::Config,
    phase::Phase,
    plan::{Event, Mark, Plan, Stage, Write},
};

/// Plans the pass.
pub(super) fn plan(
    seen: &Observed<'_>,
    status: JobStatus,
    spec: &TfJobSpec,
    now: Timestamp,
    config: &Config,
) -> Plan {
    let name = &seen.job.metadata.name;
    let mut draft = Draft::new(seen, status, now, config);
    let roster = Roster::new(seen, spec, &draft.status, now, config);
    counts::update(&mut draft.status, name, spec, &roster);
    let in_place = in_place::count(seen, &roster, &mut draft.status);
    let gang = Gang::new(seen, spec, &draft.before, config);
    gang::note_waiting(&mut draft, gang.as_ref());
    // A pod may run, and end, before its group says that it has a node.
    let has_begun = |slot: &Slot<'_>| slot.pod.is_some_and(|pod| pod.phase != Phase::Pending);
    if draft.status.start_time.is_none() && roster.slots.iter().any(has_begun) {
        draft.status.start_time = Some(draft.second());
    }
    if succeeded(spec, &roster) {
        draft.succeed();
        return draft.into_end(Some(spec));
    }
    if spec.run_policy.suspend {
        return suspend::plan(draft);
    }
    suspend::resume(&mut draft);
    let held = gang.as_ref().and_then(Gang::waits);
    // Whoever waits for nodes has not begun.
    if draft.status.start_time.is_none() && held.is_none() {
        draft.status.start_time = Some(draft.second());
    }
    let mut causes = unavailable::causes(spec, &roster, &draft.status);
    let judgement = judge(spec, &roster, &in_place, &mut draft.status, now, config);
    tensorboard::judge(&mut draft.status, &roster, now, config);
    let held = held.as_deref().or(seen.create_failure);
    if ends_by_failure(&mut draft, spec, &roster, &judgement)
        || ends_by_time(&mut draft, spec, &roster, held)
    {
        return draft.into_end(Some(spec));
    }
    let is_set = tell_restarts(&mut draft, &judgement.restarted);
    let roster = Roster::new(seen, spec, &draft.status, now, config);
    counts::update(&mut draft.status, name, spec, &roster);
    unavailable::add_restarts(&mut causes, &judgement.restarted);
    let is_short = unavailable::update(&mut draft, spec, &roster, &causes, is_set);
    let runs_now = runs(spec, &roster) || is_back(spec, &roster, &draft.status);
    if !is_short && !draft.status.is(ConditionType::Running) && runs_now {
        let message = format!("TFJob {name} is running.");
        draft.set(ConditionType::Running, "TFJobRunning", message);
        draft.status.running_time = draft.status.running_time.or(Some(draft.second()));
        draft.marks.push(Mark::Running);
    }
    keep(draft, spec, &roster, gang.as_ref())
}

/// Returns true if a job that ran runs again although not all replicas do: others than before have been asked
/// for meanwhile. A new attempt of the whole job runs only when all do.
fn is_back(spec: &TfJobSpec, roster: &Roster<'_>, status: &JobStatus) -> bool {
    status.is(ConditionType::Restarting)
        && status.running_time.is_some()
        && spec.run_policy.restart_scope == RestartScope::Replica
        && roster.slots.iter().any(Slot::runs)
}

fn ends_by_failure(
    draft: &mut Draft<'_>,
    spec: &TfJobSpec,
    roster: &Roster<'_>,
    judgement: &Judgement,
) -> bool {
    let name = draft.meta().name.clone();
    if let Some(first) = judgement.fatal.first() {
        let kind = first.id.kind;
        let number = judgement.fatal.iter().filter(|lost| lost.id.kind == kind).count();
        let policy = spec.replicas.get(&kind).map(|replicas| replicas.restart_policy);
        if policy == Some(trainyard_api::RestartPolicy::ExitCode) {
            let message =
                format!("job {name:?} is failing because {:?} replica(s) failed.", kind.as_str());
            draft.events.push(Event::warning("TFJobFailed", message));
        }
        tell_exit(draft, first);
        let message = format!(
            "TFJob {} has failed because {number} {kind} replica(s) failed. {}",
            draft.full_name(),
            sentence(&first.failure)
        );
        draft.fail("TFJobFailed", message, first.failure.clone());
        return true;
    }
    if let Some(failure) = &judgement.limit {
        let message = format!(
            "Job {name} has failed because it has reached the specified backoff limit. {}",
            sentence(failure)
        );
        let failure = Failure { kind: FailureKind::BackoffLimitExceeded, ..failure.clone() };
        draft.fail("TFJobFailed", message, failure);
        return true;
    }
    if out_of_workers(spec, roster) {
        let failed = roster.slots.iter().filter(|s| matches!(s.standing, Standing::Failed(_)));
        let message = format!(
            "TFJob {} has failed because {} Worker replica(s) failed and none is left.",
            draft.full_name(),
            failed.count()
        );
        draft.fail("TFJobFailed", message, Failure::default());
        return true;
    }
    false
}

fn ends_by_time(
    draft: &mut Draft<'_>,
    spec: &TfJobSpec,
    roster: &Roster<'_>,
    held: Option<&str>,
) -> bool {
    let name = draft.meta().name.clone();
    let past = |limit: Option<Timestamp>| limit.is_some_and(|limit| draft.now >= limit);
    if past(limits::deadline(&spec.run_policy, &draft.status)) {
        let message =
            format!("Job {name} has failed because it was active longer than specified deadline");
        let failure = Failure { kind: FailureKind::DeadlineExceeded, ..Failure::default() };
        draft.fail("TFJobFailed", message, failure);
        return true;
    }
    if past(limits::start_deadline(&spec.run_policy, &draft.status)) && !runs(spec, roster) {
        let seconds = spec.run_policy.start_timeout_seconds.unwrap_or(0);
        let (pod, why) = first_waiting(roster, &name, held).unwrap_or_default();
        let message = format!(
            "Job {name} has failed because not all its pods ran within {seconds} s: {pod} {why}"
        );
        let failure =
            Failure { kind: FailureKind::StartTimeout, pod, message: why, ..Failure::default() };
        draft.fail("TFJobFailed", message, failure);
        return true;
    }
    false
}

fn tell_exit(draft: &mut Draft<'_>, lost: &Lost) {
    if let Some(code) = lost.failure.exit_code {
        let (namespace, pod) = (&draft.meta().namespace, &lost.failure.pod);
        let message = format!("Pod: {namespace}.{pod} exited with code {code}");
        draft.events.push(Event::normal("ExitedWithCode", message));
    }
}

/// Sets the condition for restarts that have just been recorded; returns true if there are any.
fn tell_restarts(draft: &mut Draft<'_>, restarted: &[Lost]) -> bool {
    if draft.status.attempt == draft.before.attempt && restarted.is_empty() {
        return false;
    }
    let name = draft.meta().name.clone();
    for lost in restarted {
        tell_exit(draft, lost);
    }
    let message = match restarted.first() {
        Some(first) => format!(
            "job {name} is restarting because {} replica(s) failed. {}",
            first.id.kind,
            sentence(&first.failure)
        ),
        None => format!("job {name} is restarting because one of its pods disappeared."),
    };
    draft.update(ConditionType::Restarting, "TFJobRestarting", message.clone());
    draft.events.push(Event::warning("TFJobRestarting", message));
    draft.marks.push(Mark::Restarted);
    true
}

/// Stages what keeps the job as it was asked for.
fn keep(
    mut draft: Draft<'_>,
    spec: &TfJobSpec,
    roster: &Roster<'_>,
    gang: Option<&Gang<'_>>,
) -> Plan {
    // What a group says is not said again of each of its pods.
    let is_running = draft.status.is(ConditionType::Running);
    let is_said = !is_running && gang.is_some_and(Gang::has_obstacle);
    let mut plan = Plan { notices: warnings(roster, is_said), ..Plan::default() };
    let builder = Builder { meta: draft.meta(), spec, config: draft.config };
    let mut first = Stage::default();
    let mut second = Stage::default();
    let (services, mut pods) =
        tensorboard::writes(&builder, roster, &draft.status, draft.now, &mut plan);
    let held = gang.is_some_and(|gang| gang.waits().is_some());
    if let Some(gang) = gang {
        first.writes.extend(gang.write(&builder));
        gang.tell(&draft, spec, &mut plan);
    }
    let all = pods.len();
    if held {
        // Nobody looks at the progress of a job that waits for nodes.
        pods.retain(|write| !matches!(write, Write::Create(..)));
    }
    let mut is_withheld = pods.len() < all;
    first.writes.extend(services);
    second.writes.extend(pods);
    create_services(&builder, roster, &mut first, &mut plan);
    for service in &roster.surplus_services {
        second.writes.extend(service_removal(service));
    }
    let leaving = roster.slots.iter().filter(|slot| {
        matches!(slot.standing, Standing::Replaced | Standing::Stale | Standing::Leaving)
    });
    for pod in roster.surplus.iter().copied().chain(leaving.filter_map(|slot| slot.pod)) {
        second.writes.extend(pod_removal(pod, draft.now, draft.config, &mut plan));
    }
    // Whoever starts finds the names of all others.
    is_withheld |=
        plan.goes_on || create_missing(&draft, &builder, roster, gang, &mut second, &mut plan);
    look_ahead(&draft, spec, roster, &mut plan);
    let mut creations = first.writes.iter().chain(&second.writes);
    let is_complete = !is_withheld && !creations.any(|write| matches!(write, Write::Create(..)));
    refused::update(&mut draft, is_complete);
    record(&mut draft, &mut first, &mut plan);
    plan.push(first);
    plan.push(second);
    plan
}

/// Stages the status, before everything else, unless it may wait.
fn record(draft: &mut Draft<'_>, stage: &mut Stage, plan: &mut Plan) {
    if draft.is_urgent() || counts_are_due(draft, plan) {
        stage.writes.splice(0..0, draft.write());
    }
    stage.events.append(&mut draft.events);
}

/// Stages the missing services, as many as one plan may create.
fn create_services(builder: &Builder<'_>, roster: &Roster<'_>, stage: &mut Stage, plan: &mut Plan) {
    let mut batch = Batch::default();
    let missing = roster.slots.iter().filter(|slot| !roster.services.contains_key(&slot.id));
    for slot in missing {
        if batch.is_full() {
            plan.goes_on = true;
            break;
        }
        let service = builder.service(slot.id).map(|one| batch.add(one));
        stage.writes.extend(service.map(|one| Write::Create(Child::Service, one)));
    }
}

/// Stages the missing pods, as many as one plan may create; returns true if the gang withholds one of them.
fn create_missing(
    draft: &Draft<'_>,
    builder: &Builder<'_>,
    roster: &Roster<'_>,
    gang: Option<&Gang<'_>>,
    stage: &mut Stage,
    plan: &mut Plan,
) -> bool {
    // A new attempt begins when the last pod of the old one is gone: its programs would talk to it.
    if roster.slots.iter().any(|slot| slot.standing == Standing::Stale)
        || roster.surplus.iter().any(|pod| pod.attempt < draft.status.attempt)
    {
        return false;
    }
    let scope = builder.spec.run_policy.restart_scope;
    let scope = if draft.status.attempt > 0 { scope } else { RestartScope::Replica };
    let mut overridden = false;
    let mut batch = Batch::default();
    let is_admitted = |slot: &&Slot<'_>| {
        let one = builder.spec.replicas.get(&slot.id.kind);
        let admits =
            |gang: &Gang<'_>| one.is_none_or(|one| gang.admits(&draft.config.gang, &one.template));
        gang.is_none_or(admits)
    };
    let missing = || roster.slots.iter().filter(|slot| slot.standing == Standing::Missing);
    for slot in missing().filter(is_admitted) {
        let due = due(&draft.status, slot, scope, draft.config);
        if draft.now < due {
            plan.look_again(due);
            continue;
        }
        if batch.is_full() {
            plan.goes_on = true;
            break;
        }
        overridden |= builder
            .spec
            .replicas
            .get(&slot.id.kind)
            .is_some_and(|replicas| replicas.template_policy_overridden);
        let pod = builder.pod(slot.id, &draft.status).map(|one| batch.add(one));
        stage.writes.extend(pod.map(|one| Write::Create(Child::Pod, one)));
    }
    if overridden {
        stage.events.push(Event::warning(
            "SettedPodTemplateRestartPolicy",
            "Restart policy in pod template will be overwritten by restart policy in replica spec",
        ));
    }
    !missing().all(|slot| is_admitted(&slot))
}

/// Whether changed counts have been held back long enough.
fn counts_are_due(draft: &Draft<'_>, plan: &mut Plan) -> bool {
    if draft.before == draft.status {
        return false;
    }
    let since = draft.seen.counts_pending_since.unwrap_or(draft.now);
    let delay = SignedDuration::from_millis(draft.config.counts_delay_ms);
    let due = since.checked_add(delay).unwrap_or(Timestamp::MAX);
    if draft.now >= due {
        return true;
    }
    plan.counts_pending = true;
    plan.look_again(due);
    false
}

fn look_ahead(draft: &Draft<'_>, spec: &TfJobSpec, roster: &Roster<'_>, plan: &mut Plan) {
    let limits = [
        limits::deadline(&spec.run_policy, &draft.status),
        limits::start_deadline(&spec.run_policy, &draft.status),
    ];
    for limit in limits.into_iter().flatten() {
        plan.look_again(limit);
    }
    for slot in &roster.slots {
        if let Standing::Ending(until) = slot.standing {
            plan.look_again(until);
        }
    }
}
