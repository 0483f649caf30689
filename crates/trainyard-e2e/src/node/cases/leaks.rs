//! Three hundred pods of many kinds, half of them ended at random moments, and their agent killed twenty
//! times on the way: in the end the machine is as it was.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::look::until;
use super::machine::{Host, Traces, descendants, descriptors, files_below, with_variable};
use super::objects::phase;
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage};

/// Agents that are killed, each with pods of its own.
const ROUNDS: usize = 20;
/// Pods of one round.
const PODS: usize = 15;
/// The same moments every time, as far as the machine allows.
const SEED: u64 = 0x7ea1_5eed_0f7e_a125;
const LONGEST: Duration = Duration::from_mins(8);
/// What is left of a killed agent is gone within this time.
const AT_ONCE: Duration = Duration::from_secs(10);

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        LONGEST,
        cases!["leaks":
            random_ends,
        ],
    )
}

async fn random_ends(stage: &Stage) -> Result<()> {
    let host = Host::look()?;
    let pods = Pods::open(stage, "leaks").await?;
    let mut luck = Luck(SEED);
    let mut traces = Traces::default();
    let mut agent = Agent::start(stage, AgentOptions::default()).await?;
    for round in 0..ROUNDS {
        let acts = begin(&pods, &mut luck, round).await?;
        play(&pods, &agent, &mut traces, acts).await.with_context(|| format!("round {round}"))?;
        agent.check()?;
        let home = agent.state.clone();
        agent.kill().await?;
        traces.are_gone(AT_ONCE).await.with_context(|| format!("after round {round}"))?;
        let options = AgentOptions { state: Some(home), ..AgentOptions::default() };
        agent = Agent::start(stage, options).await?;
    }
    let (processes, namespaces, groups) = traces.counts();
    ensure!(processes > ROUNDS * PODS && namespaces > ROUNDS, "{processes} {namespaces}");
    ensure!(groups > 0 || !rustix::process::geteuid().is_root(), "no control groups were seen");
    all_end(&pods).await?;
    logs_are_kept(&pods, &agent.state).await?;
    descriptors_come_back(&pods, &agent, &mut luck, &mut traces).await?;
    remove_all(&pods).await?;
    let folder = agent.state.join("pods");
    until("empty folders of pods", async || Ok(files_below(&folder).is_empty()))
        .await
        .with_context(|| {
            format!(
                "{:?}
{}",
                files_below(&folder),
                agent.log_text()
            )
        })?;
    let home = agent.state.clone();
    agent.stop().await?;
    traces.are_gone(AT_ONCE).await?;
    host.is_as_before()?;
    let left: BTreeSet<_> = fs::read_dir(&home)?.flatten().map(|e| e.file_name()).collect();
    let known = ["claims", "holder", "lock", "logs", "outbound", "pods"];
    ensure!(left.iter().all(|name| known.iter().any(|known| name == known)), "{left:?}");
    ensure!(files_below(&home.join("claims")).is_empty());
    Ok(())
}

/// A generator that is the same everywhere.
struct Luck(u64);

impl Luck {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn within(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(f64::from(u32::try_from(self.below(1000)).unwrap_or(0)) / 1000.0)
    }
}

/// Something that happens to a pod.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Deleted(Option<u32>),
    Killed,
}

/// Makes a round's pods; says what happens to which, and when, up to the end of the agent.
async fn begin(
    pods: &Pods<'_>,
    luck: &mut Luck,
    round: usize,
) -> Result<Vec<(Duration, String, Fate)>> {
    let longest = Duration::from_millis(500) + luck.within(Duration::from_secs(3));
    let mut acts = Vec::new();
    for number in 0..PODS {
        let name = format!("p-{round}-{number}");
        make(pods, &name, round * PODS + number).await?;
        if (round + number).is_multiple_of(2) {
            let fate = match luck.below(6) {
                0 | 1 => Fate::Deleted(Some(1)),
                2 => Fate::Deleted(Some(0)),
                3 => Fate::Deleted(None),
                _ => Fate::Killed,
            };
            acts.push((luck.within(longest), name, fate));
        }
    }
    acts.sort_by_key(|(when, _, _)| *when);
    Ok(acts)
}

/// One pod of a kind that goes with its number.
async fn make(pods: &Pods<'_>, name: &str, number: usize) -> Result<()> {
    let script = match number % 7 {
        // Ends by itself.
        0 => "sleep 0.2",
        // Has children when it ends.
        1 => "sleep 300 & sleep 300 & sleep 0.3",
        // Leaves a daemon behind in a session of its own.
        2 => "(setsid sh -c 'sleep 300 & sleep 301' >/dev/null 2>&1 &); sleep 0.2; exit 3",
        // Cannot be asked to end.
        3 => "trap '' TERM HUP INT; while :; do sleep 0.5; done",
        // Writes to memory and to disk.
        4 => "head -c 500000 /dev/zero > /memory/a; head -c 500000 /dev/zero > /disk/a; sleep 1",
        // Would go on.
        5 => "sleep 300",
        // Begins again where it is lost.
        _ => "sleep 1",
    };
    let policy = if number % 7 == 6 { "OnFailure" } else { "Never" };
    let node = ["alder", "birch"][number % 2];
    let mark = json!([{"name": "MARK", "value": mark(pods, name)}]);
    let mut spec = json!({
        "restartPolicy": policy,
        "terminationGracePeriodSeconds": 2,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "volumes": [
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "disk", "emptyDir": {}},
        ],
        "containers": [{"name": "main", "image": "test", "env": mark,
            "command": ["sh", "-c", format!("echo this is {name}; {script}")],
            "volumeMounts": [
                {"name": "memory", "mountPath": "/memory"},
                {"name": "disk", "mountPath": "/disk"},
            ]}],
    });
    if number.is_multiple_of(5) {
        let more = |name: &str, script: &str| json!({"name": name, "image": "test", "env": mark, "command": ["sh", "-c", script]});
        spec["initContainers"] = json!([more("first", "sleep 0.1")]);
        if let Some(containers) = spec["containers"].as_array_mut() {
            containers.push(more("second", "sleep 0.5"));
        }
        spec["shareProcessNamespace"] = json!(number.is_multiple_of(10));
    }
    pods.create(name, spec).await.map(drop)
}

