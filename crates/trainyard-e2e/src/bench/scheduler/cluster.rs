//! The scheduler on a real control plane with nodes that are only objects, the floor before and
//! after, and kube-scheduler with the same pods. Must not know what a scheduler does inside.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    ClusterBench, Load, SchedulerBench, bare, gangs,
    pair::{Pair, Used},
    sight::{self, Sight},
    waits,
};
use crate::bench::{
    NAMESPACE,
    audit::{self, Binding},
    process::Usage,
    sample::round,
};
use crate::control_plane::{ControlPlane, Identity, Options as PlaneOptions};
use crate::suite::install;

/// No controller takes the taint away with which that plugin greets new nodes.
const PLUGINS: &str = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition";
/// Events are written behind everything else, until no more come from one look to the next …
const LOOK: Duration = Duration::from_secs(2);
/// … or for so many looks.
const LOOKS: usize = 60;

pub(super) async fn measure(options: &ClusterBench) -> Result<Value> {
    let SchedulerBench { nodes, gangs } = options.size;
    ensure!(nodes > 0 && gangs > 0, "--nodes and --gangs must be at least 1");
    ensure!(
        nodes * gangs::NODE_CPUS >= options.size.pods() * gangs::POD_CPUS,
        "{gangs} gangs do not fit on {nodes} nodes: more --nodes or fewer --gangs"
    );
    // With jobs a controller's writes would be missing from the floor.
    let has_floor = options.load == Load::Groups;
    let mut runs_s = Vec::new();
    if has_floor {
        runs_s.push(floor(options).await.context("the floor before")?);
    }
    let (bound_s, measured) = under_load(options).await?;
    if has_floor {
        runs_s.push(floor(options).await.context("the floor after")?);
    }
    let mut result = json!({
        "bench": "scheduler",
        "part": "cluster",
        "load": match options.load {
            Load::Groups => "groups",
            Load::Jobs => "jobs",
        },
        "scheduler": options.scheduler_cmd.as_deref().unwrap_or("trainyard scheduler"),
        "nodes": nodes,
        "gangs": gangs,
        "pods": options.size.pods(),
    });
    if let Some(fields) = result.as_object_mut() {
        if let [before, after] = runs_s[..] {
            let floor_s = f64::midpoint(before, after);
            fields.insert("floor_s".to_owned(), json!(round(floor_s)));
            fields.insert("floor_runs_s".to_owned(), json!([round(before), round(after)]));
            fields.insert("bound_over_floor".to_owned(), json!(round(bound_s / floor_s)));
        }
        fields.extend(measured);
        if options.kube_scheduler {
            let reference = kube_scheduler(options.size).await.context("kube-scheduler")?;
            fields.insert("kube_scheduler".to_owned(), Value::Object(reference));
        }
    }
    Ok(result)
}

/// A control plane of its own for each part, so that none finds what another left.
async fn plane(scheduler: bool) -> Result<ControlPlane> {
    ControlPlane::start(PlaneOptions {
        controller_manager: false,
        scheduler,
        audit: true,
        api_server_flags: vec![PLUGINS.to_owned()],
        ..PlaneOptions::default()
    })
    .await
}

/// A control plane with all definitions and accounts, the namespace and the nodes.
async fn installed(options: &ClusterBench) -> Result<ControlPlane> {
    let plane = plane(false).await?;
    install::install_all_of(&plane, &options.binary).await?;
    if let Some(file) = &options.definitions {
        install::install_definitions(&plane, file).await?;
    }
    gangs::prepare(&plane.client(Identity::Admin)?, options.size.nodes).await?;
    Ok(plane)
}

/// Seconds until the last pod is bound by a client that only writes.
async fn floor(options: &ClusterBench) -> Result<f64> {
    let plane = installed(options).await?;
    let mut sight = Sight::start(plane.client(Identity::Kubelet)?).await?;
    let begin = Timestamp::now();
    bare::run(&plane, options.size, &mut sight).await?;
    let (_, bound_s) = waits::seconds(&record(&plane, options.size)?, begin);
    Ok(bound_s)
}

async fn under_load(options: &ClusterBench) -> Result<(f64, Map<String, Value>)> {
    let plane = installed(options).await?;
    let client = plane.client(Identity::Admin)?;
    let mut pair = Pair::start(&plane, options).await?;
    let idle = pair.used()?;
    let mut sight = Sight::start(plane.client(Identity::Kubelet)?).await?;
    let begin = Timestamp::now();
    match options.load {
        Load::Groups => make_all(&client, options.size.gangs, true).await?,
        Load::Jobs => gangs::submit_jobs(&client, options.size.gangs).await?,
    }
    let pods = options.size.pods();
    let all_bound = sight.until_bound(pods, || pair.check()).await;
    all_bound.with_context(|| pair.last_lines())?;
    let at_bound = pair.used()?;
    until_silent(&plane).await?;
    let at_end = pair.used()?;
    let listed = sight::listed(&client).await?;
    ensure!(
        listed.whole() == options.size.gangs,
        "{} of {} gangs are whole at the end, {} are bound in part",
        listed.whole(),
        options.size.gangs,
        listed.partial()
    );
    let writes = audit::writes(&plane, Identity::GangScheduler, None)?;
    let record = record(&plane, options.size)?;
    let events = events_of_pods(&client).await?;
    pair.stop().await?;
    let (bound_s, mut result) = shown(&record, begin);
    result.insert("gangs_partial_at_once".to_owned(), json!(sight.book().partial_most()));
    result.insert("gangs_partial_at_end".to_owned(), json!(listed.partial()));
    result.extend(costs(pods, &idle.scheduler, &at_bound.scheduler, &at_end.scheduler));
    result.insert("writes_per_pod".to_owned(), audit::per(writes, pods));
    result.insert("events_per_pod".to_owned(), audit::per(events, pods));
    if let Some(costs) = costs_of_controller(options, &idle, &at_bound, &at_end) {
        result.insert("controller".to_owned(), costs);
    }
    Ok((bound_s, result))
}

