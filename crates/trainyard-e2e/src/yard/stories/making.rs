//! Objects that kubectl itself makes from words, without a manifest.

use anyhow::{Result, ensure};

use super::Story;
use crate::check::{contains, equal};
use crate::harness::cases;
use crate::yard::bed::Bed;

pub(super) fn all() -> Vec<Story> {
    cases!["kubectl/making":
        config_map, "create configmap X --from-file, --from-literal", "files and values become data";
        secret, "create secret generic X", "the same, encoded";
        namespace, "create namespace X", "with its account and the authority's certificate";
        account_and_token, "create serviceaccount X, create token X", "an account, and a token that the server takes";
        job, "create job X --image -- CMD", "a Job, which runs to its end";
        service, "create service clusterip X, expose pod X", "a Service";
        rights, "create role, rolebinding, clusterrole, clusterrolebinding", "kept as they are";
        priority_class, "create priorityclass X --value", "numbers that pods get by its name";
        pod, "run X --image -- CMD", "a Pod";
        images, "set image pod/X", "the container's image changes";
    ]
}

async fn config_map(bed: &Bed, ns: &str) -> Result<()> {
    let file = bed.dir().join("train.py");
    std::fs::write(&file, "print('hello')\n")?;
    let from_file = format!("--from-file={}", file.display());
    let words = ["-n", ns, "create", "configmap", "c", &from_file, "--from-literal=rate=0.1"];
    equal("create", bed.ok(&words).await?.trim(), "configmap/c created")?;
    let path = "jsonpath={.data.train\\.py}{.data.rate}";
    let told = bed.ok(&["-n", ns, "get", "cm", "c", "-o", path]).await?;
    equal("data", told.as_str(), "print('hello')\n0.1")
}

async fn secret(bed: &Bed, ns: &str) -> Result<()> {
    let words = ["-n", ns, "create", "secret", "generic", "s", "--from-literal=word=open"];
    equal("create", bed.ok(&words).await?.trim(), "secret/s created")?;
    let told =
        bed.ok(&["-n", ns, "get", "secret", "s", "-o", "jsonpath={.type} {.data.word}"]).await?;
    equal("data", told.as_str(), "Opaque b3Blbg==")
}

async fn namespace(bed: &Bed, ns: &str) -> Result<()> {
    let name = format!("{ns}-made");
    let told = bed.ok(&["create", "namespace", &name]).await?;
    equal("create", told.trim(), format!("namespace/{name} created"))?;
    for target in ["sa/default", "cm/kube-root-ca.crt"] {
        bed.ok(&["-n", &name, "wait", "--for=create", "--timeout=20s", target]).await?;
    }
    bed.ok(&["delete", "namespace", &name, "--timeout=40s"]).await.map(drop)
}

async fn account_and_token(bed: &Bed, ns: &str) -> Result<()> {
    let told = bed.ok(&["-n", ns, "create", "serviceaccount", "robot"]).await?;
    equal("create", told.trim(), "serviceaccount/robot created")?;
    let token = bed.ok(&["-n", ns, "create", "token", "robot", "--duration=1h"]).await?;
    let token = token.trim();
    ensure!(token.split('.').count() == 3, "no token: {token}");
    // The certificate in the kubeconfig would win over a token.
    let words = ["--token", token, "--server", &bed.url, "--certificate-authority"];
    let authority = bed.dir().join(format!("{ns}-ca.crt"));
    let path = "jsonpath={.data.ca\\.crt}";
    let certificate = bed.ok(&["-n", ns, "get", "cm", "kube-root-ca.crt", "-o", path]).await?;
    std::fs::write(&authority, certificate)?;
    let authority = authority.display().to_string();
    let words = [&words[..], &[&authority, "--kubeconfig=/dev/null", "auth", "whoami"]].concat();
    let told = bed.ok(&words).await?;
    contains("whoami", &told, &[&format!("system:serviceaccount:{ns}:robot")])
}

