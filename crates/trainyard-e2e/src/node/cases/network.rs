//! The pods' network: addresses, ports, names, the way out, and what cannot be reached.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use super::Shared;
use super::objects::{address, ended, make, phase, said, says};
use crate::check::{contains, equal};
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["network":
        own_ports,
        shared_ports,
        names,
        names_vanish,
        services,
        short_names_by_proxy,
        not_ready,
        host_network,
        host_is_unreachable,
        pod_is_unreachable,
        proxy,
    ]
}

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(2),
        cases!["network":
            host_is_untouched,
        ],
    )
}

/// Answers every connection on a port with the pod's name.
fn server(port: u16) -> String {
    format!(
        "exec python3 -u -c '
import socket
s = socket.create_server((\"\", {port}))
print(\"listens\")
while True:
    c, _ = s.accept()
    c.sendall((socket.gethostname() + \"\\n\").encode())
    c.close()
'"
    )
}

/// Prints what a server says, trying for a while, or `nobody`.
const ASK: &str = "
ask() {
  python3 - $1 $2 <<END
import socket, sys, time
end = time.time() + 20
while True:
    try:
        c = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
        print(c.makefile().read().strip())
        break
    except OSError as error:
        if time.time() > end:
            print('nobody', error)
            break
        time.sleep(0.1)
END
}
";

/// A pod with labels that serves on a port.
async fn serves(pods: &Pods<'_>, name: &str, port: u16, more: Value) -> Result<()> {
    let mut spec = json!({"containers": [
        {"name": "main", "image": "test", "command": ["sh", "-c", server(port)]},
    ]});
    if let (Some(into), Value::Object(more)) = (spec.as_object_mut(), more) {
        into.extend(more);
    }
    let pod =
        json!({"metadata": {"name": name, "labels": {"app": name, "all": "yes"}}, "spec": spec});
    make::<Pod>(pods, pod).await?;
    Ok(())
}

async fn headless(pods: &Pods<'_>, name: &str, app: &str, publishes: bool) -> Result<()> {
    let service = json!({"metadata": {"name": name}, "spec": {"clusterIP": "None",
        "publishNotReadyAddresses": publishes, "selector": {"app": app},
        "ports": [{"port": 2222}]}});
    make::<Service>(pods, service).await?;
    Ok(())
}

async fn own_ports(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "ports").await?;
    for name in ["one", "two"] {
        serves(&pods, name, 2222, json!({})).await?;
    }
    let (one, two) = (address(&pods, "one").await?, address(&pods, "two").await?);
    ensure!(one != two, "both have {one}");
    let script = format!("{ASK} ask {one} 2222; ask {two} 2222");
    equal("answers", says(&pods, "asks", &script, json!({})).await?.as_str(), "one\ntwo\n")
}

async fn shared_ports(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "shared-ports").await?;
    let asks = format!("{ASK} ask 127.0.0.1 2222");
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "test", "command": ["sh", "-c", asks]},
        {"name": "serves", "image": "test", "command": ["sh", "-c", server(2222)]},
    ]});
    pods.create("pair", spec).await?;
    pods.until("pair", "half ended", |pod| crate::node::exit_code(pod, "main") == Some(0)).await?;
    equal("itself", pods.logs(&["pair", "-c", "main"]).await?.as_str(), "pair\n")
}

async fn names(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "names").await?;
    headless(&pods, "web", "web", false).await?;
    serves(&pods, "web", 2222, json!({"hostname": "host-a", "subdomain": "web"})).await?;
    let ip = address(&pods, "web").await?;
    let namespace = pods.namespace.as_str();
    let forms = [
        "web".to_owned(),
        format!("web.{namespace}"),
        format!("web.{namespace}.svc"),
        format!("web.{namespace}.svc.cluster.local"),
        "host-a.web".to_owned(),
        format!("host-a.web.{namespace}.svc.cluster.local"),
    ];
    let list = forms.join(" ");
    let nodes = agent.nodes.join(" ");
    let script = format!(
        "{ASK}\nfor N in {list}; do until getent ahostsv4 $N >/dev/null; do sleep 0.05; done; \
         getent ahostsv4 $N | head -1 | cut -d' ' -f1; done; ask web 2222; \
         for N in {nodes}; do getent ahostsv4 $N | head -1 | cut -d' ' -f1; done; \
         getent hosts none.{namespace}.svc.cluster.local || echo unknown"
    );
    let text = says(&pods, "asks", &script, json!({})).await?;
    let lines: Vec<&str> = text.lines().collect();
    ensure!(lines.len() == forms.len() + 1 + agent.nodes.len() + 1, "{text}");
    for (form, line) in forms.iter().zip(&lines) {
        equal(form, *line, ip.as_str())?;
    }
    equal("by name", lines[forms.len()], "host-a")?;
    let addresses = node_addresses(&pods, agent).await?;
    equal("nodes", &lines[forms.len() + 1..lines.len() - 1], addresses.as_slice())?;
    equal("a name that is not there", lines.last(), Some(&"unknown"))?;
    // From another namespace only the longer forms mean it.
    let other = Pods::open(stage, "names-other").await?;
    let script = format!(
        "getent ahostsv4 web.{namespace} | head -1 | cut -d' ' -f1; getent hosts web || echo unknown"
    );
    let text = says(&other, "asks", &script, json!({})).await?;
    equal("from elsewhere", text, format!("{ip}\nunknown\n"))
}