fn mark(pods: &Pods<'_>, name: &str) -> String {
    format!("{}/{name}", pods.namespace)
}

/// Lets everything happen at its time.
async fn play(
    pods: &Pods<'_>,
    agent: &Agent,
    traces: &mut Traces,
    acts: Vec<(Duration, String, Fate)>,
) -> Result<()> {
    let began = Instant::now();
    for (when, name, fate) in acts {
        tokio::time::sleep(when.saturating_sub(began.elapsed())).await;
        traces.look(agent.pid);
        match fate {
            Fate::Deleted(grace) => pods.delete(&name, grace).await?,
            Fate::Killed => {
                for pid in with_variable(&format!("MARK={}", mark(pods, &name))) {
                    kill(pid);
                }
            }
        }
    }
    traces.look(agent.pid);
    Ok(())
}

/// It may have ended by itself.
fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

async fn list(pods: &Pods<'_>) -> Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(pods.stage.client.clone(), &pods.namespace);
    Ok(api.list(&ListParams::default()).await?.items)
}

/// Every pod comes to an end by itself, but those that no agent was killed with.
async fn all_end(pods: &Pods<'_>) -> Result<()> {
    let over = |pod: &Pod| matches!(phase(pod), "Succeeded" | "Failed");
    let began = Instant::now();
    let mut told = false;
    loop {
        let open: Vec<Pod> = list(pods).await?.into_iter().filter(|pod| !over(pod)).collect();
        if open.is_empty() {
            return Ok(());
        }
        if !told && began.elapsed() > Duration::from_secs(5) {
            told = true;
            // They were begun again after the last kill, or only then.
            for pod in open.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                pods.delete(pod.metadata.name.as_deref().unwrap_or_default(), Some(1)).await?;
            }
        }
        if began.elapsed() > Duration::from_secs(45) {
            let open: Vec<_> = open.iter().map(|pod| (&pod.metadata.name, &pod.status)).collect();
            bail!("{} pods have not ended: {}", open.len(), serde_json::to_string(&open)?);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Logs of pods that ended under agents long gone can be read, and lie on disk.
async fn logs_are_kept(pods: &Pods<'_>, home: &Path) -> Result<()> {
    let all = list(pods).await?;
    let done: Vec<_> = all.iter().filter(|pod| phase(pod) == "Succeeded").collect();
    ensure!(done.len() > PODS, "only {} pods succeeded", done.len());
    let files = files_below(&home.join("logs").join(&pods.namespace));
    for pod in &done {
        let (name, uid) = (pod.metadata.name.as_deref(), pod.metadata.uid.as_deref());
        let (name, uid) = (name.unwrap_or_default(), uid.unwrap_or_default());
        let of = |file: &Path| {
            let path = file.to_string_lossy();
            path.contains(uid) && path.contains("/main/")
        };
        let mut texts = files.iter().filter(|file| of(file)).map(fs::read_to_string);
        let line = format!("this is {name}\n");
        let said = texts.any(|text| text.is_ok_and(|text| text.contains(&line)));
        ensure!(said, "what {name} said is not on disk");
    }
    let first = done[0].metadata.name.as_deref().unwrap_or_default();
    let log = pods.logs(&[first, "-c", "main"]).await?;
    ensure!(log == format!("this is {first}\n"), "{log:?}");
    Ok(())
}

/// One agent's own descriptors, and its holder's, do not grow with the pods it has had.
async fn descriptors_come_back(
    pods: &Pods<'_>,
    agent: &Agent,
    luck: &mut Luck,
    traces: &mut Traces,
) -> Result<()> {
    let count = || {
        let holders = descendants(agent.pid).into_iter().map(|process| process.pid);
        holders.chain([agent.pid]).map(descriptors).sum::<usize>()
    };
    // Connections that stay open are there after the first few.
    let acts = begin(pods, luck, ROUNDS).await?;
    play(pods, agent, traces, acts).await?;
    remove_all(pods).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = count();
    for round in ROUNDS + 1..ROUNDS + 3 {
        let acts = begin(pods, luck, round).await?;
        play(pods, agent, traces, acts).await?;
        remove_all(pods).await?;
    }
    until(&format!("{before} descriptors"), async || Ok(count() <= before))
        .await
        .with_context(|| format!("there are {} now", count()))
}

/// Deletes what is there and waits until it is gone.
async fn remove_all(pods: &Pods<'_>) -> Result<()> {
    for pod in list(pods).await? {
        if pod.metadata.deletion_timestamp.is_none() {
            pods.delete(pod.metadata.name.as_deref().unwrap_or_default(), Some(1)).await?;
        }
    }
    until("no pods", async || Ok(list(pods).await?.is_empty())).await
}
