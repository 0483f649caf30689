//! What plugins make and what they put into pods.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::seen::Seen;
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    let mut all = cases!["volcano/plugins":
        indexes_also_in_init_containers,
        addresses_before_pods_are_ready,
        without_a_network_policy,
        names_of_their_own_in_the_hosts,
        tensorflow_is_told_its_cluster,
        a_lone_pod_needs_no_cluster,
        arguments_that_mean_nothing_are_left_aside,
    ];
    for plugin in ["ssh", "pytorch", "mpi", "ray", "hcclrank", "tensorflw"] {
        let name = format!("volcano/plugins/{plugin}_is_refused_by_name");
        all.push(Case::new(name, move |scene| refused_by_name(scene, plugin)));
    }
    all
}

fn entry<'a>(container: &'a Value, name: &str) -> Result<&'a Value> {
    let env = container["env"].as_array().context("an environment")?;
    env.iter().find(|entry| entry["name"] == name).context(name.to_owned())
}

async fn indexes_also_in_init_containers(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let first = json!([{"name": "first", "image": "example.com/first:1"}]);
    let job = vcjob("a").task(task("w", 2).pod("initContainers", first)).plugin("env", &[]);
    scene.submit(job).await?;
    let seen = scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    for key in ["VK_TASK_INDEX", "VC_TASK_INDEX"] {
        equal(key, seen.env("a-w-1", key), Some("1"))?;
        let first = &seen.pod("a-w-1")["spec"]["initContainers"][0];
        equal(key, &entry(first, key)?["value"], "1")?;
    }
    equal("no hosts without svc", seen.vc("a").hosts().is_null(), true)
}

async fn addresses_before_pods_are_ready(scene: Scene) -> Result<()> {
    let job = vcjob("a").task(task("w", 1)).plugin("svc", &["--publish-not-ready-addresses=true"]);
    scene.submit(job).await?;
    let seen = scene.wait_services(&["a"]).await?;
    equal("published", &seen.service("a")["spec"]["publishNotReadyAddresses"], true)
}

async fn without_a_network_policy(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a").task(task("w", 1)).plugin("svc", &["--disable-network-policy=true"]);
    scene.submit(job).await?;
    let seen = scene.wait_pods(&["a-w-0"]).await?;
    equal("service", seen.service("a").is_null(), false)?;
    equal("policies", seen.names(Resource::Policies).len(), 0)
}

async fn names_of_their_own_in_the_hosts(scene: Scene) -> Result<()> {
    let fixed = task("big-ps", 2).pod("hostname", "server").pod("subdomain", "farm");
    scene.submit(vcjob("a").task(fixed).task(task("w", 1)).plugin("svc", &[])).await?;
    let seen = scene.wait_until("hosts", |seen| !seen.vc("a").hosts().is_null()).await?;
    let wanted = json!({
        "big_ps.host": "server.farm", "VC_BIG_PS_HOSTS": "server.farm", "VC_BIG_PS_NUM": "1",
        "w.host": "a-w-0.a", "VC_W_HOSTS": "a-w-0.a", "VC_W_NUM": "1",
    });
    equal("hosts", &seen.vc("a").hosts()["data"], &wanted)
}

async fn tensorflow_is_told_its_cluster(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let words = ["--ps=ps", "--worker=w", "--port=3333"];
    let job = vcjob("a").task(task("ps", 1)).task(task("w", 2)).plugin("tensorflow", &words);
    scene.submit(job).await?;
    let seen = scene.wait_pods(&["a-ps-0", "a-w-0", "a-w-1"]).await?;
    let cluster = r#""cluster":{"ps":["a-ps-0.a:3333"],"worker":["a-w-0.a:3333","a-w-1.a:3333"]}"#;
    let told = |seen: &Seen, pod: &str| seen.env(pod, "TF_CONFIG").map(str::to_owned);
    equal(
        "a worker",
        told(&seen, "a-w-1"),
        Some(format!(r#"{{{cluster},"task":{{"type":"worker","index":1}}}}"#)),
    )?;
    equal(
        "a parameter server",
        told(&seen, "a-ps-0"),
        Some(format!(r#"{{{cluster},"task":{{"type":"ps","index":0}}}}"#)),
    )?;
    equal("its names can be found", seen.service("a").is_null(), false)?;
    equal("no indexes without env", seen.env("a-w-1", "VK_TASK_INDEX"), None)
}

async fn a_lone_pod_needs_no_cluster(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    scene.submit(vcjob("a").task(task("worker", 1)).plugin("tensorflow", &[])).await?;
    let seen = scene.wait_pods(&["a-worker-0"]).await?;
    equal("TF_CONFIG", seen.env("a-worker-0", "TF_CONFIG"), None)
}

async fn arguments_that_mean_nothing_are_left_aside(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)).plugin("svc", &["9090"]), 1).await?;
    equal("service", scene.seen().service("a").is_null(), false)
}

/// Refused at once, or said by the job itself; never ignored.
async fn refused_by_name(scene: Scene, plugin: &str) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a").task(task("w", 2)).plugin(plugin, &[]).json();
    let said = match scene.rest.create(Resource::VolcanoJobs, &job).await {
        Err(kube::Error::Api(refusal)) => refusal.message.clone(),
        Err(other) => return Err(other.into()),
        Ok(_) => scene.phase("a", "Failed").await?.vc("a").message().to_owned(),
    };
    ensure!(said.contains(plugin), "{plugin} is not named: {said}");
    scene.never_within(200, "pods are made", |seen| !seen.pods().is_empty()).await
}
