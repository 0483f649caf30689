//! Development only: a real control plane and everything that is played against it.
//! Never part of what is shipped; no shipped crate may depend on it.

pub mod attack;
pub mod bench;
pub mod check;
pub mod control_plane;
pub mod controllers;
mod crash;
pub mod demo;
pub mod differential;
pub mod embedded;
pub mod examples;
mod forward;
mod harness;
pub mod kubectl;
pub mod kubelet;
pub mod lone;
pub mod manifest;
pub mod node;
pub mod raw;
pub mod real_kubelet;
pub mod referee;
pub mod rest;
mod rotation;
pub mod run;
pub(crate) mod scenarios;
pub mod seen;
mod setup;
mod stage;
pub mod suite;
pub mod view;
pub(crate) mod volcano;
pub mod world;
pub mod yard;
