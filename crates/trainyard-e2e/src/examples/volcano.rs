//! The tutorial's Volcano Job with real TensorFlow: a worker is deleted while it trains, everything
//! starts again, trains to its end, and leaves logs of both attempts and nothing else.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{PATIENCE, file, number_after};
use crate::check::{contains, equal};
use crate::yard::Bed;

const JOB: &str = "tensorflow-dist-mnist";
/// What each pod says when its program has started.
const HERE: [(&str, &str); 3] =
    [("ps-0", "ps 0 is here"), ("worker-0", "worker 0 is here"), ("worker-1", "worker 1 is here")];

pub(crate) async fn play(bed: &Bed) -> Result<()> {
    let said = bed.ok(&["apply", "-f", &file("volcano/tftest.yaml")]).await?;
    contains("apply", &said, &["job.batch.volcano.sh/tensorflow-dist-mnist created"])?;
    let worker = format!("{JOB}-worker-1");
    for (pod, words) in HERE {
        let pod = format!("{JOB}-{pod}");
        until(bed, &["logs", &pod], words, |log| log.contains(words)).await?;
    }
    bed.ok(&["delete", "pod", &worker]).await?;
    let count = ["get", "vcjob", JOB, "-o=jsonpath={.status.retryCount}"];
    until(bed, &count, "all start again", |count| count == "1").await?;
    let phase = ["get", "vcjob", JOB, "-o=jsonpath={.status.state.phase}"];
    let ended = |phase: &str| matches!(phase, "Completed" | "Failed" | "Terminated");
    let phase = until(bed, &phase, "it ends", ended).await?;
    let about = bed.ok(&["describe", "vcjob", JOB]).await?;
    ensure!(phase == "Completed", "it is {phase}:\n{about}");
    contains("events", &about, &["Start to execute action RestartJob", "CompleteJob"])?;
    let log = bed.ok(&["logs", &format!("{JOB}-worker-0")]).await?;
    let accuracy = number_after(&log, "accuracy ")?;
    ensure!(accuracy > 0.8, "the accuracy is {accuracy}:\n{log}");
    nothing_runs(bed).await?;
    logs_of_all_attempts(bed).await?;
    bed.ok(&["delete", "vcjob", JOB]).await?;
    let pods = ["get", "pods", "-o", "name"];
    until(bed, &pods, "its pods go along", str::is_empty).await.map(drop)
}

/// The workers' pods stay for their logs; everything else is gone.
async fn nothing_runs(bed: &Bed) -> Result<()> {
    let phases = "-o=jsonpath={range .items[*]}{.metadata.name}={.status.phase} {end}";
    let pods = bed.ok(&["get", "pods", phases]).await?;
    let kept = format!("{JOB}-worker-0=Succeeded {JOB}-worker-1=Succeeded");
    equal("pods", pods.trim(), kept.as_str())?;
    let kinds = "podgroups,networkpolicies,services,configmaps";
    let left = bed.ok(&["get", kinds, "-o", "name"]).await?;
    ensure!(!left.contains(JOB), "left behind: {left}");
    Ok(())
}

async fn logs_of_all_attempts(bed: &Bed) -> Result<()> {
    let data = bed.data().display().to_string();
    let logs = bed.own(&["logs", "--all", "--prefix", "--data-dir", &data, JOB]).await?;
    for (_, words) in HERE {
        let times = logs.matches(words).count();
        ensure!(times >= 2, "{words:?} stands {times} times in the logs of two attempts:\n{logs}");
    }
    contains("the last words", &logs, &["training is done"])
}

/// Asks kubectl until it answers as wanted, with the patience that TensorFlow needs.
async fn until(
    bed: &Bed,
    words: &[&str],
    what: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<String> {
    let started = Instant::now();
    loop {
        let outcome = bed.kubectl.run(words).await?;
        if outcome.success() && wanted(outcome.stdout.trim()) {
            return Ok(outcome.stdout.trim().to_owned());
        }
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        ensure!(started.elapsed() < PATIENCE, "{what}: has not come; kubectl says {said}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
