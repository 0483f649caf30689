//! Installing, changing and removing Trainyard by the commands of the documentation, under jobs that run.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{TOLD, ending, job};
use crate::real_kubelet::page;
use crate::real_kubelet::site::{IMAGE, Scene};

/// On the operator alone.
pub(super) fn operator() -> Vec<Case<Arc<Scene>>> {
    cases!["install":
        documented_checks_tell_that_the_operator_works,
        applying_the_same_again_changes_nothing,
    ]
}

/// These change what all others stand on, and leave operator and scheduler installed.
pub(super) fn changes() -> Vec<Case<Arc<Scene>>> {
    cases!["install":
        operator_is_upgraded_under_a_running_job,
        removed_operator_leaves_a_running_job_alone_and_takes_it_up_again,
        server_side_apply_over_an_installation_changes_nothing_that_runs,
    ]
}

/// This ends all jobs there are, and leaves operator and scheduler installed.
pub(super) fn definition() -> Vec<Case<Arc<Scene>>> {
    cases!["install": deleted_definition_takes_its_jobs_along_and_may_come_back]
}

/// What is installed where something else is to be the upgrade.
const OLD_IMAGE: &str = "registry.example/trainyard:0.0.9";
/// Everything.
const ALL: [&str; 2] = ["--volcano", "--scheduler"];

async fn documented_checks_tell_that_the_operator_works(scene: &Scene) -> Result<()> {
    scene.create(ending("a", "Never", 0)).await?;
    scene.ends("a", "Succeeded").await?;
    let [rollout, logs, jobs] = page::CHECKS.map(page::kubectl);
    let rollout = scene.site.ok(&rollout?).await?;
    contains("rollout", &rollout, &["successfully rolled out"])?;
    let logs = logs?;
    ensure!(!scene.site.ok(&logs).await?.trim().is_empty(), "it says nothing");
    // These are the last lines only.
    let log = scene.site.ok(&[&logs[..], &["--tail=-1"]].concat()).await?;
    ensure!(!log.contains("panicked") && !log.contains(" ERROR "), "{log}");
    let table = scene.site.ok(&jobs?).await?;
    let is_there =
        |line: &str| line.split_whitespace().take(3).eq([&scene.namespace, "a", "Succeeded"]);
    ensure!(table.lines().any(is_there), "{table}");
    // Its probes and its metrics, as the cluster asks for them.
    let path =
        "/api/v1/namespaces/kubeflow/services/trainyard-operator:monitoring-port/proxy/metrics";
    let metrics = scene.site.ok(&["get", "--raw", path]).await?;
    contains("metrics", &metrics, &["trainyard_leader 1", "trainyard_reconciles_total"])?;
    let path = "/api/v1/namespaces/kubeflow/pods";
    let selector = "--selector=name=tf-job-operator";
    let name = "-o=jsonpath={.items[0].metadata.name}";
    let pod = scene.site.ok(&["-n", "kubeflow", "get", "pods", selector, name]).await?;
    let ready =
        scene.site.ok(&["get", "--raw", &format!("{path}/{pod}:8081/proxy/readyz")]).await?;
    contains("readyz", &ready, &["ok"])?;
    // It passes the strictest standard.
    let label = "pod-security.kubernetes.io/enforce=restricted";
    let words = ["label", "--dry-run=server", "--overwrite", "namespace", "kubeflow", label];
    let said = scene.site.kubectl.run(&words).await?;
    ensure!(said.success() && !said.stderr.contains("Warning"), "{}", said.stderr);
    Ok(())
}

async fn applying_the_same_again_changes_nothing(scene: &Scene) -> Result<()> {
    let said = scene.site.pipe(page::INSTALL, &[]).await?;
    let changed: Vec<&str> = said.lines().filter(|line| !line.ends_with(" unchanged")).collect();
    equal("changed", changed, Vec::<&str>::new())?;
    let manifests = scene.site.trainyard(&["manifests", "--image", IMAGE]).await?;
    let differs = scene.site.kubectl.run_with_input(&["diff", "-f", "-"], &manifests).await?;
    equal("kubectl diff", (differs.code, differs.stdout.as_str()), (Some(0), ""))
}

/// A job of two workers that run, and their lives, which must go on.
async fn running(scene: &Scene) -> Result<[(String, i64); 2]> {
    scene.create(job("a", &[("Worker", 2, TOLD)]).restart("Never")).await?;
    scene.runs("a").await?;
    lives(scene).await
}

async fn lives(scene: &Scene) -> Result<[(String, i64); 2]> {
    Ok([scene.life("a-worker-0").await?, scene.life("a-worker-1").await?])
}

