//! The tier on a yard as people run it: the real `trainyard up`, the real kubectl, the real Python
//! SDK, real TensorFlow.
//!
//! Must not know how a yard is made.

mod bed;
mod docs;
mod matrix;
mod open;
mod scenarios;
pub(crate) mod sdk;
mod simpletfjob;
mod stories;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::sync::Mutex;
use trainyard_testbed::packages;

use crate::control_plane::{ControlPlane, Options, Program};
use crate::harness::{Phase, RealTime, Tier, cases, product, within};
use crate::kubectl::Kubectl;
use crate::setup;
use crate::suite::install;
pub use bed::Bed;
pub(crate) use bed::processes_about;
use matrix::Table;
use open::Open;

/// Stories under way at the same time.
const AT_ONCE: usize = 3;
/// Three trainings, and once an environment.
const SIMPLETFJOB: Duration = Duration::from_mins(40);

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    let needs = setup::programs_product_and_packages(&Program::CONTROL_PLANE, &packages::OUTBOUND);
    Tier::in_real_time(needs, |tier, real| {
        kubectl(tier, real);
        referee(tier, real);
        scenarios::run(tier, real);
        let binary = real.fixture(async || Ok(Arc::<Path>::from(product().await?)));
        let trains = within(SIMPLETFJOB, cases!["simpletfjob": trains]);
        tier.run(Phase::new(&binary, trains).tried_once());
        let told = real.fixture(sdk::play);
        tier.run(Phase::new(&told, sdk::cases()).tried_once());
        Ok(())
    })
}

/// The matrix and the stories, on one yard, and the documentation that they make.
fn kubectl(tier: &mut Tier, real: &RealTime) {
    let yard = real.fixture(Open::start);
    let open = async |yard: Arc<Open>, _: &str| Ok(Arc::clone(&yard.table));
    let matrix = matrix::cases("kubectl").into_iter().map(|case| case.over(open)).collect();
    tier.run(Phase::new(&yard, matrix).at_once(matrix::AT_ONCE).tried_once());
    let together = stories::cases(stories::together());
    tier.run(Phase::new(&yard, together).at_once(AT_ONCE));
    tier.run(Phase::new(&yard, stories::cases(stories::alone())).one_by_one());
    // A page from a part of the tests would be a part of the page.
    tier.judge_all(&yard, cases!["docs": kubectl_page]);
    tier.judge(&yard, cases!["yard": still_runs, down_leaves_nothing]);
}

async fn kubectl_page(yard: &Open) -> Result<()> {
    let passed = yard.passed();
    let stories = [stories::together(), stories::alone()].concat().into_iter();
    let stories: Vec<_> = stories
        .map(|story| {
            let good = passed.contains(&story.0.name);
            (story, good)
        })
        .collect();
    docs::settle(&docs::page(&yard.table.columns(), &stories))
}

async fn still_runs(yard: &Open) -> Result<()> {
    yard.check().await
}

async fn down_leaves_nothing(yard: &Open) -> Result<()> {
    yard.stop().await
}

async fn trains(binary: &Path) -> Result<()> {
    simpletfjob::run(binary).await
}

/// A real control plane, the referee of what the matrix expects.
struct Referee {
    plane: Mutex<ControlPlane>,
    kubectl: Kubectl,
    table: Arc<Table>,
    _dir: TempDir,
}

impl Referee {
    async fn start() -> Result<Arc<Self>> {
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
        let kubectl = plane.kubectl();
        described(&kubectl).await?;
        let dir = tempfile::tempdir()?;
        let table = Arc::new(Table::new(kubectl.clone(), dir.path().to_owned()));
        Ok(Arc::new(Self { plane: Mutex::new(plane), kubectl, table, _dir: dir }))
    }
}

/// The same matrix on a real control plane: what it expects is what Kubernetes does.
fn referee(tier: &mut Tier, real: &RealTime) {
    let referee = real.fixture(Referee::start);
    let open = async |referee: Arc<Referee>, _: &str| Ok(Arc::clone(&referee.table));
    let matrix = matrix::cases("referee").into_iter().map(|case| case.over(open)).collect();
    let all = [matrix, cases!["referee": simpletfjob_is_accepted]].concat();
    tier.run(Phase::new(&referee, all).at_once(matrix::AT_ONCE).tried_once());
    tier.judge(&referee, cases!["referee": control_plane_still_runs]);
}

async fn simpletfjob_is_accepted(referee: &Referee) -> Result<()> {
    simpletfjob::accepted(&referee.kubectl).await
}

async fn control_plane_still_runs(referee: &Referee) -> Result<()> {
    referee.plane.lock().await.check()
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
