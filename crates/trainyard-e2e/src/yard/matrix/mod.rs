//! Verb by kind: everything people do with kubectl to an object, tried on an object of every kind.
//!
//! Knows nothing of the server that answers, so a real one can be the referee of what is expected
//! here. What only a yard can do (pods that run) is in `stories`.

mod changing;
mod cluster;
mod desk;
mod getting;
mod specimen;
mod storage;
mod verbs;
mod work;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::StreamExt as _;

use crate::kubectl::Kubectl;
use crate::suite::report::{Report, bounded};
use desk::Desk;
use specimen::Specimen;

/// Kinds under way at the same time.
const AT_ONCE: usize = 3;
/// No verb takes longer.
const LONGEST: Duration = Duration::from_mins(2);

/// What came of all verbs on one kind.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// The head of its column.
    pub(super) short: &'static str,
    pub(super) kind: &'static str,
    pub(super) version: &'static str,
    /// What `kubectl get` shows; a star: by `-o wide` alone.
    pub(super) columns: &'static str,
    /// In the order of [`verbs`].
    pub(super) cells: Vec<bool>,
}

/// The names of the verbs.
pub(super) fn verbs() -> Vec<&'static str> {
    verbs::all().iter().map(|verb| verb.name).collect()
}

/// Tries every verb on every kind whose name fits; `server` stands before the names in the report.
pub(super) async fn run(
    kubectl: &Kubectl,
    server: &str,
    wants: impl Fn(&str) -> bool + Copy,
    dir: &Path,
    report: &Report,
) -> Vec<Column> {
    let specimens = specimen::all();
    let wanted = specimens
        .into_iter()
        .enumerate()
        .filter(|(_, specimen)| wants(&format!("{server}/{}", specimen.short)));
    let columns = futures::stream::iter(wanted).map(async |(at, specimen)| {
        let name = format!("{server}/{}", specimen.short);
        let cells = match sit_down(kubectl, specimen, dir).await {
            Ok(desk) => try_all(&desk, &name, report).await,
            Err(problem) => {
                report.tell(&name, &Err(problem), Duration::ZERO);
                vec![false; verbs::all().len()]
            }
        };
        let Specimen { short, kind, version, columns, .. } = specimen;
        (at, Column { short, kind, version, columns, cells })
    });
    let mut columns: Vec<_> = columns.buffer_unordered(AT_ONCE).collect().await;
    columns.sort_by_key(|(at, _)| *at);
    columns.into_iter().map(|(_, column)| column).collect()
}

/// A desk with a namespace in which pods can be made.
async fn sit_down(kubectl: &Kubectl, specimen: Specimen, dir: &Path) -> Result<Desk> {
    let namespace = format!("matrix-{}", specimen.short);
    let manifest = serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
    });
    let made = kubectl.run_with_input(&["create", "-f", "-"], &manifest.to_string()).await?;
    made.stdout_of_success().context("making a namespace")?;
    let desk = Desk { kubectl: kubectl.clone(), specimen, namespace, dir: dir.to_owned() };
    desk.ok(&["wait", "--for=create", "--timeout=30s", "serviceaccount/default"])
        .await
        .context("waiting for the namespace's account")?;
    Ok(desk)
}

async fn try_all(desk: &Desk, name: &str, report: &Report) -> Vec<bool> {
    let mut cells = Vec::new();
    for verb in verbs::all() {
        let started = Instant::now();
        let result = bounded(LONGEST, (verb.play)(desk)).await;
        cells.push(result.is_ok());
        report.tell(&format!("{name}/{}", verb.name), &result, started.elapsed());
    }
    cells
}
