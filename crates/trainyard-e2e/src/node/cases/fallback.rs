//! Where namespaces are forbidden: pods as plain processes, or on the machine's own network, each with an
//! address of the loopback interface.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::Api;
use serde_json::{Value, json};

use super::look::{mark, processes, runs};
use super::objects::{address, hindered, make, says};
use super::rootless::ordinary;
use super::{killed, reach};
use crate::check::{contains, equal};
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage, Who, exit_code};

const LONGEST: Duration = Duration::from_mins(3);
const PROCESSES: &str = "--sandbox=require:processes";
const LOOPBACK: &str = "--network=loopback";

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    let mut all = cases!["fallback":
        agents_are_killed,
        agents_are_stopped,
        forbidden,
    ];
    for (name, flag) in [("loopback", LOOPBACK), ("processes", PROCESSES)] {
        for (who, word) in [(Who::Me, ""), (ordinary(), "_as_user")] {
            let name = format!("fallback/{name}{word}");
            all.push(Case::new(name, async move |stage: &Stage| on(stage, who, flag).await));
        }
    }
    within(LONGEST, all)
}

fn level(who: Who, flag: &str) -> AgentOptions {
    AgentOptions { who, flags: vec![flag.to_owned()], ..AgentOptions::default() }
}

async fn agents_are_killed(stage: &Stage) -> Result<()> {
    for (who, flag) in [(Who::Me, PROCESSES), (ordinary(), PROCESSES), (ordinary(), LOOPBACK)] {
        let words = || format!("{who:?} {flag}");
        killed::agent(stage, level(who, flag)).await.with_context(words)?;
        killed::holder(stage, level(who, flag)).await.with_context(words)?;
    }
    Ok(())
}

async fn agents_are_stopped(stage: &Stage) -> Result<()> {
    killed::stopped(stage, level(ordinary(), PROCESSES)).await
}

fn here() -> Value {
    json!({"nodeSelector": {"kubernetes.io/hostname": "alder"}})
}

/// What pods need most, on one agent.
async fn on(stage: &Stage, who: Who, flag: &str) -> Result<()> {
    let agent = Agent::start(stage, level(who, flag)).await?;
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let labels = nodes.get("alder").await?.metadata.labels.unwrap_or_default();
    let label = |name: &str| labels.get(name).map(String::as_str);
    equal("network", label("trainyard.dev/network"), Some("loopback"))?;
    let sandbox = if flag == PROCESSES { "processes" } else { "namespaces" };
    equal("sandbox", label("trainyard.dev/sandbox"), Some(sandbox))?;
    contains("log", &agent.log_text(), &[sandbox, "loopback"])?;
    let pods = Pods::open(stage, "fallback").await?;
    equal("hello", says(&pods, "hello", "echo hello; pwd", here()).await?.as_str(), "hello\n/\n")?;
    pods.shell("fails", "echo oh; exit 7", here()).await?;
    let pod = pods.until_phase("fails", "Failed").await?;
    equal("exit code", exit_code(&pod, "main"), Some(7))?;
    one_port(&pods).await?;
    reach::opens(&pods, &here()).await?;
    all_ends(&pods).await?;
    if flag == PROCESSES {
        unmountable(&pods).await?;
    }
    agent.check()?;
    agent.stop().await
}

