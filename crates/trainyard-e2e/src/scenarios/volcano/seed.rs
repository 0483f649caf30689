//! The manifest that people learnt TensorFlow on Volcano from, step by step.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::check::{equal, fields};
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::seen::{Seen, text};
use crate::volcano::Scene;

const MANIFEST: &str = include_str!("../../../seeds/tftest.yaml");
const JOB: &str = "tensorflow-dist-mnist";
const PODS: [&str; 3] = [
    "tensorflow-dist-mnist-ps-0",
    "tensorflow-dist-mnist-worker-0",
    "tensorflow-dist-mnist-worker-1",
];

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/seed":
        nothing_runs_before_the_group_is_let_in,
        hosts_are_written_down_and_found,
        the_group_asks_for_all_three,
        pods_are_told_who_they_are,
        from_pending_to_completed,
        an_eviction_restarts_all,
        the_third_eviction_is_the_last,
        a_failed_worker_alone_ends_nothing,
        deletion_takes_everything_along,
    ]
}

fn manifest() -> Result<Value> {
    serde_saphyr::from_str(MANIFEST).context("the seed's manifest")
}

fn owned(what: &str, object: &Value, seen: &Seen) -> Result<()> {
    fields(
        what,
        &object["metadata"]["ownerReferences"][0],
        &[
            ("/apiVersion", json!("batch.volcano.sh/v1alpha1")),
            ("/kind", json!("Job")),
            ("/name", json!(JOB)),
            ("/uid", json!(seen.vc(JOB).uid())),
            ("/controller", json!(true)),
        ],
    )
}

async fn nothing_runs_before_the_group_is_let_in(scene: Scene) -> Result<()> {
    scene.submit(manifest()?).await?;
    let seen = scene.phases(JOB, &["Pending"]).await?;
    equal("minAvailable", seen.vc(JOB).count("minAvailable"), 3)?;
    equal("counts", seen.vc(JOB).counts(), [0; 5])?;
    scene.wait_until("there is a group", |seen| !seen.vc(JOB).group().is_null()).await?;
    scene.never_within(300, "pods are made", |seen| !seen.pods().is_empty()).await?;
    scene.set_group(JOB, "Pending").await?;
    scene.never_within(300, "pods are made", |seen| !seen.pods().is_empty()).await?;
    scene.set_group(JOB, "Inqueue").await?;
    scene.wait_pods(&PODS).await?;
    let seen = scene.counts(JOB, [3, 0, 0, 0, 0]).await?;
    let status = seen.vc(JOB).status();
    let counted = json!({"ps": {"phase": {"Pending": 1}}, "worker": {"phase": {"Pending": 2}}});
    equal("by task", &status["taskStatusCount"], &counted)?;
    let plugins = json!({"plugin-env": "env", "plugin-svc": "svc"});
    equal("controlled", &status["controlledResources"], &plugins)?;
    equal("still waiting", seen.vc(JOB).phase(), "Pending")
}

async fn hosts_are_written_down_and_found(scene: Scene) -> Result<()> {
    scene.submit(manifest()?).await?;
    let map = format!("{JOB}-svc");
    let seen = scene
        .wait_until("all three are there", |seen| {
            let has = |resource, name: &str| !seen.object(resource, name).is_null();
            has(Resource::ConfigMaps, &map)
                && has(Resource::Services, JOB)
                && has(Resource::Policies, JOB)
        })
        .await?;
    let host = |pod: &str| format!("{pod}.{JOB}");
    let [ps, first, second] = PODS.map(host);
    let hosts = seen.object(Resource::ConfigMaps, &map);
    owned("config map", hosts, &seen)?;
    let wanted = json!({
        "ps.host": ps, "worker.host": format!("{first}\n{second}"),
        "VC_PS_HOSTS": ps, "VC_PS_NUM": "1",
        "VC_WORKER_HOSTS": format!("{first},{second}"), "VC_WORKER_NUM": "2",
    });
    equal("hosts", &hosts["data"], &wanted)?;
    let labels = json!({
        "volcano.sh/job-name": JOB, "volcano.sh/job-namespace": scene.namespace,
    });
    let service = seen.service(JOB);
    owned("service", service, &seen)?;
    equal("headless", &service["spec"]["clusterIP"], "None")?;
    equal("selector", &service["spec"]["selector"], &labels)?;
    ensure!(service["spec"]["ports"].is_null(), "ports: {}", service["spec"]["ports"]);
    ensure!(service["spec"]["publishNotReadyAddresses"] != true, "not ready ones are published");
    let policy = seen.object(Resource::Policies, JOB);
    owned("network policy", policy, &seen)?;
    let peers = json!([{"from": [{"podSelector": {"matchLabels": labels}}]}]);
    equal("whose pods", &policy["spec"]["podSelector"]["matchLabels"], &labels)?;
    equal("who may connect", &policy["spec"]["ingress"], &peers)?;
    equal("which way", &policy["spec"]["policyTypes"], &json!(["Ingress"]))
}

