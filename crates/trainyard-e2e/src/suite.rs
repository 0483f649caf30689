//! The tier on a real control plane: starts one, installs what `trainyard manifests` prints, and
//! runs every scenario and crash story whose name matches, under the operator's own rights.
//!
//! Must not know what scenarios do.

pub(crate) mod install;
pub(crate) mod report;
pub(crate) mod rights;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use tokio::time::Instant;

use crate::control_plane::{ControlPlane, Identity, Options};
use crate::counts::Counts;
use crate::crash;
use crate::scenarios::{self, Scenario, malformed, outage};
use crate::world::{Clients, RunningOperator, World, quick_options};
use report::Report;

/// Scenarios under way at the same time.
pub(crate) const AT_ONCE: usize = 8;
/// No scenario takes longer.
pub(crate) const LONGEST: Duration = Duration::from_mins(2);

/// What is common to all scenarios of a run.
pub(crate) struct Stage {
    clients: Clients,
    report: Report,
    filter: Option<String>,
    opened: AtomicUsize,
    accounts: bool,
}

impl Stage {
    /// A stage for the scenarios whose names contain `filter`.
    pub(crate) fn new(clients: Clients, filter: Option<&str>, report: Report) -> Self {
        let filter = filter.map(str::to_owned);
        Self { clients, report, filter, opened: AtomicUsize::new(0), accounts: false }
    }

    /// The same on a server that takes pods only where the namespace has its account.
    pub(crate) fn with_accounts(self) -> Self {
        Self { accounts: true, ..self }
    }

    /// What came of all.
    pub(crate) fn finish(&self) -> Counts {
        self.report.finish()
    }

    /// Where results are told.
    pub(crate) const fn report(&self) -> &Report {
        &self.report
    }

    /// Whether a scenario is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.filter.as_deref().is_none_or(|filter| name.contains(filter))
    }

    /// A world in a namespace named after the scenario.
    pub(crate) async fn open(&self, name: &str) -> Result<World> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let mut namespace: String = name
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .take(48)
            .collect();
        namespace.make_ascii_lowercase();
        let world = World::open(&self.clients, &format!("t-{namespace}-{number}")).await?;
        if self.accounts {
            world.has_its_account().await?;
        }
        Ok(world)
    }

    /// Runs one scenario, bounded, and reports it.
    pub(crate) async fn play(&self, scenario: &Scenario) {
        let name = &scenario.name;
        let play = async |_| scenario.run(self.open(name).await?).await;
        self.report.play(name, LONGEST, play).await;
    }

    /// Runs all that are wanted, several at a time.
    pub(crate) async fn play_all(&self, scenarios: &[Scenario]) {
        let wanted = scenarios.iter().filter(|scenario| self.wants(&scenario.name));
        futures::stream::iter(wanted).for_each_concurrent(AT_ONCE, |s| self.play(s)).await;
    }
}

/// Runs the scenarios whose names contain `filter`.
pub async fn run(filter: Option<&str>) -> Result<Counts> {
    let options = Options { controller_manager: false, ..Options::default() };
    let mut plane = ControlPlane::start(options).await?;
    install::install_all(&mut plane).await.context("installing the operator's manifests")?;
    let clients = Clients {
        user: plane.client(Identity::Admin)?,
        kubelet: plane.client(Identity::Kubelet)?,
        operator: plane.client(Identity::Operator)?,
        scheduler: plane.client(Identity::GangScheduler)?,
    };
    let stage = Stage::new(clients, filter, Report::in_real_time());
    let shared = [scenarios::shared(), scenarios::with_kubectl(&plane.kubectl())].concat();
    if shared.iter().any(|scenario| stage.wants(&scenario.name)) {
        let client = stage.clients.operator.clone();
        let operator = RunningOperator::start(client, quick_options()).await?;
        stage.play_all(&shared).await;
        operator.stop().await.context("stopping the shared operator")?;
    }
    stage.play_all(&scenarios::own_operator()).await;
    stage.play_all(&scenarios::own_operator_on_complete_servers()).await;
    crash::run(&stage).await;
    if stage.wants("rights/asked_by_admission") {
        let asked = rights::check_admission(&plane).await;
        stage.report.tell("rights/asked_by_admission", &asked, Duration::ZERO);
    }
    if filter.is_none() {
        for (name, identity) in [
            ("rights/audit_log", Identity::Operator),
            ("rights/audit_log_of_the_scheduler", Identity::GangScheduler),
        ] {
            let (log, user) = (plane.audit_log(), plane.user(identity));
            let audit = rights::check(&log, &user, &plane.kubectl()).await;
            stage.report.tell(name, &audit, Duration::ZERO);
        }
    }
    alone(&stage, &mut plane).await;
    plane.check()?;
    Ok(stage.finish())
}

/// Scenarios that change the control plane itself: one after the other, at the end.
async fn alone(stage: &Stage, plane: &mut ControlPlane) {
    for (name, play) in outage::all() {
        if stage.wants(name) {
            let started = Instant::now();
            let played = async { play(stage.open(name).await?, plane).await };
            let result = played.await;
            stage.report.tell(name, &result, started.elapsed());
        }
    }
    if malformed::all().iter().any(|scenario| stage.wants(&scenario.name)) {
        let opened = install::install_without_rules(plane).await;
        stage.report.tell("malformed/rules_are_taken_out", &opened, Duration::ZERO);
        stage.play_all(&malformed::all()).await;
    }
}
