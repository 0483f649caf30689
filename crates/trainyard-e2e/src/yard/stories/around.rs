//! The cluster itself: who one is, what there is, and what is not done.

use anyhow::{Result, ensure};
use serde_json::json;

use super::Story;
use crate::check::contains;
use crate::control_plane::KUBERNETES_VERSION;
use crate::forward::{self, Forwarded};
use crate::harness::cases;
use crate::yard::bed::Bed;

pub(super) fn all() -> Vec<Story> {
    cases!["kubectl/around":
        cluster_info, "cluster-info", "where the API is";
        version, "version", "the release of Kubernetes whose API is served";
        api_resources, "api-resources, api-versions", "every kind, with short names";
        whoami, "auth whoami, auth can-i --list", "the yard's administrator may do everything";
        raw, "get --raw /readyz", "`ok`; so do /livez, /healthz, /version, /metrics";
        get_all, "get all", "pods, services and jobs at once";
        fresh, "get ns,sc", "what a new yard has: namespaces default, kube-system, kubeflow; a default class";
        server_side, "apply --server-side", "refused, and what does the same";
        attach, "attach", "refused, and what does the same";
        port_forward, "port-forward pod/… :7000", "a port of a pod on this machine";
        misspelt, "create -f (invalid)", "which field, what it holds, what is allowed";
    ]
}

async fn cluster_info(bed: &Bed, _: &str) -> Result<()> {
    let told = bed.ok(&["cluster-info"]).await?;
    contains("cluster-info", &told, &["Kubernetes control plane", "is running at", &bed.url])
}

async fn version(bed: &Bed, _: &str) -> Result<()> {
    let told = bed.ok(&["version"]).await?;
    let (major, _) = KUBERNETES_VERSION.rsplit_once('.').unwrap_or_default();
    contains("version", &told, &["Server Version: v", major])
}

async fn api_resources(bed: &Bed, _: &str) -> Result<()> {
    let told = bed.ok(&["api-resources", "--verbs=list,watch,create,delete", "-o", "name"]).await?;
    for name in ["pods", "tfjobs.kubeflow.org", "jobs.batch", "leases.coordination.k8s.io"] {
        ensure!(told.lines().any(|line| line == name), "{name} in {told}");
    }
    let told = bed.ok(&["api-versions"]).await?;
    for name in ["v1", "kubeflow.org/v1", "kubeflow.org/v1alpha2", "metrics.k8s.io/v1beta1"] {
        ensure!(told.lines().any(|line| line == name), "{name} in {told}");
    }
    Ok(())
}

async fn whoami(bed: &Bed, _: &str) -> Result<()> {
    let told = bed.ok(&["auth", "whoami"]).await?;
    contains("whoami", &told, &["Username", "trainyard-admin", "system:masters"])?;
    let told = bed.ok(&["auth", "can-i", "--list"]).await?;
    contains("can-i --list", &told, &["*.*", "[*]"])?;
    let told = bed.ok(&["auth", "can-i", "create", "pods", "--subresource=exec"]).await?;
    ensure!(told.trim() == "yes", "{told}");
    Ok(())
}

async fn raw(bed: &Bed, _: &str) -> Result<()> {
    for path in ["/readyz", "/livez", "/healthz"] {
        ensure!(bed.ok(&["get", "--raw", path]).await? == "ok", "{path}");
    }
    contains("version", &bed.ok(&["get", "--raw", "/version"]).await?, &["gitVersion"])?;
    contains("metrics", &bed.ok(&["get", "--raw", "/metrics"]).await?, &["# TYPE"])
}

async fn get_all(bed: &Bed, ns: &str) -> Result<()> {
    super::pods::run(bed, ns, &super::pods::pod("p", "sleep 600")).await?;
    let told = bed.ok(&["-n", ns, "get", "all"]).await?;
    contains("get all", &told, &["pod/p", "1/1", "Running"])
}

async fn fresh(bed: &Bed, _: &str) -> Result<()> {
    let told = bed.ok(&["get", "ns", "-o", "name"]).await?;
    for name in ["default", "kube-system", "kubeflow"] {
        contains("namespaces", &told, &[&format!("namespace/{name}\n")])?;
    }
    let told = bed.ok(&["get", "sc"]).await?;
    contains("classes", &told, &["(default)"])
}

async fn server_side(bed: &Bed, ns: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let words = ["-n", ns, "apply", "--server-side", "-f", "-"];
    let refused = bed.kubectl.run_with_input(&words, &object.to_string()).await?;
    contains("a refusal", &refused.stderr_of_failure()?, &["server-side", "kubectl apply"])
}

async fn attach(bed: &Bed, ns: &str) -> Result<()> {
    super::pods::run(bed, ns, &super::pods::pod("p", "sleep 600")).await?;
    let told = bed.kubectl.run(&["-n", ns, "attach", "p"]).await?.stderr_of_failure()?;
    contains("attach", &told, &["kubectl"])
}

async fn port_forward(bed: &Bed, ns: &str) -> Result<()> {
    super::pods::run(bed, ns, &super::pods::pod("echo", &forward::echo(7000))).await?;
    let words = ["-n", ns, "logs", "echo"];
    bed.until(&words, "its words", |log| log.contains("listens")).await?;
    let forwarded = Forwarded::start(&bed.kubectl, &["-n", ns, "pod/echo"], 7000).await?;
    for text in [b"hello".to_vec(), vec![7; 1_000_000]] {
        ensure!(forwarded.ask(&text).await? == text, "the answer to {} bytes", text.len());
    }
    let closed = Forwarded::start(&bed.kubectl, &["-n", ns, "pod/echo"], 7001).await?;
    contains("a complaint", &closed.complaint().await?, &["7001", "refused"])
}

async fn misspelt(bed: &Bed, ns: &str) -> Result<()> {
    let mut job = crate::manifest::tfjob("j").workers(-1).json();
    let words = ["-n", ns, "create", "-f", "-"];
    let told = bed.kubectl.run_with_input(&words, &job.to_string()).await?.stderr_of_failure()?;
    contains("a number", &told, &["spec.tfReplicaSpecs.Worker.replicas", "-1"])?;
    job["spec"]["runPolicy"]["backofLimit"] = 1.into();
    let told = bed.kubectl.run_with_input(&words, &job.to_string()).await?.stderr_of_failure()?;
    contains("a field", &told, &["unknown field", "spec.runPolicy.backofLimit"])?;
    let mut pod = super::pods::pod("P", "true");
    pod["spec"]["restartPolicy"] = "Sometimes".into();
    let told = bed.kubectl.run_with_input(&words, &pod.to_string()).await?.stderr_of_failure()?;
    let parts = ["metadata.name", "RFC 1123", "spec.restartPolicy", "Sometimes", "OnFailure"];
    contains("a pod", &told, &parts)
}
