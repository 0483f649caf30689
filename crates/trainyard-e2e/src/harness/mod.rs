//! One kind of case for everything that is tested here, run by the ordinary test harness: its filters,
//! its list, its report.
//!
//! A tier is a test program. It runs phases, each a list of cases over one fixture, which starts when the
//! first of them needs it. Must not know what cases do, nor on what.

mod case;
mod fixture;
mod function;
mod phase;
mod product;
mod second;
mod slow;
mod tier;

pub(crate) use case::{Case, cases, tried_once, within};
pub(crate) use fixture::{Fixture, Ground};
pub(crate) use phase::Phase;
pub(crate) use product::product;
pub(crate) use tier::{RealTime, Tier, note};
