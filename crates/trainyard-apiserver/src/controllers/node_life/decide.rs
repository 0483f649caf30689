//! What a node's conditions and taints should be. Pure.

use super::view::{Condition, NodeSpec, NodeStatus, Taint};

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
pub(super) const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";

/// Conditions that only the node itself can tell.
const TOLD: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// Conditions that taint a node as long as they hold.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// What is to be written to a node; nothing where it is right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The conditions that change.
    pub(super) conditions: Vec<Condition>,
    /// All taints.
    pub(super) taints: Option<Vec<Taint>>,
}

/// Decides. `silent` tells that the node gave no sign of life for too long.
pub(super) fn decide(
    spec: &NodeSpec,
    status: &NodeStatus,
    created: Option<&str>,
    silent: bool,
    now: &str,
) -> Change {
    let conditions = if silent { unknown(status, created, now) } else { Vec::new() };
    let mut seen = status.clone();
    for condition in &conditions {
        seen.conditions.retain(|old| old.r#type != condition.r#type);
        seen.conditions.push(condition.clone());
    }
    Change { taints: taints(spec, &seen, now), conditions }
}

/// The conditions of a node that has fallen silent, those that change.
fn unknown(status: &NodeStatus, created: Option<&str>, now: &str) -> Vec<Condition> {
    let mut changed = Vec::new();
    for kind in TOLD {
        let there = status.conditions.iter().find(|condition| condition.r#type == kind);
        match there {
            Some(there) if there.status == "Unknown" => {}
            Some(there) => changed.push(Condition {
                status: "Unknown".to_owned(),
                reason: "NodeStatusUnknown".to_owned(),
                message: "Kubelet stopped posting node status.".to_owned(),
                last_transition_time: Some(now.to_owned()),
                ..there.clone()
            }),
            None => changed.push(Condition {
                r#type: kind.to_owned(),
                status: "Unknown".to_owned(),
                reason: "NodeStatusNeverUpdated".to_owned(),
                message: "Kubelet never posted node status.".to_owned(),
                last_heartbeat_time: created.map(str::to_owned),
                last_transition_time: Some(now.to_owned()),
            }),
        }
    }
    changed
}

/// The taints a node should have; `None` when it has them.
fn taints(spec: &NodeSpec, status: &NodeStatus, now: &str) -> Option<Vec<Taint>> {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    match status.ready().map(|ready| &*ready.status) {
        Some("True") => {}
        Some("False") => wanted.extend([(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)]),
        Some(_) => wanted.extend([(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)]),
        // It has not told yet: what it came with stays.
        None => {
            let has = |key: &str, effect: &str| {
                spec.taints.iter().any(|taint| taint.key == key && taint.effect == effect)
            };
            let both = [(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)];
            wanted.extend(both.into_iter().filter(|(key, effect)| has(key, effect)));
        }
    }
    for (kind, key) in PRESSURES {
        if status.conditions.iter().any(|c| c.r#type == kind && c.status == "True") {
            wanted.push((key, NO_SCHEDULE));
        }
    }
    if spec.unschedulable {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    let is_wanted = |taint: &Taint| wanted.contains(&(&*taint.key, &*taint.effect));
    let mut list: Vec<Taint> =
        spec.taints.iter().filter(|taint| !is_ours(taint) || is_wanted(taint)).cloned().collect();
    for (key, effect) in wanted {
        if !list.iter().any(|taint| taint.key == key && taint.effect == effect) {
            list.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: Some(now.to_owned()),
                ..Taint::default()
            });
        }
    }
    (list != spec.taints).then_some(list)
}

/// Whether this controller sets and removes a taint.
fn is_ours(taint: &Taint) -> bool {
    match &*taint.effect {
        NO_EXECUTE => matches!(&*taint.key, NOT_READY | UNREACHABLE),
        NO_SCHEDULE => {
            matches!(&*taint.key, NOT_READY | UNREACHABLE | UNSCHEDULABLE)
                || PRESSURES.iter().any(|(_, key)| taint.key == *key)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn status(conditions: &[(&str, &str)]) -> NodeStatus {
        let condition = |(kind, status): &(&str, &str)| Condition {
            r#type: (*kind).to_owned(),
            status: (*status).to_owned(),
            ..Condition::default()
        };
        NodeStatus { conditions: conditions.iter().map(condition).collect() }
    }

    fn tainted(taints: &[(&str, &str)]) -> NodeSpec {
        let taint = |(key, effect): &(&str, &str)| Taint {
            key: (*key).to_owned(),
            effect: (*effect).to_owned(),
            ..Taint::default()
        };
        NodeSpec { taints: taints.iter().map(taint).collect(), unschedulable: false }
    }

    fn keys(change: &Change) -> Vec<(&str, &str)> {
        let taints = change.taints.iter().flatten();
        taints.map(|taint| (&*taint.key, &*taint.effect)).collect()
    }

    #[test]
    fn a_silent_node_is_unknown_and_tainted() {
        let seen = status(&[("Ready", "True"), ("MemoryPressure", "False")]);
        let change = decide(&tainted(&[]), &seen, Some("created"), true, NOW);
        let told: Vec<(&str, &str, &str)> =
            change.conditions.iter().map(|c| (&*c.r#type, &*c.status, &*c.reason)).collect();
        assert_eq!(
            told,
            [
                ("Ready", "Unknown", "NodeStatusUnknown"),
                ("MemoryPressure", "Unknown", "NodeStatusUnknown"),
                ("DiskPressure", "Unknown", "NodeStatusNeverUpdated"),
                ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
            ]
        );
        assert_eq!(change.conditions[2].last_heartbeat_time.as_deref(), Some("created"));
        assert_eq!(keys(&change), [(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)]);
        assert_eq!(change.taints.unwrap()[0].time_added.as_deref(), Some(NOW));
    }

    #[test]
    fn what_is_right_is_not_written() {
        let all = [
            ("Ready", "Unknown"),
            ("MemoryPressure", "Unknown"),
            ("DiskPressure", "Unknown"),
            ("PIDPressure", "Unknown"),
        ];
        let spec = tainted(&[(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)]);
        assert_eq!(decide(&spec, &status(&all), None, true, NOW), Change::default());
        let ready = status(&[("Ready", "True")]);
        assert_eq!(decide(&tainted(&[]), &ready, None, false, NOW), Change::default());
    }

    #[test]
    fn a_node_that_is_ready_loses_its_taints_but_not_those_of_others() {
        let spec = tainted(&[
            (NOT_READY, NO_SCHEDULE),
            ("mine", NO_EXECUTE),
            (UNREACHABLE, NO_EXECUTE),
            (OUT_OF_SERVICE, NO_EXECUTE),
        ]);
        let change = decide(&spec, &status(&[("Ready", "True")]), None, false, NOW);
        assert_eq!(keys(&change), [("mine", NO_EXECUTE), (OUT_OF_SERVICE, NO_EXECUTE)]);
    }

    #[test]
    fn not_ready_and_unreachable_change_places() {
        let spec = tainted(&[(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)]);
        let change = decide(&spec, &status(&[("Ready", "False")]), None, false, NOW);
        assert_eq!(keys(&change), [(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)]);
    }

    #[test]
    fn a_node_that_has_not_told_keeps_what_it_came_with() {
        let spec = tainted(&[(NOT_READY, NO_SCHEDULE)]);
        assert_eq!(decide(&spec, &status(&[]), None, false, NOW), Change::default());
        assert_eq!(decide(&tainted(&[]), &status(&[]), None, false, NOW), Change::default());
    }

    #[test]
    fn pressure_and_cordon_taint() {
        let mut spec = tainted(&[]);
        spec.unschedulable = true;
        let seen = status(&[("Ready", "True"), ("DiskPressure", "True")]);
        let change = decide(&spec, &seen, None, false, NOW);
        assert_eq!(
            keys(&change),
            [("node.kubernetes.io/disk-pressure", NO_SCHEDULE), (UNSCHEDULABLE, NO_SCHEDULE)]
        );
    }
}
