//! What a container is told: variables from every source, its command, its names, its account.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use serde_json::json;

use super::Shared;
use super::objects::{hindered, make, said, says, value};
use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["env":
        every_source,
        resources,
        missing_then_there,
        command,
        host_names,
        service_variables,
        account,
        no_account,
    ]
}

async fn settings(pods: &Pods<'_>) -> Result<()> {
    let map = json!({"metadata": {"name": "settings"}, "data": {"EPOCHS": "5", "MODE": "fast"}});
    make::<ConfigMap>(pods, map).await?;
    let secret =
        json!({"metadata": {"name": "login"}, "stringData": {"USER": "ada", "PASS": "p$(A)w"}});
    make::<Secret>(pods, secret).await?;
    Ok(())
}

async fn every_source(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "env").await?;
    settings(&pods).await?;
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let key = |name: &str, kind: &str, object: &str, key: &str, optional: bool| json!({"name": name, "valueFrom": {kind: {"name": object, "key": key, "optional": optional}}});
    let pod = json!({
        "metadata": {"name": "asks", "labels": {"app": "mnist"}, "annotations": {"note/x": "two words"}},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "test", "command": ["env"],
            "envFrom": [
                {"configMapRef": {"name": "settings"}},
                {"prefix": "DB_", "secretRef": {"name": "login"}},
                {"configMapRef": {"name": "gone", "optional": true}},
            ],
            "env": [
                {"name": "PLAIN", "value": "a b"},
                {"name": "MADE", "value": "$(PLAIN)-$$(PLAIN)-$(NONE)-$(MODE)"},
                {"name": "MODE", "value": "slow"},
                field("NAME", "metadata.name"), field("SPACE", "metadata.namespace"),
                field("UID", "metadata.uid"), field("LABEL", "metadata.labels['app']"),
                field("NOTE", "metadata.annotations['note/x']"), field("NODE", "spec.nodeName"),
                field("ACCOUNT", "spec.serviceAccountName"), field("HOST", "status.hostIP"),
                field("IP", "status.podIP"), field("IPS", "status.podIPs"),
                key("FROM_MAP", "configMapKeyRef", "settings", "EPOCHS", false),
                key("FROM_SECRET", "secretKeyRef", "login", "PASS", false),
                key("NOT1", "configMapKeyRef", "gone", "x", true),
                key("NOT2", "secretKeyRef", "login", "x", true),
            ],
        }]},
    });
    make::<Pod>(&pods, pod).await?;
    let text = said(&pods, "asks").await?;
    let pod = pods.get("asks").await?;
    let (spec, status) = (pod.spec.context("no spec")?, pod.status.context("no status")?);
    let (ip, host) = (status.pod_ip.context("no address")?, status.host_ip.context("no host")?);
    let (uid, node) = (pod.metadata.uid.context("no uid")?, spec.node_name.context("no node")?);
    ensure!(ip != host, "the pod has its node's address {ip}");
    for (name, wanted) in [
        ("EPOCHS", "5"),
        ("MODE", "slow"),
        ("DB_USER", "ada"),
        ("DB_PASS", "p$(A)w"),
        ("PLAIN", "a b"),
        ("MADE", "a b-$(PLAIN)-$(NONE)-fast"),
        ("NAME", "asks"),
        ("SPACE", pods.namespace.as_str()),
        ("UID", uid.as_str()),
        ("LABEL", "mnist"),
        ("NOTE", "two words"),
        ("NODE", node.as_str()),
        ("ACCOUNT", "default"),
        ("HOST", host.as_str()),
        ("IP", ip.as_str()),
        ("IPS", ip.as_str()),
        ("FROM_MAP", "5"),
        ("FROM_SECRET", "p$(A)w"),
        ("HOSTNAME", "asks"),
    ] {
        equal(name, value(&text, name), Some(wanted))?;
    }
    for name in ["NOT1", "NOT2", "USER"] {
        equal(name, value(&text, name), None)?;
    }
    Ok(())
}

