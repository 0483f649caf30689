//! People who have rights in one namespace only.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::check::contains;
use crate::harness::{Case, cases};
use crate::kubectl::Kubectl;
use crate::real_kubelet::jobs::{TOLD, ending, worker};
use crate::real_kubelet::site::Scene;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["users":
        user_of_one_namespace_runs_jobs_and_reads_logs_there_and_nowhere_else,
        editor_of_a_namespace_may_run_jobs_by_aggregation,
        viewer_of_a_namespace_may_look_and_change_nothing,
    ]
}

/// kubectl as an account of the namespace, with a token of its own.
pub(super) async fn as_account(scene: &Scene, account: &str) -> Result<Kubectl> {
    scene.ok(&["create", "serviceaccount", account]).await?;
    let token = scene.ok(&["create", "token", account]).await?;
    let config = scene.site.ok(&["config", "view", "--raw", "-o", "json"]).await?;
    let mut config: Value = serde_json::from_str(&config)?;
    let users = config["users"].as_array_mut().context("a kubeconfig has users")?;
    for user in users {
        user["user"] = json!({"token": token.trim()});
    }
    let home = scene.site.folder(&format!("{}-{account}", scene.namespace))?;
    let file = home.join("config");
    std::fs::write(&file, config.to_string())?;
    Ok(Kubectl::new(scene.site.kubectl.program().to_owned(), file, home))
}

async fn user_of_one_namespace_runs_jobs_and_reads_logs_there_and_nowhere_else(
    scene: &Scene,
) -> Result<()> {
    let ns = scene.namespace.as_str();
    let user = as_account(scene, "alice").await?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "jobs"},
        "rules": [
            {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"],
             "verbs": ["create", "get", "list", "watch", "delete"]},
            {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
        ],
    });
    scene.create(role).await?;
    let account = format!("--serviceaccount={ns}:alice");
    scene.ok(&["create", "rolebinding", "jobs", "--role=jobs", &account]).await?;
    let manifest = ending("mine", "Never", 0).json().to_string();
    let created = user.run_with_input(&["-n", ns, "create", "-f", "-"], &manifest).await?;
    contains("create", &created.stdout_of_success()?, &["tfjob.kubeflow.org/mine created"])?;
    let condition = "--for=condition=Succeeded";
    let words = ["-n", ns, "wait", condition, "--timeout=90s", "tfjob/mine"];
    user.run(&words).await?.stdout_of_success()?;
    let log = user.run(&["-n", ns, "logs", "mine-worker-0"]).await?.stdout_of_success()?;
    contains("log", &log, &["ends with 0"])?;
    let forbidden: [&[&str]; 5] = [
        &["-n", "default", "get", "tfjobs"],
        &["get", "tfjobs", "--all-namespaces"],
        &["get", "nodes"],
        &["-n", ns, "delete", "pod", "mine-worker-0"],
        &["-n", "kubeflow", "get", "pods"],
    ];
    for words in forbidden {
        contains("refusal", &user.run(words).await?.stderr_of_failure()?, &["Forbidden"])?;
    }
    let elsewhere = user.run_with_input(&["-n", "default", "create", "-f", "-"], &manifest).await?;
    contains("refusal", &elsewhere.stderr_of_failure()?, &["forbidden"])?;
    let gone = user.run(&["-n", ns, "delete", "tfjob", "mine"]).await?;
    gone.stdout_of_success().map(drop)
}

async fn editor_of_a_namespace_may_run_jobs_by_aggregation(scene: &Scene) -> Result<()> {
    let ns = scene.namespace.as_str();
    let user = as_account(scene, "bob").await?;
    let account = format!("--serviceaccount={ns}:bob");
    scene.ok(&["create", "rolebinding", "edit", "--clusterrole=edit", &account]).await?;
    let manifest = worker("a", "Never", TOLD).json().to_string();
    let created = user.run_with_input(&["-n", ns, "apply", "-f", "-"], &manifest).await?;
    created.stdout_of_success()?;
    scene.runs("a").await?;
    let words = ["-n", ns, "scale", "tfjob/a", "--replicas=2"];
    user.run(&words).await?.stdout_of_success()?;
    user.run(&["-n", ns, "delete", "tfjob", "a"]).await?.stdout_of_success()?;
    let answer = user.run(&["-n", "default", "auth", "can-i", "create", "tfjobs"]).await?;
    ensure!(answer.stdout.trim() == "no", "{}", answer.stdout);
    Ok(())
}

async fn viewer_of_a_namespace_may_look_and_change_nothing(scene: &Scene) -> Result<()> {
    let ns = scene.namespace.as_str();
    let user = as_account(scene, "carol").await?;
    let account = format!("--serviceaccount={ns}:carol");
    scene.ok(&["create", "rolebinding", "view", "--clusterrole=view", &account]).await?;
    scene.create(ending("a", "Never", 0)).await?;
    scene.ends("a", "Succeeded").await?;
    let table = user.run(&["-n", ns, "get", "tfjobs"]).await?.stdout_of_success()?;
    contains("table", &table, &["a ", "Succeeded"])?;
    user.run(&["-n", ns, "logs", "a-worker-0"]).await?.stdout_of_success()?;
    let refused = user.run(&["-n", ns, "delete", "tfjob", "a"]).await?.stderr_of_failure()?;
    contains("refusal", &refused, &["Forbidden"])
}
