//! Finds nodes for pods, all of them or none.
//!
//! The largest shape first, many of one shape at a time. Where that fails though it might not have
//! to, `search` tries other arrangements.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::around::{Survey, matters};
use crate::facts::{Facts, Record};
use crate::fit::{Obstacle, barred, capacity, has_room, obstacles};
use crate::room::{Board, View, Views};
use crate::score::{Worth, worth};
use crate::search::search;
use crate::slots::Id;
use crate::storage::{self, Choice};

/// Which pod goes to which room.
pub(crate) type Placed = Vec<(Id, usize)>;

/// The pod that does not fit, and how many nodes say why.
#[derive(Debug, Clone)]
pub(crate) struct Stuck {
    pub(crate) pod: Id,
    pub(crate) reasons: BTreeMap<Obstacle, usize>,
    /// How many pods could be placed before it.
    pub(crate) placed: usize,
}

/// What is known of the placing as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Request<'f> {
    pub(crate) facts: &'f Facts,
    /// When the room is to be free.
    pub(crate) view: View,
    /// Of which times the room is taken.
    pub(crate) views: Views,
    /// Whether nodes that are kept for others are out of bounds.
    pub(crate) is_kept_out: bool,
    /// Whether it is to be said why something does not fit.
    pub(crate) is_explained: bool,
    /// Whether nodes that claims are provisioned for do not count.
    pub(crate) ignores_selected: bool,
    /// Rooms with members of the group, and how many.
    pub(crate) companions: BTreeMap<usize, i64>,
}

impl Request<'_> {
    pub(crate) fn fits(&self, record: &Record, board: &Board, room: usize) -> bool {
        let Some(room) = board.rooms.get(room) else { return false };
        let Some(node) = &room.node else { return false };
        has_room(&record.shape, room, self.view, self.is_kept_out)
            && barred(&record.shape, node, self.facts).is_none()
    }

    /// What the pod's claims get in a room that have nothing yet, or why they get nothing there.
    pub(crate) fn choices(
        &self,
        record: &Record,
        board: &Board,
        room: usize,
    ) -> Result<Vec<Choice>, Obstacle> {
        if !storage::matters(record, self.facts) {
            return Ok(Vec::new());
        }
        let question =
            storage::Question { view: self.view, ignores_selected: self.ignores_selected };
        storage::examine(record, room, board, self.facts, question)
    }

    /// Puts a pod into a room for a time, with what its claims get there.
    pub(crate) fn take(&self, board: &mut Board, room: usize, id: Id, record: &Record) {
        let choices = self.choices(record, board, room).unwrap_or_default();
        board.take_with(room, &record.shape, self.views, Some(id), choices);
    }
}

/// A room for every pod. What is found is taken on the board; nothing is if not all fit.
pub(crate) fn place(
    request: &Request<'_>,
    board: &mut Board,
    pods: &[Id],
) -> Result<Placed, Stuck> {
    let mark = board.mark();
    let order = ordered(request.facts, pods);
    match one_by_one(request, board, &order) {
        Ok(placed) => Ok(placed),
        Err(stuck) => {
            board.undo(mark);
            search(request, board, &order).ok_or(stuck)
        }
    }
}

/// As many of the pods as find room.
pub(crate) fn place_some(request: &Request<'_>, board: &mut Board, pods: &[Id]) -> Placed {
    let mut left = ordered(request.facts, pods);
    let mut placed = Placed::new();
    while !left.is_empty() {
        let mut request = request.clone();
        for (_, room) in &placed {
            *request.companions.entry(*room).or_default() += 1;
        }
        let mark = board.mark();
        let stuck = match one_by_one(&request, board, &left) {
            Ok(found) => {
                placed.extend(found);
                return placed;
            }
            Err(stuck) => stuck,
        };
        board.undo(mark);
        let fit = left.iter().position(|id| *id == stuck.pod).unwrap_or(0);
        let (before, _) = left.split_at(fit);
        if let Ok(found) = one_by_one(&request, board, before) {
            placed.extend(found);
        }
        // Whatever is like the one that did not fit does not fit either.
        let shape = request.facts.record(stuck.pod).map(|record| record.shape.clone());
        left.drain(..fit);
        left.retain(|id| {
            let record = request.facts.record(*id);
            let is_like = record.zip(shape.as_ref()).is_some_and(|(record, shape)| {
                std::sync::Arc::ptr_eq(&record.shape, shape) && record.pod.peers.is_empty()
            });
            *id != stuck.pod && !is_like
        });
    }
    placed
}

