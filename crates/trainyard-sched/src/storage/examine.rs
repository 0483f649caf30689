//! Whether a node will do for a pod's claims, and which volumes they would get there.

use std::collections::BTreeSet;

use super::drivers::CsiDriver;
use super::{Claim, ClaimKey, Storage, Volume, limits};
use crate::Node;
use crate::facts::{Facts, Record, Stand};
use crate::fit::Obstacle;
use crate::room::{Board, View};
use crate::slots::Id;

/// Labels of volumes that say where they are, and what they are called on nodes today.
const ZONES: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];
/// What separates the zones of one volume.
const SEPARATOR: &str = "__";

/// What a claim gets on a node: a volume, or one is provisioned there.
pub(crate) type Choice = (ClaimKey, Option<String>);

/// How a pod's claims are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) view: View,
    /// Whether nodes that claims are provisioned for do not count.
    pub(crate) ignores_selected: bool,
}

/// Whether a pod has to be looked at by itself because of its claims: not all of them are bound, one
/// is for a single pod, or nodes have limits for its volumes.
pub(crate) fn matters(record: &Record, facts: &Facts) -> bool {
    let (claims, disks) = (&record.pod.claims, &record.pod.disks);
    if (claims.is_empty() && disks.is_empty()) || !facts.config.knows_volumes {
        return false;
    }
    let storage = &facts.storage;
    let is_special = |claim: &Claim| !claim.is_bound() || claim.is_for_one_pod();
    storage.claims_of(&record.pod).any(|(_, claim)| is_special(claim))
        || limits::could_matter(storage)
}

/// Why the volumes that a pod's claims are bound to cannot be used from a node.
pub(crate) fn bars(
    namespace: &str,
    claims: &[String],
    node: &Node,
    facts: &Facts,
) -> Option<Obstacle> {
    let storage = &facts.storage;
    for name in claims {
        let claim = storage.claims.get(&(namespace.to_owned(), name.clone()));
        let Some(claim) = claim.filter(|claim| claim.is_bound()) else { continue };
        let Some(volume) = storage.volumes.get(claim.volume()) else {
            return Some(Obstacle::VolumeGone);
        };
        if !volume.is_reached_from(node) {
            return Some(Obstacle::Volume);
        }
        if !is_in_zone(volume, node) {
            return Some(Obstacle::Zone);
        }
    }
    None
}

/// Whether a volume's zone is the node's; a node without any is everywhere.
fn is_in_zone(volume: &Volume, node: &Node) -> bool {
    let labels = volume.labels();
    if labels.is_empty() || !ZONES.iter().any(|(label, _)| node.labels.contains_key(*label)) {
        return true;
    }
    ZONES.iter().all(|(label, today)| {
        let Some(zones) = labels.get(*label) else { return true };
        let at = node.labels.get(*label).or_else(|| node.labels.get(*today));
        at.is_some_and(|at| zones.split(SEPARATOR).any(|zone| zone == at))
    })
}

/// What the pod's claims that are not bound would get in a room, beside what is taken already.
pub(crate) fn examine(
    record: &Record,
    room: usize,
    board: &Board,
    facts: &Facts,
    question: Question,
) -> Result<Vec<Choice>, Obstacle> {
    let Some(node) = board.rooms.get(room).and_then(|room| room.node.as_ref()) else {
        return Ok(Vec::new());
    };
    let storage = &facts.storage;
    let mut open: Vec<(ClaimKey, &Claim)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (key, claim) in storage.claims_of(&record.pod) {
        if claim.is_for_one_pod() && is_in_use(&key, record, board, facts, question.view) {
            return Err(Obstacle::InUse);
        }
        if !claim.is_bound() && storage.waits_for_consumer(claim) && seen.insert(key.clone()) {
            open.push((key, claim));
        }
    }
    limits::check(record, room, board, facts, question)?;
    let mut choices: Vec<Choice> = Vec::new();
    let mut unmatched: Vec<(ClaimKey, &Claim)> = Vec::new();
    // The smallest first, for each to get the volume that fits it best.
    open.sort_by(|(one, a), (other, b)| (a.size, one).cmp(&(b.size, other)));
    for (key, claim) in open {
        let standing = standing_of(&key, claim, board, facts, question);
        match standing {
            Standing::Volume(volume) => {
                if !volume.is_reached_from(node) {
                    return Err(Obstacle::NoVolume);
                }
            }
            Standing::Node(at) if at == node.name => {}
            Standing::Named(at) if at == node.name => provision(storage, claim, node, board)?,
            Standing::Node(_) | Standing::Named(_) => {
                // One that several nodes may use is provisioned for one member of a gang; the others
                // go where its volume can be reached once it is there.
                let class = storage.classes.get(&claim.class);
                let is_shared = claim.is_for_many_nodes() && record.is_of_gang(facts);
                let is_allowed = class.is_some_and(|class| class.allows(&node.labels));
                if !(is_shared && is_allowed) {
                    return Err(Obstacle::NoVolume);
                }
            }
            Standing::Open if storage.assumed.is_refused(&key, &node.name) => {
                return Err(Obstacle::NoVolume);
            }
            Standing::Open => match matching(storage, claim, node, board, &choices) {
                Some(volume) => choices.push((key, Some(volume.name().to_owned()))),
                None => unmatched.push((key, claim)),
            },
        }
    }
    for (key, claim) in unmatched {
        provision(storage, claim, node, board)?;
        choices.push((key, None));
    }
    Ok(choices)
}

