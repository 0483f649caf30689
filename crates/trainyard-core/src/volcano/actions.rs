//! Carrying out what Commands, policies and timers ask for, in the draft: who is to go and which
//! phase is entered. The writes follow from that.
//!
//! Must not decide which policy answers, nor what an action does in which phase.

use trainyard_api::volcano::{Action, JobPhase, JobSpec, PolicyEvent, TimerRecord};

use super::{
    commands,
    draft::Draft,
    events::Cause,
    kill, policy,
    state::{Effect, effect},
    timers,
};
use crate::plan::Event;

/// Why an action is carried out, and on what.
struct Order {
    action: Action,
    event: PolicyEvent,
    task: String,
    pod: String,
    words: String,
}

/// Carries out what is asked for now. When the whole job is ended, what was found of its pods has
/// lost its meaning.
pub(super) fn carry_out(draft: &mut Draft<'_>, spec: &JobSpec, causes: Vec<Cause>) {
    let version = draft.status.version;
    if let Some((action, words)) = commands::take(draft) {
        let (task, pod) = (String::new(), String::new());
        execute(
            draft,
            spec,
            &Order { action, event: PolicyEvent::CommandIssued, task, pod, words },
        );
    }
    timers::call_off(draft);
    for timer in timers::due(draft) {
        if draft.status.version == version {
            execute(draft, spec, &Order::from(timer));
        }
    }
    for cause in causes {
        if draft.status.version != version {
            break;
        }
        let Some((policy, event)) = policy::answer(spec, &cause) else {
            continue;
        };
        if let Some(ms) = policy.timeout_ms.filter(|ms| *ms > 0) {
            timers::arm(draft, policy, event, &cause, ms);
        } else {
            let Cause { task, pod, words, .. } = cause;
            execute(draft, spec, &Order { action: policy.action, event, task, pod, words });
        }
    }
}

impl From<TimerRecord> for Order {
    fn from(timer: TimerRecord) -> Self {
        let TimerRecord { action, event, task, pod, .. } = timer;
        let words = match event {
            PolicyEvent::PodPending => format!("Pod {pod} has been pending for too long."),
            _ if pod.is_empty() => "It was not over in time.".to_owned(),
            _ => format!("Pod {pod} did not come back in time."),
        };
        Self { action, event, task, pod, words }
    }
}

fn execute(draft: &mut Draft<'_>, spec: &JobSpec, order: &Order) {
    let effect = effect(draft.phase(), order.action);
    let is_retry = match effect {
        Effect::Nothing => return,
        Effect::Kill { is_retry, .. } => is_retry,
        Effect::KillTarget { is_retry } => {
            let target = if order.action == Action::RestartPod { &order.pod } else { &order.task };
            if target.is_empty() {
                return;
            }
            is_retry
        }
    };
    let message = format!("Start to execute action {} ", order.action.as_str());
    draft.events.push(Event::normal("ExecuteAction", message));
    let to = if let Effect::Kill { retain, to, .. } = effect {
        kill::all(draft, spec, retain);
        to
    } else {
        if order.action == Action::RestartPod {
            kill::pod(draft, &order.pod);
        } else {
            kill::task(draft, spec, &order.task);
        }
        timers::supersede(draft, order.action, &order.task, &order.pod);
        JobPhase::Restarting
    };
    draft.status.retry_count += i64::from(is_retry);
    if to != draft.phase() {
        let reason = format!("{:?}", order.event);
        draft.enter(to, &reason, format!("{}: {}", order.action.as_str(), order.words));
    }
}
