//! What is said, in the words of kube-scheduler and Volcano.

use std::collections::BTreeMap;

/// `node(s) had untolerated taint(s) {key: value}`
pub(crate) fn taint(key: &str, value: &str) -> String {
    format!("node(s) had untolerated taint(s) {{{key}: {value}}}")
}

/// `1 Insufficient cpu, 2 Insufficient memory`: Go sorts the finished phrases as texts.
pub(crate) fn counted<N: std::fmt::Display>(reasons: &BTreeMap<N, usize>) -> String {
    let mut phrases: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    phrases.sort_unstable();
    phrases.join(", ")
}

/// `0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.`
pub(crate) fn unavailable(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    format!("0/{nodes} nodes are available: {}.", counted(reasons))
}

/// What is added for a pod that waits for its gang.
pub(crate) fn with_gang(message: &str, gang: &str, members: usize) -> String {
    let message = message.trim_end_matches('.');
    format!("{message}. The {members} pods of {gang:?} start all together or not at all.")
}

/// Volcano's sentence about a group: members by state, those that wait by cause, the first cause.
pub(crate) fn not_ready(
    states: &BTreeMap<&str, usize>,
    pending: &BTreeMap<&str, usize>,
    pod: &str,
    nodes: usize,
    reasons: &BTreeMap<String, usize>,
) -> String {
    format!(
        "pod group is not ready, {}; Pending: {}. Origin reason is {pod}: 0/{nodes} nodes are \
         unavailable: {}.",
        counted(states),
        counted(pending),
        counted(reasons)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted() {
        let reasons = [("Insufficient memory", 2), ("Insufficient cpu", 1)];
        let reasons = reasons.map(|(reason, count)| (reason.to_owned(), count)).into();
        assert_eq!(
            unavailable(2, &reasons),
            "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory."
        );
        assert_eq!(unavailable(0, &BTreeMap::new()), "no nodes available to schedule pods");
    }

    #[test]
    fn groups_are_described_as_volcano_does() {
        let reasons = [("Insufficient cpu".to_owned(), 2)].into();
        let states = [("Pending", 3), ("minAvailable", 3)].into();
        let text = not_ready(&states, &[("Unschedulable", 3)].into(), "j-ps-0", 2, &reasons);
        assert_eq!(
            text,
            "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Unschedulable. Origin \
             reason is j-ps-0: 0/2 nodes are unavailable: 2 Insufficient cpu."
        );
    }
}