/// The workers are those of before, and the job ends well.
async fn goes_on(scene: &Scene, before: [(String, i64); 2]) -> Result<()> {
    equal("workers", lives(scene).await?, before)?;
    scene.end("a-worker-1", 0).await?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

/// Removes everything but the definitions, as documented.
async fn remove(scene: &Scene) -> Result<()> {
    scene.site.pipe(page::REMOVE, &ALL).await.map(drop)
}

/// Applied again in another version and with everything: another Deployment, more rights, a scheduler, gangs. A job of
/// before is none.
async fn operator_is_upgraded_under_a_running_job(scene: &Scene) -> Result<()> {
    remove(scene).await?;
    scene.site.name_image(OLD_IMAGE).await?;
    scene.site.install_by(&page::INSTALL.replace(IMAGE, OLD_IMAGE), &[]).await?;
    let before = running(scene).await?;
    let said = scene.site.install(&ALL).await?;
    let parts = [
        "namespace/kubeflow unchanged",
        "deployment.apps/trainyard-operator configured",
        "deployment.apps/trainyard-scheduler created",
    ];
    contains("apply", &said, &parts)?;
    let path = "-o=jsonpath={.spec.template.spec.containers[0].image}";
    let words = ["-n", "kubeflow", "get", "deployment", "trainyard-operator", path];
    equal("image", scene.site.ok(&words).await?.as_str(), IMAGE)?;
    // The one that acts now has seen the job.
    scene.create(job("later", &[("Worker", 1, TOLD)])).await?;
    scene.runs("later").await?;
    scene.wait("podgroup.scheduling.volcano.sh/later", "create").await?;
    goes_on(scene, before).await
}

async fn removed_operator_leaves_a_running_job_alone_and_takes_it_up_again(
    scene: &Scene,
) -> Result<()> {
    scene.site.install(&ALL).await?;
    let before = running(scene).await?;
    remove(scene).await?;
    // Somebody may not know whether it was done.
    remove(scene).await?;
    let gone = scene.site.kubectl.run(&["get", "namespace", "kubeflow"]).await?;
    contains("namespace", &gone.stderr_of_failure()?, &["NotFound"])?;
    let left =
        ["get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=trainyard"];
    equal("roles", scene.site.ok(&left).await?.as_str(), "")?;
    equal("workers", lives(scene).await?, before.clone())?;
    // What happens while nobody looks is found later.
    scene.end("a-worker-0", 0).await?;
    scene.wait("pod/a-worker-0", "jsonpath={.status.phase}=Succeeded").await?;
    // The definitions are there, with the job.
    let without = [&["--crds=false"][..], &ALL].concat();
    let said = scene.site.install_by(page::INSTALL, &without).await?;
    ensure!(!said.contains("customresourcedefinition"), "{said}");
    scene.ends("a", "Succeeded").await?;
    equal("the one that ended", scene.life("a-worker-0").await?, before[0].clone())
}

/// The documented line with the other way to apply.
fn server_side() -> String {
    page::INSTALL.replace("kubectl apply", "kubectl apply --server-side")
}

/// Over what plain apply has installed, and over itself.
async fn server_side_apply_over_an_installation_changes_nothing_that_runs(
    scene: &Scene,
) -> Result<()> {
    scene.site.install(&ALL).await?;
    let before = running(scene).await?;
    let path = "-o=jsonpath={.items[*].metadata.uid}";
    let uids = ["-n", "kubeflow", "get", "pods", path];
    let operator = scene.site.ok(&uids).await?;
    for _ in 0..2 {
        let said = scene.site.install_by(&server_side(), &ALL).await?;
        contains("apply", &said, &["deployment.apps/trainyard-operator serverside-applied"])?;
        equal("pods of Trainyard", scene.site.ok(&uids).await?, operator.clone())?;
    }
    goes_on(scene, before).await
}

/// As documented: every `TFJob` goes, with its pods. An operator that was there all the time runs the jobs of a
/// definition that is made anew.
async fn deleted_definition_takes_its_jobs_along_and_may_come_back(scene: &Scene) -> Result<()> {
    running(scene).await?;
    scene.site.ok(&page::kubectl(page::REMOVE_JOBS)?).await?;
    let none = |told: &str| told.trim().is_empty();
    scene.until(&["get", "pods,services", "-o", "name"], "the end of its pods", none).await?;
    scene.site.install(&ALL).await?;
    scene.create(ending("again", "Never", 0)).await?;
    scene.ends("again", "Succeeded").await.map(drop)
}
