//! Whether the pods around a node are as a pod wants them: inter-pod affinity in both directions
//! and topology spread, by kube-scheduler's rules.
//!
//! A survey is made for one pod and holds until the next pod has been placed.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Facts, Record, Stand};
use crate::fit::Obstacle;
use crate::peer::{Neighbour, Spread, Term};
use crate::room::{Board, View};
use crate::taint::repelled;
use crate::{Node, Pod};

/// Where in the cluster a pod may go as far as other pods are concerned.
#[derive(Debug, Default)]
pub(crate) struct Survey<'p> {
    /// For each term of affinity: where somebody is who meets all of them.
    near: Vec<(&'p Term, BTreeSet<String>)>,
    /// Nobody meets the terms of affinity yet and the pod would meet them itself.
    is_first: bool,
    /// Where the pod does not want to be.
    away: BTreeSet<(String, String)>,
    /// Where others do not want the pod to be.
    unwelcome: BTreeSet<(String, String)>,
    spread: Vec<Evenness<'p>>,
}

#[derive(Debug)]
struct Evenness<'p> {
    rule: &'p Spread,
    counts: BTreeMap<String, i64>,
    least: i64,
    /// Whether the pod itself counts.
    own: i64,
}

/// Whether other pods matter for this one at all.
pub(crate) fn matters(record: &Record, board: &Board) -> bool {
    board.loners > 0 || !record.pod.peers.is_empty()
}

impl<'p> Survey<'p> {
    pub(crate) fn new(record: &'p Record, board: &Board, facts: &Facts, view: View) -> Self {
        let pod = &record.pod;
        let peers = &pod.peers;
        let mut survey = Self {
            near: peers.near.iter().map(|term| (term, BTreeSet::new())).collect(),
            spread: Vec::new(),
            ..Self::default()
        };
        let own = neighbour(pod, facts);
        for room in &board.rooms {
            let Some(node) = &room.node else { continue };
            for id in &room.pods {
                let Some(other) = facts.record(*id) else { continue };
                let is_gone = view != View::Now
                    && (other.stand() == Stand::Leaving || board.departed.contains(id));
                if !is_gone && other.pod.uid != pod.uid {
                    survey.note(pod, own, &other.pod, neighbour(&other.pod, facts), node);
                }
            }
        }
        survey.is_first = survey.near.iter().all(|(_, met)| met.is_empty())
            && peers.near.iter().all(|term| term.means(&pod.key.namespace, own));
        survey.spread =
            peers.spread.iter().map(|rule| evenness(rule, record, board, facts)).collect();
        survey
    }

    fn note(
        &mut self,
        pod: &Pod,
        own: Neighbour<'_>,
        other: &Pod,
        seen: Neighbour<'_>,
        node: &Node,
    ) {
        let place = |topology: &String| node.labels.get(topology).cloned();
        // As with kube-scheduler one pod has to meet all terms to count for any.
        if self.near.iter().all(|(term, _)| term.means(own.namespace, seen)) {
            for (term, met) in &mut self.near {
                met.extend(place(&term.topology));
            }
        }
        for term in &pod.peers.away {
            if term.may_mean(own.namespace, seen) {
                self.away.extend(place(&term.topology).map(|at| (term.topology.clone(), at)));
            }
        }
        for term in &other.peers.away {
            if term.may_mean(seen.namespace, own) {
                self.unwelcome.extend(place(&term.topology).map(|at| (term.topology.clone(), at)));
            }
        }
    }

    /// What is in the way on a node.
    pub(crate) fn obstacle(&self, node: &Node) -> Option<Obstacle> {
        let lies_in = |(topology, at): &(String, String)| node.labels.get(topology) == Some(at);
        for evenness in &self.spread {
            let Some(at) = node.labels.get(&evenness.rule.topology) else {
                return Some(Obstacle::UnevenLabel);
            };
            let count = evenness.counts.get(at).copied().unwrap_or(0);
            if count + evenness.own - evenness.least > evenness.rule.skew {
                return Some(Obstacle::Uneven);
            }
        }
        for (term, met) in &self.near {
            let at = node.labels.get(&term.topology);
            let is_met = at.is_some_and(|at| met.contains(at) || self.is_first);
            if !is_met {
                return Some(Obstacle::Near);
            }
        }
        if self.away.iter().any(lies_in) {
            return Some(Obstacle::Away);
        }
        self.unwelcome.iter().any(lies_in).then_some(Obstacle::Unwelcome)
    }
}

fn neighbour<'p>(pod: &'p Pod, facts: &'p Facts) -> Neighbour<'p> {
    let namespace = pod.key.namespace.as_str();
    let of_namespace = facts.namespaces.get(namespace).map(|known| &known.labels);
    Neighbour { namespace, labels: &pod.labels, of_namespace }
}

/// How many pods lie in each domain that counts for the pod.
fn evenness<'p>(
    rule: &'p Spread,
    record: &'p Record,
    board: &Board,
    facts: &Facts,
) -> Evenness<'p> {
    let pod = &record.pod;
    let rules = &pod.peers.spread;
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for room in &board.rooms {
        let Some(node) = &room.node else { continue };
        let has_all = rules.iter().all(|rule| node.labels.contains_key(&rule.topology));
        let excluded = rule.by_affinity && !pod.required.admits(&node.name, &node.labels);
        let tainted = rule.by_taints && repelled(&node.taints, &pod.tolerations).is_some();
        let Some(at) = node.labels.get(&rule.topology).filter(|_| has_all) else { continue };
        if excluded || tainted {
            continue;
        }
        let count = counts.entry(at.clone()).or_default();
        for id in room.pods.iter().filter(|id| !board.departed.contains(id)) {
            let Some(other) = facts.record(*id) else { continue };
            let meant = other.pod.key.namespace == pod.key.namespace
                && other.stand() != Stand::Leaving
                && other.pod.uid != pod.uid
                && rule.counts(&other.pod.labels);
            *count += i64::from(meant);
        }
    }
    let too_few = rule.domains.is_some_and(|least| counts.len() < least);
    let least = if too_few { 0 } else { counts.values().copied().min().unwrap_or(0) };
    Evenness { rule, counts, least, own: i64::from(rule.means(&pod.labels)) }
}
