//! What the server asks of nodes: logs, sessions in containers, and how much is used.
//!
//! Owns the way to a node's own API. Must not know how nodes run pods.

mod log;
mod reach;
mod session;
mod usage;

use std::sync::Arc;

use http::{Request, Response};
use rustls::ClientConfig;

pub use log::{LogOptions, Residents};

use crate::answer::Body;
use crate::api::Api;
use crate::failure::Failure;
use crate::request::path::ApiPath;
use crate::request::query::Query;
use crate::verbs::Target;

/// The group of what is used at present.
pub(crate) const METRICS_GROUP: &str = "metrics.k8s.io";

/// The way to the nodes.
#[derive(Default)]
pub(crate) struct Kubelets {
    /// How the server proves to a node who it is; without it no node is asked.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// Pods that live in this process.
    pub(crate) residents: Option<Arc<dyn Residents>>,
}

/// Whether the kubelet answers, not the store.
pub(crate) fn serves(target: &Target) -> bool {
    let words = ["log", "exec", "attach", "portforward", "proxy"];
    target.subresource.as_deref().is_some_and(|subresource| words.contains(&subresource))
}

impl Kubelets {
    /// Answers a request about a running pod.
    pub(crate) async fn pass_on<B>(
        &self,
        api: &Api,
        target: &Target,
        query: &Query,
        rest: &str,
        request: Request<B>,
    ) -> Result<Response<Body>, Failure> {
        match target.subresource.as_deref().unwrap_or_default() {
            "log" => self.log(api, target, query).await,
            "exec" => self.session(api, target, query, request).await,
            "portforward" => self.forward(api, target, request).await,
            "proxy" if target.kind.storage == "nodes" => {
                self.node_proxy(api, target, query, rest).await
            }
            other => Err(Failure::new(
                501,
                "NotImplemented",
                format!(
                    "{other} is not served here: use `kubectl exec` or `kubectl logs`, or ask the pod by its address from another pod"
                ),
            )),
        }
    }

    /// Answers for `kubectl top`.
    pub(crate) async fn metrics(
        &self,
        api: &Api,
        path: &ApiPath,
        query: &Query,
    ) -> Result<Response<Body>, Failure> {
        self.usage(api, path, query).await
    }
}
