//! The real control plane of `trainyard-testbed`, with a `kube::Client` for each of its users.

use std::ops::{Deref, DerefMut};

use anyhow::{Context as _, Result};
use serde_json::json;
use trainyard_testbed::control_plane as testbed;
pub use trainyard_testbed::control_plane::{
    ASSETS_VARIABLE, Binaries, ETCD_VERSION, Identity, KUBELET_CLIENT_NAME, KUBERNETES_VERSION,
    Options, Program, ServiceAccount, Serving, cache_root, free_ports, go,
};

/// A running control plane. Dropping it ends its processes and removes its files.
#[derive(Debug)]
pub struct ControlPlane(testbed::ControlPlane);

impl ControlPlane {
    /// Provides the programs (building them the first time), starts the servers and returns when
    /// the API server is ready.
    pub async fn start(options: Options) -> Result<Self> {
        testbed::ControlPlane::start(options).await.map(Self)
    }

    /// A client that speaks as `identity`.
    pub fn client(&self, identity: Identity) -> Result<kube::Client> {
        let config = self.config(identity)?;
        Ok(match identity {
            // They talk as their binary does.
            Identity::Operator | Identity::GangScheduler => trainyard_operator::connect(config)?,
            _ => kube::Client::try_from(config)?,
        })
    }

    /// The configuration of such a client, for those who put layers of their own around it.
    pub fn config(&self, identity: Identity) -> Result<kube::Config> {
        let url = self.url().parse().context("the server's URL is malformed")?;
        let mut config = kube::Config::new(url);
        config.root_cert = Some(vec![self.authority().to_vec()]);
        config.auth_info = serde_json::from_value(json!({ "token": self.token(identity) }))?;
        Ok(config)
    }
}

impl Deref for ControlPlane {
    type Target = testbed::ControlPlane;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ControlPlane {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
