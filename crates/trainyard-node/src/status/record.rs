//! The record of a pod: what each of its containers is doing, did before, and how often.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};

/// Scheme of the container ids in a status.
pub(super) const ID_SCHEME: &str = "trainyard://";

/// All that is known of a pod here.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PodRecord {
    /// Init containers, in order.
    pub(crate) init: Vec<ContainerRecord>,
    /// The others.
    pub(crate) containers: Vec<ContainerRecord>,
    /// Its address, once it has one.
    pub(crate) pod_ip: Option<Ipv4Addr>,
    /// The address of its node.
    pub(crate) host_ip: Option<Ipv4Addr>,
    /// When the node took it in.
    pub(crate) started: Option<Timestamp>,
    /// The node ended it, whatever its containers did.
    pub(crate) verdict: Option<Verdict>,
    /// It is being ended: nothing is started any more.
    pub(crate) ending: bool,
}

/// Why the node ended a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// As `DeadlineExceeded`.
    pub(crate) reason: String,
    /// In words.
    pub(crate) message: String,
    /// It was the machine's doing, not the program's: told by a `DisruptionTarget` condition.
    pub(crate) disruption: bool,
}

/// One container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContainerRecord {
    pub(crate) name: String,
    pub(crate) image: String,
    /// What stands in for the image, once known.
    pub(crate) image_id: String,
    /// The run that `state` is about; empty before the first.
    pub(crate) id: String,
    pub(crate) state: State,
    pub(crate) last: Option<Terminated>,
    pub(crate) restarts: i32,
    pub(crate) ready: bool,
    /// Its startup probe has passed, or it has none.
    pub(crate) started: bool,
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    /// Not running yet, or not again.
    Waiting {
        /// As `ContainerCreating`.
        reason: String,
        /// In words; may be empty.
        message: String,
    },
    /// Running since then.
    Running(Timestamp),
    /// Ended, and not to be run again as far as is known.
    Terminated(Terminated),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Terminated {
    pub(crate) exit_code: i32,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Timestamp,
    pub(crate) id: String,
}

impl PodRecord {
    /// The record of a pod that is new here, or that an agent before this one has run: whatever ran
    /// then has died with it. Also says whether anything was lost so.
    pub(crate) fn take_over(pod: &Pod, now: Timestamp) -> (Self, bool) {
        let spec = pod.spec.clone().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let creating =
            if spec.init_containers.is_some() { "PodInitializing" } else { "ContainerCreating" };
        let mut lost = false;
        let mut read = |name: &str, image: Option<&str>, known: &Option<Vec<ContainerStatus>>| {
            let known = known.iter().flatten().find(|status| status.name == name);
            let record = ContainerRecord::new(name, image.unwrap_or_default(), creating);
            match known {
                Some(known) => record.with_past(known, now, &mut lost),
                None => record,
            }
        };
        let init = spec.init_containers.iter().flatten();
        let finished = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let record = Self {
            init: init
                .map(|c| read(&c.name, c.image.as_deref(), &status.init_container_statuses))
                .collect(),
            containers: (spec.containers.iter())
                .map(|c| read(&c.name, c.image.as_deref(), &status.container_statuses))
                .collect(),
            started: status.start_time.as_ref().map(|time| time.0),
            verdict: written_verdict(&status),
            ending: finished,
            ..Self::default()
        };
        (record, lost)
    }

    /// All containers, init ones first.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut ContainerRecord> {
        self.init.iter_mut().chain(&mut self.containers)
    }

    /// The container of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&ContainerRecord> {
        self.init.iter().chain(&self.containers).find(|container| container.name == name)
    }

    /// The container of this name, to change it.
    pub(crate) fn find_mut(&mut self, name: &str) -> Option<&mut ContainerRecord> {
        self.all_mut().find(|container| container.name == name)
    }
}

