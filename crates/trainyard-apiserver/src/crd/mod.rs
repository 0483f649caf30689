//! Custom resources: what a definition says, and the row it makes in the table of kinds.
//!
//! Owns everything that is known of a kind only from its definition. Must not know any particular
//! one, nor how requests arrive or objects are stored.

pub(crate) mod definition;
mod embedded;
mod priority;
mod row;
mod rules;
pub(crate) mod scale;

pub(crate) use self::row::kind_of;
