//! The embedded Kubernetes API: a store, the verbs on it, and the controllers that a cluster brings.
//!
//! Kinds are rows of a table; one path serves them all, built-in and defined alike. It must not know
//! TFJobs, the operator, the scheduler or how pods run: they are clients of it like any other.

pub mod controllers;

mod answer;
mod api;
mod certificates;
mod clock;
mod crd;
mod failure;
mod http;
mod kind;
mod kinds;
mod kubelet;
mod metrics;
mod names;
mod object;
mod openapi;
mod registry;
mod request;
mod secret_file;
mod server;
mod store;
mod table;
mod tokens;
mod verbs;

pub use self::{
    certificates::{Authority, Credentials, KeyError, Life},
    clock::Clock,
    failure::Failure,
    http::Bounds,
    kubelet::{LogOptions, Residents},
    secret_file::write_secret,
    server::{NODE_CLIENT, Server, ServerError, Settings, USER},
    store::OpenError,
    table::age,
};
