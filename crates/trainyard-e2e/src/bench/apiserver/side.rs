//! One of the two servers, started and looked at from outside.

use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use crate::control_plane::{ControlPlane, Identity, Options};
use crate::lone::{self, Lone, Wanted};
use crate::raw::Door;

/// A running server.
pub(super) struct Side {
    pub(super) door: Door,
    /// From its start to its first answer.
    pub(super) ready_after: Duration,
    pids: Vec<u32>,
    // Ends the processes.
    _server: Box<dyn Send>,
    _folder: Option<TempDir>,
}

impl Side {
    pub(super) async fn start(is_ours: bool, durable: bool) -> Result<Self> {
        if is_ours { ours(durable).await } else { theirs(durable).await }
    }

    /// The memory of all its processes, in MB.
    pub(super) fn memory(&self) -> Result<f64> {
        self.pids.iter().map(|pid| lone::memory(*pid)).sum()
    }
}

async fn ours(durable: bool) -> Result<Side> {
    let folder = if durable { Some(tempfile::tempdir()?) } else { None };
    let kept = folder.as_ref().map(|folder| folder.path().join("store"));
    let lone =
        Lone::start(&lone::program()?, &Wanted { folder: kept, ..Wanted::default() }).await?;
    Ok(Side {
        door: lone.door().clone(),
        ready_after: lone.ready_after,
        pids: vec![lone.pid()],
        _server: Box::new(lone),
        _folder: folder,
    })
}

async fn theirs(durable: bool) -> Result<Side> {
    let options =
        Options { controller_manager: false, audit: false, durable, ..Options::default() };
    let plane = ControlPlane::start(options).await?;
    Ok(Side {
        door: Door::of_kubeconfig(&plane.kubeconfig(Identity::Admin))?,
        ready_after: plane.ready_after(),
        pids: plane.pids().into_iter().map(|(_, pid)| pid).collect(),
        _server: Box::new(plane),
        _folder: None,
    })
}
