//! Runs that can never succeed: each ends as soon as that is known, with the reason and the line to type.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use super::desk::{Desk, job};
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/never":
        images_that_nothing_stands_for_end_the_run_before_anything_is_said,
        an_environment_that_cannot_be_made_ends_the_run, a_key_that_no_config_map_has, a_node_that_nothing_is, jobs_that_nothing_starts,
        a_command_that_is_not_there_says_what_is, a_crash_loop_has_a_bound,
        workers_without_a_chief_all_end, a_reader_that_leaves_is_no_success, a_terminal_that_goes,
        flags_reach_the_jobs_of_manifests, folders_of_this_machine_are_refused]
}

/// Long enough for a loaded machine, and no attempt to start a pod takes less.
const AT_ONCE: Duration = Duration::from_secs(20);

async fn images_that_nothing_stands_for_end_the_run_before_anything_is_said(
    desk: &Desk,
) -> Result<()> {
    let open = "<DOCKER_USERNAME>/tf-mnist:gpu";
    let mapped = format!("--image={open}=python:3");
    let bare = json!({"name": "tensorflow", "image": open});
    let with = |image: &str| json!({"name": "tensorflow", "image": image, "command": ["true"]});
    for (container, flags, code, said) in [
        (with(open), vec![], 4, "--image '<DOCKER_USERNAME>/tf-mnist:gpu=tensorflow/tensorflow:"),
        (bare, vec![mapped.as_str()], 4, "entrypoint = [\"python\", \"/app/main.py\"]"),
        (with("me/x:1"), vec!["--image=me/x:1=env:nowhere"], 4, "python3 -m venv "),
        (with("My Image"), vec![], 3, "is no name of an image"),
        (with("tensorflow/tensorflow:nope"), vec![], 4, "names no release"),
    ] {
        let mut job = job("mnist", &[("Worker", 1, "true", "Never")]);
        job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] =
            json!([container]);
        let file = desk.write("job.yaml", &[job])?;
        let began = Instant::now();
        let told = desk.run(&[&flags[..], &[&file]].concat()).await?.with_code(code)?;
        contains("the line to type", &told.stderr, &["job.yaml: document 1", said])?;
        ensure!(told.stdout.is_empty(), "something is said before: {}", told.stdout);
        ensure!(began.elapsed() < AT_ONCE, "it took {:?}", began.elapsed());
    }
    let words = ["-o", "json", "--image=env:nowhere", "--", "python", "x.py"];
    let told = desk.run(&words).await?.with_code(4)?;
    contains("for programs", &told.stdout, &["\"reason\":\"CannotRun\"", "\"exitCode\":4"])?;
    contains("a folder that is no environment", &told.stderr, &["python3 -m venv "])
}

async fn an_environment_that_cannot_be_made_ends_the_run(desk: &Desk) -> Result<()> {
    let cache = [("XDG_CACHE_HOME", desk.path("cache"))];
    let words = ["--with=six", "--offline", "--image=python:3", "--", "python", "-c", "print(1)"];
    let told = desk.run_with(&words, &cache).await?.with_code(4)?.stderr;
    contains("no network is allowed", &told, &["container \"tensorflow\" of worker", "offline"])
}

async fn a_key_that_no_config_map_has(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "true", "Never")]);
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"] = json!([
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "b"}}}]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
        "data": {"a": "1"}});
    let file = desk.write("job.yaml", &[job, map])?;
    let told = desk.run(&[&file]).await?.with_code(4)?.stdout;
    contains("the reason", &told, &["worker-0 waits: ", "settings", "cannot be run"])
}

async fn a_node_that_nothing_is(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "true", "Never")]);
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] =
        json!({"disk": "fast"});
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(4)?.stderr;
    contains("the reason", &told, &["no node of this run takes the pods of mnist", "nodeSelector"])
}

async fn jobs_that_nothing_starts(desk: &Desk) -> Result<()> {
    let none = job("mnist", &[("Worker", 0, "true", "Never")]);
    let file = desk.write("job.yaml", &[none])?;
    let told = desk.run(&[&file]).await?.with_code(3)?.stderr;
    contains("no replicas", &told, &["no replicas at all", "replicas: 1"])?;
    let mut suspended = job("mnist", &[("Worker", 1, "true", "Never")]);
    suspended["spec"]["runPolicy"] = json!({"suspend": true});
    let file = desk.write("job.yaml", &[suspended])?;
    let told = desk.run(&[&file]).await?.with_code(3)?.stderr;
    contains("suspended", &told, &["spec.runPolicy.suspend", "nobody resumes it"])
}

