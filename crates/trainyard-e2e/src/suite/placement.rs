//! Every field of a pod that matters to placement, held against kube-scheduler: the same pods, one
//! for each node, are given to it and to ours on one real control plane.
//!
//! Each pod is bound to one node by name beside what it says itself, so that whether it gets a node
//! says whether that node will do. Pods are small and nodes large: none stands in another's way.

mod ground;
mod rows;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trainyard_operator::scheduler;

use crate::control_plane::{ControlPlane, Identity, Options};
use crate::rest::Rest;
use crate::seen::text;
use rows::Row;

/// The names of both schedulers, ours first.
const SCHEDULERS: [&str; 2] = ["trainyard", "default-scheduler"];
const NAMESPACE: &str = "placement";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Pods that are made side by side.
const AT_ONCE: usize = 16;
/// Both have judged all pods so long after the last was made.
const LONGEST: Duration = Duration::from_mins(2);
/// The same with the start of the control plane and the making of pods.
pub(super) const IN_ALL: Duration = Duration::from_mins(5);
/// Nobody is judged anew after so long without a change.
const QUIET: Duration = Duration::from_secs(8);

/// Plays all rows and compares.
pub(super) async fn compare() -> Result<()> {
    let plane = ControlPlane::start(Options {
        scheduler: true,
        audit: false,
        controllers: ["persistentvolume-binder-controller", "ephemeral-volume-controller"]
            .map(str::to_owned)
            .to_vec(),
        // Without these the server drops a field that is to be refused.
        api_server_flags: [
            "--feature-gates=GenericWorkload=true",
            "--runtime-config=scheduling.k8s.io/v1alpha2=true",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Options::default()
    })
    .await?;
    let client = plane.client(Identity::Admin)?;
    let rest = Rest::new(client.clone(), NAMESPACE);
    ground::furnish(&rest).await.context("making nodes and what is on them")?;
    let options = scheduler::Options {
        names: vec![SCHEDULERS[0].to_owned()],
        ..scheduler::Options::on_cluster()
    };
    let mut ours = JoinSet::new();
    ours.spawn(scheduler::run(client, options, CancellationToken::new()));
    let rows = rows::all();
    let pods: Vec<_> = rows
        .iter()
        .flat_map(|row| row.nodes().iter().map(move |node| (row, *node)))
        .flat_map(|(row, node)| SCHEDULERS.map(|scheduler| (row, node, scheduler)))
        .collect();
    let rest = &rest;
    stream::iter(&pods)
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, async |&(row, node, scheduler)| {
            make(rest, row, node, scheduler).await.with_context(|| row.name.clone())
        })
        .await?;
    let names = pods.iter().map(|(row, node, scheduler)| pod_name(&row.name, node, scheduler));
    let judged = until_judged(rest, &names.collect::<Vec<_>>()).await?;
    let differences = differences(&rows, &judged);
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    let accepted = judged.values().filter(|judgement| judgement.is_placed).count();
    // Neither may have judged all alike.
    ensure!(accepted * 5 > judged.len() && accepted * 5 < judged.len() * 4, "{accepted} placed");
    Ok(())
}

fn pod_name(row: &str, node: &str, scheduler: &str) -> String {
    format!("{row}-{node}-{}", if scheduler == SCHEDULERS[0] { "ours" } else { "theirs" })
}

async fn make(rest: &Rest, row: &Row, node: &str, scheduler: &str) -> Result<()> {
    let name = pod_name(&row.name, node, scheduler);
    let node = if row.has_own_nodes { name.as_str() } else { node };
    if row.has_own_nodes {
        ground::full_node(rest, node, scheduler).await?;
    }
    for (path, object) in row.objects(&name) {
        let made = rest.send(Method::POST, &path, Some(&object)).await?;
        if made["kind"] == "PersistentVolume" {
            let path = format!("{path}/{}/status", text(&made["metadata"]["name"]));
            let status = json!({"status": {"phase": "Available"}});
            rest.send(Method::PATCH, &path, Some(&status)).await?;
        }
    }
    let mut spec = row.spec(&name);
    spec["schedulerName"] = scheduler.into();
    let required = &mut spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    if required.is_null() {
        *required = json!([{}]);
    }
    for term in required.as_array_mut().into_iter().flatten() {
        term["matchFields"] = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": row.labels}, "spec": spec,
    });
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    rest.send(Method::POST, &pods, Some(&pod)).await.map(drop).map_err(Into::into)
}

/// What a scheduler has made of a pod.
struct Judgement {
    is_placed: bool,
    message: String,
}

/// Waits until somebody has said something of every pod, and nothing has changed for a while: who
/// waits for its claim to be bound is judged anew.
async fn until_judged(rest: &Rest, pods: &[String]) -> Result<BTreeMap<String, Judgement>> {
    let begin = tokio::time::Instant::now();
    let (mut before, mut since) = (BTreeMap::new(), begin);
    loop {
        let judged = judgements(rest).await?;
        let now: BTreeMap<String, bool> =
            judged.iter().map(|(pod, one)| (pod.clone(), one.is_placed)).collect();
        if now != before {
            (before, since) = (now, tokio::time::Instant::now());
        }
        let missing: Vec<_> = pods.iter().filter(|pod| !judged.contains_key(*pod)).collect();
        if missing.is_empty() && since.elapsed() > QUIET {
            return Ok(judged);
        }
        ensure!(
            begin.elapsed() < LONGEST,
            "not judged, or judged anew all the time, within {LONGEST:?}: {missing:?}",
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn judgements(rest: &Rest) -> Result<BTreeMap<String, Judgement>> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let pods = rest.send(Method::GET, &path, None).await?;
    let mut judged = BTreeMap::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let name = text(&pod["metadata"]["name"]);
        if pod["metadata"]["labels"]["row"].is_null() {
            continue;
        }
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let mut refused =
            conditions.filter(|one| one["type"] == "PodScheduled" && one["status"] == "False");
        // Who waits for a volume that is being made has its node, too.
        let has = |node: &Value| !node.is_null();
        let is_placed = has(&pod["spec"]["nodeName"]) || has(&pod["status"]["nominatedNodeName"]);
        let message = refused.next().map(|one| text(&one["message"]).to_owned());
        if is_placed || message.is_some() {
            let message = message.unwrap_or_default();
            judged.insert(name.to_owned(), Judgement { is_placed, message });
        }
    }
    Ok(judged)
}

fn differences(rows: &[Row], judged: &BTreeMap<String, Judgement>) -> Vec<String> {
    let mut differences = Vec::new();
    for row in rows {
        for node in row.nodes() {
            let of = |scheduler: &str| judged.get(&pod_name(&row.name, node, scheduler));
            let [Some(ours), Some(theirs)] = SCHEDULERS.map(of) else { continue };
            let is_as_wanted = match row.refused() {
                Some(field) => !ours.is_placed && ours.message.contains(field),
                None => ours.is_placed == theirs.is_placed,
            };
            if !is_as_wanted {
                differences.push(format!(
                    "{} on {node}: ours {} ({}), kube-scheduler {} ({})",
                    row.name, ours.is_placed, ours.message, theirs.is_placed, theirs.message,
                ));
            }
        }
    }
    differences
}
