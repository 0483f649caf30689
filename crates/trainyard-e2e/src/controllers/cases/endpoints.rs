//! Where the traffic of services goes.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::check;
use crate::controllers::ground::{Ground, Place, propagated};
use crate::harness::{Case, cases};

const SLICES: &str = "discovery.k8s.io/v1/endpointslices";

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "endpoints": follow_pods,
        headless_before_ready,
        follow_the_service,
        what_others_write_is_theirs,
    )
}

fn service(name: &str, more: &Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "labels": {"team": "red"}},
        "spec": {"selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        service["spec"][key] = value.clone();
    }
    service
}

/// The slices of a service.
fn of_service<'a>(list: &'a Value, service: &str) -> Vec<&'a Value> {
    let label = "kubernetes.io/service-name";
    let all = list["items"].as_array().into_iter().flatten();
    all.filter(|slice| slice["metadata"]["labels"][label] == service).collect()
}

/// All endpoints of a service: address, ready, serving, terminating.
fn endpoints(list: &Value, service: &str) -> Vec<(String, bool, bool, bool)> {
    let slices = of_service(list, service).into_iter();
    let all = slices.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let mut all: Vec<_> = all
        .map(|one| {
            let is = |what: &str| one["conditions"][what] == true;
            let address = one["addresses"][0].as_str().unwrap_or_default().to_owned();
            (address, is("ready"), is("serving"), is("terminating"))
        })
        .collect();
    all.sort();
    all
}

async fn until_endpoints(
    place: &Place,
    service: &str,
    wanted: &[(&str, bool, bool, bool)],
) -> Result<Value> {
    let wanted: Vec<_> =
        wanted.iter().map(|(ip, r, s, t)| ((*ip).to_owned(), *r, *s, *t)).collect();
    let what = format!("{wanted:?} for {service}");
    let right =
        |list: &Value| !of_service(list, service).is_empty() && endpoints(list, service) == wanted;
    place.until(SLICES, &what, right).await
}

async fn follow_pods(ground: &Ground) -> Result<()> {
    let place = ground.place("slices").await?;
    place.make("services", &service("web", &json!({}))).await?;
    until_endpoints(&place, "web", &[]).await?;
    place.pod("a", &json!({})).await?;
    place.pod("b", &json!({"hostname": "bee", "subdomain": "web"})).await?;
    place.runs("a", "10.7.1.1", true).await?;
    place.runs("b", "10.7.1.2", false).await?;
    let both = [("10.7.1.1", true, true, false), ("10.7.1.2", false, false, false)];
    until_endpoints(&place, "web", &both).await?;
    // The slice without ports, which said that there is nothing, may go a moment later.
    let alone = |list: &Value| of_service(list, "web").len() == 1;
    let list = place.until(SLICES, "one slice for web", alone).await?;
    let slice = of_service(&list, "web")[0];
    check::fields(
        "the slice",
        slice,
        &[
            ("/addressType", json!("IPv4")),
            ("/ports", json!([{"name": "http", "port": 8080, "protocol": "TCP"}])),
            ("/metadata/labels/team", json!("red")),
            (
                "/metadata/labels/endpointslice.kubernetes.io~1managed-by",
                json!("endpointslice-controller.k8s.io"),
            ),
            ("/metadata/ownerReferences/0/kind", json!("Service")),
            ("/endpoints/0/nodeName", json!(place.node)),
            ("/endpoints/0/targetRef/name", json!("a")),
            ("/endpoints/1/hostname", json!("bee")),
        ],
    )?;
    let old = place
        .until("endpoints/web", "complete", |found| {
            found["subsets"][0]["notReadyAddresses"][0]["ip"] == "10.7.1.2"
        })
        .await?;
    check::equal("the older form", &old["subsets"][0]["addresses"][0]["ip"], "10.7.1.1")?;
    let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    check::equal("its ports", &old["subsets"][0]["ports"], &ports)?;
    place.runs("b", "10.7.1.2", true).await?;
    place.delete("pods/a", &json!({})).await?;
    let going = [("10.7.1.1", false, true, true), ("10.7.1.2", true, true, false)];
    until_endpoints(&place, "web", &going).await?;
    place.delete("pods/a", &json!({"gracePeriodSeconds": 0})).await?;
    until_endpoints(&place, "web", &going[1..]).await?;
    place.change("pods/b", &json!({"metadata": {"labels": {"app": "other"}}})).await?;
    until_endpoints(&place, "web", &[]).await.map(|_| ())
}

async fn headless_before_ready(ground: &Ground) -> Result<()> {
    let place = ground.place("headless").await?;
    let spec = json!({"clusterIP": "None", "publishNotReadyAddresses": true, "ports": []});
    place.make("services", &service("web", &spec)).await?;
    place.pod("a", &json!({})).await?;
    place.runs("a", "10.7.2.1", false).await?;
    let list = until_endpoints(&place, "web", &[("10.7.2.1", true, false, false)]).await?;
    let slice = of_service(&list, "web")[0];
    let headless = "/metadata/labels/service.kubernetes.io~1headless";
    check::equal("the label", slice.pointer(headless), Some(&json!("")))?;
    place.change("pods/a/status", &json!({"status": {"phase": "Succeeded"}})).await?;
    until_endpoints(&place, "web", &[]).await.map(|_| ())
}

async fn follow_the_service(ground: &Ground) -> Result<()> {
    let place = ground.place("changed").await?;
    place.make("services", &service("web", &json!({}))).await?;
    place.pod("a", &json!({})).await?;
    place.runs("a", "10.7.3.1", true).await?;
    let one = [("10.7.3.1", true, true, false)];
    let list = until_endpoints(&place, "web", &one).await?;
    // Somebody removes what is there. One too many, made twice at the start, may go by itself.
    for slice in of_service(&list, "web") {
        let name = slice["metadata"]["name"].as_str().context("no name")?;
        place.delete_if_there(&format!("{SLICES}/{name}")).await?;
    }
    until_endpoints(&place, "web", &one).await?;
    let port = json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 9999}]}});
    place.change("services/web", &port).await?;
    let moved = |list: &Value| {
        let slices = of_service(list, "web");
        slices.len() == 1 && slices[0]["ports"][0]["port"] == 9999
    };
    place.until(SLICES, "at the other port", moved).await?;
    let both = json!({"metadata": {"labels": {"team": "blue"}}});
    place.change("services/web", &both).await?;
    let blue = |found: &Value| found["metadata"]["labels"]["team"] == "blue";
    place.until("endpoints/web", "labelled blue", blue).await?;
    place.delete("services/web", &propagated("Background")).await?;
    place.until_gone("endpoints/web").await?;
    place.until(SLICES, "empty", |list| of_service(list, "web").is_empty()).await.map(|_| ())
}

async fn what_others_write_is_theirs(ground: &Ground) -> Result<()> {
    let place = ground.place("byhand").await?;
    place.make("services", &service("db", &json!({"selector": null}))).await?;
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "db"},
        "subsets": [{"addresses": [{"ip": "10.7.4.1"}], "ports": [{"port": 5432}]}],
    });
    place.make("endpoints", &endpoints).await?;
    // Another service shows that everything has been looked at.
    place.make("services", &service("web", &json!({}))).await?;
    let list = until_endpoints(&place, "web", &[]).await?;
    ensure!(of_service(&list, "db").is_empty(), "{list:#}");
    let found = place.look("endpoints/db").await?;
    check::equal("what was written", &found["subsets"][0]["addresses"][0]["ip"], "10.7.4.1")
}