/// What is settled of a claim that has no volume yet.
enum Standing<'s> {
    Open,
    /// It gets this volume.
    Volume(&'s Volume),
    /// It is being provisioned for this node.
    Node(&'s str),
    /// It names this node; who has decided so is not known here.
    Named(&'s str),
}

fn standing_of<'s>(
    key: &ClaimKey,
    claim: &'s Claim,
    board: &'s Board,
    facts: &'s Facts,
    question: Question,
) -> Standing<'s> {
    let storage = &facts.storage;
    let volume = |name: Option<&str>| storage.volumes.get(name?).map(Standing::Volume);
    if let Some((at, given)) = board.claims.get(key) {
        let at = board.rooms.get(*at).map_or("", |room| room.name.as_str());
        return volume(given.as_deref()).unwrap_or(Standing::Node(at));
    }
    if question.ignores_selected {
        return Standing::Open;
    }
    if let Some((at, given)) = storage.assumed.binding(key) {
        return volume(given).unwrap_or(Standing::Node(at));
    }
    claim.selected.as_deref().map_or(Standing::Open, Standing::Named)
}

/// Whether another pod has a claim that is for one pod.
fn is_in_use(key: &ClaimKey, record: &Record, board: &Board, facts: &Facts, view: View) -> bool {
    let stays = |id: &Id| view == View::Now || !board.departed.contains(id);
    let others = facts.storage.users(key).filter(stays).filter_map(|id| facts.record(id));
    let has_it = |other: &Record| match other.stand() {
        Stand::Bound => view != View::Ever || !other.is_ours,
        Stand::Leaving => view == View::Now,
        _ => false,
    };
    let by_others =
        others.into_iter().any(|other| other.pod.uid != record.pod.uid && has_it(other));
    by_others || board.guests.get(key).is_some_and(|count| *count > 0)
}

/// The volume that a claim gets on a node: one that is kept for it, or the smallest that will do.
fn matching<'s>(
    storage: &'s Storage,
    claim: &Claim,
    node: &Node,
    board: &Board,
    chosen: &[Choice],
) -> Option<&'s Volume> {
    let mut best: Option<&Volume> = None;
    let listed = storage.by_class.get(&claim.class).into_iter().flatten();
    for volume in listed.filter_map(|name| storage.volumes.get(name)) {
        let name = volume.name();
        let is_taken = chosen.iter().any(|(_, taken)| taken.as_deref() == Some(name))
            || board.volumes.contains(name)
            || storage.assumed.has_volume(name);
        let is_for_it = volume.is_for(claim);
        if is_taken || !volume.could_serve(claim) || !(is_for_it || volume.is_free_for(claim)) {
            continue;
        }
        let is_reached = volume.is_reached_from(node);
        if is_for_it {
            return is_reached.then_some(volume);
        }
        if is_reached && best.is_none_or(|best| volume.size < best.size) {
            best = Some(volume);
        }
    }
    best
}

/// Whether a volume for a claim could be provisioned for a node.
fn provision(storage: &Storage, claim: &Claim, node: &Node, board: &Board) -> Result<(), Obstacle> {
    let class = storage.classes.get(&claim.class).ok_or(Obstacle::NoVolume)?;
    let provisioner = class.provisioner().ok_or(Obstacle::NoVolume)?;
    if !class.allows(&node.labels) {
        return Err(Obstacle::NoVolume);
    }
    let is_told = storage.drivers.get(provisioner).is_some_and(CsiDriver::tells_capacity);
    let Some(size) = claim.size.filter(|_| is_told) else { return Ok(()) };
    let about = storage.capacities.values().filter(|one| one.is_about(&claim.class, &node.labels));
    let has_space = about.into_iter().any(|space| {
        // What others of the same decision are to get there is as good as taken.
        let others = board.claims.iter().filter_map(|(key, (room, volume))| {
            let at = board.rooms.get(*room)?.node.as_ref()?;
            let other = storage.claims.get(key).filter(|_| volume.is_none())?;
            space.is_about(&other.class, &at.labels).then_some(other.size?)
        });
        space.covers(size, others.sum())
    });
    if has_space { Ok(()) } else { Err(Obstacle::NoSpace) }
}
