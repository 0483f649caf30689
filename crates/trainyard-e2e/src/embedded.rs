//! The operator's scenarios on the embedded server, in one process, in time that is paused: hours
//! pass as soon as nobody has anything to do.
//!
//! The same scenarios as on a real control plane: one that passes here and fails there is a fault of
//! the embedded server. Must not know what scenarios do.

use anyhow::{Context as _, Result};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use trainyard_apiserver::{Clock, Server, Settings, controllers};

use crate::counts::Counts;
use crate::crash;
use crate::kubelet::presence;
use crate::rest::Rest;
use crate::scenarios::{self, malformed};
use crate::suite::report::Report;
use crate::suite::{Stage, install};
use crate::world::{Clients, RunningOperator, quick_options};

/// A server in this process with its controllers and the definition of TFJob.
pub(crate) struct Embedded {
    pub(crate) server: Server,
    stop: CancellationToken,
    _claims: TempDir,
}

impl Embedded {
    /// Starts one in memory.
    pub(crate) async fn start() -> Result<Self> {
        let clock = Clock::of_runtime();
        let server = Server::open(Settings { clock, ..Settings::default() })?;
        let claims = tempfile::tempdir()?;
        let authority = server.authority().certificate().to_owned();
        let settings = controllers::Settings::new(claims.path().to_owned(), authority);
        let client = server.client("system:kube-controller-manager");
        controllers::bootstrap(client.clone(), settings.clone()).await?;
        let stop = CancellationToken::new();
        tokio::spawn(controllers::run_all(client, settings, stop.clone()));
        let embedded = Self { server, stop, _claims: claims };
        embedded.define(&trainyard_api::tfjob_crd()).await?;
        for definition in trainyard_api::volcano::crd::all() {
            embedded.define(&definition).await?;
        }
        Ok(embedded)
    }

    /// Installs a definition, over one of the same name.
    pub(crate) async fn define(&self, definition: &Value) -> Result<()> {
        let definitions = definitions(&self.server.client("admin"));
        let mut object: DynamicObject = serde_json::from_value(definition.clone())?;
        let name = object.metadata.name.clone().unwrap_or_default();
        if let Some(there) = definitions.get_opt(&name).await? {
            object.metadata.resource_version = there.metadata.resource_version;
            definitions.replace(&name, &PostParams::default(), &object).await?;
        } else {
            definitions.create(&PostParams::default(), &object).await?;
        }
        Ok(())
    }

    /// Who acts in scenarios.
    pub(crate) fn clients(&self) -> Clients {
        Clients {
            user: self.server.client("admin"),
            kubelet: self.server.client("kubelet"),
            operator: self.server.client("operator"),
            scheduler: self.server.client("scheduler"),
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn definitions(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// Runs the scenarios whose names contain `filter`, in a thread of its own.
pub async fn run(filter: Option<&str>) -> Result<Counts> {
    let filter = filter.map(str::to_owned);
    let play = move || -> Result<Counts> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?;
        runtime.block_on(play(filter.as_deref()))
    };
    tokio::task::spawn_blocking(play).await.context("the scenarios' thread ended")?
}

async fn play(filter: Option<&str>) -> Result<Counts> {
    let embedded = Embedded::start().await.context("starting the embedded server")?;
    let rest = Rest::new(embedded.clients().kubelet, "default");
    presence::register(&rest).await?;
    tokio::select! {
        counts = play_all(&embedded, filter) => counts,
        lost = presence::beat(&rest) => lost.map(|()| Counts::default()),
    }
}

async fn play_all(embedded: &Embedded, filter: Option<&str>) -> Result<Counts> {
    let stage = Stage::new(embedded.clients(), filter, Report::default());
    let operator = RunningOperator::start(embedded.clients().operator, quick_options()).await?;
    stage.play_all(&scenarios::shared()).await;
    operator.stop().await.context("stopping the shared operator")?;
    stage.play_all(&scenarios::own_operator()).await;
    crash::run(&stage).await;
    if malformed::all().iter().any(|scenario| stage.wants(&scenario.name)) {
        for definition in install::definitions_without_rules()? {
            embedded.define(&definition).await?;
        }
        stage.play_all(&malformed::all()).await;
    }
    Ok(stage.finish())
}
