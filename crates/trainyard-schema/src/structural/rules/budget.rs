//! What the evaluation of rules may cost, in values and in bytes.
//!
//! Owns the account. The evaluator itself has no notion of cost: a compiled rule calls back at every turn
//! of a loop and with every value that it builds, and fails there when the account is empty.
//!
//! A unit is about one value that is looked at or copied, or sixteen bytes of text. The evaluator copies
//! what is named, so naming a variable costs what the variables hold, what was built along with it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::{
    ExecutionError, Value,
    objects::{Key, ResolveResult},
};

use super::limits;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    /// Bytes that may still be built for this object.
    static ROOM: Cell<u64> = const { Cell::new(0) };
    /// How many values the variables of the current rule hold, and what it has built.
    static WEIGHT: Cell<u64> = const { Cell::new(0) };
    static EMPTY: Cell<bool> = const { Cell::new(false) };
    /// The lists that loops are building, by the number of the loop.
    static LISTS: RefCell<HashMap<i64, Vec<Value>>> = RefCell::default();
}

/// The name of the call back; no rule can write it.
pub(super) const TURN: &str = "@turn";
/// The same with a list that is compared with another, every element with every other.
pub(super) const PAIRS: &str = "@pairs";
/// The same with a value that was built.
pub(super) const MADE: &str = "@made";
/// The same with what a loop is about, where it names it often.
pub(super) const ITEM: &str = "@item";
/// A loop begins a list; adds to it; gives it away. The library copies the whole list at each turn.
pub(super) const BEGIN: &str = "@begin";
/// See [`BEGIN`].
pub(super) const PUSH: &str = "@push";
/// See [`BEGIN`].
pub(super) const LIST: &str = "@list";

/// What a value beside its text takes in memory.
const VALUE_BYTES: u64 = 48;

/// Opens the account for the rules of one object.
pub(super) fn open() {
    LEFT.set(limits::BUDGET);
    ROOM.set(limits::BUILT_ALL);
    EMPTY.set(false);
}

/// Whether it was used up.
pub(super) fn is_empty() -> bool {
    EMPTY.get()
}

/// Begins a rule whose variables hold so many values and are named so often.
pub(super) fn begin(weight: u64, mentions: u64) {
    WEIGHT.set(weight);
    pay(weight.saturating_mul(mentions.max(1)).saturating_add(1));
}

/// Forgets what an evaluation has left, when it has ended.
pub(super) fn forget() {
    LISTS.take();
}

fn pay(cost: u64) -> bool {
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(cost));
    if cost > left {
        EMPTY.set(true);
    }
    !EMPTY.get()
}

/// Takes a cost off the account; an error when it does not suffice.
pub(super) fn paid(cost: u64) -> Result<bool, ExecutionError> {
    if pay(cost) {
        Ok(true)
    } else {
        Err(ExecutionError::function_error("loop", "actual cost limit exceeded"))
    }
}

/// What a text costs that is looked through once.
pub(super) const fn of_text(bytes: usize) -> u64 {
    1 + (bytes as u64) / limits::UNIT_BYTES
}

