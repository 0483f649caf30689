//! The conditions of a pod, with the reasons and words a kubelet gives.

use super::{ContainerRecord, Phase, PodRecord, State};

/// A condition without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) holds: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    fn holds(kind: &'static str, reason: &'static str) -> Self {
        Self { kind, holds: true, reason, message: String::new() }
    }

    fn fails(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self { kind, holds: false, reason, message }
    }
}

/// The conditions of a pod in this phase.
pub(super) fn conditions(record: &PodRecord, phase: Phase) -> Vec<Condition> {
    let containers = containers_ready(record, phase);
    let mut conditions = vec![
        Condition::holds("PodScheduled", ""),
        initialized(record, phase),
        Condition { kind: "Ready", ..containers.clone() },
        containers,
    ];
    if let Some(verdict) = record.verdict.as_ref().filter(|verdict| verdict.disruption) {
        conditions.push(Condition {
            message: verdict.message.clone(),
            ..Condition::holds("DisruptionTarget", "TerminationByKubelet")
        });
    }
    conditions
}

fn initialized(record: &PodRecord, phase: Phase) -> Condition {
    const KIND: &str = "Initialized";
    if phase == Phase::Succeeded {
        return Condition::holds(KIND, "PodCompleted");
    }
    let open = record.init.iter().filter(|container| {
        let done = matches!(&container.state, State::Terminated(run) if run.exit_code == 0);
        !done
    });
    match names(open) {
        Some(names) => Condition::fails(
            KIND,
            "ContainersNotInitialized",
            format!("containers with incomplete status: [{names}]"),
        ),
        None => Condition::holds(KIND, ""),
    }
}

fn containers_ready(record: &PodRecord, phase: Phase) -> Condition {
    const KIND: &str = "ContainersReady";
    match phase {
        Phase::Succeeded => Condition::fails(KIND, "PodCompleted", String::new()),
        Phase::Failed => Condition::fails(KIND, "PodFailed", String::new()),
        Phase::Pending | Phase::Running => {
            match names(record.containers.iter().filter(|container| !container.ready)) {
                Some(names) => Condition::fails(
                    KIND,
                    "ContainersNotReady",
                    format!("containers with unready status: [{names}]"),
                ),
                None => Condition::holds(KIND, ""),
            }
        }
    }
}

fn names<'a>(containers: impl Iterator<Item = &'a ContainerRecord>) -> Option<String> {
    let names: Vec<&str> = containers.map(|container| container.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}
