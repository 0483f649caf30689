//! The Node's Lease: the cheap sign of life that the API server's node controller watches.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::{Api, Client};

use super::error::NodeError;
use super::registration::call;

const NAMESPACE: &str = "kube-node-lease";

/// Renews one Node's Lease.
pub(super) struct LeaseKeeper {
    api: Api<Lease>,
    node: String,
    duration: Duration,
    /// As the API server last answered: renewing it needs no reading.
    latest: Option<Lease>,
}

impl LeaseKeeper {
    pub(super) fn new(client: Client, node: String, duration: Duration) -> Self {
        Self { api: Api::namespaced(client, NAMESPACE), node, duration, latest: None }
    }

    /// Renews the Lease of the Node with this UID, making it where it is missing.
    pub(super) async fn renew(&mut self, node_uid: &str) -> Result<(), NodeError> {
        if let Some(lease) = self.latest.take() {
            match self.replace(lease, node_uid).await {
                // Someone wrote or removed it: look and do it again.
                Err(error) if matches!(error.status_code(), Some(404 | 409)) => {}
                done => return done,
            }
        }
        if let Some(lease) = self.api_get().await? {
            return self.replace(lease, node_uid).await;
        }
        let lease = renewed(Lease::default(), &self.node, node_uid, self.duration);
        let doing = format!("making the lease of node {:?}", self.node);
        let params = PostParams::default();
        let created = self.api.create(&params, &lease);
        self.latest = Some(call(doing, created).await?);
        Ok(())
    }

    async fn replace(&mut self, lease: Lease, node_uid: &str) -> Result<(), NodeError> {
        let lease = renewed(lease, &self.node, node_uid, self.duration);
        let doing = format!("renewing the lease of node {:?}", self.node);
        let params = PostParams::default();
        let replaced = self.api.replace(&self.node, &params, &lease);
        self.latest = Some(call(doing, replaced).await?);
        Ok(())
    }

    async fn api_get(&self) -> Result<Option<Lease>, NodeError> {
        let doing = format!("reading the lease of node {:?}", self.node);
        call(doing, self.api.get_opt(&self.node)).await
    }
}

/// The Lease of a Node, if there is one.
pub(super) async fn read(client: &Client, node: &str) -> Result<Option<Lease>, NodeError> {
    let keeper = LeaseKeeper::new(client.clone(), node.to_owned(), Duration::ZERO);
    keeper.api_get().await
}

/// `base` as it is after a renewal now.
fn renewed(base: Lease, node: &str, node_uid: &str, duration: Duration) -> Lease {
    let spec = base.spec.unwrap_or_default();
    Lease {
        metadata: ObjectMeta {
            name: Some(node.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: node.to_owned(),
                uid: node_uid.to_owned(),
                ..OwnerReference::default()
            }]),
            ..base.metadata
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(node.to_owned()),
            lease_duration_seconds: Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..spec
        }),
    }
}