/// The largest first, alike ones together, then by name.
pub(crate) fn ordered(facts: &Facts, pods: &[Id]) -> Vec<Id> {
    let mut known: Vec<(Id, &Record)> =
        pods.iter().filter_map(|id| Some((*id, facts.record(*id)?))).collect();
    known.sort_by(|(_, one), (_, other)| {
        let by_size = other.shape.size.cmp(&one.shape.size);
        // Most are of one shape, and a shape is long to compare.
        let is_same = std::sync::Arc::ptr_eq(&one.shape, &other.shape);
        let by_spec =
            || if is_same { Ordering::Equal } else { one.shape.spec.cmp(&other.shape.spec) };
        by_size.then_with(by_spec).then_with(|| one.pod.key.cmp(&other.pod.key))
    });
    known.into_iter().map(|(id, _)| id).collect()
}

fn one_by_one(request: &Request<'_>, board: &mut Board, order: &[Id]) -> Result<Placed, Stuck> {
    let facts = request.facts;
    let mut companions = request.companions.clone();
    let mut placed = Placed::new();
    let mut later: Vec<Id> = Vec::new();
    let mut rest = order;
    while let Some((first, _)) = rest.split_first() {
        let Some(record) = facts.record(*first) else { break };
        if matters(record, board) || storage::matters(record, facts) {
            // One that waits for another to be near comes after it.
            match alone(request, board, record, &companions) {
                Ok(room) => {
                    request.take(board, room, *first, record);
                    *companions.entry(room).or_default() += 1;
                    placed.push((*first, room));
                }
                Err(_) => later.push(*first),
            }
            rest = rest.split_at(1).1;
            continue;
        }
        let alike = |id: &&Id| {
            facts
                .record(**id)
                .is_some_and(|other| std::sync::Arc::ptr_eq(&other.shape, &record.shape))
        };
        let count = rest.iter().take_while(alike).count().max(1);
        let (batch, others) = rest.split_at(count);
        together(request, board, batch, record, &mut companions, &mut placed)?;
        rest = others;
    }
    again(request, board, later, &mut companions, &mut placed)?;
    Ok(placed)
}

/// Those that found no place at first, as long as each round finds one for somebody.
fn again(
    request: &Request<'_>,
    board: &mut Board,
    mut later: Vec<Id>,
    companions: &mut BTreeMap<usize, i64>,
    placed: &mut Placed,
) -> Result<(), Stuck> {
    while !later.is_empty() {
        let mut stuck = None;
        let before = later.len();
        let mut still = Vec::new();
        for id in later {
            let Some(record) = request.facts.record(id) else { continue };
            match alone(request, board, record, companions) {
                Ok(room) => {
                    request.take(board, room, id, record);
                    *companions.entry(room).or_default() += 1;
                    placed.push((id, room));
                }
                Err(reasons) => {
                    still.push(id);
                    stuck.get_or_insert(Stuck { pod: id, reasons, placed: 0 });
                }
            }
        }
        later = still;
        if let Some(stuck) = stuck.filter(|_| later.len() == before) {
            return Err(Stuck { placed: placed.len(), ..stuck });
        }
    }
    Ok(())
}

