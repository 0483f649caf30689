//! How much nodes and pods use at present (`metrics.k8s.io`), from what nodes tell of themselves.

use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Limited};
use serde_json::{Value, json};
use trainyard_schema::select::labels::Selector;

use super::Kubelets;
use super::reach::address;
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::{About, Failure};
use crate::kind::World as _;
use crate::request::path::ApiPath;
use crate::request::query::Query;

const VERSION: &str = "metrics.k8s.io/v1beta1";
const LARGEST: usize = 16 << 20;

impl Kubelets {
    /// Answers for nodes or pods, all or one.
    pub(super) async fn usage(
        &self,
        api: &Api,
        path: &ApiPath,
        query: &Query,
    ) -> Result<Response<Body>, Failure> {
        if path.version != "v1beta1" {
            return Err(Failure::no_such_path());
        }
        let selector = query.text("labelSelector").map(Selector::parse).transpose();
        let selector = selector.map_err(|error| Failure::bad_request(error.to_string()))?;
        let summaries = self.summaries(api).await;
        let (kind, items) = match path.resource.as_str() {
            "nodes" => ("NodeMetrics", nodes(api, &summaries)),
            "pods" => ("PodMetrics", pods(api, &summaries, path.namespace.as_deref())),
            _ => return Err(Failure::no_such_path()),
        };
        let wanted = |item: &Value| {
            let named = path.name.as_deref().is_none_or(|name| item["metadata"]["name"] == name);
            let labels = item["metadata"].get("labels");
            named && selector.as_ref().is_none_or(|selector| selector.matches_value(labels))
        };
        let mut items: Vec<Value> = items.into_iter().filter(wanted).collect();
        if let Some(name) = &path.name {
            let item = items.pop().ok_or_else(|| {
                Failure::not_found(About::new(super::METRICS_GROUP, &path.resource, name))
            })?;
            return Ok(answer::value(200, &item));
        }
        let list = json!({
            "kind": format!("{kind}List"), "apiVersion": VERSION, "metadata": {}, "items": items,
        });
        Ok(answer::value(200, &list))
    }

    /// What each node that can be reached says.
    async fn summaries(&self, api: &Api) -> Vec<(String, Value)> {
        let mut summaries = Vec::new();
        for node in api.list("nodes", None) {
            let Some(address) = address(&node) else { continue };
            let Ok(request) = Request::get("/stats/summary").body(Empty::new()) else { continue };
            let Ok(response) = self.ask(&address, request).await else { continue };
            let body = Limited::new(response.into_body(), LARGEST).collect().await;
            let Ok(body) = body else { continue };
            let Ok(value) = serde_json::from_slice(&body.to_bytes()) else { continue };
            let name = node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            summaries.push((name, value));
        }
        summaries
    }
}

fn nodes(api: &Api, summaries: &[(String, Value)]) -> Vec<Value> {
    summaries
        .iter()
        .filter_map(|(name, summary)| {
            let node = api.store.get("nodes", "", name)?.value();
            Some(json!({
                "kind": "NodeMetrics", "apiVersion": VERSION,
                "metadata": metadata(&node),
                "timestamp": time(&summary["node"]), "window": "10s",
                "usage": amounts(&summary["node"]),
            }))
        })
        .collect()
}

fn pods(api: &Api, summaries: &[(String, Value)], namespace: Option<&str>) -> Vec<Value> {
    let all =
        summaries.iter().flat_map(|(_, summary)| summary["pods"].as_array().into_iter().flatten());
    all.filter_map(|stats| {
        let reference = &stats["podRef"];
        let (ns, name) = (reference["namespace"].as_str()?, reference["name"].as_str()?);
        if namespace.is_some_and(|namespace| namespace != ns) {
            return None;
        }
        let pod = api.store.get("pods", ns, name)?.value();
        let containers = stats["containers"].as_array().into_iter().flatten();
        let containers: Vec<Value> = containers
            .map(|container| json!({"name": container["name"], "usage": amounts(container)}))
            .collect();
        Some(json!({
            "kind": "PodMetrics", "apiVersion": VERSION,
            "metadata": metadata(&pod),
            "timestamp": time(stats), "window": "10s",
            "containers": containers,
        }))
    })
    .collect()
}

fn metadata(object: &Value) -> Value {
    let mut kept = json!({"name": object["metadata"]["name"]});
    for key in ["namespace", "labels", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(key) {
            kept[key] = value.clone();
        }
    }
    kept
}

fn time(stats: &Value) -> Value {
    let of = |key: &str| stats[key]["time"].as_str();
    of("cpu").or(of("memory")).map_or_else(|| json!("1970-01-01T00:00:00Z"), |time| json!(time))
}

fn amounts(stats: &Value) -> Value {
    let number = |key: &str, field: &str| stats[key][field].as_u64().unwrap_or(0);
    json!({
        "cpu": format!("{}n", number("cpu", "usageNanoCores")),
        "memory": format!("{}Ki", number("memory", "workingSetBytes") / 1024),
    })
}
