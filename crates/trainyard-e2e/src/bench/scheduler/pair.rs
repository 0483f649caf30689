//! The scheduler under test, with the controller of Volcano Jobs where the load needs one: ours or
//! somebody else's. Must not know the load.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::{ClusterBench, Load};
use crate::bench::{
    load::post,
    process::{self, Usage, Watched},
};
use crate::control_plane::{ControlPlane, Identity};

/// The scheduler makes the queue of the load, or somebody else has.
const QUEUE: &str = "/apis/scheduling.volcano.sh/v1beta1/queues/default";
/// Looks for that queue, one a second.
const LOOKS: usize = 120;
/// Until everything that there is has been read.
const SETTLE: Duration = Duration::from_secs(5);

pub(super) struct Pair {
    scheduler: Watched,
    controller: Option<Watched>,
}

/// What both have used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) scheduler: Usage,
    pub(super) controller: Option<Usage>,
}

impl Pair {
    /// Starts what is wanted and waits until it is at rest.
    pub(super) async fn start(plane: &ControlPlane, options: &ClusterBench) -> Result<Self> {
        let client = plane.client(Identity::Admin)?;
        if options.scheduler_cmd.is_some() || options.controller_cmd.is_some() {
            allow_everything(plane, &client).await?;
        }
        let command = options
            .scheduler_cmd
            .as_deref()
            .map_or_else(|| process::ours(&options.binary, "scheduler"), process::other);
        let scheduler = Watched::start(plane, "scheduler", Identity::GangScheduler, command)?;
        let controller = match options.load {
            Load::Groups => None,
            Load::Jobs => {
                let ours = || {
                    let mut command = process::ours(&options.binary, "operator");
                    // Also where the definitions are Volcano's own.
                    command.arg("--volcano-jobs=always");
                    command
                };
                let command = options.controller_cmd.as_deref().map_or_else(ours, process::other);
                Some(Watched::start(plane, "controller", Identity::Operator, command)?)
            }
        };
        let mut pair = Self { scheduler, controller };
        pair.until_there_is_a_queue(&client).await?;
        tokio::time::sleep(SETTLE).await;
        pair.check()?;
        Ok(pair)
    }

    async fn until_there_is_a_queue(&mut self, client: &Client) -> Result<()> {
        for _ in 0..LOOKS {
            self.check()?;
            if client.request_text(Request::get(QUEUE).body(Vec::new())?).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let lines = self.scheduler.last_lines();
        anyhow::bail!("the scheduler makes no queue `default`; its log ends:\n{lines}")
    }

    /// Fails when one of them has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        self.scheduler.check()?;
        self.controller.as_mut().map_or(Ok(()), Watched::check)
    }

    pub(super) fn used(&self) -> Result<Used> {
        let controller = self.controller.as_ref().map(Watched::usage).transpose()?;
        Ok(Used { scheduler: self.scheduler.usage()?, controller })
    }

    /// The ends of their logs.
    pub(super) fn last_lines(&self) -> String {
        let controller = self.controller.as_ref().map(Watched::last_lines).unwrap_or_default();
        format!("scheduler:\n{}\ncontroller:\n{controller}", self.scheduler.last_lines())
    }

    /// Ends both.
    pub(super) async fn stop(self) -> Result<()> {
        self.scheduler.stop().await?;
        match self.controller {
            Some(controller) => controller.stop().await,
            None => Ok(()),
        }
    }
}

/// The rights of our roles are too few for somebody else's programs.
async fn allow_everything(plane: &ControlPlane, client: &Client) -> Result<()> {
    let user = |identity| {
        let name = plane.user(identity);
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
    };
    let body: Value = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "bench-others"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [user(Identity::GangScheduler), user(Identity::Operator)],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    post(client, path, &body).await.context("giving the others their rights").map(drop)
}
