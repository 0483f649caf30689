//! A server on which scenarios are played: who acts on it, and a namespace for each of them.
//!
//! Must not know what scenarios do, nor which server it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use tokio::sync::{Mutex, Semaphore};

use crate::harness::{Case, cases};
use crate::kubectl::Kubectl;
use crate::world::{Clients, RunningOperator, World, quick_options};

/// Runs of stories with faults that are under way at the same time.
const PLACES: usize = 5;

/// What is common to all scenarios on a server.
pub(crate) struct Stage {
    clients: Clients,
    kubectl: Option<Kubectl>,
    operator: Mutex<Option<RunningOperator>>,
    opened: AtomicUsize,
    accounts: bool,
    /// Those who play a story many times take a place for each.
    pub(crate) places: Semaphore,
}

impl Stage {
    pub(crate) fn new(clients: Clients) -> Self {
        let opened = AtomicUsize::new(0);
        let places = Semaphore::new(PLACES);
        Self { clients, kubectl: None, operator: Mutex::default(), opened, accounts: false, places }
    }

    /// The same on a server that takes pods only where the namespace has its account.
    pub(crate) fn with_accounts(self) -> Self {
        Self { accounts: true, ..self }
    }

    /// The same with the real kubectl.
    pub(crate) fn with_kubectl(self, kubectl: Kubectl) -> Self {
        Self { kubectl: Some(kubectl), ..self }
    }

    /// The same with an operator that looks after all namespaces.
    pub(crate) async fn with_operator(self) -> Result<Self> {
        let client = self.clients.operator.clone();
        let operator = RunningOperator::start(client, quick_options()).await?;
        Ok(Self { operator: Mutex::new(Some(operator)), ..self })
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
}

/// Scenarios, each in a world of its own.
pub(crate) fn in_worlds(cases: Vec<Case<World>>) -> Vec<Case<Arc<Stage>>> {
    let open = async |stage: Arc<Stage>, name: &str| stage.open(name).await;
    cases.into_iter().map(|case| case.over(open)).collect()
}

/// The same for those that act through kubectl as well.
pub(crate) fn in_worlds_with_kubectl(cases: Vec<Case<(World, Kubectl)>>) -> Vec<Case<Arc<Stage>>> {
    let open = async |stage: Arc<Stage>, name: &str| {
        let kubectl = stage.kubectl.clone().context("there is no kubectl on this stage")?;
        Ok((stage.open(name).await?, kubectl))
    };
    cases.into_iter().map(|case| case.over(open)).collect()
}

/// Verdicts on the operator that scenarios have shared.
pub(crate) fn verdicts() -> Vec<Case<Arc<Stage>>> {
    cases!["operator": stops_when_told]
}

async fn stops_when_told(stage: &Stage) -> Result<()> {
    let operator = stage.operator.lock().await.take().context("no operator was started")?;
    operator.stop().await
}
