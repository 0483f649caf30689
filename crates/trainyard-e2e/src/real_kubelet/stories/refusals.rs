//! What a cluster refuses: images, pods over a quota, pods that are not safe enough, manifests that are wrong.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{TOLD, ending, job, worker};
use crate::real_kubelet::scene::{condition, state};
use crate::real_kubelet::site::Scene;
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["refusals":
        image_that_cannot_be_pulled_is_named_when_the_time_to_start_is_over,
        quota_is_told_and_waited_for,
        pod_security_is_told_and_waited_for,
        job_that_is_safe_enough_runs_in_a_restricted_namespace,
        missing_config_map_is_waited_for,
        wrong_manifests_are_refused_with_the_remedy,
    ]
}

async fn image_that_cannot_be_pulled_is_named_when_the_time_to_start_is_over(
    scene: &Scene,
) -> Result<()> {
    let image = "127.0.0.1:9/nobody/knows:1";
    let job = worker("a", "Never", TOLD)
        .container("Worker", |container| container["image"] = image.into())
        .run_policy("startTimeoutSeconds", 10);
    scene.create(job).await?;
    let pulls = |table: &str| table.contains("ErrImagePull") || table.contains("ImagePullBackOff");
    scene.until(&["get", "pod", "a-worker-0"], "the trouble", pulls).await?;
    let job = scene.ends("a", "Failed").await?;
    let message = text(&condition(&job, "Failed")["message"]);
    contains("message", message, &["a-worker-0", image])?;
    ensure!(pulls(message), "{message}");
    let table = scene.ok(&["get", "tfjob", "a"]).await?;
    contains("table", &table, &["a ", "Failed"])
}

async fn quota_is_told_and_waited_for(scene: &Scene) -> Result<()> {
    scene.ok(&["create", "quota", "small", "--hard=pods=1"]).await?;
    scene.wait("quota/small", "jsonpath={.status.used.pods}=0").await?;
    scene.create(job("a", &[("Worker", 2, TOLD)])).await?;
    scene.told("tfjob/a", &["FailedCreatePod", "exceeded quota: small"]).await?;
    is_refused(scene, &["exceeded quota: small"]).await?;
    let more = r#"{"spec":{"hard":{"pods":"2"}}}"#;
    scene.ok(&["patch", "quota", "small", "-p", more]).await?;
    scene.runs("a").await?;
    is_refused_no_more(scene).await
}

/// The job says in the API server's words that its pods are refused.
async fn is_refused(scene: &Scene, words: &[&str]) -> Result<()> {
    let refused = |table: &str| table.contains("ReplicaFailure");
    scene.until(&["get", "tfjob", "a"], "the refusal", refused).await?;
    let job = scene.get("tfjob/a").await?;
    let refusal = condition(&job, "ReplicaFailure");
    fields("refusal", refusal, &[("/status", json!("True")), ("/reason", json!("FailedCreate"))])?;
    contains("message", text(&refusal["message"]), words)
}

async fn is_refused_no_more(scene: &Scene) -> Result<()> {
    let job = scene.get("tfjob/a").await?;
    ensure!(condition(&job, "ReplicaFailure").is_null(), "{}", job["status"]);
    Ok(())
}

async fn enforce(scene: &Scene, level: &str) -> Result<()> {
    let label = format!("pod-security.kubernetes.io/enforce={level}");
    let words = ["label", "--overwrite", "namespace", &scene.namespace, &label];
    scene.site.ok(&words).await.map(drop)
}

async fn pod_security_is_told_and_waited_for(scene: &Scene) -> Result<()> {
    enforce(scene, "restricted").await?;
    scene.create(ending("a", "Never", 0)).await?;
    let told = scene.told("tfjob/a", &["FailedCreatePod", "violates PodSecurity"]).await?;
    contains("event", &told, &["runAsNonRoot", "allowPrivilegeEscalation"])?;
    is_refused(scene, &["violates PodSecurity", "runAsNonRoot"]).await?;
    let job = scene.get("tfjob/a").await?;
    ensure!(job["status"]["completionTime"].is_null(), "{}", job["status"]);
    equal("pods", scene.pods("a").await?, Vec::<String>::new())?;
    enforce(scene, "privileged").await?;
    scene.ends("a", "Succeeded").await?;
    is_refused_no_more(scene).await
}

async fn job_that_is_safe_enough_runs_in_a_restricted_namespace(scene: &Scene) -> Result<()> {
    enforce(scene, "restricted").await?;
    let job = ending("a", "Never", 0).edit("Worker", |replica| {
        let spec = &mut replica["template"]["spec"];
        spec["securityContext"] = json!({
            "runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"},
        });
        spec["containers"][0]["securityContext"] = json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        });
    });
    scene.create(job).await?;
    scene.ends("a", "Succeeded").await?;
    equal("log", scene.log("a-worker-0").await?.as_str(), "ends with 0\n")
}

async fn missing_config_map_is_waited_for(scene: &Scene) -> Result<()> {
    let job = ending("a", "Never", 0).container("Worker", |container| {
        container["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    });
    scene.create(job).await?;
    let trouble = |table: &str| table.contains("CreateContainerConfigError");
    scene.until(&["get", "pod", "a-worker-0"], "the trouble", trouble).await?;
    ensure!(state(&scene.get("tfjob/a").await?) == "Created", "it does not run");
    scene.ok(&["create", "configmap", "settings", "--from-literal=A=b"]).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

async fn wrong_manifests_are_refused_with_the_remedy(scene: &Scene) -> Result<()> {
    let nameless =
        ending("a", "Never", 0).container("Worker", |container| container["name"] = "main".into());
    let twice = job("a", &[("Chief", 1, TOLD), ("Master", 1, TOLD)]);
    let negative = job("a", &[("Worker", -1, TOLD)]);
    let policy = ending("a", "Sometimes", 0);
    for (manifest, parts) in [
        (nameless, &["tensorflow"][..]),
        (twice, &["Chief", "Master"]),
        (negative, &["replicas", "greater than or equal to 0"]),
        (policy, &["restartPolicy", "Sometimes", "ExitCode"]),
    ] {
        let input = manifest.json().to_string();
        let words = ["-n", &scene.namespace, "create", "-f", "-"];
        let refused = scene.site.kubectl.run_with_input(&words, &input).await?;
        contains("refusal", &refused.stderr_of_failure()?, parts)?;
    }
    Ok(())
}
