//! Real TensorFlow, trained by real jobs: the operator, the scheduler and the node together.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;

use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Stage};

/// A job of five replicas on two cores; most of it is importing TensorFlow, and, once, making the
/// environment.
const PATIENCE: Duration = Duration::from_mins(6);
const LONGEST: Duration = Duration::from_mins(8);

pub(super) fn cases() -> Vec<Case<Arc<Stage>>> {
    within(
        LONGEST,
        cases!["tensorflow":
            parameter_servers,
            in_step,
        ],
    )
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits").join(name)
}

/// A namespace with the example's script and a claim for the model.
async fn ground(stage: &Stage, name: &str, script: &str) -> Result<String> {
    let namespace = stage.namespace(name).await?;
    let script = format!("--from-file={}", example(script).display());
    let words = ["create", "configmap", "digits", "-n", &namespace, &script];
    stage.kubectl.run(&words).await?.stdout_of_success()?;
    let volume = format!("model-{namespace}");
    let claim = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "",
                "claimRef": {"namespace": namespace, "name": "model"},
                "nfs": {"server": "files.example.com", "path": "/model"},
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "model", "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": volume,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]});
    let applied = stage.kubectl.run_with_input(&["apply", "-f", "-"], &claim.to_string()).await?;
    applied.stdout_of_success()?;
    Ok(namespace)
}