impl ContainerRecord {
    fn new(name: &str, image: &str, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            image: image.to_owned(),
            image_id: String::new(),
            id: String::new(),
            state: State::Waiting { reason: reason.to_owned(), message: String::new() },
            last: None,
            restarts: 0,
            ready: false,
            started: false,
        }
    }

    fn with_past(mut self, known: &ContainerStatus, now: Timestamp, lost: &mut bool) -> Self {
        self.restarts = known.restart_count;
        self.last = known.last_state.as_ref().and_then(read_terminated);
        self.image_id.clone_from(&known.image_id);
        let Some(state) = &known.state else { return self };
        if let Some(terminated) = read_terminated(state) {
            self.id.clone_from(&terminated.id);
            self.state = State::Terminated(terminated);
        } else if let Some(running) = &state.running {
            *lost = true;
            let id = known.container_id.as_deref().unwrap_or_default();
            id.strip_prefix(ID_SCHEME).unwrap_or(id).clone_into(&mut self.id);
            self.state = State::Terminated(Terminated {
                exit_code: 137,
                signal: None,
                reason: "ContainerStatusUnknown".to_owned(),
                message: "The container was lost: the agent that ran it ended without stopping it"
                    .to_owned(),
                started: running.started_at.as_ref().map(|time| time.0),
                finished: now,
                id: self.id.clone(),
            });
        }
        self
    }

    /// One more run begins: all but the first are restarts.
    pub(crate) fn count_run(&mut self) {
        if self.last_run().is_some() {
            self.restarts += 1;
        }
    }

    /// How the last run ended, whether or not another is being prepared.
    pub(crate) fn last_run(&self) -> Option<&Terminated> {
        match &self.state {
            State::Terminated(terminated) => Some(terminated),
            State::Waiting { .. } => self.last.as_ref(),
            State::Running(_) => None,
        }
    }

    /// Moves to another state; a run that ended becomes the last one.
    pub(crate) fn move_to(&mut self, state: State) {
        if let State::Terminated(terminated) = &self.state
            && !matches!(state, State::Terminated(_))
        {
            self.last = Some(terminated.clone());
        }
        if !matches!(state, State::Running(_)) {
            self.ready = false;
            self.started = false;
        }
        self.state = state;
    }
}

/// The verdict that stands in a status: what has failed once does not run again.
fn written_verdict(status: &PodStatus) -> Option<Verdict> {
    let reason = status.reason.clone().filter(|_| status.phase.as_deref() == Some("Failed"))?;
    let mut conditions = status.conditions.iter().flatten();
    Some(Verdict {
        reason,
        message: status.message.clone().unwrap_or_default(),
        disruption: conditions.any(|condition| condition.type_ == "DisruptionTarget"),
    })
}

fn read_terminated(state: &ContainerState) -> Option<Terminated> {
    let known = state.terminated.as_ref()?;
    let id = known.container_id.as_deref().unwrap_or_default();
    Some(Terminated {
        exit_code: known.exit_code,
        signal: known.signal,
        reason: known.reason.clone().unwrap_or_default(),
        message: known.message.clone().unwrap_or_default(),
        started: known.started_at.as_ref().map(|time| time.0),
        finished: known.finished_at.as_ref().map(|time| time.0).unwrap_or_default(),
        id: id.strip_prefix(ID_SCHEME).unwrap_or(id).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "OnFailure"},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_new_pod_is_being_created() {
        let (record, lost) = PodRecord::take_over(&pod(&json!({})), Timestamp::UNIX_EPOCH);
        assert!(!lost);
        let expected =
            State::Waiting { reason: "ContainerCreating".into(), message: String::new() };
        assert_eq!(record.containers[0].state, expected);
    }

    #[test]
    fn what_ran_under_an_agent_before_is_lost_and_counted_on() {
        let now: Timestamp = "2026-01-01T00:00:09Z".parse().unwrap();
        let (record, lost) = PodRecord::take_over(
            &pod(&json!({"startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{
                "name": "a", "image": "i", "imageID": "x", "ready": true, "restartCount": 2,
                "containerID": "trainyard://c-2",
                "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}},
            }]})),
            now,
        );
        assert!(lost);
        let container = &record.containers[0];
        assert_eq!((container.restarts, container.id.as_str()), (2, "c-2"));
        let State::Terminated(ended) = &container.state else { panic!("{:?}", container.state) };
        assert_eq!((ended.exit_code, ended.finished), (137, now));
        assert_eq!(ended.reason, "ContainerStatusUnknown");
    }

    #[test]
    fn what_had_ended_is_read_as_it_was() {
        let status = json!({"containerStatuses": [{
            "name": "a", "image": "i", "imageID": "x", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 3, "finishedAt": "2026-01-01T00:00:01Z"}},
        }]});
        let (record, lost) = PodRecord::take_over(&pod(&status), Timestamp::UNIX_EPOCH);
        assert!(!lost);
        assert_eq!(record.containers[0].last_run().map(|run| run.exit_code), Some(3));
    }

    #[test]
    fn what_had_failed_does_not_run_again() {
        use crate::status::{Phase, phase};
        let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
        let stopped = json!({"terminated": {"exitCode": 0}});
        for (state, reason, expected) in [
            (&waiting, json!("OutOfcpu"), Phase::Failed),
            (&stopped, json!("Terminated"), Phase::Failed),
            (&stopped, json!(null), Phase::Succeeded),
        ] {
            let status = json!({
                "phase": expected.name(), "reason": reason,
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{
                    "name": "a", "image": "i", "imageID": "x", "ready": false, "restartCount": 0,
                    "state": state,
                }],
            });
            let (record, _) = PodRecord::take_over(&pod(&status), Timestamp::UNIX_EPOCH);
            assert_eq!(phase(&record, "Always"), expected, "{reason}");
            let told = record.verdict.map(|verdict| (json!(verdict.reason), verdict.disruption));
            assert_eq!(told, (!reason.is_null()).then_some((reason, true)));
        }
    }
}
