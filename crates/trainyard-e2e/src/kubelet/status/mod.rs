//! Pod statuses as a kubelet, a scheduler or the node controller writes them. Pure.
//!
//! Each is made from the pod as it is: counts of restarts, ends and times of before are kept, as a
//! kubelet keeps them.

mod conditions;
mod container;
mod farewell;
mod others;

use serde_json::{Value, json};

use crate::seen::text;
use conditions::Facts;
pub(super) use container::Doing;
pub use container::End;
pub(super) use farewell::farewell;
pub(super) use others::{disrupted, turned, unschedulable};

/// The name of the container that trains: this one's, or the first one's.
fn main_name(pod: &Value) -> &str {
    let all = list(&pod["spec"]["containers"]);
    let main = all.iter().find(|spec| spec["name"] == "tensorflow").or_else(|| all.first());
    main.map_or("", |spec| text(&spec["name"]))
}

/// Why a kubelet ends a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Why<'a> {
    /// In one word.
    pub(super) reason: &'a str,
    /// In words for people.
    pub(super) message: &'a str,
    /// Whether it says that this was no fault of the pod.
    pub(super) is_marked: bool,
}

/// What a kubelet publishes of a pod at one moment. Of containers that are not named it says what it
/// said before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moment<'a> {
    /// The phase; that of a pod which has ended as its containers have, if none.
    pub(super) phase: Option<&'a str>,
    /// Whether there is a sandbox.
    pub(super) has_sandbox: bool,
    /// The init container whose turn it is, by its place, and what it does.
    pub(super) init: Option<(usize, Doing<'a>)>,
    /// What the container that trains does.
    pub(super) main: Doing<'a>,
    /// What the containers beside it do.
    pub(super) beside: Doing<'a>,
    /// Why the pod ends.
    pub(super) why: Option<Why<'a>>,
}

impl<'a> Moment<'a> {
    /// Nothing has started.
    pub(super) fn pending(has_sandbox: bool) -> Self {
        Self { phase: Some("Pending"), has_sandbox, ..Self::default() }
    }

    /// An init container does something.
    pub(super) fn initializing(place: usize, doing: Doing<'a>) -> Self {
        Self { init: Some((place, doing)), ..Self::pending(true) }
    }

    /// The container that trains does something; the others do what they did.
    pub(super) fn running(main: Doing<'a>) -> Self {
        Self { phase: Some("Running"), has_sandbox: true, main, ..Self::default() }
    }

    /// All containers have ended; the sandbox is still there.
    pub(super) fn ending(end: End<'a>) -> Self {
        Self { beside: Doing::Ended(End::by(0)), ..Self::running(Doing::Ended(end)) }
    }

    /// The pod has ended and its sandbox is gone. What still ran was stopped and ended like this.
    pub(super) fn over(end: End<'a>) -> Self {
        let beside = Doing::Stopped(End::by(0));
        Self { main: Doing::Stopped(end), beside, ..Self::default() }
    }

    /// The kubelet ends the pod, and says so before its containers have ended.
    pub(super) fn stopping(why: Why<'a>) -> Self {
        Self { phase: Some("Failed"), has_sandbox: true, why: Some(why), ..Self::default() }
    }

    /// The kubelet has ended the pod.
    pub(super) fn stopped(end: End<'a>, why: Why<'a>) -> Self {
        Self { phase: Some("Failed"), why: Some(why), ..Self::over(end) }
    }

    /// The patch that publishes it at that time.
    pub(super) fn patch(&self, pod: &Value, at: &str) -> Value {
        let (init, containers) = (self.init(pod, at), self.containers(pod, at));
        let unready: Vec<&str> = containers
            .iter()
            .filter(|status| status["ready"] != true)
            .map(|status| text(&status["name"]))
            .collect();
        let phase = self.phase.unwrap_or_else(|| final_phase(&containers));
        let facts = Facts {
            phase,
            has_sandbox: self.has_sandbox,
            is_initialized: init.iter().all(|status| status["ready"] == true),
            unready: &unready,
        };
        let mut conditions = conditions::of_kubelet(pod, &facts, at);
        let start = pod["status"]["startTime"].as_str().unwrap_or(at);
        let mut status = json!({"phase": phase, "startTime": start});
        if let Some(why) = self.why {
            (status["reason"], status["message"]) = (why.reason.into(), why.message.into());
            if why.is_marked {
                let reason = "TerminationByKubelet";
                conditions = conditions::marked(conditions, reason, why.message, at);
            }
        }
        if !init.is_empty() {
            status["initContainerStatuses"] = init.into();
        }
        (status["conditions"], status["containerStatuses"]) =
            (conditions.into(), containers.into());
        json!({"status": status})
    }

