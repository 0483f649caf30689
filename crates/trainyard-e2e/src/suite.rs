//! The tier on a real control plane: starts one, installs what `trainyard manifests` prints, and runs the
//! scenarios and crash stories under the operator's own rights.
//!
//! Must not know what scenarios do.

pub(crate) mod install;
mod placement;
pub(crate) mod rights;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::control_plane::{ControlPlane, Identity, Options, Program};
use crate::crash::{self, Share};
use crate::harness::{Case, Phase, Tier, cases, within};
use crate::scenarios::{self, malformed, outage};
use crate::setup;
use crate::stage::{self, Stage, in_worlds, in_worlds_with_kubectl};
use crate::world::{Clients, World};

/// Scenarios under way at the same time.
pub(crate) const AT_ONCE: usize = 8;
/// The same where each has an operator of its own, or one after the other many.
const OPERATORS_AT_ONCE: usize = 3;

/// A real control plane with the operator's manifests.
struct Plane {
    plane: Arc<Mutex<ControlPlane>>,
    clients: Clients,
}

impl Plane {
    async fn start() -> Result<Arc<Self>> {
        // Schedulers of scenarios share a connection, and each of their watches is a stream of it.
        let api_server_flags = vec!["--http2-max-streams-per-connection=1000".to_owned()];
        let options = Options { controller_manager: false, api_server_flags, ..Options::default() };
        let mut plane = ControlPlane::start(options).await?;
        install::install_all(&mut plane).await.context("installing the operator's manifests")?;
        let clients = clients(&plane)?;
        Ok(Arc::new(Self { plane: Arc::new(Mutex::new(plane)), clients }))
    }

    async fn stage(&self) -> Stage {
        Stage::new(self.clients.clone()).with_kubectl(self.plane.lock().await.kubectl())
    }
}

/// Who acts on a control plane, each with rights of their own.
pub(crate) fn clients(plane: &ControlPlane) -> Result<Clients> {
    Ok(Clients {
        user: plane.client(Identity::Admin)?,
        kubelet: plane.client(Identity::Kubelet)?,
        operator: plane.client(Identity::Operator)?,
        scheduler: plane.client(Identity::GangScheduler)?,
        turn: Arc::default(),
    })
}

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    Tier::in_real_time(setup::programs_and_product(&Program::CONTROL_PLANE), |tier, real| {
        let plane = real.fixture(Plane::start);
        let with_operator = real.fixture({
            let plane = Arc::clone(&plane);
            async move || {
                let stage = plane.get().await?.stage().await;
                Ok(Arc::new(stage.with_operator().await?))
            }
        });
        let shared = [scenarios::shared(), scenarios::shared_on_complete_servers()].concat();
        let with_kubectl = in_worlds_with_kubectl(scenarios::with_kubectl());
        let shared = [in_worlds(shared), with_kubectl].concat();
        tier.run(Phase::new(&with_operator, shared).at_once(AT_ONCE));
        tier.judge(&with_operator, stage::verdicts());
        drop(with_operator);
        let plain = real.fixture({
            let plane = Arc::clone(&plane);
            async move || Ok(Arc::new(plane.get().await?.stage().await))
        });
        let own = [scenarios::own_operator(), scenarios::own_operator_on_complete_servers()];
        let own = [crash::all(Share::of_this_commit()), in_worlds(own.concat())].concat();
        tier.run(Phase::new(&plain, own).at_once(OPERATORS_AT_ONCE));
        tier.run(Phase::new(&plane, cases!["rights": asked_by_admission]).tried_once());
        let placement = cases!["placement": as_kube_scheduler_has_it];
        tier.run(Phase::new(&plane, within(placement::IN_ALL, placement)).tried_once());
        tier.judge_all(&plane, cases!["rights": audit_log, audit_log_of_the_scheduler]);
        // What follows changes the control plane itself.
        tier.run(Phase::new(&plane, with_control_plane()).one_by_one().tried_once());
        let without_rules = real.fixture({
            let plane = Arc::clone(&plane);
            async move || {
                let plane = plane.get().await?;
                install::install_without_rules(&*plane.plane.lock().await).await?;
                Ok(Arc::new(plane.stage().await))
            }
        });
        tier.run(Phase::new(&without_rules, in_worlds(malformed::all())).at_once(AT_ONCE));
        tier.judge(&plane, cases!["control_plane": still_runs]);
        Ok(())
    })
}

/// Scenarios that stop and start servers.
fn with_control_plane() -> Vec<Case<Arc<Plane>>> {
    let open = async |plane: Arc<Plane>, name: &str| {
        let world: World = plane.stage().await.open(name).await?;
        let guard: OwnedMutexGuard<ControlPlane> = Arc::clone(&plane.plane).lock_owned().await;
        Ok((world, guard))
    };
    outage::all().into_iter().map(|case| case.over(open)).collect()
}

/// On a control plane of its own, with kube-scheduler.
async fn as_kube_scheduler_has_it(_: &Plane) -> Result<()> {
    placement::compare().await
}

async fn asked_by_admission(plane: &Plane) -> Result<()> {
    rights::check_admission(&*plane.plane.lock().await).await
}

async fn audit_log(plane: &Plane) -> Result<()> {
    rights_are_used(plane, Identity::Operator).await
}

async fn audit_log_of_the_scheduler(plane: &Plane) -> Result<()> {
    rights_are_used(plane, Identity::GangScheduler).await
}

async fn rights_are_used(plane: &Plane, who: Identity) -> Result<()> {
    let plane = plane.plane.lock().await;
    rights::check(&plane.audit_log(), &plane.user(who), &plane.kubectl()).await
}

async fn still_runs(plane: &Plane) -> Result<()> {
    plane.plane.lock().await.check()
}
