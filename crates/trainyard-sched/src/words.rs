//! What is said, in the words of kube-scheduler and Volcano.

use std::{collections::BTreeMap, fmt};

use crate::{Amounts, Shortage, written};

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

/// Who is ahead in a queue that is served in order.
pub(crate) fn behind(queue: &str, first: &str) -> String {
    format!("queue {queue:?} is served in order (dequeueStrategy fifo) and {first:?} is ahead")
}

/// How many of a group's pods fit.
pub(crate) fn fitting(fit: usize, all: usize) -> String {
    format!("{fit} of {all} pods fit")
}

impl fmt::Display for Shortage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, asked, free, most_on_one_node, per_member } = self;
        if asked > free {
            return out.write_str(&too_little(resource, *asked, *free));
        }
        let (one, most, lack) = lack(resource, *per_member, *most_on_one_node);
        write!(
            out,
            "{resource}: {one} asked for in one pod, no node has more than {most} free: {lack} too little"
        )
    }
}

/// What is short, and by how much.
pub(crate) fn shortage(short: &Shortage) -> String {
    short.to_string()
}

/// The same of one resource, all nodes together.
pub(crate) fn too_little(resource: &str, asked: i64, free: i64) -> String {
    let (asked, free, lack) = lack(resource, asked, free);
    format!("{resource}: {asked} asked for, {free} free: {lack} too little")
}

/// What is asked for, what is free of it in round figures, and the difference between the two.
fn lack(resource: &str, asked: i64, free: i64) -> (String, String, String) {
    let free = Amounts::rounded(resource, free);
    let of = |amount: i64| written(resource, amount);
    (of(asked), of(free), of(asked.saturating_sub(free)))
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
    fn what_is_short_is_told_in_all_or_on_one_node() {
        let short = Shortage {
            resource: "cpu".to_owned(),
            asked: 8_000,
            free: 6_000,
            most_on_one_node: 3_000,
            per_member: 4_000,
        };
        assert_eq!(shortage(&short), "cpu: 8 asked for, 6 free: 2 too little");
        let spread = Shortage { free: 9_000, ..short };
        assert_eq!(
            shortage(&spread),
            "cpu: 4 asked for in one pod, no node has more than 3 free: 1 too little"
        );
    }

    #[test]
    fn what_nodes_have_free_is_told_in_round_figures() {
        let free = (3 << 30) + (7 << 10) + 5;
        assert_eq!(
            too_little("memory", 4 << 30, free),
            "memory: 4Gi asked for, 3Gi free: 1Gi too little"
        );
        assert_eq!(
            too_little("memory", 1 << 20, 5 << 10),
            "memory: 1Mi asked for, 5Ki free: 1019Ki too little"
        );
        assert_eq!(
            too_little("example.com/gpu", 8, 3),
            "example.com/gpu: 8 asked for, 3 free: 5 too little"
        );
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
