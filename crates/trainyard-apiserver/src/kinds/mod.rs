//! The built-in kinds: one row each, with the rules that make it special.
//!
//! Owns names, defaults, strategies and checks of every kind this server brings along. Must not know
//! how requests arrive or how objects are stored.

pub(crate) mod admission;
mod claims;
mod config;
mod diff;
mod endpoints;
mod events;
mod jobs;
mod json;
pub(crate) mod metadata;
mod namespaces;
pub(crate) mod naming;
mod nodes;
pub(crate) mod pod_security;
pub(crate) mod pods;
#[cfg(test)]
mod recorded;
pub(crate) mod reviews;
mod roles;
mod rows;
mod services;
mod small;
#[cfg(test)]
pub(crate) mod testing;

use serde_json::{Value, json};

pub(crate) use rows::{is_known, rows};

/// One more generation than before.
fn count_generation(new: &mut Value, old: &Value) {
    let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
    new["metadata"]["generation"] = json!(before.saturating_add(1));
}
