//! Jobs of `batch/v1`: run, told of and judged as TFJobs are.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::desk::Desk;
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/batch": succeeds, fails, on_machines_of_their_own, indexed]
}

fn job(name: &str, script: &str, more: &[(&str, Value)]) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "test", "command": ["sh", "-c", script]}]}}},
    });
    for (field, value) in more {
        job["spec"][field] = value.clone();
    }
    job
}

async fn succeeds(desk: &Desk) -> Result<()> {
    let file = desk.write("job.yaml", &[job("one", "echo it runs", &[])])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    contains("a run", &told, &["one  Job · 1 pod", "it runs", "one  succeeded in"])
}

async fn fails(desk: &Desk) -> Result<()> {
    let script = "echo broken; exit 7";
    let file = desk.write("job.yaml", &[job("one", script, &[("backoffLimit", json!(0))])])?;
    let told = desk.run(&[&file]).await?.with_code(1)?.stdout;
    contains("a failure", &told, &["one  failed after", "ended with exit code 7", "broken"])?;
    let more = [("activeDeadlineSeconds", json!(2))];
    let file = desk.write("job.yaml", &[job("one", "sleep 100", &more)])?;
    let told = desk.run(&[&file]).await?.with_code(5)?.stdout;
    contains("out of time", &told, &["one  ran out of time after"])
}

/// As simpletfjob renders them: one for each machine, with the machine's network and name.
async fn on_machines_of_their_own(desk: &Desk) -> Result<()> {
    let on = |machine: &str, script: &str| {
        let mut job = job(machine, script, &[]);
        let spec = &mut job["spec"]["template"]["spec"];
        spec["hostNetwork"] = json!(true);
        spec["nodeName"] = json!(machine);
        job
    };
    let listen = "import socket; s = socket.create_server(('h10', 2222)); s.settimeout(60); \
                  c, _ = s.accept(); print(c.recv(9).decode())";
    let speak = "import socket, time
for _ in range(300):
    try:
        socket.create_connection(('h10', 2222)).sendall(b'hello')
        break
    except OSError:
        time.sleep(0.1)";
    let jobs = [
        on("h10", &format!("exec python3 -c \"{listen}\"")),
        on("h14", &format!("exec python3 -c \"{speak}\"")),
    ];
    let file = desk.write("jobs.yaml", &jobs)?;
    let told = desk.run(&["--nodes", "h10,h14", &file]).await?.with_code(0)?.stdout;
    contains("both", &told, &["h10  succeeded", "h14  succeeded", "hello"])
}

async fn indexed(desk: &Desk) -> Result<()> {
    let more = [
        ("completions", json!(2)),
        ("parallelism", json!(2)),
        ("completionMode", json!("Indexed")),
    ];
    let file = desk.write("job.yaml", &[job("two", "echo I am $JOB_COMPLETION_INDEX", &more)])?;
    let told = desk.run(&["--exit-code-from", "pod-1", &file]).await?.with_code(0)?.stdout;
    for index in 0..2 {
        let line = told.lines().find(|line| line.ends_with(&format!("I am {index}")));
        let line = line.unwrap_or_default();
        ensure!(line.contains(&format!("pod-{index}")), "pod-{index} does not speak in {told}");
    }
    Ok(())
}
