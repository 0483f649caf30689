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

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::harness::Case;
use crate::kubectl::Kubectl;
use desk::Desk;
use specimen::Specimen;

/// Kinds under way at the same time.
pub(super) const AT_ONCE: usize = 3;
/// All verbs on one kind, each of which has a bound of its own.
const LONGEST: Duration = Duration::from_mins(10);

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

/// A server's column for every kind.
pub(super) struct Table {
    kubectl: Kubectl,
    dir: PathBuf,
    columns: Mutex<BTreeMap<usize, Column>>,
}

impl Table {
    /// An empty one; `dir` is for files that kubectl is to read or to run.
    pub(super) fn new(kubectl: Kubectl, dir: PathBuf) -> Self {
        Self { kubectl, dir, columns: Mutex::default() }
    }

    /// What has come of it so far, in the order of kinds.
    pub(super) fn columns(&self) -> Vec<Column> {
        self.columns.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// The names of the verbs.
pub(super) fn verbs() -> Vec<String> {
    verbs::all().into_iter().map(|verb| verb.name).collect()
}

/// A case for every kind, which tries every verb on it; `server` stands before their names.
pub(super) fn cases(server: &str) -> Vec<Case<Arc<Table>>> {
    let case = |(at, specimen): (usize, Specimen)| {
        let name = format!("{server}/{}", specimen.short);
        Case::new(name, move |table: Arc<Table>| play(table, at, specimen)).within(LONGEST)
    };
    specimen::all().into_iter().enumerate().map(case).collect()
}

/// All verbs that fail are told together.
async fn play(table: Arc<Table>, at: usize, specimen: Specimen) -> Result<()> {
    let desk = Arc::new(sit_down(&table, specimen).await?);
    let (mut cells, mut failures) = (Vec::new(), Vec::new());
    for verb in verbs::all() {
        let result = verb.play(Arc::clone(&desk)).await;
        cells.push(result.is_ok());
        failures.extend(result.err().map(|error| format!("{}: {error:#}", verb.name)));
    }
    let Specimen { short, kind, version, columns, .. } = specimen;
    let column = Column { short, kind, version, columns, cells };
    table.columns.lock().unwrap_or_else(PoisonError::into_inner).insert(at, column);
    if failures.is_empty() {
        return Ok(());
    }
    bail!("{} verbs fail:\n{}", failures.len(), failures.join("\n"))
}

/// A desk with a namespace in which pods can be made.
async fn sit_down(table: &Table, specimen: Specimen) -> Result<Desk> {
    let namespace = format!("matrix-{}", specimen.short);
    let manifest = serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
    });
    let words = ["create", "-f", "-"];
    let made = table.kubectl.run_with_input(&words, &manifest.to_string()).await?;
    made.stdout_of_success().context("making a namespace")?;
    let kubectl = table.kubectl.clone();
    let desk = Desk { kubectl, specimen, namespace, dir: table.dir.clone() };
    desk.ok(&["wait", "--for=create", "--timeout=30s", "serviceaccount/default"])
        .await
        .context("waiting for the namespace's account")?;
    Ok(desk)
}
