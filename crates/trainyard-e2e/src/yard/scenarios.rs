//! The operator's scenarios on the API of a real `trainyard up`, over TLS and in real time. Its own
//! operator, scheduler and nodes are left out: scenarios bring theirs.
//!
//! Must not know what scenarios do.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::bed::Bed;
use crate::kubelet::presence;
use crate::rest::Rest;
use crate::scenarios;
use crate::suite::Stage;
use crate::suite::report::Report;
use crate::world::{Clients, RunningOperator, quick_options};

/// Runs those whose names contain `filter`.
pub(super) async fn run(binary: &Path, filter: Option<&str>, report: &Report) -> Result<()> {
    let bed = Bed::start(binary, &["--api-only"]).await?;
    let client = bed.client().await?;
    let clients = Clients {
        user: client.clone(),
        kubelet: client.clone(),
        operator: client.clone(),
        scheduler: client,
    };
    let rest = Rest::new(clients.kubelet.clone(), "default");
    presence::register(&rest).await?;
    let stage = Stage::new(clients.clone(), filter, Report::in_real_time()).with_accounts();
    // Pods of a node that is not there, or that is silent, are taken away.
    tokio::select! {
        played = play(&bed, &stage, clients) => played?,
        lost = presence::beat(&rest) => lost?,
    }
    report.add(stage.finish());
    bed.stop().await
}

async fn play(bed: &Bed, stage: &Stage, clients: Clients) -> Result<()> {
    let operator = RunningOperator::start(clients.operator, quick_options()).await?;
    let kubectl = scenarios::with_kubectl_alone(&bed.kubectl);
    stage.play_all(&[scenarios::shared(), kubectl].concat()).await;
    operator.stop().await.context("stopping the shared operator")?;
    stage.play_all(&scenarios::own_operator()).await;
    Ok(())
}
