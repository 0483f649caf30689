//! Programs that take all they can get: each meets a bound, and meanwhile the machine starts processes
//! and the API server answers. Each bomb ends by itself, should its bound not hold.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::look::{ended, verdict};
use super::machine::{groups, with_variable};
use super::objects::{self, said, says, value};
use super::rootless::ordinary;
use crate::check::{contains, equal};
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage, Who};

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(2),
        cases!["bombs":
            processes,
            memory,
            groups_above_containers,
            shared_memory,
            shared_memory_of_a_user,
            descriptors,
            disk,
            files,
            log,
        ],
    )
}

const NODE: &str = "willow";
/// Nothing that answers takes longer, on two cores that do other things too.
const SLOWEST: Duration = Duration::from_secs(10);

fn options(who: Who, flags: &[&str]) -> AgentOptions {
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    AgentOptions { nodes: vec![NODE.to_owned()], who, flags, ..AgentOptions::default() }
}

/// A spec's part, bound to the case's node.
fn here(more: &Value) -> Value {
    let mut spec = json!({"nodeName": NODE, "automountServiceAccountToken": false});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

fn python(script: &str) -> String {
    format!("exec python3 -c '{script}'")
}

/// Starts processes of the machine and asks the API server, over and over.
struct Answering {
    stop: CancellationToken,
    task: JoinHandle<Result<u32>>,
}

impl Answering {
    fn begin(client: &Client) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(answers(client.clone(), stop.clone()));
        Self { stop, task }
    }

    /// All of it was answered, and something was asked.
    async fn end(self) -> Result<()> {
        self.stop.cancel();
        let answers = self.task.await??;
        ensure!(answers > 0, "nothing was asked meanwhile");
        Ok(())
    }
}