/// What a value costs, and the bytes that it takes.
fn size(value: &Value) -> (u64, u64) {
    let text = |bytes: usize| (of_text(bytes), VALUE_BYTES + bytes as u64);
    let sum = |sizes: &mut dyn Iterator<Item = (u64, u64)>| {
        sizes.fold((1, VALUE_BYTES), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    match value {
        Value::String(value) => text(value.len()),
        Value::Bytes(value) => text(value.len()),
        Value::List(list) => sum(&mut list.iter().map(size)),
        Value::Map(map) => sum(&mut map.map.iter().flat_map(|(key, value)| {
            let key = if let Key::String(key) = key { text(key.len()) } else { text(0) };
            [key, size(value)]
        })),
        _ => text(0),
    }
}

/// One turn of a loop in which variables from outside are named so often, and so much else is done.
pub(super) fn turn(mentions: i64, steps: i64) -> Result<bool, ExecutionError> {
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    paid(
        WEIGHT.get().saturating_mul(count(mentions)).saturating_add(count(steps)).saturating_add(1),
    )
}

/// What a loop is about, named so often in a turn.
#[expect(clippy::needless_pass_by_value, reason = "the signature that functions of rules have")]
pub(super) fn item(value: Value, mentions: i64) -> Result<bool, ExecutionError> {
    paid(size(&value).0.saturating_mul(u64::try_from(mentions).unwrap_or(0)))
}

/// A list, every element of which is compared with every other's.
pub(super) fn pairs(value: Value) -> ResolveResult {
    let (cost, _) = size(&value);
    paid(cost.saturating_mul(cost) / 64)?;
    Ok(value)
}

/// A value that was built: it is paid for, and from now on may be copied wherever a variable is named.
pub(super) fn made(value: Value) -> ResolveResult {
    if matches!(value, Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) {
        take(&value)?;
    }
    Ok(value)
}

fn take(value: &Value) -> Result<bool, ExecutionError> {
    let (cost, bytes) = size(value);
    WEIGHT.set(WEIGHT.get().saturating_add(cost));
    let room = ROOM.get();
    ROOM.set(room.saturating_sub(bytes));
    // Both are one account to whoever writes a rule.
    paid(if bytes > room { u64::MAX } else { cost })
}

/// A loop begins to build a list.
pub(super) fn begin_list(number: i64) -> bool {
    LISTS.with_borrow_mut(|lists| lists.insert(number, Vec::new()));
    true
}

/// A loop adds to its list.
pub(super) fn push(number: i64, value: Value) -> Result<bool, ExecutionError> {
    take(&value)?;
    LISTS.with_borrow_mut(|lists| lists.entry(number).or_default().push(value));
    Ok(true)
}

/// A loop gives its list away.
#[expect(clippy::unnecessary_wraps, reason = "the signature that functions of rules have")]
pub(super) fn list(number: i64) -> ResolveResult {
    let list = LISTS.with_borrow_mut(|lists| lists.remove(&number)).unwrap_or_default();
    Ok(Value::List(Arc::new(list)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> Value {
        Value::String(Arc::new("x".repeat(bytes)))
    }

    #[test]
    fn texts_cost_by_their_bytes() {
        assert_eq!(size(&text(0)), (1, 48));
        assert_eq!(size(&text(1_600)), (101, 1_648));
        let list = Value::List(Arc::new(vec![text(160), Value::Int(1)]));
        assert_eq!(size(&list), (1 + 11 + 1, 48 + 208 + 48));
    }

    #[test]
    fn what_is_built_has_a_bound_of_its_own() {
        open();
        begin(1, 1);
        let most = usize::try_from(limits::BUILT_ALL).unwrap();
        made(text(most / 2)).unwrap();
        assert!(!is_empty());
        assert!(made(text(most / 2)).is_err());
        assert!(is_empty());
    }

    #[test]
    fn what_was_built_weighs_where_a_variable_is_named() {
        open();
        begin(1, 1);
        turn(1, 0).unwrap();
        made(text(1_600_000)).unwrap();
        let turns = (0..1_000).take_while(|_| turn(1, 0).is_ok()).count();
        assert!((50..100).contains(&turns), "{turns}");
    }

    #[test]
    fn a_list_is_built_in_its_place() {
        open();
        begin(1, 1);
        for number in [1, 2] {
            begin_list(number);
        }
        push(1, Value::Int(1)).unwrap();
        push(2, Value::Int(2)).unwrap();
        assert_eq!(list(1).unwrap(), Value::List(Arc::new(vec![Value::Int(1)])));
        begin_list(2);
        assert_eq!(list(2).unwrap(), Value::List(Arc::new(Vec::new())));
        forget();
    }
}