/// Waits for a job's success; its failure, or too long a wait, tells what is known.
async fn succeeded(stage: &Stage, namespace: &str, job: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let conditions = conditions(stage, namespace).await?;
        if conditions.contains("Succeeded") {
            return Ok(());
        }
        if conditions.contains("Failed") || started.elapsed() > PATIENCE {
            bail!(
                "{job} has {conditions:?} after {:?}\n{}",
                started.elapsed(),
                all(stage, namespace).await?
            );
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What holds of the jobs of a namespace.
async fn conditions(stage: &Stage, namespace: &str) -> Result<String> {
    let columns = "-o=jsonpath={.items[*].status.conditions[?(@.status=='True')].type}";
    stage.kubectl.run(&["get", "tfjobs", "-n", namespace, columns]).await?.stdout_of_success()
}

/// Pods, events and the ends of all logs of a namespace.
async fn all(stage: &Stage, namespace: &str) -> Result<String> {
    let seen = stage.kubectl.run(&["get", "pods,events", "-n", namespace]).await?.stdout;
    let selector = "--selector=training.kubeflow.org/operator-name=tfjob-controller";
    let words = ["logs", "-n", namespace, "--prefix", "--tail=15", selector];
    Ok(format!("{seen}\n{}", stage.kubectl.run(&words).await?.stdout))
}

/// Applies an example, with one more variable for its script.
async fn apply(stage: &Stage, namespace: &str, file: &str, variable: &str) -> Result<()> {
    let text = fs::read_to_string(example(file))?;
    let known = "- {name: MODEL_DIR, value: /model}";
    ensure!(text.contains(known), "{file} has changed");
    let text = text.replace(known, &format!("{known}\n                - {variable}"));
    let words = ["apply", "-n", namespace, "-f", "-"];
    stage.kubectl.run_with_input(&words, &text).await?.stdout_of_success()?;
    Ok(())
}

/// Waits until a pod's log says this.
async fn says(stage: &Stage, namespace: &str, pod: &str, words: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let log = stage.kubectl.run(&["logs", "-n", namespace, pod]).await?;
        if log.stdout.contains(words) {
            return Ok(());
        }
        let over = conditions(stage, namespace).await?.contains("Failed");
        if over || started.elapsed() > PATIENCE {
            bail!("{pod} never said {words:?}\n{}", all(stage, namespace).await?);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Kills a replica's program from inside: the container's init is the first process there.
async fn kill(stage: &Stage, namespace: &str, pod: &str) -> Result<()> {
    let words = ["exec", "-n", namespace, pod, "--", "sh", "-c", "kill -9 2"];
    stage.kubectl.run(&words).await?.stdout_of_success()?;
    Ok(())
}

async fn restarts(stage: &Stage, namespace: &str) -> Result<Vec<String>> {
    let columns = "-o=jsonpath={range .items[*]}{.metadata.name}={.status.containerStatuses[0].restartCount} {end}";
    let pods = stage.kubectl.run(&["get", "pods", "-n", namespace, columns]).await?;
    Ok(pods.stdout_of_success()?.split_whitespace().map(str::to_owned).collect())
}

/// The examples ask for packages of their own.
fn options() -> AgentOptions {
    AgentOptions { flags: vec!["--allow-requirements".to_owned()], ..AgentOptions::default() }
}

/// A chief, a parameter server, two workers and an evaluator; a worker is killed on the way, is
/// restarted alone, and the chief finishes.
async fn parameter_servers(stage: &Stage) -> Result<()> {
    let agent = Agent::start(stage, options()).await?;
    let namespace = ground(stage, "ps", "parameter_server.py").await?;
    let epochs = "{name: EPOCHS, value: \"60\"}";
    apply(stage, &namespace, "parameter-server.yaml", epochs).await?;
    says(stage, &namespace, "digits-chief-0", "epoch 0").await?;
    kill(stage, &namespace, "digits-worker-1").await?;
    succeeded(stage, &namespace, "digits").await?;
    let counts = restarts(stage, &namespace).await?;
    let others = |count: &&String| !count.starts_with("digits-worker-1=");
    ensure!(counts.iter().filter(others).all(|count| count.ends_with("=0")), "{counts:?}");
    let log = stage.kubectl.run(&["logs", "-n", &namespace, "digits-chief-0"]).await?;
    let log = log.stdout_of_success()?;
    ensure!(log.contains("training is done"), "the chief's log:\n{log}");
    let model = agent.state.join("claims").join(&namespace).join("model/model.npz");
    ensure!(model.exists(), "there is no model at {}", model.display());
    let done = fs::read_to_string(model.with_file_name("done"))?;
    let done: serde_json::Value = serde_json::from_str(&done)?;
    ensure!(done["accuracy"].as_f64() > Some(0.8), "{done}");
    agent.stop().await
}

/// Two workers in step: one is killed, both start again and go on from the checkpoint. Then a job is
/// deleted while it trains: TensorFlow ignores SIGTERM here, and is gone after its grace.
async fn in_step(stage: &Stage) -> Result<()> {
    let agent = Agent::start(stage, options()).await?;
    let namespace = ground(stage, "step", "all_reduce.py").await?;
    let steps = "{name: STEPS, value: \"200\"}";
    apply(stage, &namespace, "all-reduce.yaml", steps).await?;
    says(stage, &namespace, "digits-in-step-worker-0", "step 40").await?;
    kill(stage, &namespace, "digits-in-step-worker-1").await?;
    for pod in ["digits-in-step-worker-0", "digits-in-step-worker-1"] {
        says(stage, &namespace, pod, "goes on from step").await?;
    }
    succeeded(stage, &namespace, "digits-in-step").await?;
    stage.kubectl.run(&["delete", "tfjob", "digits-in-step", "-n", &namespace]).await?;
    let checkpoints = agent.state.join("claims").join(&namespace).join("model/checkpoints");
    fs::remove_dir_all(&checkpoints)?;
    let steps = "{name: STEPS, value: \"100000\"}";
    apply(stage, &namespace, "all-reduce.yaml", steps).await?;
    says(stage, &namespace, "digits-in-step-worker-0", "step 20").await?;
    let asked = Instant::now();
    let words = ["delete", "tfjob", "digits-in-step", "-n", &namespace, "--cascade=foreground"];
    stage.kubectl.run(&words).await?.stdout_of_success()?;
    let left = processes_of("/code/all_reduce.py")?;
    ensure!(left.is_empty(), "{left:?} run {:?} after their deletion", asked.elapsed());
    agent.stop().await
}

/// Processes of this machine with these words in their command line.
fn processes_of(words: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // A process may end while it is looked at.
        let line = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(words) {
            found.push(line);
        }
    }
    Ok(found)
}