async fn the_group_asks_for_all_three(scene: Scene) -> Result<()> {
    let mut job = manifest()?;
    job["metadata"]["labels"]["team"] = "vision".into();
    scene.submit(job).await?;
    let seen = scene.wait_until("there is a group", |seen| !seen.vc(JOB).group().is_null()).await?;
    let group = seen.vc(JOB).group();
    owned("group", group, &seen)?;
    fields(
        "group",
        group,
        &[
            ("/spec/minMember", json!(3)),
            ("/spec/minTaskMember", json!({"ps": 1, "worker": 2})),
            ("/spec/queue", json!("default")),
            ("/spec/minResources", json!({"count/pods": "3", "pods": "3"})),
            ("/metadata/labels/team", json!("vision")),
        ],
    )
}

async fn pods_are_told_who_they_are(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    scene.submit(manifest()?).await?;
    let seen = scene.wait_pods(&PODS).await?;
    let pod = seen.pod(PODS[2]);
    owned("pod", pod, &seen)?;
    let labels = json!({
        "volcano.sh/job-name": JOB, "volcano.sh/job-namespace": scene.namespace,
        "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "1",
        "volcano.sh/queue-name": "default",
    });
    equal("labels", &pod["metadata"]["labels"], &labels)?;
    let annotations = json!({
        "volcano.sh/task-index": "1", "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": JOB, "volcano.sh/queue-name": "default",
        "volcano.sh/job-version": "0", "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": format!("{JOB}-worker"),
        "scheduling.k8s.io/group-name": seen.vc(JOB).group_name(),
    });
    equal("annotations", &pod["metadata"]["annotations"], &annotations)?;
    fields(
        "pod",
        pod,
        &[
            ("/spec/schedulerName", json!("volcano")),
            ("/spec/hostname", json!(PODS[2])),
            ("/spec/subdomain", json!(JOB)),
            ("/spec/restartPolicy", json!("Never")),
        ],
    )?;
    for key in ["VK_TASK_INDEX", "VC_TASK_INDEX"] {
        equal(key, seen.env(PODS[2], key), Some("1"))?;
    }
    let env = seen.container(PODS[2])["env"].as_array().context("an environment")?;
    for key in ["VC_PS_HOSTS", "VC_PS_NUM", "VC_WORKER_HOSTS", "VC_WORKER_NUM"] {
        let entry = env.iter().find(|entry| entry["name"] == key).context(key)?;
        let source = json!({"name": format!("{JOB}-svc"), "key": key});
        equal(key, &entry["valueFrom"]["configMapKeyRef"], &source)?;
    }
    let mounts = seen.container(PODS[2])["volumeMounts"].as_array().context("mounts")?;
    ensure!(
        mounts
            .iter()
            .any(|m| m["mountPath"] == "/etc/volcano" && text(&m["name"]) == format!("{JOB}-svc")),
        "{mounts:?}"
    );
    Ok(())
}

