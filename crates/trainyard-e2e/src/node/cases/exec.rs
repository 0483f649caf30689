//! Programs run in containers with the real kubectl.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::Shared;
use super::look::{mark, processes, until};
use crate::check::contains;
use crate::harness::{Case, cases};
use crate::kubectl::Outcome;
use crate::node::{Agent, Pods, Stage};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["exec":
        output_and_code,
        same_surroundings,
        input,
        terminal,
        containers_terminal,
        refused,
        ends_with_its_caller,
        ends_with_its_pod,
    ]
}

async fn sleeper<'a>(stage: &'a Stage, name: &str) -> Result<Pods<'a>> {
    let pods = Pods::open(stage, name).await?;
    let more = json!({"containers": [
        {"env": [{"name": "COLOUR", "value": "blue"}], "workingDir": "/usr"}]});
    pods.shell("box", "exec sleep 600", more).await?;
    pods.until_phase("box", "Running").await?;
    Ok(pods)
}

async fn exec(pods: &Pods<'_>, words: &[&str], input: &str) -> Result<Outcome> {
    let all = [&["exec", "-n", &pods.namespace][..], words].concat();
    pods.stage.kubectl.run_with_input(&all, input).await
}

async fn output_and_code(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = sleeper(stage, "execcode").await?;
    let script = "echo out; echo err >&2; exit 9";
    let outcome = exec(&pods, &["box", "--", "sh", "-c", script], "").await?;
    ensure!(outcome.stdout == "out\n" && outcome.code == Some(9), "{outcome:?}");
    ensure!(outcome.stderr.starts_with("err\n"), "{outcome:?}");
    ensure!(outcome.stderr.contains("command terminated with exit code 9"), "{outcome:?}");
    let outcome = exec(&pods, &["box", "--", "sh", "-c", "kill -9 $$"], "").await?;
    ensure!(outcome.code == Some(137), "{outcome:?}");
    let many = exec(&pods, &["box", "--", "head", "-c", "3000000", "/dev/zero"], "").await?;
    ensure!(many.stdout.len() == 3_000_000, "{} bytes came", many.stdout.len());
    Ok(())
}

/// The container's environment, folder, name, user and processes.
async fn same_surroundings(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = sleeper(stage, "execenv").await?;
    let script =
        "echo $COLOUR $(pwd) $(hostname) $(id -u); cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    let outcome = exec(&pods, &["box", "-c", "main", "--", "sh", "-c", script], "").await?;
    let text = outcome.stdout_of_success()?;
    ensure!(text.starts_with("blue /usr box 0\n"), "{text}");
    ensure!(text.contains("sleep 600"), "it does not see the container's program: {text}");
    // What it writes, the container has.
    exec(&pods, &["box", "--", "sh", "-c", "echo x > /tmp/new"], "").await?.stdout_of_success()?;
    let seen = exec(&pods, &["box", "--", "cat", "/tmp/new"], "").await?.stdout_of_success()?;
    ensure!(seen == "x\n", "{seen:?}");
    Ok(())
}

async fn input(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = sleeper(stage, "execin").await?;
    let text = "some words\n".repeat(20_000);
    let outcome = exec(&pods, &["-i", "box", "--", "cat"], &text).await?;
    let back = outcome.stdout_of_success()?;
    ensure!(back == text, "{} bytes of {} came back", back.len(), text.len());
    let outcome =
        exec(&pods, &["-i", "box", "--", "sh", "-c", "read x; echo got $x; exit 4"], "y\n");
    let outcome = outcome.await?;
    ensure!(outcome.stdout == "got y\n" && outcome.code == Some(4), "{outcome:?}");
    // Without -i there is nothing to read.
    let outcome = exec(&pods, &["box", "--", "wc", "-c"], "not read").await?;
    ensure!(outcome.stdout.trim() == "0", "{outcome:?}");
    Ok(())
}