/// Where the nodes are in the pods' network, as their pods are told.
async fn node_addresses(pods: &Pods<'_>, agent: &Agent) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for node in &agent.nodes {
        let name = format!("at-{node}");
        pods.shell(&name, "true", json!({"nodeName": node})).await?;
        let status = ended(pods, &name).await?.status;
        all.push(status.and_then(|status| status.host_ip).context("a pod without a host")?);
    }
    ensure!(all[0] != all[1], "both nodes are at {}", all[0]);
    Ok(all)
}

async fn names_vanish(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "vanish").await?;
    // Begins before there is anything to find.
    let script = "until getent hosts web >/dev/null; do sleep 0.05; done; echo appeared; \
                  while getent hosts web >/dev/null; do sleep 0.05; done; echo empty; \
                  until getent hosts web >/dev/null; do sleep 0.05; done; echo again; \
                  while getent hosts web >/dev/null; do sleep 0.05; done; echo gone";
    pods.shell("looks", script, json!({})).await?;
    pods.until_phase("looks", "Running").await?;
    headless(&pods, "web", "web", false).await?;
    serves(&pods, "web", 2222, json!({})).await?;
    until_log(&pods, "looks", "appeared\n").await?;
    pods.delete("web", Some(0)).await?;
    pods.until_gone("web").await?;
    until_log(&pods, "looks", "appeared\nempty\n").await?;
    serves(&pods, "web", 2222, json!({})).await?;
    until_log(&pods, "looks", "appeared\nempty\nagain\n").await?;
    let services: Api<Service> = Api::namespaced(stage.client.clone(), &pods.namespace);
    services.delete("web", &DeleteParams::default()).await?;
    equal("looks", said(&pods, "looks").await?.as_str(), "appeared\nempty\nagain\ngone\n")
}

