//! A group's members as they were last counted: what a decision would otherwise look up pod by pod,
//! for every group, every time.
//!
//! Owns counting once. `state` forgets it with every change of the group or of one of its members.

use crate::GroupKey;
use crate::facts::{Facts, Group, Record};
use crate::gang::Standing;
use crate::place::ordered;
use crate::serve::sum;
use crate::slots::Id;
use crate::vector::Vector;

/// What follows from a group and its members alone.
#[derive(Debug, Clone)]
pub(crate) struct Muster {
    pub(crate) standing: Standing,
    /// Since when members wait; nothing if none does.
    pub(crate) since: Option<i64>,
    /// The highest priority of its pods.
    pub(crate) priority: i64,
    /// What its members with a node have that stay.
    pub(crate) used: Vector,
    /// Members that wait and would make the group ready, if there are as many.
    pub(crate) chosen: Option<Vec<Id>>,
    /// What those ask for together.
    pub(crate) ask: Vector,
    /// The order in which they are placed, if they are of one shape.
    pub(crate) alike: Option<Vec<Id>>,
    /// Whether they may push others out.
    pub(crate) may_preempt: bool,
    /// Whether members with a node may be pushed out.
    pub(crate) may_go: bool,
    /// What a member that waits asks for and is not supported.
    pub(crate) beyond: Option<&'static str>,
    /// Whether members that wait mount claims.
    pub(crate) has_claims: bool,
}

impl Muster {
    pub(crate) fn of(key: &GroupKey, group: &Group, facts: &Facts) -> Self {
        let standing = Standing::of(key, group, facts);
        let records = |ids: &[Id]| -> Vec<&Record> {
            ids.iter().filter_map(|id| facts.record(*id)).collect()
        };
        let waiting = records(&standing.waiting);
        let members = group.members.iter().filter_map(|id| facts.record(*id));
        let chosen = standing.enough(facts, &standing.waiting);
        let wanted = chosen.as_deref().unwrap_or_default();
        let first = wanted.first().and_then(|id| Some(&facts.record(*id)?.shape));
        let is_alike = records(wanted)
            .iter()
            .all(|record| first.is_some_and(|first| std::sync::Arc::ptr_eq(first, &record.shape)));
        Self {
            since: waiting.iter().map(|record| record.pod.created).min(),
            priority: members.map(|record| record.pod.priority).max().unwrap_or(0),
            used: sum(facts, &standing.bound),
            ask: sum(facts, wanted),
            alike: (is_alike && !wanted.is_empty()).then(|| ordered(facts, wanted)),
            may_preempt: records(wanted).iter().all(|record| record.pod.may_preempt),
            may_go: records(&standing.bound).iter().all(|record| record.pod.is_preemptable),
            has_claims: waiting.iter().any(|record| !record.pod.claims.is_empty()),
            beyond: waiting.iter().find_map(|record| record.pod.beyond),
            chosen,
            standing,
        }
    }
}
