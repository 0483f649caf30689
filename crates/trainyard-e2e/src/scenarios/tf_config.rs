//! The bytes of `TF_CONFIG` for every shape of job.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::{Manifest, tfjob};
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["tf_config":
        none_for_a_lone_replica,
        worker_and_ps,
        evaluator_only_in_its_own_map,
        chief_master_and_tensorboard,
        sparse_for_dynamic_workers,
        sparse_without_ps,
        types_with_no_replica,
        ours_comes_last,
        new_pods_see_the_larger_cluster,
    ]
}

pub(super) fn own_operator() -> Vec<Case<World>> {
    cases!["tf_config": cluster_domain, evaluator_in_the_cluster]
}

/// Submits a job and gives the `TF_CONFIG` of one of its pods.
async fn config_of(world: &World, job: Manifest, pod: &str) -> Result<Option<String>> {
    world.submit(job).await?;
    wait_config(world, pod).await
}

async fn wait_config(world: &World, pod: &str) -> Result<Option<String>> {
    let what = format!("pod {pod} is there");
    let seen = world.wait_until(&what, |seen| !seen.pod(pod).is_null()).await?;
    Ok(seen.env(pod, "TF_CONFIG").map(str::to_owned))
}

/// `NS` stands for the namespace.
fn bytes(world: &World, text: &str) -> String {
    text.replace("NS", &world.namespace)
}

async fn none_for_a_lone_replica(world: World) -> Result<()> {
    for (name, job) in [
        ("a-worker-0", tfjob("a").workers(1)),
        ("b-chief-0", tfjob("b").chief()),
        ("c-ps-0", tfjob("c").ps(1)),
        ("d-worker-0", tfjob("d").workers(1).ps(0)),
        ("e-worker-0", tfjob("e").workers(1).spec("tensorBoard", json!({"logDir": "/logs"}))),
    ] {
        equal(name, config_of(&world, job, name).await?, None)?;
    }
    Ok(())
}

async fn worker_and_ps(world: World) -> Result<()> {
    let got = config_of(&world, tfjob("a").workers(2).ps(1), "a-worker-1").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"ps":["a-ps-0.NS.svc:2222"],"worker":["a-worker-0.NS.svc:2222","a-worker-1.NS.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}"#,
    );
    equal("worker 1", got, Some(want))?;
    let want = bytes(
        &world,
        r#"{"cluster":{"ps":["a-ps-0.NS.svc:2222"],"worker":["a-worker-0.NS.svc:2222","a-worker-1.NS.svc:2222"]},"task":{"type":"ps","index":0},"environment":"cloud"}"#,
    );
    equal("ps 0", wait_config(&world, "a-ps-0").await?, Some(want))
}

async fn evaluator_only_in_its_own_map(world: World) -> Result<()> {
    let job = tfjob("test-tfjob").workers(1).ps(1).evaluators(1);
    let got = config_of(&world, job, "test-tfjob-worker-0").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"ps":["test-tfjob-ps-0.NS.svc:2222"],"worker":["test-tfjob-worker-0.NS.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#,
    );
    equal("worker", got, Some(want))?;
    let want = bytes(
        &world,
        r#"{"cluster":{"evaluator":["test-tfjob-evaluator-0.NS.svc:2222"],"ps":["test-tfjob-ps-0.NS.svc:2222"],"worker":["test-tfjob-worker-0.NS.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"}"#,
    );
    equal("evaluator", wait_config(&world, "test-tfjob-evaluator-0").await?, Some(want))
}

async fn chief_master_and_tensorboard(world: World) -> Result<()> {
    let job = tfjob("distributed-mnist")
        .replicas("Master", 1)
        .workers(2)
        .ps(1)
        .spec("tensorBoard", json!({"logDir": "/logs"}));
    let got = config_of(&world, job, "distributed-mnist-worker-0").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"master":["distributed-mnist-master-0.NS.svc:2222"],"ps":["distributed-mnist-ps-0.NS.svc:2222"],"worker":["distributed-mnist-worker-0.NS.svc:2222","distributed-mnist-worker-1.NS.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#,
    );
    equal("master, ps, workers", got, Some(want))?;
    let board = wait_config(&world, "distributed-mnist-tensorboard-0").await?;
    equal("TensorBoard is no member", board, None)?;
    let got = config_of(&world, tfjob("b").chief().workers(1), "b-chief-0").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"chief":["b-chief-0.NS.svc:2222"],"worker":["b-worker-0.NS.svc:2222"]},"task":{"type":"chief","index":0},"environment":"cloud"}"#,
    );
    equal("chief", got, Some(want))
}

