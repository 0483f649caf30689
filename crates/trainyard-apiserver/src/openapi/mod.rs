//! What the API says of itself: discovery documents, types and the `OpenAPI` pages of each group.
//!
//! Owns the embedded definitions of the built-in kinds. Must not know requests or the store.

pub(crate) mod discovery;
mod document;
mod embedded;
mod measured;
mod paths;
pub(crate) mod subresource;
pub(crate) mod types;

pub(crate) use document::{document, index};