async fn job(bed: &Bed, ns: &str) -> Result<()> {
    let words = ["-n", ns, "create", "job", "j", "--image=test", "--", "true"];
    equal("create", bed.ok(&words).await?.trim(), "job.batch/j created")?;
    let complete = "--for=condition=Complete";
    bed.ok(&["-n", ns, "wait", complete, "--timeout=60s", "job/j"]).await.map(drop)
}

async fn service(bed: &Bed, ns: &str) -> Result<()> {
    let words = ["-n", ns, "create", "service", "clusterip", "s", "--tcp=80:8080"];
    equal("create", bed.ok(&words).await?.trim(), "service/s created")?;
    let table = bed.ok(&["-n", ns, "get", "service", "s"]).await?;
    contains("get", &table, &["ClusterIP", "80/TCP"])?;
    bed.ok(&["-n", ns, "run", "p", "--image=test", "--", "sleep", "600"]).await?;
    let told = bed.ok(&["-n", ns, "expose", "pod", "p", "--port=2222", "--name=e"]).await?;
    equal("expose", told.trim(), "service/e exposed")?;
    let words = ["-n", ns, "get", "endpointslice", "-l", "kubernetes.io/service-name=e"];
    bed.until(&words, "an endpoint", |table| table.contains("2222")).await.map(drop)
}

async fn rights(bed: &Bed, ns: &str) -> Result<()> {
    let cluster = format!("{ns}-reader");
    for (words, printed) in [
        (
            &["create", "role", "r", "--verb=get", "--resource=pods"][..],
            "role.rbac.authorization.k8s.io/r",
        ),
        (
            &["create", "rolebinding", "r", "--role=r", "--user=jane"],
            "rolebinding.rbac.authorization.k8s.io/r",
        ),
        (
            &["create", "clusterrole", &cluster, "--verb=get", "--resource=nodes"],
            &format!("clusterrole.rbac.authorization.k8s.io/{cluster}"),
        ),
        (
            &["create", "clusterrolebinding", &cluster, "--clusterrole=view", "--user=jane"],
            &format!("clusterrolebinding.rbac.authorization.k8s.io/{cluster}"),
        ),
    ] {
        let told = bed.ok(&[&["-n", ns][..], words].concat()).await?;
        equal("create", told.trim(), format!("{printed} created"))?;
    }
    Ok(())
}

async fn priority_class(bed: &Bed, ns: &str) -> Result<()> {
    let class = format!("{ns}-first");
    let told = bed.ok(&["create", "priorityclass", &class, "--value=100"]).await?;
    equal("create", told.trim(), format!("priorityclass.scheduling.k8s.io/{class} created"))?;
    let mut pod = super::pods::pod("p", "sleep 600");
    pod["spec"]["priorityClassName"] = class.as_str().into();
    bed.feed(&["-n", ns, "create", "-f", "-"], &pod.to_string()).await?;
    let told = bed.ok(&["-n", ns, "get", "pod", "p", "-o", "jsonpath={.spec.priority}"]).await?;
    equal("priority", told.as_str(), "100")?;
    bed.ok(&["delete", "priorityclass", &class]).await.map(drop)
}

async fn pod(bed: &Bed, ns: &str) -> Result<()> {
    let words = ["-n", ns, "run", "p", "--image=test", "--restart=Never", "--", "echo", "hello"];
    equal("run", bed.ok(&words).await?.trim(), "pod/p created")?;
    let words = ["-n", ns, "logs", "p"];
    bed.until(&words, "its words", |log| log == "hello\n").await.map(drop)
}

async fn images(bed: &Bed, ns: &str) -> Result<()> {
    bed.ok(&["-n", ns, "run", "p", "--image=test", "--", "sleep", "600"]).await?;
    let told = bed.ok(&["-n", ns, "set", "image", "pod/p", "p=test:2"]).await?;
    equal("set image", told.trim(), "pod/p image updated")?;
    let path = "jsonpath={.spec.containers[0].image}";
    equal("image", bed.ok(&["-n", ns, "get", "pod", "p", "-o", path]).await?.as_str(), "test:2")
}
