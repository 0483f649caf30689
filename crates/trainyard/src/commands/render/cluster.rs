//! The machines of a cluster, and the connection to it.

use std::time::Duration;

use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, ListParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;

use super::Flags;
use crate::{commands::client, failure::Failure};

/// How long the API server may take to answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_mins(1);
const PAGE: u32 = 500;

/// The machines there are.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// Those that can be used, in the order of the API.
    pub(super) names: Vec<String>,
    /// Those passed over, with the reason.
    pub(super) skipped: Vec<(String, &'static str)>,
}

/// Asks the cluster for its machines.
pub(super) fn nodes(flags: &Flags) -> Result<Nodes, Failure> {
    block_on(async {
        let client = connect(flags).await?;
        list(client, flags.all_nodes).await.map_err(|error| {
            Failure::other("listing the cluster's nodes", &error)
                .hint("--nodes and --nodes-file work without a cluster")
        })
    })?
}

/// Runs to its end what waits for the network.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other("starting the runtime", &error))?;
    Ok(runtime.block_on(work))
}

pub(super) async fn connect(flags: &Flags) -> Result<Client, Failure> {
    const HINT: &str = "name a kubeconfig with --kubeconfig or KUBECONFIG; --nodes and --nodes-file \
        render without a cluster";
    let kubeconfig = match &flags.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let options = KubeConfigOptions { context: flags.context.clone(), ..Default::default() };
    let config = match kubeconfig {
        Ok(file) => Config::from_custom_kubeconfig(file, &options).await,
        Err(error) => Err(error),
    };
    let mut config =
        config.map_err(|error| Failure::other("reading the kubeconfig", &error).hint(HINT))?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(ANSWER);
    client::connect(config)
}

async fn list(client: Client, all: bool) -> Result<Nodes, kube::Error> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        plural: "nodes".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut nodes = Nodes::default();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        for node in page.items {
            let Some(name) = node.metadata.name else { continue };
            match obstacle(&node.data).filter(|_| !all) {
                Some(reason) => nodes.skipped.push((name, reason)),
                None => nodes.names.push(name),
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(nodes),
        }
    }
}

/// Why a machine is not used.
fn obstacle(node: &Value) -> Option<&'static str> {
    if node["spec"]["unschedulable"] == true {
        return Some("cordoned");
    }
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    (!ready).then_some("not ready")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cordoned_and_unready_machines_are_told_apart() {
        let ready = |status| json!([{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status}]);
        let node = |status| json!({"spec": {}, "status": {"conditions": ready(status)}});
        assert_eq!(obstacle(&node("True")), None);
        assert_eq!(obstacle(&node("Unknown")), Some("not ready"));
        assert_eq!(obstacle(&json!({})), Some("not ready"));
        let cordoned =
            json!({"spec": {"unschedulable": true}, "status": {"conditions": ready("True")}});
        assert_eq!(obstacle(&cordoned), Some("cordoned"));
    }
}
