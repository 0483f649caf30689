//! The operator's scenarios on the embedded server, in one process, in time that is paused: hours
//! pass as soon as nobody has anything to do.
//!
//! The same scenarios as on a real control plane: one that passes here and fails there is a fault of
//! the embedded server. Must not know what scenarios do.

mod homes;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use trainyard_apiserver::{Clock, Server, Settings, controllers};

use crate::crash::{self, Share};
use crate::harness::{Phase, Tier};
use crate::scenarios::{self, malformed};
use crate::stage::{self, in_worlds};
use crate::world::Clients;
pub use homes::NewRuntime;
use homes::{Homes, Kind};

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
            turn: Arc::default(),
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

/// Runs the tier, in runtimes whose time is paused.
pub fn run(runtime: NewRuntime) -> ExitCode {
    Tier::in_paused_time(|tier| {
        let homes = Homes::new(runtime, Kind::WithOperator);
        tier.run(Phase::new(&homes, in_worlds(scenarios::shared())).tried_once());
        tier.judge(&homes, stage::verdicts());
        drop(homes);
        // The long ones first, so that all threads end at about the same time.
        let own = [crash::all(Share::Every), in_worlds(scenarios::own_operator())].concat();
        tier.run(Phase::new(&Homes::new(runtime, Kind::Plain), own).tried_once());
        let malformed = in_worlds(malformed::all());
        tier.run(Phase::new(&Homes::new(runtime, Kind::WithoutRules), malformed).tried_once());
    })
}
