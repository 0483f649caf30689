//! Pods that run: what is shown of them, their logs, shells and ends.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Story;
use crate::check::{contains, equal};
use crate::harness::cases;
use crate::yard::bed::Bed;

pub(super) fn all() -> Vec<Story> {
    cases!["kubectl/pods":
        shown, "get pod -o wide", "`1/1 Running`, its address and its node";
        described, "describe pod", "state, node, and the events Scheduled, Pulled, Created, Started";
        waited_for, "wait --for=condition=Ready pod/X", "returns when the pod is ready";
        logs, "logs, logs -f, --tail, --since, --timestamps", "what the container has written";
        logs_by_label, "logs -l SELECTOR --prefix", "the logs of all pods that match";
        previous_logs, "logs --previous", "the log of the container's last life";
        exec, "exec X -- CMD", "output and exit code of a command in the container";
        exec_with_input, "exec -i X -- CMD", "the same with standard input";
        copied, "cp FILE X:/tmp", "files go in and come out, by the container's tar";
        ended, "get pod (ended)", "`Completed`, `Error`, `CrashLoopBackOff` and restarts, as on a cluster";
        deleted_now, "delete pod --now, --force", "its processes are gone when the command returns";
        missing_image, "get pod (no such image)", "`ErrImagePull`, with the remedies in its events";
        top, "top pod", "processor and memory in use";
    ]
}

/// A pod of one container that runs a shell.
pub(super) fn pod(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "test", "command": ["sh", "-c", script]}],
        },
    })
}

/// Makes a pod and waits until it is ready.
pub(super) async fn run(bed: &Bed, ns: &str, pod: &Value) -> Result<()> {
    bed.feed(&["-n", ns, "create", "-f", "-"], &pod.to_string()).await?;
    let target = format!("pod/{}", pod["metadata"]["name"].as_str().unwrap_or_default());
    bed.ok(&["-n", ns, "wait", "--for=condition=Ready", "--timeout=50s", &target]).await.map(drop)
}

/// Makes a pod and waits until it has ended.
async fn run_to_end(bed: &Bed, ns: &str, pod: &Value, phase: &str) -> Result<()> {
    bed.feed(&["-n", ns, "create", "-f", "-"], &pod.to_string()).await?;
    let target = format!("pod/{}", pod["metadata"]["name"].as_str().unwrap_or_default());
    let condition = format!("--for=jsonpath={{.status.phase}}={phase}");
    bed.ok(&["-n", ns, "wait", &condition, "--timeout=50s", &target]).await.map(drop)
}

/// The words of the last line.
pub(super) fn last_row(text: &str) -> Vec<&str> {
    text.lines().last().unwrap_or_default().split_whitespace().collect()
}

async fn shown(bed: &Bed, ns: &str) -> Result<()> {
    run(bed, ns, &pod("p", "sleep 600")).await?;
    let table = bed.ok(&["-n", ns, "get", "pod", "p", "-o", "wide"]).await?;
    let row = last_row(&table);
    ensure!(row.len() == 9 && row[..4] == ["p", "1/1", "Running", "0"], "{table}");
    ensure!(row[5].parse::<std::net::Ipv4Addr>().is_ok(), "no address: {table}");
    ensure!(["a", "b"].contains(&row[6]) && row[7..] == ["<none>", "<none>"], "{table}");
    let on_node = format!("spec.nodeName={},status.phase=Running", row[6]);
    let words = ["-n", ns, "get", "pod", "--field-selector", &on_node, "-o", "name"];
    equal("by node and phase", bed.ok(&words).await?.trim(), "pod/p")
}

async fn described(bed: &Bed, ns: &str) -> Result<()> {
    run(bed, ns, &pod("p", "sleep 600")).await?;
    let words = ["-n", ns, "describe", "pods", "p"];
    let told = bed.until(&words, "the events", |told| told.contains("Started")).await?;
    // Columns are as wide as their widest entry.
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = [
        "Status: Running",
        "State: Running",
        "Ready: True",
        "Restart Count: 0",
        "PodScheduled True",
        "Scheduled",
        "default-scheduler Successfully assigned",
        "Pulled",
        "Created",
        "kubelet",
    ];
    contains("describe", &told, &parts)
}