async fn from_pending_to_completed(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.submit(manifest()?).await?;
    scene.runs(JOB, 3).await?;
    scene.kubelet.exit(PODS[1], 0).await?;
    let seen = scene.counts(JOB, [0, 2, 1, 0, 0]).await?;
    equal("one of two is not all", seen.vc(JOB).phase(), "Running")?;
    scene.kubelet.exit(PODS[2], 0).await?;
    let all = ["Pending", "Running", "Completing", "Completed"];
    let seen = scene.phases(JOB, &all).await?;
    let why = seen.vc(JOB).status()["state"]["reason"].clone();
    ensure!(why.as_str().is_some_and(|why| !why.is_empty()), "no reason: {why}");
    scene.cleared(JOB, &PODS[1..]).await?;
    // Those that were kept are counted.
    let seen = scene.counts(JOB, [0, 0, 2, 0, 0]).await?;
    ensure!(seen.vc(JOB).status()["controlledResources"].is_null(), "still controlled");
    let words = "Normal ExecuteAction Start to execute action CompleteJob";
    scene.wait_until("it is told", |seen| seen.vc(JOB).told(words)).await?;
    scene.settles().await?;
    scene.stays_silent().await?;
    equal("told once", scene.seen().vc(JOB).told_times(words), 1)
}

async fn an_eviction_restarts_all(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.submit(manifest()?).await?;
    let before = scene.runs(JOB, 3).await?;
    scene.kubelet.delete(PODS[1], None).await?;
    scene.successors(&before, &PODS).await?;
    scene.runs(JOB, 3).await?;
    let seen = scene.phases(JOB, &["Restarting", "Pending", "Running"]).await?;
    equal("retries", seen.vc(JOB).retries(), 1)?;
    ensure!(seen.vc(JOB).count("version") > 0, "no new version: {}", seen.vc(JOB).status());
    let notes = &seen.pod(PODS[0])["metadata"]["annotations"];
    equal("retry", &notes["volcano.sh/job-retry-count"], "1")?;
    equal("service", seen.service(JOB).is_null(), false)?;
    equal("policy", seen.object(Resource::Policies, JOB).is_null(), false)?;
    equal("hosts", seen.vc(JOB).hosts().is_null(), false)?;
    equal("group", seen.vc(JOB).group().is_null(), false)
}

async fn the_third_eviction_is_the_last(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.submit(manifest()?).await?;
    for retry in 0..2 {
        let before = scene.runs(JOB, 3).await?;
        equal("retries", before.vc(JOB).retries(), retry)?;
        scene.kubelet.delete(PODS[1], None).await?;
        scene.successors(&before, &PODS).await?;
    }
    scene.runs(JOB, 3).await?;
    scene.kubelet.exit(PODS[2], 0).await?;
    scene.counts(JOB, [0, 2, 1, 0, 0]).await?;
    scene.kubelet.delete(PODS[1], None).await?;
    let seen = scene.phase(JOB, "Failed").await?;
    equal("retries", seen.vc(JOB).retries(), 3)?;
    ensure!(!seen.vc(JOB).message().is_empty(), "no message");
    // What had ended in the last attempt is kept for its log.
    scene.cleared(JOB, &PODS[2..]).await?;
    Ok(())
}

async fn a_failed_worker_alone_ends_nothing(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.submit(manifest()?).await?;
    scene.runs(JOB, 3).await?;
    scene.kubelet.exit(PODS[1], 1).await?;
    scene.counts(JOB, [0, 2, 0, 1, 0]).await?;
    scene.kubelet.exit(PODS[2], 0).await?;
    let seen = scene.counts(JOB, [0, 1, 1, 1, 0]).await?;
    equal("it runs on", seen.vc(JOB).phase(), "Running")?;
    scene.never_within(300, "it ends", |seen| seen.vc(JOB).phase() != "Running").await
}

async fn deletion_takes_everything_along(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.submit(manifest()?).await?;
    scene.runs(JOB, 3).await?;
    scene.delete_job(JOB).await?;
    scene
        .wait_until("all is gone", |seen| {
            seen.vc(JOB).object().is_null()
                && seen.vc(JOB).is_cleared()
                && seen.names(Resource::Groups).is_empty()
                && seen.pods().is_empty()
        })
        .await?;
    Ok(())
}