async fn resources(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "resources").await?;
    let ask = |name: &str, resource: &str, divisor: &str| json!({"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor}}});
    let more = json!({"containers": [{
        "resources": {"requests": {"cpu": "20m", "memory": "10Mi"}, "limits": {"memory": "64Mi"}},
        "env": [
            ask("CPU", "requests.cpu", "1m"), ask("CORES", "requests.cpu", "1"),
            ask("ASKED", "requests.memory", "1Ki"), ask("MOST", "limits.memory", "1Mi"),
            ask("BYTES", "limits.memory", "0"), ask("ALL", "limits.cpu", "1m"),
        ],
    }]});
    let text = says(&pods, "asks", "env", more).await?;
    for (name, wanted) in
        [("CPU", "20"), ("CORES", "1"), ("ASKED", "10240"), ("MOST", "64"), ("BYTES", "67108864")]
    {
        equal(name, value(&text, name), Some(wanted))?;
    }
    // Without a limit it is what the node has to give.
    let node = pods.get("asks").await?.spec.and_then(|spec| spec.node_name).context("no node")?;
    let path = "jsonpath={.status.allocatable.cpu}";
    let outcome = stage.kubectl.run(&["get", "node", &node, "-o", path]).await?;
    let written = outcome.stdout_of_success()?;
    let millis: u64 = match written.strip_suffix('m') {
        Some(millis) => millis.parse()?,
        None => written.parse::<u64>()? * 1000,
    };
    equal("ALL", value(&text, "ALL"), Some(millis.to_string().as_str()))
}

async fn missing_then_there(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "missing").await?;
    let reason = "CreateContainerConfigError";
    let key = json!({"configMapKeyRef": {"name": "settings", "key": "EPOCHS"}});
    let env = json!({"containers": [{"env": [{"name": "E", "valueFrom": key}]}]});
    pods.shell("key", "echo $E", env).await?;
    let from = json!({"containers": [{"envFrom": [{"secretRef": {"name": "login"}}]}]});
    pods.shell("from", "echo $USER", from).await?;
    let words = hindered(&pods, "key", "main", reason).await?;
    equal("what it waits for", words.as_str(), "configmap \"settings\" not found")?;
    let words = hindered(&pods, "from", "main", reason).await?;
    equal("what it waits for", words.as_str(), "secret \"login\" not found")?;
    pods.until_event("key", "Failed: Error: configmap \"settings\" not found").await?;
    settings(&pods).await?;
    equal("key", said(&pods, "key").await?.as_str(), "5\n")?;
    equal("from", said(&pods, "from").await?.as_str(), "ada\n")?;
    let key = json!({"configMapKeyRef": {"name": "settings", "key": "none"}});
    let env = json!({"containers": [{"env": [{"name": "E", "valueFrom": key}]}]});
    pods.shell("other", "echo $E", env).await?;
    let words = hindered(&pods, "other", "main", reason).await?;
    let wanted = format!("couldn't find key none in ConfigMap {}/settings", pods.namespace);
    equal("what it waits for", words, wanted)
}

async fn command(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "command").await?;
    let container = |more: serde_json::Value| {
        let mut container = json!({"name": "main", "image": "test",
            "env": [{"name": "WHO", "value": "wor ld"}]});
        if let (Some(into), serde_json::Value::Object(more)) = (container.as_object_mut(), more) {
            into.extend(more);
        }
        json!({"restartPolicy": "Never", "containers": [container]})
    };
    let both = json!({"command": ["printf", "%s|%s|%s\n"], "args": ["$(WHO)", "$$(WHO)", "$(NO)"]});
    pods.create("both", container(both)).await?;
    pods.create("args", container(json!({"args": ["echo", "hello", "$(WHO)"]}))).await?;
    let there = json!({"command": ["pwd"], "workingDir": "/some/where/new"});
    pods.create("there", container(there)).await?;
    pods.create("nothing", container(json!({}))).await?;
    pods.create("absent", container(json!({"command": ["no-such-program"]}))).await?;
    equal("both", said(&pods, "both").await?.as_str(), "wor ld|$(WHO)|$(NO)\n")?;
    equal("args", said(&pods, "args").await?.as_str(), "hello wor ld\n")?;
    equal("there", said(&pods, "there").await?.as_str(), "/some/where/new\n")?;
    let words = hindered(&pods, "nothing", "main", "CreateContainerError").await?;
    equal("nothing", words.as_str(), "no command specified")?;
    let pod = pods.until_phase("absent", "Failed").await?;
    let status = serde_json::to_string(&pod.status)?;
    contains("absent", &status, &["StartError", "no-such-program", "\"exitCode\":127"])
}

