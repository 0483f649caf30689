//! A job that has ended: what is left of it goes, at last the job itself.
//!
//! Only deletes: nothing is ever created for an ended job. Must not judge pods.

use jiff::Timestamp;
use trainyard_api::{
    time::after_seconds,
    volcano::{JobSpec, VolcanoStatus},
};

use super::{aids, commands, counts, draft::Draft, kill};
use crate::plan::{Plan, Stage, Write};

/// Plans what is left to do. Records of pods and of what was dealt with are of no more use.
pub(super) fn plan(mut draft: Draft<'_>, spec: Option<&JobSpec>) -> Plan {
    let status = &mut draft.status;
    status.pods.clear();
    status.timers.clear();
    status.acted_on.clear();
    status.retired_group.clear();
    status.controlled_resources.retain(|key, _| key.starts_with("volume-"));
    counts::freeze(&mut draft);
    let mut plan = Plan::default();
    let writes = draft.write(&mut plan).into_iter().collect();
    plan.push(Stage { writes, events: std::mem::take(&mut draft.events) });
    let mut removals = kill::removals(&draft, &mut plan);
    removals.extend(aids::removals(draft.seen));
    plan.push(Stage { writes: removals, events: Vec::new() });
    plan.push(commands::clean_up(&draft));
    if let Some(expiry) = spec.and_then(|spec| expiry(spec, &draft.status)) {
        if draft.now >= expiry {
            let meta = draft.meta();
            let delete = Write::DeleteJob(aids::delete(&meta.name, &meta.uid));
            plan.push(Stage { writes: vec![delete], events: Vec::new() });
        } else {
            plan.look_again(expiry);
        }
    }
    plan
}

/// When the ended job is to be deleted, if ever.
fn expiry(spec: &JobSpec, status: &VolcanoStatus) -> Option<Timestamp> {
    let ended = status.conditions.iter().rev().find(|record| record.status.is_finished());
    let ended = ended.and_then(|record| record.last_transition_time);
    let ended = ended.or(status.state.last_transition_time)?;
    Some(after_seconds(ended, spec.ttl_seconds?))
}
