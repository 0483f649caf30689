//! Operators that a scenario starts, stops and crashes itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use kube::Client;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use trainyard_operator::{Health, Metrics, Operator, Options, VolcanoJobs};

use super::World;

/// How long an operator may take to fill its caches, or to stop.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

/// An operator in this process; dropping it is a crash.
pub struct RunningOperator {
    task: JoinSet<Result<(), trainyard_operator::Error>>,
    stop: CancellationToken,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// How it is.
    pub health: Arc<Health>,
}

impl RunningOperator {
    /// Starts an operator and waits until it is ready.
    pub async fn start(client: Client, options: Options) -> Result<Self> {
        let operator = Operator::new(client, options);
        let (metrics, health) = (operator.metrics(), operator.health());
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(operator.run(stop.clone()));
        let mut running = Self { task, stop, metrics, health };
        let until = Instant::now() + PATIENCE;
        while !running.health.is_ready() {
            if let Some(ended) = running.task.try_join_next() {
                bail!("the operator ended before it was ready: {ended:?}");
            }
            if Instant::now() > until {
                bail!("the operator was not ready after {PATIENCE:?}");
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(running)
    }

    /// Asks it to stop and waits until it has.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        match tokio::time::timeout(PATIENCE, self.task.join_next()).await {
            Ok(Some(Ok(result))) => Ok(result?),
            Ok(ended) => bail!("the operator's task did not end well: {ended:?}"),
            Err(_) => bail!("the operator did not stop within {PATIENCE:?}"),
        }
    }

    /// Ends it between two instructions, as a crash does.
    pub async fn crash(mut self) {
        self.task.shutdown().await;
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self) -> Result<()> {
        match tokio::time::timeout(PATIENCE, self.task.join_next()).await {
            Ok(_) => Ok(()),
            Err(_) => bail!("the operator still runs after {PATIENCE:?}"),
        }
    }
}

/// Settings of operators in tests: all durations short.
#[must_use]
pub fn quick_options() -> Options {
    let mut options = Options::default();
    options.planner.restart_backoff_ms = 200;
    options.planner.restart_backoff_ms_max = 800;
    options.planner.counts_delay_ms = 100;
    options.planner.lost_pod_ms = 1_000;
    options.planner.final_phase_ms = 1_000;
    options.retry_max = Duration::from_secs(1);
    options.volcano_jobs = VolcanoJobs::Always;
    // The same as the time of day, except where the runtime's time is paused.
    options.time = trainyard_operator::Time::OfRuntime;
    options
}

impl World {
    /// Starts an operator that looks after this namespace alone.
    pub async fn start_operator(&self, edit: impl FnOnce(&mut Options)) -> Result<RunningOperator> {
        self.start_operator_with(self.clients.operator.clone(), edit).await
    }

    /// The same, through a client that the scenario has prepared.
    pub async fn start_operator_with(
        &self,
        client: Client,
        edit: impl FnOnce(&mut Options),
    ) -> Result<RunningOperator> {
        let mut options = quick_options();
        options.namespace = Some(self.namespace.clone());
        edit(&mut options);
        RunningOperator::start(client, options).await
    }

    /// The client of schedulers.
    #[must_use]
    pub fn scheduler_client(&self) -> Client {
        self.clients.scheduler.clone()
    }

    /// The client of operators.
    #[must_use]
    pub fn operator_client(&self) -> Client {
        self.clients.operator.clone()
    }
}
