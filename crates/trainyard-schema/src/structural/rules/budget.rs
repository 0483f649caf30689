//! What the evaluation of rules may cost.
//!
//! Owns the account. The evaluator itself has no notion of cost: a compiled rule calls back at every
//! turn of a loop, and fails there when the account is empty.

use std::cell::Cell;

use kube_cel::cel::ExecutionError;

use super::limits;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    /// How many values the variables of the current rule hold.
    static WEIGHT: Cell<u64> = const { Cell::new(0) };
    static EMPTY: Cell<bool> = const { Cell::new(false) };
}

/// The name of the call back; no rule can write it.
pub(super) const TURN: &str = "@turn";
/// The same for calls that compare every element with every other.
pub(super) const PAIRS: &str = "@pairs";

/// Opens the account for the rules of one object.
pub(super) fn open() {
    LEFT.set(limits::BUDGET);
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

fn pay(cost: u64) -> bool {
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(cost));
    if cost > left {
        EMPTY.set(true);
    }
    !EMPTY.get()
}

fn paid(cost: u64) -> Result<bool, ExecutionError> {
    if pay(cost) {
        Ok(true)
    } else {
        Err(ExecutionError::function_error("loop", "actual cost limit exceeded"))
    }
}

/// One turn of a loop in which variables from outside are named so often.
pub(super) fn turn(mentions: i64) -> Result<bool, ExecutionError> {
    let mentions = u64::try_from(mentions).unwrap_or(0);
    paid(WEIGHT.get().saturating_mul(mentions).saturating_add(1))
}

/// Every element with every other.
pub(super) fn pairs() -> Result<bool, ExecutionError> {
    paid(WEIGHT.get().saturating_mul(WEIGHT.get()) / 64)
}