async fn answers(client: Client, stop: CancellationToken) -> Result<u32> {
    let mut answers = 0;
    while !stop.is_cancelled() {
        let began = Instant::now();
        let started = tokio::task::spawn_blocking(|| Command::new("true").status()).await?;
        ensure!(started.context("the machine starts no process")?.success());
        client.apiserver_version().await.context("the API server does not answer")?;
        let took = began.elapsed();
        ensure!(took < SLOWEST, "a process and an answer took {took:?}");
        answers += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(answers)
}

/// Runs a bomb on an agent of its own to its end, while all else answers.
async fn bomb(
    stage: &Stage,
    options: AgentOptions,
    script: &str,
    more: Value,
    judge: impl AsyncFnOnce(&Pods<'_>, Pod) -> Result<()>,
) -> Result<()> {
    let agent = Agent::start(stage, options).await?;
    let pods = Pods::open(stage, "bombs").await?;
    let answering = Answering::begin(&stage.client);
    pods.shell("bomb", script, here(&more)).await?;
    let pod = objects::ended(&pods, "bomb").await?;
    answering.end().await?;
    judge(&pods, pod).await?;
    // The node itself goes on too.
    equal(
        "next",
        says(&pods, "next", "echo it runs", here(&json!({}))).await?.as_str(),
        "it runs\n",
    )?;
    agent.check()?;
    agent.stop().await
}

/// Whether root's limits hold here, which takes cgroups.
fn limits_hold() -> bool {
    rustix::process::geteuid().is_root()
}

const FORKS: &str = "
import os, signal
started = refused = 0
for number in range(1500):
    try:
        if os.fork() == 0:
            signal.pause()
        started += 1
    except OSError:
        refused += 1
print(\"started=%d\" % started)
print(\"refused=%d\" % refused)
";

// A container had as many processes as the machine has numbers for, a pod and all pods together no
// limit at all: all 1500 started.
async fn processes(stage: &Stage) -> Result<()> {
    if !limits_hold() {
        return Ok(());
    }
    let options = options(Who::Me, &["--pod-pids-limit=200"]);
    bomb(stage, options, &python(FORKS), json!({}), async |pods, _| {
        let text = said(pods, "bomb").await?;
        let count = |name| value(&text, name).and_then(|text| text.parse::<u32>().ok());
        let (started, refused) = (count("started"), count("refused"));
        ensure!(started.is_some_and(|started| (100..200).contains(&started)), "{text}");
        ensure!(refused.is_some_and(|refused| refused >= 1300), "{text}");
        Ok(())
    })
    .await
}

const TAKES: &str = "
held = []
for number in range(32):
    held.append(bytearray(b\"x\" * (32 << 20)))
print(\"took all\")
";

fn killed_for_memory(pod: &Pod) -> Result<()> {
    let run = ended(pod, "main")?;
    equal("reason", run.reason.as_deref(), Some("OOMKilled"))?;
    equal("code", run.exit_code, 137)
}

// Without a limit of its own a container took all the memory of the machine, whatever its node was to
// have.
async fn memory(stage: &Stage) -> Result<()> {
    if !limits_hold() {
        return Ok(());
    }
    let options = options(Who::Me, &["--node-memory=256Mi"]);
    bomb(stage, options, &python(TAKES), json!({}), async |_, pod| killed_for_memory(&pod)).await
}

/// What the files of this name say, one of each hierarchy that has it.
fn limits_in(folders: &[PathBuf], below: &str, names: [&str; 2]) -> Vec<u64> {
    let files = folders.iter().flat_map(|folder| names.map(|name| folder.join(below).join(name)));
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    texts.filter_map(|text| text.trim().parse().ok()).collect()
}

// The groups of pods and of all pods had no limits.
async fn groups_above_containers(stage: &Stage) -> Result<()> {
    if !limits_hold() {
        return Ok(());
    }
    let agent = Agent::start(stage, options(Who::Me, &["--node-memory=1Gi"])).await?;
    let pods = Pods::open(stage, "groups").await?;
    let container = |name: &str, memory: &str| {
        json!({"name": name, "image": "test", "command": ["sleep", "600"],
            "env": [{"name": "MARK", "value": pods.namespace}],
            "resources": {"limits": {"memory": memory}}})
    };
    let all = json!([container("main", "64Mi"), container("other", "32Mi")]);
    let pod = pods.create("two", here(&json!({"containers": all}))).await?;
    pods.until_phase("two", "Running").await?;
    let marked = with_variable(&format!("MARK={}", pods.namespace));
    let mut yard = groups(*marked.first().context("its process is not found")?);
    // Each is found once for each hierarchy.
    yard.sort();
    yard.dedup();
    let uid = pod.metadata.uid.unwrap_or_default();
    let memory = ["memory.limit_in_bytes", "memory.max"];
    equal("memory of the pod", limits_in(&yard, &uid, memory), vec![96 << 20])?;
    equal("processes of the pod", limits_in(&yard, &uid, ["pids.max", "none"]), vec![2048])?;
    equal("memory of all", limits_in(&yard, "", memory), vec![1 << 30])?;
    let most = fs::read_to_string("/proc/sys/kernel/pid_max")?.trim().parse::<u64>()?;
    let processes = limits_in(&yard, "", ["pids.max", "none"]);
    ensure!(processes.len() == 1 && processes[0] < most, "processes of all pods: {processes:?}");
    pods.delete("two", Some(0)).await?;
    agent.stop().await
}

const FILLS: &str = "head -c 300000000 /dev/zero > /dev/shm/a 2>/dev/null && echo all || echo full; \
    stat -c %s /dev/shm/a; echo more > /large/x && df -B1 --output=size /large | tail -1 | tr -d ' '";

/// A larger one is a volume, at whatever place.
fn with_larger() -> Value {
    json!({
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "128Mi"}}],
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/large"}]}],
    })
}

async fn fills(stage: &Stage, who: Who) -> Result<()> {
    bomb(stage, options(who, &[]), FILLS, with_larger(), async |pods, _| {
        let text = said(pods, "bomb").await?;
        equal("what it held", text.as_str(), "full\n67108864\n134217728\n")?;
        let mut larger = with_larger();
        larger["containers"][0]["volumeMounts"][0]["mountPath"] = json!("/dev/shm");
        let script = "head -c 100000000 /dev/zero > /dev/shm/a && stat -c %s /dev/shm/a";
        let text = says(pods, "larger", script, here(&larger)).await?;
        equal("a larger one", text.as_str(), "100000000\n")
    })
    .await
}

// It held half of the machine's memory.
async fn shared_memory(stage: &Stage) -> Result<()> {
    fills(stage, Who::Me).await
}

async fn shared_memory_of_a_user(stage: &Stage) -> Result<()> {
    fills(stage, ordinary()).await
}

const OPENS: &str = "
import os, resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = 0
try:
    for held in range(1, 100000):
        os.open(\"/dev/null\", os.O_RDONLY)
except OSError:
    pass
print(\"within\" if held <= most else \"beyond\")
";

async fn descriptors(stage: &Stage) -> Result<()> {
    bomb(stage, options(Who::Me, &[]), &python(OPENS), json!({}), async |pods, _| {
        equal("descriptors", said(pods, "bomb").await?.as_str(), "within\n")
    })
    .await
}

fn evicted(pod: &Pod, message: &str) -> Result<()> {
    let (reason, words) = verdict(pod);
    equal("reason", reason, "Evicted")?;
    contains("message", words, &[message])
}

// The limit was taken into account when the pod was placed, and never again.
async fn disk(stage: &Stage) -> Result<()> {
    let limits = json!({"limits": {"ephemeral-storage": "8Mi"}});
    let more = json!({"containers": [{"name": "main", "resources": limits}]});
    let script =
        "for I in $(seq 16); do head -c 4000000 /dev/zero >> /tmp/x; sleep 0.1; done; sleep 60";
    bomb(stage, options(Who::Me, &[]), script, more, async |_, pod| {
        // Of one container both are the same, and the whole is looked at first.
        evicted(&pod, "Pod ephemeral local storage usage exceeds the total limit of containers 8Mi")
    })
    .await
}

// Empty files counted nothing, and a disk has only so many.
async fn files(stage: &Stage) -> Result<()> {
    let more = json!({
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "4Mi"}}],
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    });
    let script = "for I in $(seq 4000); do : > /v/$I; done; sleep 60";
    bomb(stage, options(Who::Me, &[]), script, more, async |_, pod| {
        evicted(&pod, "Usage of EmptyDir volume \"v\" exceeds the limit")
    })
    .await
}

async fn log(stage: &Stage) -> Result<()> {
    bomb(stage, options(Who::Me, &[]), "yes | head -c 80000000", json!({}), async |pods, _| {
        let log = said(pods, "bomb").await?;
        ensure!(log.len() < 60_000_000 && log.ends_with("y\n"), "{} bytes are kept", log.len());
        Ok(())
    })
    .await
}
