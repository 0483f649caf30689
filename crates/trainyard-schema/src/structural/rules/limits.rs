//! How large rules may be.
//!
//! Owns the bounds that are checked before a rule is compiled or evaluated: recursion follows the
//! nesting of a rule, so this keeps the stack.

/// Longest text of a rule.
pub(super) const TEXT_MAX: usize = 64 << 10;
/// Deepest nesting of a compiled rule.
pub(super) const DEPTH_MAX: usize = 200;
/// Rules with fewer signs than this cannot be nested deeply.
pub(super) const PLAIN_SIGNS: usize = 150;
/// The stack on which longer rules are compiled.
pub(super) const COMPILE_STACK: usize = 64 << 20;
/// Most that the rules of one object may cost, in values looked at.
pub(super) const BUDGET: u64 = 10_000_000;
/// Bytes of a text that count as one value.
pub(super) const UNIT_BYTES: u64 = 16;
/// Most bytes that the rules of one object may build, with those that are not kept.
pub(super) const BUILT_ALL: u64 = 32 << 20;
/// What compiling a pattern costs that a rule puts together.
pub(super) const PATTERN_COST: u64 = 100_000;
/// Most digits that a number is printed with.
pub(super) const DIGITS_MAX: usize = 1_000;
/// Longest text that a rule may build.
pub(super) const BUILT_MAX: usize = 4 << 20;
/// Longest list that a rule may count up.
pub(super) const RANGE_MAX: i64 = 100_000;
/// Longest message that a rule may compute.
pub(super) const MESSAGE_MAX: usize = 5 << 10;
