//! Every exit code, and what is said with it.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;

use super::desk::{Desk, job, with_claim};
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/ends":
        failed, peers_are_told_apart, killed_by_a_signal, usage, invalid, something_is_missing,
        does_not_fit, deadline, timeout, of_one_replica, restarts_with_their_cause,
        a_second_run_goes_on, an_image_that_means_nothing]
}

async fn failed(desk: &Desk) -> Result<()> {
    let script = "for i in $(seq 30); do echo line $i; done; exit 7";
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, script, "Never")])])?;
    let told = desk.run(&[&file]).await?.with_code(1)?;
    let parts = [
        "mnist  failed after",
        "worker-0 ended with exit code 7, the program ended with an error",
        "  last lines of worker-0:\n    line 11\n",
        "    line 30\n",
    ];
    contains("a failure", &told.stdout, &parts)?;
    ensure!(told.stderr.is_empty(), "said twice: {}", told.stderr);
    Ok(())
}

async fn peers_are_told_apart(desk: &Desk) -> Result<()> {
    let both = [
        ("Chief", 1, "sleep 2; echo 'UnavailableError: Socket closed'; exit 1", "Never"),
        ("Worker", 1, "sleep 1; echo broken; exit 5", "ExitCode"),
    ];
    let mut job = job("mnist", &both);
    // Both are to be heard of before the job's end takes the other away.
    job["spec"]["enableDynamicWorker"] = json!(true);
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(1)?.stdout;
    contains("the first", &told, &["worker-0 ended with exit code 5", "because of it: chief-0"])
}

async fn killed_by_a_signal(desk: &Desk) -> Result<()> {
    let file =
        desk.write("job.yaml", &[job("mnist", &[("Worker", 1, "kill -SEGV $$$$", "Never")])])?;
    let told = desk.run(&[&file]).await?.with_code(1)?.stdout;
    contains("a signal", &told, &["exit code 139 (SIGSEGV), the program crashed", "hint:"])
}

async fn usage(desk: &Desk) -> Result<()> {
    desk.run(&[]).await?.with_code(2)?;
    desk.run(&["--no-such-flag"]).await?.with_code(2)?;
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, "true", "Never")])])?;
    let told = desk.run(&["--exit-code-from", "ps-0", &file]).await?.with_code(2)?.stderr;
    contains("no such replica", &told, &["replicas are: worker-0"])?;
    desk.run(&["--image", "host", &file]).await?.with_code(2)?;
    Ok(())
}

async fn invalid(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "true", "Never")]);
    job["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = json!("Sometimes");
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(3)?;
    contains("invalid", &told.stderr, &["job.yaml: document 1", "restartPolicy", "Sometimes"])?;
    ensure!(told.stdout.is_empty(), "something is said before: {}", told.stdout);
    // What a job uses is looked at before it is said to fit, too.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"},
        "date": {"a": "b"}});
    let good = super::desk::job("mnist", &[("Worker", 1, "true", "Never")]);
    let file = desk.write("job.yaml", &[good, map])?;
    let told = desk.run(&[&file]).await?.with_code(3)?;
    contains("invalid", &told.stderr, &["job.yaml: document 2", "date"])?;
    ensure!(told.stdout.is_empty(), "something is said before: {}", told.stdout);
    ensure!(!desk.path("data/trainyard/runs/mnist/claims").exists(), "claims were made");
    std::fs::write(desk.path("bad.yaml"), "a: [1\n")?;
    let told = desk.run(&["bad.yaml"]).await?.with_code(3)?.stderr;
    contains("no YAML", &told, &["bad.yaml: document 1, line "])
}

async fn something_is_missing(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "true", "Never")]);
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"] =
        json!([{"name": "x", "secret": {"secretName": "gcp"}}]);
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(3)?.stderr;
    contains("missing", &told, &["worker-0 uses Secret \"gcp\", which is in no file"])
}

