//! A yard that cases with kubectl share, and what came of them, for the page about kubectl.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::bed::Bed;
use super::matrix::Table;
use crate::harness::product;

/// What a tutorial's image holds, for pods of a manifest that is used as it stands.
const MNIST: &str = "import sys, os\nprint(*sys.argv[1:])\n\
    open('/train/events', 'w').write('x')\n";

/// The yard.
pub(super) struct Open {
    bed: tokio::sync::Mutex<Option<Arc<Bed>>>,
    pub(super) table: Arc<Table>,
    passed: Mutex<BTreeSet<String>>,
    opened: AtomicUsize,
    _code: TempDir,
}

impl Open {
    pub(super) async fn start() -> Result<Arc<Self>> {
        let code = tempfile::tempdir()?;
        std::fs::write(code.path().join("mnist_with_summaries.py"), MNIST)?;
        let mount = format!("--mount={}:/var/tf_mnist:ro", code.path().display());
        let flags = [
            "--nodes=a,b",
            "--resource=nvidia.com/gpu=2",
            "--image=test=host",
            "--image=gcr.io/kubeflow-ci/tf-mnist-with-summaries=python:3.11",
            "--log-level=info",
            &mount,
        ];
        let bed = Bed::start(&product().await?, &flags).await?;
        let table = Table::new(bed.kubectl.clone(), bed.dir().to_owned());
        Ok(Arc::new(Self {
            bed: tokio::sync::Mutex::new(Some(Arc::new(bed))),
            table: Arc::new(table),
            passed: Mutex::default(),
            opened: AtomicUsize::new(0),
            _code: code,
        }))
    }

    pub(super) async fn bed(&self) -> Result<Arc<Bed>> {
        self.bed.lock().await.clone().context("the yard has been stopped")
    }

    /// The name of a namespace that nobody else has.
    pub(super) fn new_namespace(&self) -> String {
        format!("story-{}", self.opened.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes down that a story has passed.
    pub(super) fn has_passed(&self, name: &str) {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// The stories that have passed.
    pub(super) fn passed(&self) -> BTreeSet<String> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails when the yard has ended.
    pub(super) async fn check(&self) -> Result<()> {
        let mut bed = self.bed.lock().await;
        let bed = bed.as_mut().context("the yard has been stopped")?;
        Arc::get_mut(bed).context("a case still uses the yard")?.check()
    }

    /// Stops the yard, which must leave nothing.
    pub(super) async fn stop(&self) -> Result<()> {
        let bed = self.bed.lock().await.take().context("the yard has been stopped")?;
        Arc::into_inner(bed).context("a case still uses the yard")?.stop().await
    }
}
