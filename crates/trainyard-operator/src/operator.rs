//! An operator: puts the parts together, runs them and ends them in order.
//!
//! Everything it starts lives inside the future of [`Operator::run`]: when that is dropped nothing
//! goes on in the background. Must not know rules of any part.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Health, Metrics, Options, definition::is_ours, ground::Ground, kind::JobKind,
    leader::Leader, reference::look_for_webhook, tfjob::TfJobs, volcano::VolcanoKind, yard::Yard,
};

/// How long waiting events may take to be written at the end.
const FLUSH: Duration = Duration::from_secs(5);

/// Looks after the jobs behind one API server.
pub struct Operator {
    client: kube::Client,
    options: Options,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
}

impl Operator {
    /// An operator that has not begun.
    #[must_use]
    pub fn new(client: kube::Client, options: Options) -> Self {
        Self { client, options, metrics: Arc::default(), health: Arc::default() }
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// Works until `stop` is cancelled or the lease is lost.
    ///
    /// When it is stopped, writes under way are finished, events written and the lease released.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let health = Arc::clone(&self.health);
        let result = match self.check() {
            Ok(()) => self.work::<TfJobs, VolcanoKind>(stop).await,
            Err(error) => Err(error),
        };
        health.set_ended();
        result
    }

    /// Looks after one kind of job, and after another one if that is wanted, under one lease. The
    /// other kind never holds up the first.
    async fn work<A: JobKind, B: JobKind>(self, stop: CancellationToken) -> Result<(), Error> {
        let Self { client, options, metrics, health } = self;
        let ground = Ground::new(client, options, metrics, stop);
        let first = Yard::<A>::new(&ground, Some(Arc::clone(&health)));
        let second = Yard::<B>::new(&ground, None);
        let mut asides = JoinSet::new();
        let (calls, metrics) = (ground.calls.clone(), Arc::clone(&ground.metrics));
        asides.spawn(async move { look_for_webhook(&calls, &health, &metrics).await });
        let closed = CancellationToken::new();
        let mut writers = JoinSet::new();
        for events in [first.events(), second.events()] {
            let until = closed.clone();
            writers.spawn(async move { events.write(until).await });
        }

        let leader = ground.options.leader.clone();
        let mut leader = leader.map(|leader| Leader::new(&ground.calls, leader, ground.clock));
        let leading = CancellationToken::new();
        let second = async {
            if is_ours::<B>(&ground).await { second.live(&leading).await } else { Ok(()) }
        };
        let result = tokio::select! {
            biased;
            error = lead(leader.as_mut(), &leading) => Err(error),
            result = async { tokio::try_join!(first.live(&leading), second) } => result.map(drop),
        };
        asides.shutdown().await;
        closed.cancel();
        let written = async { while writers.join_next().await.is_some() {} };
        if timeout(FLUSH, written).await.is_err() {
            tracing::warn!("not all events could be written before the end");
        }
        if let Some(leader) = leader.as_mut() {
            leader.release().await;
        }
        result
    }

    fn check(&self) -> Result<(), Error> {
        let bad =
            |option, problem: &str| Err(Error::Option { option, problem: problem.to_owned() });
        if let Some(namespace) = &self.options.namespace
            && !is_label(namespace)
        {
            let problem = format!("{namespace:?} is no name of a namespace; use a-z, 0-9 and -");
            return Err(Error::Option { option: "namespace", problem });
        }
        if self.options.qps.is_some_and(|qps| !qps.is_finite() || qps < 0.0) {
            return bad("qps", "must be a number above 0, or left out for no limit");
        }
        if let Some(leader) = &self.options.leader {
            if !is_label(&leader.namespace) || leader.lease.is_empty() || leader.identity.is_empty()
            {
                return bad("leader", "needs a namespace, the name of a lease and an identity");
            }
            if leader.renew_deadline >= leader.lease_duration
                || leader.retry_period >= leader.renew_deadline
            {
                return bad("leader", "needs retry period < renew deadline < lease duration");
            }
        }
        Ok(())
    }
}

fn is_label(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 63
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Waits for the lease, if there is one, and says so; returns when it is lost.
async fn lead(leader: Option<&mut Leader>, leading: &CancellationToken) -> Error {
    let Some(leader) = leader else {
        leading.cancel();
        return std::future::pending().await;
    };
    leader.acquire().await;
    leading.cancel();
    leader.keep().await;
    Error::LeadershipLost { lease: leader.name() }
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod kinds_tests;
#[cfg(test)]
#[path = "operator_tests.rs"]
mod tests;