async fn waited_for(bed: &Bed, ns: &str) -> Result<()> {
    bed.feed(&["-n", ns, "create", "-f", "-"], &pod("p", "sleep 600").to_string()).await?;
    let told =
        bed.ok(&["-n", ns, "wait", "--for=condition=Ready", "--timeout=50s", "pod/p"]).await?;
    equal("wait", told.trim(), "pod/p condition met")
}

async fn logs(bed: &Bed, ns: &str) -> Result<()> {
    let script = "for i in 1 2 3; do echo line $i; done; echo bad >&2; sleep 2; echo last";
    run(bed, ns, &pod("p", script)).await?;
    // A follower stays until the container ends.
    let followed = bed.ok(&["-n", ns, "logs", "-f", "p"]).await?;
    contains("logs -f", &followed, &["line 1\nline 2\nline 3\n", "bad\n", "last\n"])?;
    equal("all", bed.ok(&["-n", ns, "logs", "p"]).await?, followed.as_str())?;
    equal("tail", bed.ok(&["-n", ns, "logs", "p", "--tail=1"]).await?.as_str(), "last\n")?;
    equal("since", bed.ok(&["-n", ns, "logs", "p", "--since=1h", "-c", "main"]).await?, followed)?;
    let stamped = bed.ok(&["-n", ns, "logs", "p", "--timestamps", "--tail=1"]).await?;
    let (time, text) = stamped.split_once(' ').unwrap_or_default();
    ensure!(time.parse::<jiff::Timestamp>().is_ok() && text == "last\n", "{stamped}");
    let refused = bed.kubectl.run(&["-n", ns, "logs", "p", "-c", "other"]).await?;
    contains("no such container", &refused.stderr_of_failure()?, &["other", "not valid for pod p"])
}

async fn logs_by_label(bed: &Bed, ns: &str) -> Result<()> {
    for name in ["p", "q"] {
        let mut pod = pod(name, &format!("echo I am {name}"));
        pod["metadata"]["labels"] = json!({"set": "both"});
        run_to_end(bed, ns, &pod, "Succeeded").await?;
    }
    let told = bed.ok(&["-n", ns, "logs", "-l", "set=both", "--prefix"]).await?;
    contains("logs -l", &told, &["[pod/p/main] I am p\n", "[pod/q/main] I am q\n"])
}

async fn previous_logs(bed: &Bed, ns: &str) -> Result<()> {
    // The second life is told from the first by what it finds.
    let script = "if [ -e /keep/was ]; then echo second; sleep 600; fi; touch /keep/was; \
                  echo first; exit 3";
    let mut object = pod("p", script);
    object["spec"]["restartPolicy"] = "OnFailure".into();
    object["spec"]["volumes"] = json!([{"name": "keep", "emptyDir": {}}]);
    object["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "keep", "mountPath": "/keep"}]);
    bed.feed(&["-n", ns, "create", "-f", "-"], &object.to_string()).await?;
    bed.until(&["-n", ns, "logs", "p"], "the second life", |log| log == "second\n").await?;
    equal("previous", bed.ok(&["-n", ns, "logs", "p", "--previous"]).await?.as_str(), "first\n")?;
    let table = bed.ok(&["-n", ns, "get", "pod", "p"]).await?;
    let row = last_row(&table);
    ensure!(row[..4] == ["p", "1/1", "Running", "1"], "{table}");
    let told = bed.ok(&["-n", ns, "describe", "pod", "p"]).await?;
    contains("describe", &told, &["Last State:     Terminated", "Exit Code:    3"])
}

async fn exec(bed: &Bed, ns: &str) -> Result<()> {
    run(bed, ns, &pod("p", "echo there > /tmp/file; sleep 600")).await?;
    let words = ["-n", ns, "exec", "p", "--", "cat", "/tmp/file"];
    bed.until(&words, "the file", |told| told == "there\n").await?;
    let outcome = bed.kubectl.run(&["-n", ns, "exec", "p", "--", "sh", "-c", "exit 7"]).await?;
    equal("exit code", outcome.code, Some(7))?;
    contains("exec", &outcome.stderr, &["terminated with exit code 7"])?;
    let outcome = bed.kubectl.run(&["-n", ns, "exec", "p", "--", "no-such-program"]).await?;
    ensure!(!outcome.success(), "{}", outcome.stdout);
    Ok(())
}

async fn exec_with_input(bed: &Bed, ns: &str) -> Result<()> {
    run(bed, ns, &pod("p", "sleep 600")).await?;
    let words = ["-n", ns, "exec", "-i", "p", "--", "sh", "-c", "tr a-z A-Z; echo err >&2"];
    let outcome = bed.kubectl.run_with_input(&words, "hello\n").await?;
    equal("output", outcome.stdout.as_str(), "HELLO\n")?;
    equal("errors", outcome.stderr.as_str(), "err\n")
}

async fn copied(bed: &Bed, ns: &str) -> Result<()> {
    run(bed, ns, &pod("p", "sleep 600")).await?;
    let (there, back) = (bed.dir().join("to-copy"), bed.dir().join("copied-back"));
    std::fs::write(&there, "cargo\n")?;
    bed.ok(&["-n", ns, "cp", &there.display().to_string(), "p:/tmp/cargo"]).await?;
    let told = bed.ok(&["-n", ns, "exec", "p", "--", "cat", "/tmp/cargo"]).await?;
    equal("in the container", told.as_str(), "cargo\n")?;
    bed.ok(&["-n", ns, "cp", "p:/tmp/cargo", &back.display().to_string()]).await?;
    equal("back again", std::fs::read_to_string(back)?.as_str(), "cargo\n")
}

async fn ended(bed: &Bed, ns: &str) -> Result<()> {
    run_to_end(bed, ns, &pod("good", "exit 0"), "Succeeded").await?;
    run_to_end(bed, ns, &pod("bad", "exit 3"), "Failed").await?;
    let table = bed.ok(&["-n", ns, "get", "pod"]).await?;
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).map(|line| line.split_whitespace().take(4).collect()).collect();
    equal("rows", rows, [["bad", "0/1", "Error", "0"], ["good", "0/1", "Completed", "0"]])?;
    let told = bed.ok(&["-n", ns, "describe", "pod", "bad"]).await?;
    contains(
        "describe",
        &told,
        &["Reason:       Error", "Exit Code:    3", "Status:           Failed"],
    )?;
    let mut again = pod("again", "exit 4");
    again["spec"]["restartPolicy"] = "Always".into();
    bed.feed(&["-n", ns, "create", "-f", "-"], &again.to_string()).await?;
    let words = ["-n", ns, "get", "pod", "again"];
    bed.until(&words, "a back-off", |table| table.contains("CrashLoopBackOff")).await.map(drop)
}