async fn make_all(client: &Client, count: usize, has_groups: bool) -> Result<()> {
    gangs::gangs(client, count, has_groups).try_for_each(|_| async { Ok(()) }).await
}

/// The stock scheduler with the same pods, each for itself.
async fn kube_scheduler(size: SchedulerBench) -> Result<Map<String, Value>> {
    let mut plane = plane(true).await?;
    let client = plane.client(Identity::Admin)?;
    gangs::prepare(&client, size.nodes).await?;
    let mut sight = Sight::start(plane.client(Identity::Kubelet)?).await?;
    let begin = Timestamp::now();
    make_all(&client, size.gangs, false).await?;
    sight.until_bound(size.pods(), || plane.check()).await?;
    let (_, bound_s) = waits::seconds(&record(&plane, size)?, begin);
    let mut result = Map::new();
    result.insert("bound_s".to_owned(), json!(round(bound_s)));
    result.insert("bindings_per_s".to_owned(), json!(round(float(size.pods()) / bound_s)));
    Ok(result)
}

/// Which pods were bound when, as the server has it.
fn record(plane: &ControlPlane, size: SchedulerBench) -> Result<Vec<Binding>> {
    let (record, pods) = (audit::bound(plane)?, size.pods());
    ensure!(record.len() == pods, "{} of {pods} pods are bound by the record", record.len());
    Ok(record)
}

/// Seconds until the last pod was bound, and how it went from the first request of the load on.
fn shown(record: &[Binding], begin: Timestamp) -> (f64, Map<String, Value>) {
    let (made_s, bound_s) = waits::seconds(record, begin);
    let mut result = waits::shown(record);
    let mut put = |key: &str, value: f64| result.insert(key.to_owned(), json!(round(value)));
    put("made_s", made_s);
    put("bound_s", bound_s);
    put("bindings_per_s", float(record.len()) / bound_s);
    (bound_s, result)
}

fn costs_of_controller(
    options: &ClusterBench,
    idle: &Used,
    at_bound: &Used,
    at_end: &Used,
) -> Option<Value> {
    let pods = options.size.pods();
    let name = options.controller_cmd.as_deref().unwrap_or("trainyard operator");
    let (idle, at_bound, at_end) = (idle.controller?, at_bound.controller?, at_end.controller?);
    let mut costs = costs(pods, &idle, &at_bound, &at_end);
    costs.insert("command".to_owned(), json!(name));
    Some(Value::Object(costs))
}

fn costs(pods: usize, idle: &Usage, at_bound: &Usage, at_end: &Usage) -> Map<String, Value> {
    let mut result = Map::new();
    let mut put = |key: &str, value: f64| result.insert(key.to_owned(), json!(round(value)));
    put("cpu_ms_to_bound", at_bound.cpu_ms - idle.cpu_ms);
    put("cpu_ms", at_end.cpu_ms - idle.cpu_ms);
    put("cpu_ms_per_pod", (at_end.cpu_ms - idle.cpu_ms) / float(pods));
    put("rss_mb_idle", idle.rss_mb);
    put("rss_mb_bound", at_bound.rss_mb);
    put("rss_mb_peak", at_end.peak_mb);
    result
}

async fn until_silent(plane: &ControlPlane) -> Result<()> {
    let events = || -> Result<u32> {
        let writes = audit::writes(plane, Identity::GangScheduler, Some(NAMESPACE))?;
        Ok(writes.get("create events").copied().unwrap_or(0))
    };
    let mut before = events()?;
    for _ in 0..LOOKS {
        tokio::time::sleep(LOOK).await;
        let now = events()?;
        if now == before {
            return Ok(());
        }
        before = now;
    }
    Ok(())
}

/// Events about pods of the load, by reason.
async fn events_of_pods(client: &Client) -> Result<BTreeMap<String, u32>> {
    #[derive(Deserialize)]
    struct Events {
        items: Vec<Event>,
    }
    #[derive(Deserialize)]
    struct Event {
        #[serde(default)]
        reason: String,
    }
    let path =
        format!("/api/v1/namespaces/{NAMESPACE}/events?fieldSelector=involvedObject.kind%3DPod");
    let events: Events = client.request(Request::get(path).body(Vec::new())?).await?;
    let mut counts = BTreeMap::new();
    for event in events.items {
        *counts.entry(event.reason).or_default() += 1;
    }
    Ok(counts)
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
