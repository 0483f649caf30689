//! Staging the writes that follow from a pass: the status, what goes and what the pods need, pods.
//!
//! Pods are made when the PodGroup may run, for tasks that may start, and never while the job is
//! being restarted or ended. Must not know how objects are built.

use trainyard_api::volcano::{JobPhase, JobSpec};

use super::{
    aids, commands, depends,
    draft::Draft,
    events, finish, group, kill,
    objects::{Builder, pod_name},
    plugins::{self, Plugin, Scene},
    reasons, timers, volumes,
};
use crate::{
    batch::Batch,
    child::Child,
    plan::{Event, Plan, Stage, Write},
};

/// Stages the writes.
pub(super) fn stage(mut draft: Draft<'_>, spec: &JobSpec) -> Plan {
    if draft.phase().is_finished() {
        return finish::plan(draft, Some(spec));
    }
    let (plugins, warnings) = plugins::of(spec);
    let (is_kept, is_ending) = match draft.phase() {
        JobPhase::Pending | JobPhase::Running => (true, false),
        JobPhase::Restarting => (false, false),
        _ => (false, true),
    };
    control(&mut draft, spec, &plugins, is_ending);
    if draft.seen.groups.iter().all(|group| *group.uid != *draft.status.retired_group) {
        draft.status.retired_group.clear();
    }
    let mut plan = Plan::default();
    let mut needs = commands::clean_up(&draft);
    needs.writes.extend(kill::removals(&draft, &mut plan));
    let mut pods = Stage::default();
    if is_ending {
        needs.writes.extend(aids::removals(draft.seen));
    } else {
        needs.writes.extend(group::retired(&draft));
        plan.notices.extend(reasons::notice(&draft));
    }
    plan.notices.extend(reasons::lost(&draft));
    if is_kept {
        plan.notices.extend(warnings);
        let scene = Scene { meta: draft.meta(), spec, seen: draft.seen };
        for plugin in &plugins {
            needs.writes.extend(plugin.objects(&scene));
        }
        needs.writes.extend(volumes::missing(draft.seen, spec));
        let problem = volumes::problem(draft.seen, spec);
        if let Some(problem) = problem.filter(|_| draft.phase() == JobPhase::Pending) {
            let message = format!("Failed to create PVC, err: {problem}");
            plan.notices.push(Event::warning("PVCError", message));
        } else {
            needs.writes.extend(group::write(&draft, spec));
            let builder = Builder { scene, status: &draft.status, plugins: &plugins };
            (pods.writes, plan.goes_on) = missing(&draft, spec, &builder);
        }
    }
    let mut writes = needs.writes.iter().chain(&pods.writes);
    let is_short = writes.any(|write| matches!(write, Write::Create(..)));
    reasons::update(&mut draft, spec, is_short);
    let writes = draft.write(&mut plan).into_iter().collect();
    plan.push(Stage { writes, events: std::mem::take(&mut draft.events) });
    plan.push(needs);
    plan.push(pods);
    timers::look_ahead(&draft, &mut plan);
    events::look_ahead(&draft, &mut plan);
    plan
}

/// Pods that are to be made, as many as one plan may create, and whether there are more.
fn missing(draft: &Draft<'_>, spec: &JobSpec, builder: &Builder<'_>) -> (Vec<Write>, bool) {
    let mut writes = Vec::new();
    if !group::may_run(draft) {
        return (writes, false);
    }
    let job = &draft.meta().name;
    let mut batch = Batch::default();
    for task in depends::started(draft, spec) {
        for index in 0..task.replicas {
            let name = pod_name(job, &task.name, index);
            // A record without a pod is that of one that has done its work.
            if draft.status.pods.contains_key(&name) || draft.crew.has(&name) {
                continue;
            }
            if batch.is_full() {
                return (writes, true);
            }
            writes.push(Write::Create(Child::Pod, batch.add(builder.pod(task, index))));
        }
    }
    (writes, false)
}

/// Notes which plugins and claims the job has.
fn control(draft: &mut Draft<'_>, spec: &JobSpec, plugins: &[Box<dyn Plugin>], is_ending: bool) {
    let mut controlled = std::collections::BTreeMap::new();
    if !is_ending {
        for plugin in plugins {
            controlled.insert(format!("plugin-{}", plugin.name()), plugin.name().to_owned());
        }
    }
    for claim in volumes::names(draft.meta(), spec) {
        controlled.insert(format!("volume-pvc-{claim}"), claim);
    }
    draft.status.controlled_resources = controlled;
}