/// Prints its name to whoever connects.
const SERVE: &str = "exec python3 -c '
import socket, os
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((\"\", 2222))
s.listen()
while True:
    c, _ = s.accept()
    c.sendall((os.environ[\"HOSTNAME\"] + \"\\n\").encode())
    c.close()
'";

/// Prints what the server at each name says.
const ASK: &str = "
import socket, sys, time
for name in sys.argv[1:]:
    end = time.time() + 20
    while True:
        try:
            c = socket.create_connection((name, 2222), timeout=5)
            print(c.makefile().read().strip(), flush=True)
            break
        except OSError as error:
            if time.time() > end:
                sys.exit(name + str(error))
            time.sleep(0.1)
";

/// Two pods listen on the same port, and are found by name.
async fn one_port(pods: &Pods<'_>) -> Result<()> {
    for name in ["one", "two"] {
        let mut spec = here();
        spec["restartPolicy"] = json!("Never");
        spec["containers"] =
            json!([{"name": "main", "image": "test", "command": ["sh", "-c", SERVE]}]);
        let pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
        make::<Pod>(pods, pod).await?;
        let service = json!({"metadata": {"name": name}, "spec": {"clusterIP": "None",
            "selector": {"app": name}, "ports": [{"port": 2222}]}});
        make::<Service>(pods, service).await?;
    }
    let (one, two) = (address(pods, "one").await?, address(pods, "two").await?);
    ensure!(one.starts_with("127.77.") && two.starts_with("127.77.") && one != two, "{one} {two}");
    let long = format!("two.{}.svc.cluster.local", pods.namespace);
    let mut asks = here();
    let command = json!(["python3", "-c", ASK, one, two, "one", long]);
    asks["containers"] = json!([{"command": command}]);
    let said = says(pods, "asks", "", asks).await?;
    equal("answers", said.as_str(), "one\ntwo\none\ntwo\n")?;
    let words = ["exec", "-n", &pods.namespace, "one", "--", "sh", "-c", "echo $HOSTNAME; exit 3"];
    let outcome = pods.stage.kubectl.run(&words).await?;
    equal("exec", (outcome.code, outcome.stdout.as_str()), (Some(3), "one\n"))?;
    for name in ["one", "two"] {
        pods.delete(name, Some(1)).await?;
    }
    pods.until_gone("one").await?;
    pods.until_gone("two").await
}

/// A deleted pod takes along what it started, wherever that has gone.
async fn all_ends(pods: &Pods<'_>) -> Result<()> {
    let mark = mark(pods.stage.number());
    let script = format!(
        "trap '' TERM; (setsid sh -c 'sleep {mark} & sleep {mark}' &); sleep {mark} & \
         echo up; while :; do sleep {mark}; done"
    );
    pods.shell("busy", &script, here()).await?;
    pods.until("busy", "running", |pod| runs(pod, "main")).await?;
    super::look::until("its processes", async || Ok(processes(&mark) >= 4)).await?;
    pods.delete("busy", Some(1)).await?;
    pods.until_gone("busy").await?;
    equal("processes", processes(&mark), 0)
}

/// Plain processes see the machine's files: nothing can be mounted for them, and that is said.
async fn unmountable(pods: &Pods<'_>) -> Result<()> {
    let volume = |source: Value, name: &str| {
        let mut spec = here();
        let mut volume = source;
        volume["name"] = json!(name);
        spec["volumes"] = json!([volume]);
        spec["containers"] =
            json!([{"volumeMounts": [{"name": name, "mountPath": format!("/{name}")}]}]);
        spec
    };
    pods.shell("disk", "true", volume(json!({"emptyDir": {}}), "disk")).await?;
    let words = hindered(pods, "disk", "main", "CreateContainerError").await?;
    contains("disk", &words, &["/disk", "plain processes"])?;
    pods.shell("memory", "true", volume(json!({"emptyDir": {"medium": "Memory"}}), "memory"))
        .await?;
    let event = pods.until_event("memory", "plain processes").await?;
    contains("memory", &event, &["memory"])?;
    for name in ["disk", "memory"] {
        pods.delete(name, Some(0)).await?;
    }
    Ok(())
}

/// Where user namespaces are forbidden, what is required is refused, and what is not falls back.
async fn forbidden(stage: &Stage) -> Result<()> {
    let options = |flags: &[&str]| AgentOptions {
        who: Who::Confined,
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        ..AgentOptions::default()
    };
    let refused = Agent::start(stage, options(&["--sandbox=require:namespaces"])).await;
    let words = refused.err().context("it runs without what it requires")?;
    let required = "--sandbox=require:namespaces was required and cannot be had here";
    let words = format!("{words:#}");
    contains("why", &words, &[required, "making a user namespace", "max_user_namespaces"])?;
    let agent = Agent::start(stage, options(&[])).await?;
    contains("log", &agent.log_text(), &["sandbox=\"processes\"", "network=\"loopback\""])?;
    let pods = Pods::open(stage, "forbidden").await?;
    equal("hello", says(&pods, "hello", "echo hello", here()).await?.as_str(), "hello\n")?;
    one_port(&pods).await?;
    all_ends(&pods).await?;
    agent.stop().await
}