async fn until_log(pods: &Pods<'_>, name: &str, wanted: &str) -> Result<()> {
    pods.until(name, "started", |pod| phase(pod) != "Pending").await?;
    let started = Instant::now();
    loop {
        let log = pods.logs(&[name]).await?;
        if log == wanted {
            return Ok(());
        }
        if started.elapsed() > Duration::from_mins(1) {
            bail!("{name} says {log:?} and not {wanted:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn not_ready(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "not-ready").await?;
    headless(&pods, "early", "slow", true).await?;
    headless(&pods, "late", "slow", false).await?;
    let probe = json!({"exec": {"command": ["false"]}, "periodSeconds": 1});
    let container = json!({"name": "main", "image": "test",
        "command": ["sh", "-c", server(2222)], "readinessProbe": probe});
    let spec = json!({"containers": [container]});
    let pod = json!({"metadata": {"name": "slow", "labels": {"app": "slow"}}, "spec": spec});
    make::<Pod>(&pods, pod).await?;
    let ip = address(&pods, "slow").await?;
    let script = "for I in $(seq 400); do getent hosts early >/dev/null && break; sleep 0.05; done; \
                  getent ahostsv4 early | head -1 | cut -d' ' -f1; getent hosts late || echo not yet";
    let text = says(&pods, "asks", script, json!({})).await?;
    equal("what is found", text, format!("{ip}\nnot yet\n"))
}

async fn services(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "services").await?;
    let service = json!({"metadata": {"name": "front"}, "spec": {"selector": {"all": "yes"},
        "ports": [{"name": "a", "port": 80, "targetPort": 2222}]}});
    let service: Service = make(&pods, service).await?;
    let ip = service.spec.and_then(|spec| spec.cluster_ip).context("no cluster address")?;
    for name in ["one", "two"] {
        serves(&pods, name, 2222, json!({})).await?;
    }
    address(&pods, "one").await?;
    address(&pods, "two").await?;
    // Both get their turn; one that has gone gets none.
    let script = format!(
        "{ASK}\nfor W in one two; do until ask front 80 | grep -q $W; do sleep 0.1; done; echo $W; done; \
         ask {ip} 80 | grep -c .; echo both > /dev/termination-log; \
         until [ -z \"$(for I in 1 2 3 4; do ask front 80; done | grep one)\" ]; do sleep 0.1; done; ask front 80"
    );
    pods.shell("asks", &script, json!({})).await?;
    until_log(&pods, "asks", "one\ntwo\n1\n").await?;
    pods.delete("one", Some(0)).await?;
    equal("answers", said(&pods, "asks").await?.as_str(), "one\ntwo\n1\ntwo\n")
}

/// Programs that know proxies send them short names, which no entry of `NO_PROXY` describes.
async fn short_names_by_proxy(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "by-proxy").await?;
    headless(&pods, "web", "web", false).await?;
    let script =
        "mkdir /tmp/w; cd /tmp/w; echo page > index.html; exec python3 -m http.server 2222";
    let pod = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"containers": [
        {"name": "main", "image": "test", "command": ["sh", "-c", script]},
    ]}});
    make::<Pod>(&pods, pod).await?;
    let ip = address(&pods, "web").await?;
    let forms = [
        "web".to_owned(),
        format!("web.{}", pods.namespace),
        format!("web.{}.svc", pods.namespace),
        ip,
    ];
    let list = forms.join(" ");
    // Pods are not told of the proxy where there is a better way out; on a bridge it is there.
    let script = format!(
        "grep -q 10.77.0.1 /etc/resolv.conf && export http_proxy=http://10.77.0.1:3128 \
           no_proxy=.svc,10.77.0.0/16; \
         for N in {list}; do for I in $(seq 200); do curl -sf --max-time 5 http://$N:2222/ && break; sleep 0.1; done; \
         python3 -c 'import urllib.request as u; print(u.urlopen(\"http://'$N':2222/\", timeout=5).read().decode().strip())'; done"
    );
    let text = says(&pods, "asks", &script, json!({})).await?;
    equal("pages", text, "page\n".repeat(2 * forms.len()))
}

async fn host_network(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "host-network").await?;
    // A port that no other case uses: the node's network is shared by all of them.
    let on = |node: &str| json!({"hostNetwork": true, "nodeName": node, "dnsPolicy": "ClusterFirstWithHostNet"});
    let addresses = node_addresses(&pods, agent).await?;
    for (node, wanted) in agent.nodes.iter().zip(&addresses) {
        let name = format!("on-{node}");
        serves(&pods, &name, 2317, on(node)).await?;
        equal(node, &address(&pods, &name).await?, wanted)?;
        let pod = pods.get(&name).await?.status.unwrap_or_default();
        equal(node, pod.host_ip.as_ref(), Some(wanted))?;
    }
    let asks: Vec<String> = agent.nodes.iter().map(|node| format!("ask {node} 2317")).collect();
    let script = format!("{ASK} {}", asks.join("; "));
    let text = says(&pods, "asks", &script, json!({})).await?;
    // The host name in such a pod is the node's.
    equal("answers", text, format!("{}\n", agent.nodes.join("\n")))?;
    let links = says(
        &pods,
        "links",
        "ls /sys/class/net /proc/self/ns >/dev/null 2>&1; cat /proc/net/dev",
        on(&agent.nodes[0]),
    )
    .await?;
    ensure!(!links.contains("docker") && links.contains("lo:"), "{links}");
    for node in &agent.nodes {
        pods.delete(&format!("on-{node}"), Some(0)).await?;
    }
    Ok(())
}

/// Addresses of this machine that are not loopback.
pub(super) fn own_addresses() -> Result<Vec<String>> {
    let output = Command::new("hostname").arg("-I").output().context("running hostname")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split_whitespace().filter(|a| a.contains('.')).map(str::to_owned).collect())
}

