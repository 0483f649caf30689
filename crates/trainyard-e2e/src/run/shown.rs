//! What is shown, and what may be run.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::desk::{Desk, job};
use super::schema;
use crate::check::{contains, equal};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/shown":
        every_line_has_its_replica, several_jobs_and_what_they_use, generated_names, standard_input,
        a_folder, json_follows_its_schema, quiet, noise_is_folded, a_command, the_first_version,
        two_containers, folders_of_this_machine_are_named]
}

const PAIR: [(&str, u32, &str, &str); 2] = [
    ("Chief", 1, "echo leads; printf '1/2\\r2/2\\n'; sleep 0.3; echo done", "Never"),
    ("Worker", 2, "echo works; sleep 0.2", "Never"),
];

async fn every_line_has_its_replica(desk: &Desk) -> Result<()> {
    let file = desk.write("job.yaml", &[job("mnist", &PAIR)])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    let first = told.lines().next().unwrap_or_default();
    contains("the first line", first, &["mnist", "TFJob", "1 chief", "2 workers", "fit"])?;
    let lines = [
        "chief-0  | leads\n",
        "chief-0  | 2/2\n",
        "worker-0 | works\n",
        "worker-1 | works\n",
        "chief-0  | done\n",
        "mnist  succeeded in ",
    ];
    contains("what is told", &told, &lines)?;
    contains("the summary", &told, &["  chief-0   succeeded", "  logs:   "])?;
    ensure!(!told.contains('\x1b') && !told.contains('\r'), "no terminal, no escapes: {told:?}");
    Ok(())
}

async fn several_jobs_and_what_they_use(desk: &Desk) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words", "namespace": "team"},
        "data": {"WORD": "hello"}});
    let mut one = job("one", &[("Worker", 1, "echo $WORD", "Never")]);
    one["metadata"]["namespace"] = json!("team");
    one["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "words"}}]);
    let two = job("two", &[("MASTER", 1, "sleep 0.2; exit 3", "Never")]);
    let (first, second) = (desk.write("a.yaml", &[map, one])?, desk.write("b.yaml", &[two])?);
    let told = desk.run(&[&first, &second]).await?.with_code(1)?.stdout;
    let parts = ["one/worker-0 | hello\n", "one  succeeded", "two  failed", "exit code 3"];
    contains("two jobs", &told, &parts)
}

async fn generated_names(desk: &Desk) -> Result<()> {
    let mut job = job("x", &[("Worker", 1, "hostname", "Never")]);
    job["metadata"] = json!({"generateName": "mnist-"});
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    contains("a generated name", &told, &["worker-0 | mnist-"])
}

async fn standard_input(desk: &Desk) -> Result<()> {
    let text = job("mnist", &[("Worker", 1, "echo piped", "Never")]).to_string();
    let told = desk.feed(&["-"], &text).await?.with_code(0)?.stdout;
    contains("from standard input", &told, &["worker-0 | piped\n"])
}

async fn a_folder(desk: &Desk) -> Result<()> {
    let folder = desk.path("manifests");
    std::fs::create_dir(&folder)?;
    let mut job = job("mnist", &[("Worker", 1, "cat /c/x; echo", "Never")]);
    let pod = &mut job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "c", "configMap": {"name": "c"}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "c", "mountPath": "/c"}]);
    desk.write("manifests/job.yaml", &[job])?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"x": "from a map"}});
    desk.write("manifests/a.json", &[map])?;
    let told = desk.run(&["manifests"]).await?.with_code(0)?.stdout;
    contains("a folder", &told, &["worker-0 | from a map\n"])
}

async fn json_follows_its_schema(desk: &Desk) -> Result<()> {
    let roles = [
        ("Chief", 1, "echo leads; sleep 1", "Never"),
        ("Worker", 1, "echo \"No module named 'pandas'\"; exit 1", "Never"),
    ];
    let file = desk.write("job.yaml", &[job("mnist", &roles)])?;
    let told = desk.run(&["-o", "json", &file]).await?.with_code(1)?.stdout;
    let schema = schema::read()?;
    let mut kinds = Vec::new();
    let mut last = Value::Null;
    for line in told.lines() {
        let object: Value = serde_json::from_str(line)?;
        schema::check(&schema, &object)?;
        kinds.push(object["type"].as_str().unwrap_or_default().to_owned());
        if object["type"] == "summary" {
            last = object;
        }
    }
    for kind in ["start", "log", "state", "summary", "end"] {
        ensure!(kinds.iter().any(|one| one == kind), "no object of type {kind}: {kinds:?}");
    }
    equal("the first", kinds.first().map(String::as_str), Some("start"))?;
    equal("the last", kinds.last().map(String::as_str), Some("end"))?;
    equal("the result", &last["result"], &json!("failed"))?;
    equal("the culprit", &last["failure"]["replica"], &json!("worker-0"))?;
    contains("the hint", &last["failure"]["hint"].to_string(), &["--with pandas"])?;
    let nothing = schema::check(&schema, &json!({"type": "log", "time": "x"}));
    ensure!(nothing.is_err(), "the schema takes everything");
    Ok(())
}

