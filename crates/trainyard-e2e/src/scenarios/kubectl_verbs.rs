//! What people do with kubectl beside the tutorials: scale, suspend, explain, misspell.

use anyhow::{Result, ensure};

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::kubectl::Kubectl;
use crate::manifest::tfjob;
use crate::world::World;

pub(super) fn all() -> Vec<Case<(World, Kubectl)>> {
    cases!["kubectl":
        scale,
        patch_suspend_and_wait,
        explain,
        misspelt_fields,
        refusals_name_the_field,
        delete_with_all_it_owns,
        wide_columns,
        who_is_away_and_since_when,
    ]
}

async fn scale(world: World, kubectl: Kubectl) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let words = ["-n", &world.namespace, "scale", "tfjob/a", "--replicas=3"];
    let said = kubectl.run(&words).await?.stdout_of_success()?;
    contains("scale", &said, &["tfjob.kubeflow.org/a scaled"])?;
    world.wait_pods(&["a-worker-0", "a-worker-1", "a-worker-2"]).await?;
    Ok(())
}

async fn patch_suspend_and_wait(world: World, kubectl: Kubectl) -> Result<()> {
    let _auto = world.kubelet.auto();
    let ns = world.namespace.as_str();
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let patch = r#"{"spec":{"runPolicy":{"suspend":true}}}"#;
    let words = ["-n", ns, "patch", "tfjob", "a", "--type=merge", "-p", patch];
    kubectl.run(&words).await?.stdout_of_success()?;
    let words = ["-n", ns, "wait", "--for=condition=Suspended", "--timeout=60s", "tfjob/a"];
    kubectl.run(&words).await?.stdout_of_success()?;
    world.wait_pods(&[]).await?;
    Ok(())
}

async fn explain(_: World, kubectl: Kubectl) -> Result<()> {
    for (path, parts) in [
        ("tfjob.spec.tfReplicaSpecs", ["Chief", "Worker", "Evaluator"]),
        ("tfjob.spec.runPolicy.cleanPodPolicy", ["Running", "All", "None"]),
        ("tfjob.spec.tensorBoard.logDir", ["FIELD: logDir", "<string>", "directory"]),
    ] {
        let said = kubectl.run(&["explain", path]).await?.stdout_of_success()?;
        let lower = said.to_lowercase();
        for part in parts {
            ensure!(lower.contains(&part.to_lowercase()), "{path}: {part} is missing in\n{said}");
        }
    }
    Ok(())
}

async fn misspelt_fields(world: World, kubectl: Kubectl) -> Result<()> {
    let words = ["-n", &world.namespace, "apply", "-f", "-"];
    let mut job = tfjob("a").workers(1).json();
    job["spec"]["runPolicy"]["backofLimit"] = 3.into();
    let said = kubectl.run_with_input(&words, &job.to_string()).await?.stderr_of_failure()?;
    contains("refusal", &said, &["unknown field", "backofLimit"])?;
    let job = tfjob("a").workers(1).container("Worker", |container| {
        container["volumeMount"] = serde_json::json!([]);
    });
    let said =
        kubectl.run_with_input(&words, &job.json().to_string()).await?.stderr_of_failure()?;
    contains("refusal", &said, &["unknown field", "volumeMount"])
}

async fn refusals_name_the_field(world: World, kubectl: Kubectl) -> Result<()> {
    let words = ["-n", &world.namespace, "create", "-f", "-"];
    for (job, parts) in [
        (tfjob("a"), ["spec.tfReplicaSpecs", "at least one replica type"]),
        (tfjob("a").replicas("Gardener", 1), ["spec.tfReplicaSpecs", "Gardener"]),
        (tfjob("a").workers(-1), ["spec.tfReplicaSpecs.Worker.replicas", "-1"]),
        (tfjob("a").replicas("Chief", 2), ["spec.tfReplicaSpecs", "Chief"]),
        (tfjob("a").workers(1).restart("Maybe"), ["restartPolicy", "Maybe"]),
        (tfjob("1a").workers(1), ["metadata.name", "1a"]),
    ] {
        let answer = kubectl.run_with_input(&words, &job.json().to_string()).await?;
        contains("refusal", &answer.stderr_of_failure()?, &parts)?;
    }
    Ok(())
}

async fn delete_with_all_it_owns(world: World, kubectl: Kubectl) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let words = ["-n", &world.namespace, "delete", "tfjobs", "--all", "--cascade=foreground"];
    kubectl.run(&words).await?.stdout_of_success()?;
    world
        .wait_until("all is gone", |seen| {
            seen.job("a").is_null() && seen.pods().is_empty() && seen.services().is_empty()
        })
        .await?;
    Ok(())
}

async fn wide_columns(world: World, kubectl: Kubectl) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True"]).await?;
    let ns = world.namespace.as_str();
    let plain = kubectl.run(&["-n", ns, "get", "tfjobs"]).await?.stdout_of_success()?;
    let wide =
        kubectl.run(&["-n", ns, "get", "tfjobs", "-o", "wide"]).await?.stdout_of_success()?;
    let columns = |text: &str| -> Vec<String> {
        let head = text.lines().next().unwrap_or_default();
        head.split_whitespace().map(str::to_owned).collect()
    };
    ensure!(columns(&plain) == ["NAME", "STATE", "AGE"], "columns as known: {plain}");
    let all = ["NAME", "STATE", "AGE", "RESTARTS", "UNAVAILABLE", "SINCE", "FAILURE", "MESSAGE"];
    ensure!(columns(&wide) == all, "more when asked: {wide}");
    contains("state", &plain, &["Created"])
}

/// Of a job that is restarting the state is shown, and when asked which replica is away, and since when.
async fn who_is_away_and_since_when(world: World, kubectl: Kubectl) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.lose_contact("a-worker-1").await?;
    world.wait_until("it is restarting", |seen| seen.is("a", "Restarting")).await?;
    let ns = world.namespace.as_str();
    let words = ["-n", ns, "get", "tfjob", "a"];
    let plain = kubectl.run(&words).await?.stdout_of_success()?;
    equal("state", cell(&plain, "STATE"), "Restarting")?;
    let wide = kubectl.run(&[&words[..], &["-o", "wide"]].concat()).await?.stdout_of_success()?;
    equal("state", cell(&wide, "STATE"), "Restarting")?;
    equal("which", cell(&wide, "UNAVAILABLE"), "worker-1")?;
    let since = cell(&wide, "SINCE");
    ensure!(since.ends_with(['s', 'm']), "since when: {since:?} in\n{wide}");
    contains("why", cell(&wide, "MESSAGE"), &["the node of pod a-worker-1 cannot be reached"])
}

/// A cell of the first row of a table.
fn cell<'a>(table: &'a str, column: &str) -> &'a str {
    let mut lines = table.lines();
    let (head, row) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let Some(start) = head.find(column) else { return "" };
    let rest = head.get(start + column.len()..).unwrap_or_default();
    let blank = rest.len() - rest.trim_start().len();
    let end = if rest.trim().is_empty() { row.len() } else { start + column.len() + blank };
    row.get(start..end.min(row.len())).unwrap_or_default().trim()
}