async fn sparse_for_dynamic_workers(world: World) -> Result<()> {
    let job = tfjob("j").workers(2).ps(2).spec("enableDynamicWorker", true);
    let got = config_of(&world, job, "j-worker-1").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"worker":{"1":"j-worker-1.NS.svc:2222"},"ps":["j-ps-0.NS.svc:2222","j-ps-1.NS.svc:2222"]},"task":{"type":"worker","index":1}}"#,
    );
    equal("worker 1", got, Some(want))?;
    let want = bytes(
        &world,
        r#"{"cluster":{"worker":{},"ps":["j-ps-0.NS.svc:2222"]},"task":{"type":"ps","index":0}}"#,
    );
    equal("ps 0", wait_config(&world, "j-ps-0").await?, Some(want))
}

async fn sparse_without_ps(world: World) -> Result<()> {
    let job = tfjob("j").chief().workers(1).spec("enableDynamicWorker", true);
    let got = config_of(&world, job, "j-worker-0").await?.unwrap_or_default();
    let got: Value = serde_json::from_str(&got)?;
    let own = format!("j-worker-0.{}.svc:2222", world.namespace);
    equal("own address", &got["cluster"]["worker"], &json!({"0": own}))?;
    let ps = &got["cluster"]["ps"];
    ensure!(ps.is_null() || *ps == json!([]), "no PS is listed: {ps}");
    let chief = wait_config(&world, "j-chief-0").await?.unwrap_or_default();
    let chief: Value = serde_json::from_str(&chief)?;
    equal("task of the chief", &chief["task"], &json!({"type": "chief", "index": 0}))?;
    equal("workers as the chief sees them", &chief["cluster"]["worker"], &json!({}))
}

async fn types_with_no_replica(world: World) -> Result<()> {
    let got = config_of(&world, tfjob("a").workers(2).ps(0), "a-worker-0").await?;
    let got: Value = serde_json::from_str(&got.unwrap_or_default())?;
    let ps = &got["cluster"]["ps"];
    ensure!(ps.is_null() || *ps == json!([]), "no PS is listed: {ps}");
    equal("workers", got["cluster"]["worker"].as_array().map(Vec::len), Some(2))
}

async fn ours_comes_last(world: World) -> Result<()> {
    let job = tfjob("a").workers(2).container("Worker", |container| {
        container["env"] =
            json!([{"name": "TF_CONFIG", "value": "{}"}, {"name": "B", "value": "2"}]);
    });
    let got = config_of(&world, job, "a-worker-0").await?.unwrap_or_default();
    ensure!(got.starts_with("{\"cluster\":{\"worker\""), "the operator's value counts: {got}");
    equal("other variables stay", world.seen().env("a-worker-0", "B"), Some("2"))
}

async fn new_pods_see_the_larger_cluster(world: World) -> Result<()> {
    let before = config_of(&world, tfjob("a").workers(2), "a-worker-0").await?;
    world.set_replicas("a", "Worker", 3).await?;
    let new = wait_config(&world, "a-worker-2").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"worker":["a-worker-0.NS.svc:2222","a-worker-1.NS.svc:2222","a-worker-2.NS.svc:2222"]},"task":{"type":"worker","index":2},"environment":"cloud"}"#,
    );
    equal("new pod", new, Some(want))?;
    equal("old pod", wait_config(&world, "a-worker-0").await?, before)
}

async fn cluster_domain(world: World) -> Result<()> {
    let _operator = world
        .start_operator(|options| options.planner.cluster_domain = Some("tf.training.org".into()))
        .await?;
    let job = tfjob("test-tfjob").workers(1).ps(1);
    let got = config_of(&world, job, "test-tfjob-worker-0").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"ps":["test-tfjob-ps-0.NS.svc.tf.training.org:2222"],"worker":["test-tfjob-worker-0.NS.svc.tf.training.org:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#,
    );
    equal("with a domain", got, Some(want))
}

async fn evaluator_in_the_cluster(world: World) -> Result<()> {
    let _operator =
        world.start_operator(|options| options.planner.evaluator_in_cluster = true).await?;
    let job = tfjob("test-tfjob").workers(1).ps(1).evaluators(1);
    let got = config_of(&world, job, "test-tfjob-worker-0").await?;
    let want = bytes(
        &world,
        r#"{"cluster":{"evaluator":["test-tfjob-evaluator-0.NS.svc:2222"],"ps":["test-tfjob-ps-0.NS.svc:2222"],"worker":["test-tfjob-worker-0.NS.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#,
    );
    equal("as the reference operator wrote it", got, Some(want))
}