    fn init(&self, pod: &Value, at: &str) -> Vec<Value> {
        let mut all = statuses(pod, INIT, at, |place, _| match self.init {
            Some((turn, doing)) if turn == place => doing,
            _ => Doing::Same,
        });
        for status in &mut all {
            // Of an init container it means that its work is done.
            status["ready"] = (container::exit_code(status) == Some(0)).into();
        }
        all
    }

    fn containers(&self, pod: &Value, at: &str) -> Vec<Value> {
        let main = main_name(pod);
        let doing = |_, name: &str| if name == main { self.main } else { self.beside };
        let mut all = statuses(pod, CONTAINERS, at, doing);
        all.sort_by(|one, other| text(&one["name"]).cmp(text(&other["name"])));
        all
    }
}

/// The phase of a pod whose containers have all ended.
fn final_phase(containers: &[Value]) -> &'static str {
    let is_well = |status: &Value| container::exit_code(status) == Some(0);
    if containers.iter().all(is_well) { "Succeeded" } else { "Failed" }
}

/// What containers wait for that have not started.
fn turn(pod: &Value) -> &'static str {
    let has_init = !list(&pod["spec"][INIT[0]]).is_empty();
    if has_init { "PodInitializing" } else { "ContainerCreating" }
}

const INIT: [&str; 2] = ["initContainers", "initContainerStatuses"];
const CONTAINERS: [&str; 2] = ["containers", "containerStatuses"];

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// One status for each container of a list; `doing` is asked for each by place and name.
fn statuses<'a>(
    pod: &Value,
    [specs, said]: [&str; 2],
    at: &str,
    doing: impl Fn(usize, &str) -> Doing<'a>,
) -> Vec<Value> {
    let (turn, before) = (turn(pod), list(&pod["status"][said]));
    let status = |(place, spec): (usize, &Value)| {
        let name = text(&spec["name"]);
        let before = before.iter().find(|status| status["name"] == name).unwrap_or(&Value::Null);
        container::status(spec, before, doing(place, name), turn, at)
    };
    list(&pod["spec"][specs]).iter().enumerate().map(status).collect()
}

/// How often the container that trains was restarted in place.
pub(super) fn restarts(pod: &Value) -> i64 {
    main(pod)["restartCount"].as_i64().unwrap_or(0)
}

/// Whether the container that trains runs.
pub(super) fn runs(pod: &Value) -> bool {
    container::runs(main(pod))
}

fn main(pod: &Value) -> &Value {
    let all = list(&pod["status"][CONTAINERS[1]]);
    all.iter().find(|status| status["name"] == main_name(pod)).unwrap_or(&Value::Null)
}

/// Whether a kubelet has said something of the containers.
pub(super) fn is_known(pod: &Value) -> bool {
    pod["status"][CONTAINERS[1]].is_array()
}

/// The kubelet does not take the pod; it says nothing of containers, nor any condition.
pub(super) fn rejected(pod: &Value, reason: &str, message: &str, at: &str) -> Value {
    json!({"status": {
        "phase": "Failed", "reason": reason, "message": format!("Pod was rejected: {message}"),
        "startTime": at, "conditions": conditions::foreign(pod),
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod after these moments.
    pub(super) fn after(mut pod: Value, moments: &[Moment<'_>]) -> Value {
        for moment in moments {
            for (key, value) in
                moment.patch(&pod, "2026-01-01T00:00:00Z")["status"].as_object().unwrap()
            {
                pod["status"][key] = value.clone();
            }
        }
        pod
    }

    pub(super) fn pod() -> Value {
        json!({"spec": {"containers": [
            {"name": "tensorflow", "image": "a"}, {"name": "proxy", "image": "b"}]}})
    }

    pub(super) fn codes(pod: &Value) -> Vec<Option<i64>> {
        list(&pod["status"]["containerStatuses"]).iter().map(container::exit_code).collect()
    }

    pub(super) const ALL_RUN: Moment<'_> = Moment {
        phase: Some("Running"),
        has_sandbox: true,
        init: None,
        main: Doing::Runs,
        beside: Doing::Runs,
        why: None,
    };

    #[test]
    fn only_the_training_container_fails() {
        let end = End { code: 3, reason: "", message: "boom" };
        let ended = after(pod(), &[ALL_RUN, Moment::ending(end)]);
        assert_eq!(ended["status"]["phase"], "Running");
        assert_eq!(codes(&ended), [Some(0), Some(3)], "by name");
        let ends = &ended["status"]["containerStatuses"];
        assert_eq!(ends[0]["state"]["terminated"]["reason"], "Completed");
        assert_eq!(ends[1]["state"]["terminated"]["message"], "boom");
        let over = after(ended, &[Moment::over(End::by(0))]);
        assert_eq!((&over["status"]["phase"], codes(&over)[1]), (&json!("Failed"), Some(3)));
    }
}