async fn quiet(desk: &Desk) -> Result<()> {
    let file = desk.write("job.yaml", &[job("mnist", &PAIR)])?;
    let told = desk.run(&["-q", &file]).await?.with_code(0)?.stdout;
    ensure!(told.starts_with("mnist  succeeded"), "more than what came of it: {told}");
    ensure!(!told.contains("leads"), "replicas are heard: {told}");
    Ok(())
}

async fn noise_is_folded(desk: &Desk) -> Result<()> {
    let script =
        "echo '2026-11-15 08:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN'; echo epoch";
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, script, "Never")])])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    ensure!(!told.contains("oneDNN"), "noise is shown: {told}");
    contains("what is left", &told, &["worker-0 | epoch", "1 line of TensorFlow's own"])?;
    let told = desk.run(&["-v", &file]).await?.with_code(0)?.stdout;
    contains("with -v", &told, &["oneDNN", "kubectl --kubeconfig"])
}

async fn a_command(desk: &Desk) -> Result<()> {
    std::fs::write(
        desk.path("train.sh"),
        "echo $TF_CONFIG | cut -c1-12; echo at $PWD; echo x >made\n",
    )?;
    let words =
        ["--image", "host", "--workers", "2", "--ps", "1", "--chief", "--", "sh", "train.sh"];
    let told = desk.run(&words).await?.with_code(0)?.stdout;
    let here =
        format!("chief-0  | at {}", desk.path("").display().to_string().trim_end_matches('/'));
    let parts = ["train  TFJob · 1 chief · 1 ps · 2 workers", "worker-1 | {\"cluster\":", &here];
    contains("a command", &told, &parts)?;
    ensure!(desk.path("made").exists(), "the folder is not the working directory");
    let dry = ["--dry-run", "-o", "yaml"].into_iter().chain(words).collect::<Vec<_>>();
    let yaml = desk.run(&dry).await?.with_code(0)?.stdout;
    contains("the job", &yaml, &["kind: TFJob", "Chief:", "hostPath:", "replicas: 2"])?;
    let told = desk.feed(&["--image=host=host", "-"], &yaml).await?.with_code(0)?.stdout;
    contains("the same again", &told, &["chief-0  | at "])
}

async fn the_first_version(desk: &Desk) -> Result<()> {
    let object = json!({"apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "old"},
        "spec": {"replicaSpecs": [{"tfReplicaType": "MASTER", "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "tensorflow", "image": "test", "command": ["echo", "old"]}]}}}]}});
    let file = desk.write("job.yaml", &[object])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    contains("an old job", &told, &["| old\n"])
}

async fn two_containers(desk: &Desk) -> Result<()> {
    let mut job = job("mnist", &[("Worker", 1, "echo trains", "Never")]);
    let pod = &mut job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
    pod["initContainers"] =
        json!([{"name": "first", "image": "test", "command": ["echo", "prepares"]}]);
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    contains("both", &told, &["prepares\n", "worker-0 | trains\n"])
}

async fn folders_of_this_machine_are_named(desk: &Desk) -> Result<()> {
    let (data, code) = (desk.path("data-of-mine"), desk.path("code"));
    std::fs::create_dir(&data)?;
    std::fs::create_dir(&code)?;
    let mut job = job("mnist", &[("Worker", 1, "echo begins", "Never")]);
    let pod = &mut job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "data", "hostPath": {"path": data}},
        {"name": "code", "hostPath": {"path": code}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/d"},
        {"name": "code", "mountPath": "/c", "readOnly": true}]);
    let file = desk.write("job.yaml", &[job])?;
    let told = desk.run(&[&file]).await?.with_code(0)?.stdout;
    let writable = format!("* mnist worker mounts {} of this machine, writable\n", data.display());
    let read_only =
        format!("* mnist worker mounts {} of this machine, read-only\n", code.display());
    contains("the folders", &told, &[&writable, &read_only])?;
    let before = told.split("begins").next().unwrap_or_default();
    contains("before the start", before, &[&writable, &read_only])?;
    let told = desk.run(&["-q", &file]).await?.with_code(0)?.stdout;
    contains("quietly", &told, &[&writable])?;
    ensure!(!told.contains("read-only"), "{told}");
    // A command's own folder is no news.
    let told = desk.run(&["--image", "host", "--", "true"]).await?.with_code(0)?.stdout;
    ensure!(!told.contains("mounts"), "{told}");
    Ok(())
}