async fn host_names(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "host-names").await?;
    let more = json!({"hostname": "worker", "subdomain": "mnist", "hostAliases": [
        {"ip": "192.0.2.7", "hostnames": ["store", "store.example"]},
    ]});
    let script = "hostname; hostname -f; getent hosts store.example; cat /etc/hosts /etc/hostname";
    let text = says(&pods, "named", script, more.clone()).await?;
    let full = format!("worker.mnist.{}.svc.cluster.local", pods.namespace);
    let ip = pods.get("named").await?.status.and_then(|s| s.pod_ip).context("no address")?;
    let start = format!("worker\n{full}\n192.0.2.7       store.example store\n");
    // The order in which `getent` prints aliases is its own.
    ensure!(
        text.starts_with(&start) || text.starts_with(&format!("worker\n{full}\n192.0.2.7")),
        "{text}"
    );
    let line = format!("{ip}\t{full}\tworker\n");
    contains("the hosts file", &text, &[&line, "192.0.2.7\tstore\tstore.example\n", "\nworker\n"])?;
    let mut whole = more;
    whole["setHostnameAsFQDN"] = json!(true);
    let wanted = format!("{full}\n");
    if full.len() <= 64 {
        equal("the whole name", says(&pods, "whole", "hostname", whole).await?, wanted)?;
    }
    equal("its own name", says(&pods, "plain", "hostname", json!({})).await?.as_str(), "plain\n")
}

async fn service_variables(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "services").await?;
    let service = json!({"metadata": {"name": "my-db"}, "spec": {"selector": {"app": "db"},
        "ports": [{"name": "sql", "port": 5432}, {"name": "web", "port": 80}]}});
    let service: Service = make(&pods, service).await?;
    let ip = service.spec.and_then(|spec| spec.cluster_ip).context("no cluster address")?;
    let text = says(&pods, "links", "env", json!({})).await?;
    for (name, wanted) in [
        ("MY_DB_SERVICE_HOST", ip.clone()),
        ("MY_DB_SERVICE_PORT", "5432".to_owned()),
        ("MY_DB_SERVICE_PORT_WEB", "80".to_owned()),
        ("MY_DB_PORT_5432_TCP", format!("tcp://{ip}:5432")),
        ("KUBERNETES_SERVICE_PORT", "443".to_owned()),
    ] {
        equal(name, value(&text, name), Some(wanted.as_str()))?;
    }
    let text = says(&pods, "none", "env", json!({"enableServiceLinks": false})).await?;
    equal("MY_DB_SERVICE_HOST", value(&text, "MY_DB_SERVICE_HOST"), None)?;
    ensure!(value(&text, "KUBERNETES_SERVICE_HOST").is_some(), "{text}");
    Ok(())
}

/// Asks the API server who asks it, by address and by name, with two programs.
const WHO_AM_I: &str = r#"
set -e
D=/var/run/secrets/kubernetes.io/serviceaccount
cat $D/namespace; echo
BODY='{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
for HOST in $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT kubernetes.default.svc; do
  curl -sS --max-time 20 --cacert $D/ca.crt -H "Authorization: Bearer $(cat $D/token)" \
    -H 'Content-Type: application/json' -d "$BODY" \
    https://$HOST/apis/authentication.k8s.io/v1/selfsubjectreviews | grep -o '"username": *"[^"]*"'
done
python3 - <<END
import json, os, ssl, urllib.request
d = "$D"
host = "https://%s:%s" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
ask = urllib.request.Request(host + "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    data=b'$BODY', headers={"Content-Type": "application/json",
    "Authorization": "Bearer " + open(d + "/token").read()})
context = ssl.create_default_context(cafile=d + "/ca.crt")
with urllib.request.urlopen(ask, context=context, timeout=20) as answer:
    print("python", json.load(answer)["status"]["userInfo"]["username"])
END
touch $D/token 2>&1 && echo writable || true
"#;

async fn account(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "account").await?;
    let text = says(&pods, "asks", WHO_AM_I, json!({})).await?;
    let account = format!("system:serviceaccount:{}:default", pods.namespace);
    equal("the namespace", text.lines().next(), Some(pods.namespace.as_str()))?;
    let named =
        text.lines().filter(|line| line.starts_with("\"username\"") && line.contains(&account));
    equal("answers to curl", named.count(), 2)?;
    contains("the answer to Python", &text, &[&format!("python {account}\n")])?;
    ensure!(!text.contains("writable"), "the token can be written: {text}");
    Ok(())
}

async fn no_account(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "no-account").await?;
    let more = json!({"automountServiceAccountToken": false});
    let script = "ls /var/run/secrets 2>/dev/null || echo none";
    equal("what is there", says(&pods, "none", script, more).await?.as_str(), "none\n")
}
