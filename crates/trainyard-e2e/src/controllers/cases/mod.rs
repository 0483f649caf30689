//! The cases, by controller.

mod accounts;
mod claims;
mod endpoints;
mod expiry;
mod garbage;
mod jobs;
mod namespaces;
mod nodes;

use std::sync::Arc;

use anyhow::{Result, ensure};
use kube::Client;
use serde_json::Value;
use trainyard_apiserver::controllers::{self, Settings};

use super::CERTIFICATE;
use super::ground::{Ground, look};
use crate::harness::Case;
use crate::rest::Rest;

/// All of them.
pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    [
        accounts::all(),
        claims::all(),
        endpoints::all(),
        expiry::all(),
        garbage::all(),
        jobs::all(),
        namespaces::all(),
        nodes::all(),
    ]
    .concat()
}

/// A fresh yard has its objects, and making them again harms nothing.
pub(super) async fn bootstrap(client: &Client, settings: &Settings) -> Result<()> {
    controllers::bootstrap(client.clone(), settings.clone()).await?;
    controllers::bootstrap(client.clone(), settings.clone()).await?;
    let rest = Rest::new(client.clone(), "");
    for path in [
        "/api/v1/namespaces/kubeflow",
        "/api/v1/namespaces/kube-node-lease",
        "/api/v1/namespaces/kubeflow/serviceaccounts/default",
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
    ] {
        ensure!(!look(&rest, path).await?.is_null(), "{path} is not there");
    }
    let class = look(&rest, "/apis/storage.k8s.io/v1/storageclasses/standard").await?;
    let default = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";
    ensure!(class.pointer(default) == Some(&Value::from("true")), "{class:#}");
    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let certificate = look(&rest, path).await?;
    ensure!(certificate["data"]["ca.crt"] == CERTIFICATE, "{certificate:#}");
    Ok(())
}