/// `kubectl exec -it` on a terminal, which `script` makes.
async fn terminal(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = sleeper(stage, "exectty").await?;
    let kubectl = stage.kubectl.command(&[]);
    let kubectl = kubectl.as_std();
    let line = format!(
        "stty rows 33 cols 77; {} exec -it -n {} box -- sh",
        kubectl.get_program().to_string_lossy(),
        pods.namespace
    );
    let mut command = tokio::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env_clear();
    command.envs(kubectl.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Someone who types: the shell must be there to read it.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let typed = b"test -t 0 && test -t 1 && echo tty-$((5 * 5)); echo name $(tty) $(ls /dev/pts); echo by-name >$(tty); echo size $(stty size); echo $TERM-$((6 * 7)); exit 5\n";
        stdin.write_all(typed).await?;
        stdin.flush().await?;
        let output = tokio::time::timeout(Duration::from_secs(30), child.wait_with_output());
        let output = output.await??;
        drop(stdin);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(text.contains("xterm-42") && text.contains("tty-25"), "{text}");
        // The container's own, whatever the machine has.
        ensure!(text.contains("name /dev/pts/0 0 ptmx") && text.contains("\nby-name"), "{text}");
        ensure!(text.contains("size 33 77"), "{text}");
        ensure!(output.status.code() == Some(5), "{:?} {text}", output.status);
    }
    Ok(())
}

/// A container that asks for a terminal has one; what it prints there is its log.
async fn containers_terminal(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "ownterminal").await?;
    let script = "tty; test -t 0 && test -t 2 && echo terminal; echo word >/dev/tty";
    pods.shell("box", script, json!({"containers": [{"tty": true, "stdin": true}]})).await?;
    pods.until_phase("box", "Succeeded").await?;
    let log = pods.logs(&["box"]).await?.replace('\r', "");
    ensure!(log == "/dev/pts/0\nterminal\nword\n", "{log:?}");
    Ok(())
}

async fn refused(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = sleeper(stage, "execno").await?;
    let outcome = exec(&pods, &["box", "--", "no-such-program"], "").await?;
    ensure!(!outcome.success() && outcome.stderr.contains("no-such-program"), "{outcome:?}");
    let outcome = exec(&pods, &["box", "--", "/etc"], "").await?;
    ensure!(!outcome.success() && outcome.stderr.contains("/etc"), "{outcome:?}");
    pods.shell("over", "true", json!({})).await?;
    pods.until_phase("over", "Succeeded").await?;
    let outcome = exec(&pods, &["over", "--", "true"], "").await?;
    ensure!(!outcome.success() && outcome.stderr.contains("completed pod"), "{outcome:?}");
    // Another way in is refused in plain words, which say what does the same.
    let words = ["attach", "-n", &pods.namespace, "box"];
    let error = stage.kubectl.run(&words).await?.stderr_of_failure()?;
    contains("attach", &error, &["attach is not available on a trainyard node", "kubectl logs -f"])
}

/// Nobody waits for it any more.
async fn ends_with_its_caller(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = sleeper(stage, "execgoes").await?;
    let mark = mark(stage.number());
    // In the container nothing hears that the caller has gone, but for the agent.
    let script = format!("trap '' HUP TERM; sleep {mark}");
    let words = ["exec", "-n", &pods.namespace, "box", "--", "sh", "-c", &script];
    let mut child = stage.kubectl.command(&words).stdout(Stdio::null()).spawn()?;
    until("its process", async || Ok(processes(&mark) == 1)).await?;
    child.kill().await?;
    until("the end of its process", async || Ok(processes(&mark) == 0)).await?;
    let pod = pods.get("box").await?;
    ensure!(super::look::runs(&pod, "main"), "the container was ended too");
    Ok(())
}

async fn ends_with_its_pod(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = sleeper(stage, "execend").await?;
    let mark = mark(stage.number());
    let script = format!("exec sleep {mark}");
    let words = ["exec", "-n", &pods.namespace, "box", "--", "sh", "-c", &script];
    let mut child = stage.kubectl.command(&words).stderr(Stdio::null()).spawn()?;
    until("its process", async || Ok(processes(&mark) == 1)).await?;
    pods.delete("box", Some(1)).await?;
    pods.until_gone("box").await?;
    ensure!(processes(&mark) == 0, "a program outlived its pod");
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await??;
    ensure!(!status.success(), "kubectl exec ended with {status}");
    Ok(())
}
