//! HTTP: connections in, answers out; over TLS on loopback, or in memory inside the process.
//!
//! Owns sockets, bounds and routes. Must not know what verbs do.

pub(crate) mod auth;
mod binary;
mod gate;
mod impersonate;
mod patient;
mod pipe;
mod public;
mod respond;
pub(crate) mod rights;
mod serve;
mod swagger;

pub(crate) use auth::Doors;
pub use gate::Bounds;
pub(crate) use gate::Gate;
pub(crate) use pipe::client;
pub(crate) use respond::Core;
pub(crate) use serve::serve;
