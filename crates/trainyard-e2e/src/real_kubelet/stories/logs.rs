//! `trainyard logs` where not everything can be had: a right is missing, a pod was replaced, a node is lost.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::lost::{is_missed, power_cut};
use super::nodes::{WORKERS, on_each, replica, spread};
use super::users::as_account;
use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::kubectl::{Kubectl, Outcome};
use crate::real_kubelet::jobs::{TOLD, job, worker};
use crate::real_kubelet::site::{NODES, OUT_OF_SERVICE, PATIENCE, Scene};

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["logs":
        forbidden_log_is_named_and_the_others_are_shown,
        pod_before_a_deleted_one_is_told_of,
    ]
}

/// Those that lose a node.
pub(super) fn of_a_lost_node() -> Vec<Case<Arc<Scene>>> {
    cases!["logs": log_on_a_lost_node_is_named_and_goes_on_when_it_is_back]
}

/// `trainyard` in the name of somebody who has a kubeconfig.
fn trainyard(scene: &Scene, of: &Kubectl) -> Result<Kubectl> {
    let home = scene.site.folder(&format!("{}-trainyard", scene.namespace))?;
    let program = scene.site.binary.clone();
    Ok(Kubectl::new(program, of.kubeconfig().to_owned(), home).with_patience(2 * PATIENCE))
}

/// `trainyard logs` of the job `a`.
async fn logs(scene: &Scene, trainyard: &Kubectl, words: &[&str]) -> Result<Outcome> {
    trainyard.run(&[&["logs", "a", "-n", &scene.namespace], words].concat()).await
}

/// The same; not everything must be there, and this must be said of the rest.
async fn logs_in_part(
    scene: &Scene,
    trainyard: &Kubectl,
    words: &[&str],
    said: &[&str],
) -> Result<String> {
    let outcome = logs(scene, trainyard, words).await?;
    equal("exit code", outcome.code, Some(1))?;
    contains("what is said", &outcome.stderr, said)?;
    Ok(outcome.stdout)
}

async fn forbidden_log_is_named_and_the_others_are_shown(scene: &Scene) -> Result<()> {
    let ns = scene.namespace.as_str();
    let user = trainyard(scene, &as_account(scene, "erin").await?)?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "one-log"},
        "rules": [
            {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods/log"], "resourceNames": ["a-worker-0"],
             "verbs": ["get"]},
        ],
    });
    scene.create(role).await?;
    let account = format!("--serviceaccount={ns}:erin");
    scene.ok(&["create", "rolebinding", "one-log", "--role=one-log", &account]).await?;
    scene.create(job("a", &[("Worker", 2, TOLD)]).restart("Never")).await?;
    scene.runs("a").await?;
    let refused = format!(
        "not shown: worker-1: forbidden: User \"system:serviceaccount:{ns}:erin\" cannot get resource \
         \"pods/log\""
    );
    let shown = logs_in_part(scene, &user, &[], &[&refused]).await?;
    equal("what is shown", shown.as_str(), "worker-0 | up\n")?;
    // Whoever follows is told at once, and goes on with the other.
    let said = [refused.as_str(), "a: Succeeded"];
    let follow = logs_in_part(scene, &user, &["-f"], &said);
    let end = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        scene.end("a-worker-0", 0).await
    };
    let (shown, ()) = tokio::try_join!(follow, end)?;
    equal("what was followed", shown.as_str(), "worker-0 | up\nworker-0 | told\n")
}

async fn pod_before_a_deleted_one_is_told_of(scene: &Scene) -> Result<()> {
    let admin = trainyard(scene, &scene.site.kubectl)?;
    scene.create(worker("a", "OnFailure", TOLD)).await?;
    scene.runs("a").await?;
    // Started again in place, its node has the log of the run before.
    scene.end("a-worker-0", 1).await?;
    let restarts = "-o=jsonpath={.status.containerStatuses[0].restartCount}";
    scene.until(&["get", "pod", "a-worker-0", restarts], "a restart", |count| count == "1").await?;
    let before = logs(scene, &admin, &["--previous"]).await?.stdout_of_success()?;
    equal("the run before", before.as_str(), "up\ntold\n")?;
    let (uid, _) = scene.life("a-worker-0").await?;
    scene.ok(&["delete", "pod", "a-worker-0"]).await?;
    scene.is_replaced("a-worker-0", &uid).await?;
    let said = [
        "not shown: worker-0: the pod before the present one is gone, and a cluster keeps the logs of \
         deleted pods nowhere",
        "its present pod was made ",
        ": Killing: Stopping container tensorflow",
    ];
    let shown = logs_in_part(scene, &admin, &["--previous"], &said).await?;
    equal("what is shown", shown.as_str(), "")
}

/// Its container is started again in place when the node is back, as after a power cut.
async fn log_on_a_lost_node_is_named_and_goes_on_when_it_is_back(scene: &Scene) -> Result<()> {
    let admin = trainyard(scene, &scene.site.kubectl)?;
    // Another story says that the node is off.
    let patient = json!([{"key": OUT_OF_SERVICE, "operator": "Exists"}]);
    let job = spread("a").restart("OnFailure").edit("Worker", |replica| {
        replica["template"]["spec"]["tolerations"] = patient;
    });
    scene.create(job).await?;
    scene.runs("a").await?;
    let (lost, stays) = on_each(scene, WORKERS).await?;
    let follow = logs(scene, &admin, &["-f"]);
    let outage = async {
        power_cut(scene).await?;
        is_missed(scene, lost).await?;
        let (name, node) = (replica(lost), NODES[1]);
        let away =
            format!("not shown: {name}: its node {node}, which the cluster has not reached for ");
        let said = [away.as_str(), "cannot be asked"];
        let shown = logs_in_part(scene, &admin, &[], &said).await?;
        equal("what is shown", shown, format!("{} | up\n", replica(stays)))?;
        scene.site.start_node(1).await?;
        let path = "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
        let again = |told: &str| told == "1 true";
        scene.until(&["get", "pod", lost, path], "its next run", again).await?;
        scene.runs("a").await?;
        // A line may take a moment to be read.
        tokio::time::sleep(Duration::from_secs(10)).await;
        scene.end("a-worker-0", 0).await?;
        scene.ends("a", "Succeeded").await.map(drop)
    };
    let (followed, ()) = tokio::try_join!(follow, outage)?;
    let lines = format!("{} | up\n", replica(lost));
    let count = followed.stdout.matches(&lines).count();
    ensure!(count == 2, "not both runs were followed: {}{}", followed.stdout, followed.stderr);
    let away = format!("{}: the cluster does not reach its node {}", replica(lost), NODES[1]);
    contains("what is said", &followed.stderr, &[&away, "a: Succeeded"])
}