async fn host_is_unreachable(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "unreachable").await?;
    // Takes connections by itself: nobody needs to accept them.
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let port = listener.local_addr()?.port();
    let mut targets = vec!["127.0.0.1".to_owned(), "10.77.0.1".to_owned()];
    targets.extend(own_addresses()?);
    for target in targets.iter().filter(|target| *target != "10.77.0.1") {
        let address: SocketAddr = format!("{target}:{port}").parse()?;
        TcpStream::connect_timeout(&address, Duration::from_secs(5))
            .with_context(|| format!("the case itself does not reach {address}"))?;
    }
    let script = format!(
        "for T in {}; do timeout 3 python3 -c 'import socket, sys; \
           socket.create_connection((sys.argv[1], {port}), timeout=2)' $T 2>/dev/null \
           && echo reached $T || echo kept from $T; done; cat /proc/net/dev | grep -c eth0: ; \
         ls /run/*.sock /var/run/docker.sock 2>/dev/null | wc -l",
        targets.join(" ")
    );
    let text = says(&pods, "tries", &script, json!({})).await?;
    for target in &targets {
        contains("what is reached", &text, &[&format!("kept from {target}\n")])?;
    }
    ensure!(!text.contains("reached"), "{text}");
    // Abstract sockets of the host belong to its network and are out of reach as well.
    let name = format!("trainyard-case-{port}");
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name)?;
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&address)?;
    let script = format!(
        "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"\\0{name}\")' \
         2>/dev/null && echo reached || echo kept out"
    );
    equal("abstract", says(&pods, "abstract", &script, json!({})).await?.as_str(), "kept out\n")
}

async fn pod_is_unreachable(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "inward").await?;
    serves(&pods, "web", 2222, json!({})).await?;
    let ip = address(&pods, "web").await?;
    let script = format!("{ASK} ask {ip} 2222");
    equal("by a pod", says(&pods, "asks", &script, json!({})).await?.as_str(), "web\n")?;
    let address: SocketAddr = format!("{ip}:2222").parse()?;
    let tried = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut text = String::new();
        // Something between may take connections for anything; it is not the pod.
        std::io::Read::read_to_string(&mut stream, &mut text).map(|_| text)
    });
    if let Ok(text) = tried.await? {
        ensure!(text != "web\n", "the pod is reached from the host");
    }
    Ok(())
}

async fn proxy(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "proxy").await?;
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let port = listener.local_addr()?.port();
    let mut targets =
        vec!["127.0.0.1".to_owned(), "0.0.0.0".to_owned(), "169.254.169.254".to_owned()];
    targets.extend(own_addresses()?);
    let script = format!(
        "P=http://10.77.0.1:3128; for T in {}; do \
           curl -s --noproxy '' -x $P --max-time 10 -w '%{{http_code}}\\n' http://$T:{port}/; \
           curl -s --noproxy '' -x $P --max-time 10 -o /dev/null -w '%{{http_connect}}\\n' https://$T:{port}/; \
         done; true",
        targets.join(" ")
    );
    let text = says(&pods, "tries", &script, json!({})).await?;
    contains("the proxy", &text, &["address of the node's own machine", "link-local"])?;
    let refusals = text.matches("403").count();
    equal("refusals", refusals, 2 * targets.len())?;
    listener.set_nonblocking(true)?;
    ensure!(listener.accept().is_err(), "a pod reached the host through the proxy");
    Ok(())
}

/// What the host's network looks like.
fn host_view() -> Result<String> {
    let mut view = String::new();
    for words in [
        &["-o", "link"][..],
        &["-o", "addr"],
        &["-4", "route", "show", "table", "all"],
        &["-6", "route", "show", "table", "all"],
        &["rule"],
        &["netns"],
    ] {
        let output = Command::new("ip").args(words).output().context("running ip")?;
        view.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    for file in [
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/net/ipv4/conf/all/forwarding",
        "/proc/sys/net/ipv4/ping_group_range",
        "/proc/sys/net/ipv4/ip_unprivileged_port_start",
        "/proc/net/ip_tables_names",
    ] {
        view.push_str(&std::fs::read_to_string(file).unwrap_or_default());
    }
    Ok(view)
}

async fn host_is_untouched(stage: &Stage) -> Result<()> {
    let before = host_view()?;
    let agent = Agent::start(stage, AgentOptions::default()).await?;
    let pods = Pods::open(stage, "untouched").await?;
    serves(&pods, "web", 2222, json!({})).await?;
    let ip = address(&pods, "web").await?;
    equal("the host while a pod runs", host_view()?, before.clone())?;
    let script = format!("{ASK} ask {ip} 2222");
    equal("the pod", says(&pods, "asks", &script, json!({})).await?.as_str(), "web\n")?;
    pods.delete("web", Some(0)).await?;
    ended(&pods, "asks").await?;
    agent.stop().await?;
    equal("the host afterwards", host_view()?, before)
}
