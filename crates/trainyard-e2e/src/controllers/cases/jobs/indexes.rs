//! Indexed jobs.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Work, a_while, name};
use crate::check;
use crate::controllers::ground::Ground;
use crate::harness::{Case, cases};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "jobs": give_each_pod_its_index,
        count_indexes,
        run_a_failed_index_again,
        change_their_size,
    )
}

fn index(pod: &Value) -> &str {
    pod["metadata"]["annotations"][INDEX].as_str().unwrap_or_default()
}

async fn start(ground: &Ground, name: &str, parallelism: u32, completions: u32) -> Result<Work> {
    let spec = json!({"completionMode": "Indexed", "parallelism": parallelism,
        "completions": completions});
    Work::start(ground, name, &spec).await
}

/// The active pod of an index.
async fn at(work: &Work, count: usize, wanted: &str) -> Result<Value> {
    let pods = work.until_active(count).await?;
    let found = pods.iter().find(|pod| index(pod) == wanted);
    found.cloned().with_context(|| format!("no pod of index {wanted}"))
}

async fn give_each_pod_its_index(ground: &Ground) -> Result<()> {
    let spec = json!({"completionMode": "Indexed", "parallelism": 2, "completions": 2,
        "template.containers": [
            {"name": "main", "image": "none"},
            {"name": "own", "image": "none",
                "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]}],
        "template.initContainers": [{"name": "first", "image": "none"}]});
    let work = Work::start(ground, "indexed", &spec).await?;
    work.until_active(2).await?;
    let variable = json!([{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
        "apiVersion": "v1", "fieldPath": format!("metadata.labels['{INDEX}']")}}}]);
    for number in ["0", "1"] {
        let pod = at(&work, 2, number).await?;
        ensure!(name(&pod).starts_with(&format!("indexed-{number}-")), "{}", name(&pod));
        check::equal("the label", &pod["metadata"]["labels"][INDEX], number)?;
        check::fields(
            "the pod",
            &pod,
            &[
                ("/metadata/generateName", json!(format!("indexed-{number}-"))),
                ("/spec/hostname", json!(format!("indexed-{number}"))),
                ("/spec/containers/0/env", variable.clone()),
                ("/spec/containers/1/env/0/value", json!("mine")),
                ("/spec/containers/1/env/1", Value::Null),
                ("/spec/initContainers/0/env", variable.clone()),
            ],
        )?;
    }
    Ok(())
}

async fn count_indexes(ground: &Ground) -> Result<()> {
    let work = start(ground, "counts", 3, 5).await?;
    work.ends(&at(&work, 3, "2").await?, "Succeeded").await?;
    work.until_status(&[("completedIndexes", json!("2")), ("active", json!(3))]).await?;
    work.ends(&at(&work, 3, "0").await?, "Succeeded").await?;
    work.until_status(&[("completedIndexes", json!("0,2")), ("active", json!(3))]).await?;
    work.ends(&at(&work, 3, "1").await?, "Succeeded").await?;
    let job = work.until_status(&[("completedIndexes", json!("0-2"))]).await?;
    check::equal("succeeded", &job["status"]["succeeded"], &json!(3))?;
    for number in ["3", "4"] {
        let pods = work.pods().await?;
        let pod = pods.iter().find(|pod| index(pod) == number).context("no such index")?;
        work.ends(pod, "Succeeded").await?;
    }
    let job = work.until_complete().await?;
    check::equal("the indexes", &job["status"]["completedIndexes"], &json!("0-4"))?;
    check::equal("succeeded", &job["status"]["succeeded"], &json!(5))
}

async fn run_a_failed_index_again(ground: &Ground) -> Result<()> {
    let work = start(ground, "again", 2, 2).await?;
    let lost = at(&work, 2, "1").await?;
    work.ends(&lost, "Failed").await?;
    work.until_status(&[("failed", json!(1)), ("active", json!(1))]).await?;
    // The other one succeeds meanwhile: that ends the pause.
    work.ends(&at(&work, 1, "0").await?, "Succeeded").await?;
    let again = at(&work, 1, "1").await?;
    ensure!(name(&again) != name(&lost), "the same pod");
    work.ends(&again, "Succeeded").await?;
    let job = work.until_complete().await?;
    check::fields(
        "the status",
        &job["status"],
        &[("/completedIndexes", json!("0,1")), ("/succeeded", json!(2)), ("/failed", json!(1))],
    )
}

async fn change_their_size(ground: &Ground) -> Result<()> {
    let work = start(ground, "elastic", 3, 3).await?;
    work.ends(&at(&work, 3, "2").await?, "Succeeded").await?;
    work.until_status(&[("completedIndexes", json!("2"))]).await?;
    // Smaller: an index that is no more is forgotten.
    work.change(&json!({"completions": 2, "parallelism": 2})).await?;
    work.until_status(&[("completedIndexes", Value::Null), ("active", json!(2))]).await?;
    // Larger: it is run again, and new ones come.
    work.change(&json!({"completions": 4, "parallelism": 4})).await?;
    let pods = work.until_active(4).await?;
    let mut indexes: Vec<&str> = pods.iter().map(index).collect();
    indexes.sort_unstable();
    check::equal("the indexes", indexes, vec!["0", "1", "2", "3"])?;
    // Smaller while they run: what is beyond goes, and has not failed.
    work.change(&json!({"completions": 1, "parallelism": 1})).await?;
    let left = work.until_one().await?;
    check::equal("the index that stays", index(&left), "0")?;
    for pod in pods.iter().filter(|pod| index(pod) != "0") {
        work.gone(pod).await?;
    }
    work.ends(&left, "Succeeded").await?;
    let job = work.until_complete().await?;
    a_while().await;
    check::equal("failed", &job["status"]["failed"], &Value::Null)
}
