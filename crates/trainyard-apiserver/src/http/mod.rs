//! HTTP: connections in, answers out; over TLS on loopback, or without a connection inside the process.
//!
//! Owns sockets, bounds and routes. Must not know what verbs do.

pub(crate) mod auth;
mod binary;
pub(crate) mod escalation;
mod gate;
mod impersonate;
mod inside;
mod lobby;
pub(crate) mod nodes;
mod patient;
mod public;
mod respond;
pub(crate) mod rights;
mod serve;
mod swagger;

pub(crate) use auth::Doors;
pub use gate::Bounds;
pub(crate) use gate::Gate;
pub(crate) use inside::client;
pub(crate) use respond::Core;
pub(crate) use serve::serve;