async fn does_not_fit(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 2, "echo ran", "Never")]);
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"nvidia.com/gpu": 1}});
    let file = desk.write("job.yaml", &[job.clone()])?;
    let told = desk.run(&[&file]).await?.with_code(4)?;
    let parts =
        ["mnist asks for 2 nvidia.com/gpu and this machine has none", "--without nvidia.com/gpu"];
    contains("no device", &told.stderr, &parts)?;
    ensure!(!told.stdout.contains("ran"), "something was started: {}", told.stdout);
    desk.run(&["--without", "nvidia.com/gpu", &file]).await?.with_code(0)?;
    desk.run(&["--resource", "nvidia.com/gpu=2", &file]).await?.with_code(0)?;
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "3"}});
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&["--node-cpu", "4", &file]).await?.with_code(4)?.stderr;
    let parts =
        ["6.0 cpu in 2 pods", "2.0 too little", "1 worker instead of 2", "cpu 2 in each pod"];
    contains("too large", &told, &parts)
}

async fn deadline(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "echo begins; sleep 100", "Never")]);
    job["spec"]["runPolicy"] = json!({"activeDeadlineSeconds": 2});
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(5)?.stdout;
    contains("out of time", &told, &["mnist  ran out of time after"])
}

async fn timeout(desk: &Desk) -> Result<()> {
    let script = "trap 'echo told to end; exit 0' TERM; echo begins; sleep 100 & wait";
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, script, "Never")])])?;
    let told = desk.run(&["--timeout", "15s", &file]).await?.with_code(5)?.stdout;
    let parts = [
        "worker-0 | begins",
        "time of --timeout is over",
        "worker-0 | told to end",
        "ran out of time",
    ];
    contains("a time-out", &told, &parts)
}

async fn of_one_replica(desk: &Desk) -> Result<()> {
    let roles = [("Chief", 1, "sleep 1", "Never"), ("Evaluator", 1, "exit 42", "Never")];
    let mut job = job("mnist", &roles);
    job["spec"]["runPolicy"] = json!({"cleanPodPolicy": "None"});
    let file = desk.write("job.yaml", &[job])?;
    desk.run(&["--exit-code-from", "evaluator-0", &file]).await?.with_code(42)?;
    Ok(())
}

async fn restarts_with_their_cause(desk: &Desk) -> Result<()> {
    let script = "echo try; test -e /claim/x && exit 0; touch /claim/x; exit 9";
    let job = with_claim(job("mnist", &[("Worker", 1, script, "OnFailure")]), "state");
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    let parts = [
        "claim \"state\" is in no file",
        "worker-0 restarts: exit code 9, the program ended with an error",
        "succeeded in",
        "1 restart",
    ];
    contains("a restart", &told, &parts)
}

async fn a_second_run_goes_on(desk: &Desk) -> Result<()> {
    let script = "cat /claim/step 2>/dev/null; echo step 5 > /claim/step";
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "model"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "azurefile",
                 "resources": {"requests": {"storage": "1Gi"}}}});
    let job = with_claim(job("mnist", &[("Worker", 1, script, "Never")]), "model");
    let file = desk.write("job.yaml", &[claim, job])?;
    let first = desk.run(&[&file]).await?.with_code(0)?.stdout;
    ensure!(!first.contains("| step 5"), "a claim of nobody: {first}");
    contains("where it is", &first, &["claims: "])?;
    let second = desk.run(&[&file]).await?.with_code(0)?.stdout;
    contains("the second", &second, &["worker-0 | step 5"])?;
    let fresh = desk.run(&["--fresh", &file]).await?.with_code(0)?.stdout;
    ensure!(!fresh.contains("| step 5"), "--fresh forgets nothing: {fresh}");
    Ok(())
}

async fn an_image_that_means_nothing(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "true", "Never")]);
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] =
        json!("registry.example/me/mnist:1");
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(4)?.stderr;
    let parts =
        ["container \"tensorflow\" of worker: nothing on this machine stands for image", "--image"];
    contains("an unknown image", &told, &parts)
}
