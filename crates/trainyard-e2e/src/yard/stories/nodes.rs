//! Nodes: what they have, and how they are taken out of use. They change what other stories stand on.

use anyhow::{Result, ensure};

use super::Story;
use super::pods::{last_row, pod, run};
use crate::check::{contains, equal};
use crate::harness::cases;
use crate::yard::bed::Bed;

pub(super) fn all() -> Vec<Story> {
    cases!["kubectl/nodes":
        shown, "get node -o wide, describe node", "`Ready`, capacity, GPUs as given, the pods on it";
        top, "top node", "processor and memory in use, and their share";
        cordoned, "cordon, uncordon", "`SchedulingDisabled`; new pods go elsewhere or wait";
        tainted, "taint node", "pods without the toleration stay away";
        drained, "drain", "its pods are evicted";
    ]
}

async fn shown(bed: &Bed, ns: &str) -> Result<()> {
    let table = bed.ok(&["get", "nodes", "-o", "wide"]).await?;
    for node in ["a", "b"] {
        let row = table.lines().find(|line| line.starts_with(&format!("{node} ")));
        let row: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
        ensure!(row.len() > 6 && row[1] == "Ready" && row[4].starts_with('v'), "{table}");
        ensure!(row[5].parse::<std::net::IpAddr>().is_ok(), "no address: {table}");
    }
    let mut object = pod("p", "sleep 600");
    object["spec"]["nodeSelector"] = serde_json::json!({"kubernetes.io/hostname": "a"});
    run(bed, ns, &object).await?;
    let told = bed.ok(&["describe", "node", "a"]).await?;
    let parts = [
        "Capacity:",
        "nvidia.com/gpu:",
        "Allocatable:",
        "Non-terminated Pods:",
        "Allocated resources:",
        "Lease:",
        "RenewTime:",
        "Ready ",
        "KubeletReady",
        ns,
    ];
    contains("describe", &told, &parts)
}

async fn top(bed: &Bed, _: &str) -> Result<()> {
    let table = bed.until(&["top", "node"], "both", |table| table.lines().count() >= 3).await?;
    let heads: Vec<&str> = table.lines().next().unwrap_or_default().split_whitespace().collect();
    equal("heads", heads, ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"])?;
    let row = last_row(&table);
    ensure!(row[1].ends_with('m') && row[2].ends_with('%') && row[3].ends_with("Mi"), "{table}");
    Ok(())
}

async fn cordoned(bed: &Bed, ns: &str) -> Result<()> {
    equal("cordon", bed.ok(&["cordon", "a"]).await?.trim(), "node/a cordoned")?;
    equal("again", bed.ok(&["cordon", "a"]).await?.trim(), "node/a already cordoned")?;
    let table = bed.ok(&["get", "node", "a"]).await?;
    ensure!(last_row(&table)[1] == "Ready,SchedulingDisabled", "{table}");
    run(bed, ns, &pod("elsewhere", "sleep 600")).await?;
    let words = ["-n", ns, "get", "pod", "elsewhere", "-o", "jsonpath={.spec.nodeName}"];
    equal("its node", bed.ok(&words).await?.as_str(), "b")?;
    bed.ok(&["cordon", "b"]).await?;
    bed.feed(&["-n", ns, "create", "-f", "-"], &pod("waiting", "sleep 600").to_string()).await?;
    let words = ["-n", ns, "describe", "pod", "waiting"];
    let told = bed.until(&words, "a reason", |told| told.contains("FailedScheduling")).await?;
    contains("describe", &told, &["0/2 nodes are available", "unschedulable"])?;
    equal("uncordon", bed.ok(&["uncordon", "a"]).await?.trim(), "node/a uncordoned")?;
    bed.ok(&["uncordon", "b"]).await?;
    let words = ["-n", ns, "wait", "--for=condition=Ready", "--timeout=50s", "pod/waiting"];
    bed.ok(&words).await.map(drop)
}

async fn tainted(bed: &Bed, ns: &str) -> Result<()> {
    let told = bed.ok(&["taint", "node", "a", "b", "kept=gpu:NoSchedule"]).await?;
    contains("taint", &told, &["node/a tainted", "node/b tainted"])?;
    let mut object = pod("p", "sleep 600");
    bed.feed(&["-n", ns, "create", "-f", "-"], &object.to_string()).await?;
    let words = ["-n", ns, "describe", "pod", "p"];
    let told = bed.until(&words, "a reason", |told| told.contains("FailedScheduling")).await?;
    contains("describe", &told, &["2 node(s) had untolerated taint"])?;
    object = pod("q", "sleep 600");
    object["spec"]["tolerations"] = serde_json::json!([{"key": "kept", "operator": "Exists"}]);
    run(bed, ns, &object).await?;
    contains("untaint", &bed.ok(&["taint", "node", "a", "b", "kept-"]).await?, &["untainted"])
}

async fn drained(bed: &Bed, ns: &str) -> Result<()> {
    let mut object = pod("p", "sleep 600");
    object["spec"]["nodeSelector"] = serde_json::json!({"kubernetes.io/hostname": "b"});
    run(bed, ns, &object).await?;
    let words =
        ["drain", "b", "--force", "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=50s"];
    let told = bed.ok(&words).await;
    bed.ok(&["uncordon", "b"]).await?;
    let told = told?;
    contains("drain", &told, &["node/b cordoned", "node/b drained"])?;
    ensure!(told.contains("pod/p evicted"), "{told}");
    let gone = bed.kubectl.run(&["-n", ns, "get", "pod", "p"]).await?.stderr_of_failure()?;
    contains("its pod", &gone, &["NotFound"])
}
