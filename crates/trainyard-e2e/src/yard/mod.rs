//! The tier on a yard as people run it: the real `trainyard up`, the real kubectl, the real Python
//! SDK, real TensorFlow.
//!
//! Must not know how a yard is made.

mod bed;
mod docs;
mod matrix;
mod scenarios;
pub(crate) mod sdk;
mod simpletfjob;
mod stories;
mod training;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::control_plane::{ControlPlane, Options};
use crate::counts::Counts;
use crate::kubectl::Kubectl;
use crate::suite::install;
use crate::suite::report::Report;
pub use bed::Bed;
pub(crate) use bed::processes_about;

/// What a tutorial's image holds, for pods of a manifest that is used as it stands.
const MNIST: &str = "import sys, os\nprint(*sys.argv[1:])\n\
    open('/train/events', 'w').write('x')\n";

/// What the names of all cases begin with that are on the page about kubectl.
const KUBECTL: &str = "kubectl";

/// What stands before the name of a scenario to run it alone.
const SCENARIOS: &str = "scenarios";

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// Only what has this in its name.
    pub filter: Option<&'a str>,
    /// Write the documentation from what came of it.
    pub write: bool,
}

impl Wish<'_> {
    fn wants(&self, name: &str) -> bool {
        self.filter.is_none_or(|filter| name.contains(filter))
    }

    /// Whether cases of a group may be wanted.
    fn wants_any_of(&self, group: &str) -> bool {
        self.filter.is_none_or(|filter| filter.starts_with(group) || group.contains(filter))
    }
}

/// Runs everything that is wanted with this binary.
pub async fn run(binary: &Path, wish: Wish<'_>) -> Result<Counts> {
    let report = Report::in_real_time();
    if wish.wants_any_of(KUBECTL) {
        kubectl(binary, wish, &report).await?;
    }
    referee(wish, &report).await?;
    if wish.wants_any_of(SCENARIOS) {
        let one = wish.filter.and_then(|filter| filter.strip_prefix(SCENARIOS));
        let one = one.map(|name| name.trim_start_matches('/'));
        scenarios::run(binary, one, &report).await?;
    }
    if wish.wants("training") {
        let play = async |_| training::run(binary).await;
        report.play("training/digits", training::LONGEST, play).await;
    }
    if wish.wants("simpletfjob") {
        told(&report, "simpletfjob/trains", simpletfjob::run(binary)).await;
    }
    if wish.wants("sdk") {
        sdk::run(binary, &report).await?;
    }
    Ok(report.finish())
}

/// The matrix and the stories, on one yard, and the documentation that they make.
async fn kubectl(binary: &Path, wish: Wish<'_>, report: &Report) -> Result<()> {
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
    let mut bed = Bed::start(binary, &flags).await?;
    let wants = |name: &str| wish.wants(name);
    let columns = matrix::run(&bed.kubectl, KUBECTL, wants, bed.dir(), report).await;
    let stories = stories::run(&bed, wants, report).await;
    report.tell("yard/still_runs", &bed.check(), Duration::ZERO);
    told(report, "yard/down_leaves_nothing", bed.stop()).await;
    // A page from a part of the tests would be a part of the page.
    if wish.filter.is_none_or(|filter| KUBECTL.contains(filter)) {
        let page = docs::page(&columns, &stories);
        report.tell("docs/kubectl", &docs::settle(&page, wish.write), Duration::ZERO);
    }
    Ok(())
}

/// The same matrix on a real control plane: what it expects is what Kubernetes does.
async fn referee(wish: Wish<'_>, report: &Report) -> Result<()> {
    if !wish.wants("referee") {
        return Ok(());
    }
    let controllers = [
        "garbage-collector-controller",
        "namespace-controller",
        "serviceaccount-controller",
        "root-ca-certificate-publisher-controller",
        "persistentvolume-binder-controller",
        "persistentvolume-protection-controller",
        "persistentvolumeclaim-protection-controller",
    ];
    let options = Options {
        controller_manager: false,
        controllers: controllers.map(str::to_owned).to_vec(),
        ..Options::default()
    };
    let mut plane = ControlPlane::start(options).await?;
    install::install(&mut plane).await.context("installing the operator's manifests")?;
    described(&plane.kubectl()).await?;
    let dir = tempfile::tempdir()?;
    let wants = |_: &str| true;
    matrix::run(&plane.kubectl(), "referee", wants, dir.path(), report).await;
    told(report, "referee/simpletfjob", simpletfjob::accepted(&plane.kubectl())).await;
    plane.check()
}

/// The real server describes a new kind some time after it serves it.
async fn described(kubectl: &Kubectl) -> Result<()> {
    let mut last = String::new();
    for _ in 0..120 {
        match kubectl.run(&["explain", "tfjob.spec"]).await?.stdout_of_success() {
            Ok(_) => return Ok(()),
            Err(error) => last = format!("{error:#}"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    anyhow::bail!("TFJob is not described: {last}")
}

async fn told(report: &Report, name: &str, play: impl Future<Output = Result<()>>) {
    let started = Instant::now();
    let result = play.await;
    report.tell(name, &result, started.elapsed());
}
