//! Tries other arrangements when taking the best node for each pod has led nowhere.
//!
//! A bounded search: what it does not find within its steps is not found. Pods of one shape alone
//! need none, for they fit whatever the order.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::around::{Survey, matters};
use crate::facts::Record;
use crate::fit::{barred, capacity};
use crate::place::{Placed, Request};
use crate::room::Board;
use crate::slots::Id;

/// So many tries.
const STEPS: usize = 2_000;
/// Larger groups are not worth it: the tries would never reach their end.
const LARGEST: usize = 16;

pub(crate) fn search(request: &Request<'_>, board: &mut Board, order: &[Id]) -> Option<Placed> {
    let facts = request.facts;
    let records: Vec<(Id, &Record)> =
        order.iter().filter_map(|id| Some((*id, facts.record(*id)?))).collect();
    let (_, first) = records.first()?;
    let alike = records.iter().all(|(_, record)| Arc::ptr_eq(&record.shape, &first.shape));
    let entangled = records
        .iter()
        .any(|(_, record)| matters(record, board) || crate::storage::matters(record, facts));
    if records.len() > LARGEST || (alike && !entangled) || !enough(request, board, &records) {
        return None;
    }
    let mark = board.mark();
    let mut placed = Placed::new();
    let mut steps = STEPS;
    if deeper(request, board, &records, &mut placed, &mut steps) {
        return Some(placed);
    }
    board.undo(mark);
    None
}

/// Whether each shape by itself would find room: what fails here fails in every arrangement.
fn enough(request: &Request<'_>, board: &Board, records: &[(Id, &Record)]) -> bool {
    let mut shapes: BTreeMap<&Arc<crate::shape::Spec>, (i64, &Record)> = BTreeMap::new();
    for (_, record) in records {
        shapes.entry(&record.shape.spec).or_insert((0, record)).0 += 1;
    }
    shapes.values().all(|(count, record)| {
        let mut room_for = 0;
        for room in &board.rooms {
            let Some(node) = &room.node else { continue };
            if room_for >= *count {
                break;
            }
            if barred(&record.shape, node, request.facts).is_none() {
                room_for += capacity(&record.shape, room, request.view, *count);
            }
        }
        room_for >= *count
    })
}

fn deeper(
    request: &Request<'_>,
    board: &mut Board,
    left: &[(Id, &Record)],
    placed: &mut Placed,
    steps: &mut usize,
) -> bool {
    let Some(((id, record), rest)) = left.split_first() else { return true };
    let survey = if matters(record, board) {
        Survey::new(record, board, request.facts, request.view)
    } else {
        Survey::default()
    };
    let fitting: Vec<usize> = board
        .rooms
        .iter()
        .enumerate()
        .filter(|(index, room)| {
            let node = room.node.as_ref();
            request.fits(record, board, *index)
                && node.is_some_and(|node| survey.obstacle(node).is_none())
                && request.choices(record, board, *index).is_ok()
        })
        .map(|(index, _)| index)
        .collect();
    for room in fitting {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        let mark = board.mark();
        request.take(board, room, *id, record);
        placed.push((*id, room));
        if deeper(request, board, rest, placed, steps) {
            return true;
        }
        placed.pop();
        board.undo(mark);
    }
    // Perhaps another has to come first, for this one to be near.
    false
}