async fn a_command_that_is_not_there_says_what_is(desk: &Desk) -> Result<()> {
    std::fs::write(desk.path("plain.sh"), "echo never\n")?;
    for (program, parts) in [
        ("no-such-program", ["exit code 127", "no-such-program", "$PATH (/"]),
        ("./no-such.sh", ["exit code 127", "./no-such.sh", "plain.sh"]),
        ("./plain.sh", ["exit code 126", "./plain.sh", "permission denied"]),
    ] {
        let told = desk.run(&["--image=host", "--", program]).await?.with_code(1)?.stdout;
        contains(program, &told, &parts)?;
        let words = ["-o", "json", "--image=host", "--", program];
        let told = desk.run(&words).await?.with_code(1)?.stdout;
        contains(program, &told, &[program, parts[2]])?;
    }
    Ok(())
}

async fn a_crash_loop_has_a_bound(desk: &Desk) -> Result<()> {
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, "exit 3", "OnFailure")])])?;
    let told = desk.run(&["--max-restarts=1", &file]).await?.with_code(1)?.stdout;
    let parts = [
        "exit code 3",
        "worker-0 failed 2 times in a row, the last time with exit code 3",
        "mnist  failed after",
        "worker-0 ended with exit code 3",
    ];
    contains("a loop", &told, &parts)?;
    ensure!(!told.contains("container="), "the kubelet's own words are shown: {told}");
    ensure!(told.matches("* worker-0 ").count() <= 2, "a step is told twice: {told}");
    Ok(())
}

async fn workers_without_a_chief_all_end(desk: &Desk) -> Result<()> {
    let script = "case $HOSTNAME in *-0) exit 0;; esac; sleep 3; echo end of $HOSTNAME";
    let words = ["--image=host", "--workers=3", "--", "sh", "-c", script];
    let told = desk.run(&words).await?.with_code(0)?.stdout;
    contains("all of them", &told, &["worker-1 | end of", "worker-2 | end of"])?;
    let words = ["--image=host", "--", "sh", "-c", "echo $TF_CONFIG"];
    let told = desk.run(&words).await?.with_code(0)?.stdout;
    contains("one", &told, &["\"cluster\":{\"worker\":[", "\"index\":0"])
}

async fn a_reader_that_leaves_is_no_success(desk: &Desk) -> Result<()> {
    let script = "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 1; done";
    let mut command = desk.command(&["run", "--image=host", "--", "sh", "-c", script]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().context("a run")?;
    let mut out = tokio::io::BufReader::new(child.stdout.take().context("a pipe")?);
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut out, &mut line).await?;
    drop(out);
    let status = child.wait().await?;
    ensure!(status.code() == Some(141), "{status:?}");
    Ok(())
}

async fn a_terminal_that_goes(desk: &Desk) -> Result<()> {
    let script = "trap 'echo told to end; exit 0' TERM; echo begins; sleep 100 & wait";
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, script, "Never")])])?;
    let mut running = desk.start(&[&file])?;
    running.until("worker-0 | begins").await?;
    running.signal(Signal::HUP)?;
    let told = running.end().await?.with_code(130)?.stdout;
    let parts = ["stopping (SIGHUP)", "worker-0 | told to end", "mnist  interrupted after"];
    contains("a hangup", &told, &parts)
}

async fn flags_reach_the_jobs_of_manifests(desk: &Desk) -> Result<()> {
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, "echo A=$A", "Never")])])?;
    let told = desk.run(&["-e", "A=1", "--name", "digits", &file]).await?.with_code(0)?.stdout;
    contains("a variable and a name", &told, &["worker-0 | A=1", "digits  succeeded"])?;
    for flag in ["--workers=2", "--ps=1", "--chief", "--evaluator"] {
        let told = desk.run(&[flag, &file]).await?.with_code(2)?.stderr;
        contains(flag, &told, &["is for a command after `--`", "replicas into the file"])?;
    }
    Ok(())
}

/// Seen to succeed before: a manifest that mounts `/` writable ran without a word.
async fn folders_of_this_machine_are_refused(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "true", "Never")]);
    let pod = &mut job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "all", "hostPath": {"path": "/"}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "all", "mountPath": "/host"}]);
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&["--no-host-paths", &file]).await?.with_code(3)?;
    let parts =
        ["job.yaml: document 1", "mnist worker mounts / of this machine, writable", "hint: "];
    contains("the reason", &told.stderr, &parts)?;
    ensure!(told.stdout.is_empty(), "something is said before: {}", told.stdout);
    Ok(())
}