async fn deleted_now(bed: &Bed, ns: &str) -> Result<()> {
    // Deaf to SIGTERM, with half an hour to go.
    let deaf = "trap '' TERM; echo deaf; while true; do sleep 1; done";
    for flags in [&["--now"][..], &["--force", "--grace-period=0"]] {
        let mut object = pod("p", deaf);
        object["spec"]["terminationGracePeriodSeconds"] = 1800.into();
        run(bed, ns, &object).await?;
        let words = [&["-n", ns, "delete", "pod", "p", "--timeout=40s"][..], flags].concat();
        contains("delete", &bed.ok(&words).await?, &["pod \"p\" "])?;
        let gone = bed.kubectl.run(&["-n", ns, "get", "pod", "p"]).await?.stderr_of_failure()?;
        contains("get", &gone, &["NotFound"])?;
    }
    Ok(())
}

async fn missing_image(bed: &Bed, ns: &str) -> Result<()> {
    let mut object = pod("p", "true");
    object["spec"]["containers"][0]["image"] = "registry.example/nobody/knows:1".into();
    bed.feed(&["-n", ns, "create", "-f", "-"], &object.to_string()).await?;
    let pulls = |table: &str| table.contains("ErrImagePull") || table.contains("ImagePullBackOff");
    bed.until(&["-n", ns, "get", "pod", "p"], "the trouble", pulls).await?;
    let words = ["-n", ns, "describe", "pod", "p"];
    bed.until(&words, "a remedy", |told| told.contains("--image")).await.map(drop)
}

async fn top(bed: &Bed, ns: &str) -> Result<()> {
    run(bed, ns, &pod("p", "sleep 600")).await?;
    let words = ["-n", ns, "top", "pod", "p"];
    let table = bed.until(&words, "measurements", |table| table.lines().count() == 2).await?;
    ensure!(table.starts_with("NAME   CPU(cores)   MEMORY(bytes)"), "{table}");
    let row = last_row(&table);
    ensure!(row.len() == 3 && row[1].ends_with('m') && row[2].ends_with("Mi"), "{table}");
    let table = bed.ok(&["-n", ns, "top", "pod", "p", "--containers"]).await?;
    contains("by container", &table, &["POD", "NAME", "main"])
}