/// The best room for one pod that other pods matter to.
fn alone(
    request: &Request<'_>,
    board: &Board,
    record: &Record,
    companions: &BTreeMap<usize, i64>,
) -> Result<usize, BTreeMap<Obstacle, usize>> {
    let survey = if matters(record, board) {
        Survey::new(record, board, request.facts, request.view)
    } else {
        Survey::default()
    };
    let mut best = None;
    for (index, room) in board.rooms.iter().enumerate() {
        let Some(node) = &room.node else { continue };
        if !request.fits(record, board, index)
            || survey.obstacle(node).is_some()
            || request.choices(record, board, index).is_err()
        {
            continue;
        }
        let near = companions.get(&index).copied().unwrap_or(0);
        let worth = worth(&record.shape, room, node, request.view);
        let score = (worth.wishes, near, worth);
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, index));
        }
    }
    best.map(|(_, index)| index).ok_or_else(|| reasons(request, board, record, Some(&survey)))
}

/// Many pods of one shape: the room that takes the most of what is left, again and again.
fn together(
    request: &Request<'_>,
    board: &mut Board,
    batch: &[Id],
    record: &Record,
    companions: &mut BTreeMap<usize, i64>,
    placed: &mut Placed,
) -> Result<(), Stuck> {
    let shape = &record.shape;
    let most = i64::try_from(batch.len()).unwrap_or(i64::MAX);
    let mut rooms: Vec<(usize, i64, Worth)> = Vec::new();
    for (index, room) in board.rooms.iter().enumerate() {
        let Some(node) = &room.node else { continue };
        if has_room(shape, room, request.view, request.is_kept_out)
            && barred(shape, node, request.facts).is_none()
        {
            let fitting = capacity(shape, room, request.view, most);
            rooms.push((index, fitting, worth(shape, room, node, request.view)));
        }
    }
    let mut left = batch;
    while let Some((first, _)) = left.split_first() {
        let remaining = i64::try_from(left.len()).unwrap_or(i64::MAX);
        let score = |(index, fitting, worth): &(usize, i64, Worth)| {
            let near = companions.get(index).copied().unwrap_or(0);
            (worth.wishes, near, (*fitting).min(remaining), *worth, std::cmp::Reverse(*index))
        };
        let best = rooms.iter().enumerate().max_by_key(|(_, room)| score(room));
        let Some((at, (index, fitting, _))) = best.map(|(at, room)| (at, *room)) else {
            let reasons = reasons(request, board, record, None);
            return Err(Stuck { pod: *first, reasons, placed: placed.len() });
        };
        rooms.swap_remove(at);
        let count = usize::try_from(fitting).unwrap_or(0).clamp(1, left.len());
        let (here, elsewhere) = left.split_at(count);
        for id in here {
            board.take(index, shape, request.views, Some(*id));
            placed.push((*id, index));
        }
        *companions.entry(index).or_default() += fitting;
        left = elsewhere;
    }
    Ok(())
}

/// Why one more pod fits nowhere.
pub(crate) fn reasons(
    request: &Request<'_>,
    board: &Board,
    record: &Record,
    survey: Option<&Survey<'_>>,
) -> BTreeMap<Obstacle, usize> {
    let mut counts: BTreeMap<Obstacle, usize> = BTreeMap::new();
    if !request.is_explained {
        return counts;
    }
    let (view, is_kept_out) = (request.view, request.is_kept_out);
    let mut found = Vec::new();
    for (index, room) in board.rooms.iter().enumerate() {
        let Some(node) = &room.node else { continue };
        obstacles(&record.shape, room, view, is_kept_out, request.facts, &mut found);
        if found.is_empty() {
            found.extend(survey.and_then(|survey| survey.obstacle(node)));
        }
        if found.is_empty() {
            found.extend(request.choices(record, board, index).err());
        }
        for obstacle in found.drain(..) {
            *counts.entry(obstacle).or_default() += 1;
        }
    }
    counts
}
