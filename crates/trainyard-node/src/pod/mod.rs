//! The life of a pod on this node: from the moment it is taken in to the moment nothing of it is
//! left. One worker per pod; its containers are futures inside it.
//!
//! Decides what a kubelet decides. Makes no sandbox (the holder), no status text (`status`), no
//! environment or volume (`env`, `volumes`).

mod backoff;
mod container;
pub(crate) mod exec;
mod launch;
pub(crate) mod limits;
mod live;
mod loopback;
mod message;
mod probing;
mod reach;
mod report;
pub(crate) mod root;
mod security;
mod stop;
mod storage;
mod tidy;
mod unsupported;
mod views;
mod worker;

use k8s_openapi::api::core::v1::Container;

pub(crate) use backoff::Backoff;
pub(crate) use launch::{files_of_run, stdio};
pub(crate) use live::{Live, Run};
pub(crate) use reach::Behind;
pub(crate) use tidy::keep_logs_within_bounds;
pub(crate) use worker::run;

use crate::env::Facts;
use crate::events::Weight;
use crate::net::hosts::Identity;
use crate::shared::Shared;
use crate::status::{ContainerRecord, State};
use crate::volumes::Volumes;

/// What the containers of one pod work with.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) live: &'a Live,
    pub(crate) volumes: &'a Volumes,
    pub(crate) facts: &'a Facts,
    pub(crate) identity: &'a Identity,
}

impl Context<'_> {
    fn restart_policy(&self) -> &'static str {
        let pod = self.live.pod();
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        match policy {
            Some("Never") => "Never",
            Some("OnFailure") => "OnFailure",
            _ => "Always",
        }
    }

    fn tell(&self, container: &Container, weight: Weight, reason: &'static str, message: String) {
        let pod = self.live.pod();
        self.shared.events.pod(&pod, Some(&container.name), weight, reason, message);
    }

    fn change(&self, container: &Container, change: impl FnOnce(&mut ContainerRecord)) {
        self.live.change(|record| {
            if let Some(record) = record.find_mut(&container.name) {
                change(record);
            }
        });
    }

    fn wait_state(&self, container: &Container, reason: &str, message: &str) {
        let state = State::Waiting { reason: reason.to_owned(), message: message.to_owned() };
        self.change(container, |record| record.move_to(state));
    }
}
