//! The way out: real programs that carry pods' packets, the proxy where there is none, and what stays out
//! of reach.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::{Value, json};

use super::look::{Gate, until};
use super::machine::{Host, Traces, descendants};
use super::network::own_addresses;
use super::objects::{said, says};
use super::outside::Outside;
use crate::check::{contains, equal};
use crate::harness::{Case, cases, note, within};
use crate::node::{Agent, AgentOptions, Pods, Stage, Who};

const LONGEST: Duration = Duration::from_mins(4);
/// All of an agent that has gone is gone within this time.
const AT_ONCE: Duration = Duration::from_secs(5);

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    let mut all = cases!["outbound": by_itself, cannot_be_had, proxy_and_none];
    for program in ["slirp4netns", "pasta"] {
        for (who, word) in [(Who::Me, ""), (Who::Tapping, "_as_user")] {
            let name = format!("outbound/{program}{word}");
            all.push(Case::new(name, async move |stage: &Stage| {
                carries(stage, who, program).await
            }));
        }
    }
    within(LONGEST, all)
}

/// Whether a case can be played here; where nothing may be left out, it must be.
fn possible(programs: &[&str]) -> Result<bool> {
    let there = |program: &&str| {
        let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin"];
        folders.iter().any(|folder| Path::new(folder).join(program).exists())
    };
    let mut missing: Vec<&str> = programs.iter().copied().filter(|one| !there(one)).collect();
    if !rustix::process::geteuid().is_root() {
        missing.push("root");
    }
    if missing.is_empty() {
        return Ok(true);
    }
    let missing = missing.join(", ");
    ensure!(std::env::var_os("CI").is_none(), "this machine must have: {missing}");
    note(format_args!("*** left out for want of {missing}"));
    Ok(false)
}

/// What a pod does that knows no proxy: many short words both ways, much data both ways, datagrams of these
/// sizes.
fn talk(outside: &Outside, sizes: &str) -> String {
    let Outside { ours, theirs, .. } = outside;
    format!(
        "env | grep -i _proxy= && exit 9
exec python3 -u - <<'END'
import socket
TO = ('{theirs}', 7000)
def check(name, got, wanted):
    assert got == wanted, (name, got, wanted)
c = socket.create_connection(TO, timeout=20)
f = c.makefile('rwb')
for i in range(100):
    f.write(b'%d\\n' % i); f.flush()
    check('word', f.readline().decode().split(), [str(i), '{ours}'])
f.write(b'take 5000000\\n'); f.flush()
check('taken', len(f.read(5000000)), 5000000)
f.write(b'give 8000000\\n' + b'y' * 8000000); f.flush()
check('given', f.readline(), b'got 8000000\\n')
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(2); u.connect(TO)
def answer(size):
    # A datagram may be lost among all the others; then it is sent again, and one may come late.
    for _ in range(10):
        u.send(b'z' * size)
        try:
            while True:
                data, _, peer = u.recv(65536).partition(b' ')
                if len(data) == size:
                    return data, peer
        except socket.timeout:
            pass
for size in [{sizes}]:
    check('datagram', answer(size), (b'z' * size, b'{ours}'))
print('all is well')
END"
    )
}

/// What none of these ways may lead to: tries by connections and datagrams, from addresses and by frames.
fn trespass(outside: &Outside, stream: u16, datagram: u16) -> Result<String> {
    let mut targets = vec![outside.ours.clone()];
    targets.extend(own_addresses()?);
    targets.extend(["169.254.77.1", "169.254.77.2", "169.254.77.3", "10.0.2.2"].map(str::to_owned));
    Ok(format!(
        "exec python3 -u - {} <<'END'
import socket, struct, sys
for to in sys.argv[1:]:
    try:
        socket.create_connection((to, {stream}), timeout=1.5)
        print('reached', to)
    except OSError:
        pass
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        u.sendto(b'hello', (to, {datagram}))
    except OSError:
        pass
# A frame whose packet is for the machine's loopback, to the gateway itself.
gateway = next(l.split()[3] for l in open('/proc/net/arp') if l.startswith('10.77.0.1 '))
mac = bytes.fromhex(gateway.replace(':', ''))
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(('eth0', 0))
own = raw.getsockname()[4]
def total(data):
    s = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    return 0xffff - ((s & 0xffff) + (s >> 16))
for to in ['127.0.0.1', '0.0.0.0', '255.255.255.255']:
    head = struct.pack('!BBHHHBBH4s4s', 69, 0, 33, 1, 0, 64, 17, 0,
        socket.inet_aton(socket.gethostbyname(socket.gethostname())), socket.inet_aton(to))
    head = head[:10] + struct.pack('!H', total(head)) + head[12:]
    packet = head + struct.pack('!HHHH', 4000, {datagram}, 13, 0) + b'hello'
    raw.send(mac + own + b'\\x08\\x00' + packet)
print('tried')
END",
        targets.join(" ")
    ))
}

fn flags(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

async fn label(stage: &Stage, agent: &Agent) -> Result<String> {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let labels = nodes.get(&agent.nodes[0]).await?.metadata.labels.unwrap_or_default();
    labels.get("trainyard.dev/outbound").cloned().context("the node does not say its way out")
}

/// A spec's part that puts a pod on the agent's first node.
fn here(agent: &Agent) -> Value {
    json!({"nodeSelector": {"kubernetes.io/hostname": agent.nodes[0]}})
}

/// The process of a program below an agent. One of them goes on as the build that fits the processor, by
/// the name of its package.
fn program_of(agent: u32, name: &str) -> Option<i32> {
    let is = |pid: u32| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        comm.starts_with(name) || (name == "pasta" && comm.starts_with("passt"))
    };
    let found = descendants(agent).into_iter().find(|process| is(process.pid))?;
    i32::try_from(found.pid).ok()
}

/// Pods reach other machines by a program, and nothing of this one; when the program goes, the proxy takes
/// its place; nothing is left of either.
async fn carries(stage: &Stage, who: Who, tool: &str) -> Result<()> {
    if !possible(&[tool, "ip", "nsenter", "python3"])? {
        return Ok(());
    }
    let outside = Outside::open()?;
    let (host, mut traces) = (Host::look()?, Traces::default());
    let options = AgentOptions {
        who,
        flags: flags(&[&format!("--outbound={tool}")]),
        ..AgentOptions::default()
    };
    let agent = Agent::start(stage, options.clone()).await?;
    contains("log", &agent.log_text(), &[&format!("outbound=\"{tool}\"")])?;
    equal("label", label(stage, &agent).await?.as_str(), tool)?;
    let pods = Pods::open(stage, tool).await?;
    // One of them does not put fragments together.
    let sizes = if tool == "pasta" { "10, 500, 1300" } else { "10, 500, 1300, 8000" };
    let names = ["one", "two", "three"];
    for name in names {
        pods.shell(name, &talk(&outside, sizes), here(&agent)).await?;
    }
    for name in names {
        equal(name, said(&pods, name).await?.as_str(), "all is well\n")?;
    }
    resolves(&pods, &agent, &outside).await?;
    is_kept_in(&pods, &agent, &outside).await?;
    traces.look(agent.pid);
    falls_back(&pods, &agent, &outside, tool).await?;
    agent.stop().await?;
    traces.are_gone(AT_ONCE).await?;
    host.is_as_before()?;
    killed(stage, &outside, options, tool).await
}

/// Names are the yard's name server's business still; another one can be reached, so nobody is warned.
async fn resolves(pods: &Pods<'_>, agent: &Agent, outside: &Outside) -> Result<()> {
    let mut spec = here(agent);
    spec["dnsConfig"] = json!({"nameservers": [outside.theirs]});
    let script = format!(
        "grep nameserver /etc/resolv.conf; getent ahostsv4 {} | head -1 | cut -d' ' -f1 | grep -c 10.77",
        agent.nodes[1]
    );
    let text = says(pods, "names", &script, spec).await?;
    let expected = format!("nameserver 10.77.0.1\nnameserver {}\n1\n", outside.theirs);
    equal("resolver", text, expected)?;
    let events = pods.events("names").await?;
    ensure!(!events.iter().any(|event| event.starts_with("DNSConfigForming")), "{events:?}");
    Ok(())
}

async fn is_kept_in(pods: &Pods<'_>, agent: &Agent, outside: &Outside) -> Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    listener.set_nonblocking(true)?;
    socket.set_nonblocking(true)?;
    let (stream, datagram) = (listener.local_addr()?.port(), socket.local_addr()?.port());
    let mut spec = here(agent);
    spec["containers"] = json!([{"securityContext": {"capabilities": {"add": ["NET_RAW"]}}}]);
    let script = trespass(outside, stream, datagram)?;
    equal("trespass", says(pods, "trespass", &script, spec).await?.as_str(), "tried\n")?;
    ensure!(listener.accept().is_err(), "a pod has connected to this machine");
    let heard = socket.recv_from(&mut [0; 16]);
    ensure!(heard.is_err(), "this machine has heard a pod: {heard:?}");
    Ok(())
}

/// What a program does that is told of the proxy.
fn by_proxy(outside: &Outside) -> String {
    format!(
        "exec python3 -u - <<'END'
import os, socket
host, port = os.environ['HTTPS_PROXY'].removeprefix('http://').split(':')
c = socket.create_connection((host, int(port)), timeout=10)
f = c.makefile('rwb')
f.write(b'CONNECT {0}:7000 HTTP/1.1\\r\\nHost: {0}:7000\\r\\n\\r\\n'); f.flush()
status = f.readline()
assert b' 200 ' in status, status
while f.readline().strip(): pass
f.write(b'hello\\n'); f.flush()
print(f.readline().decode().strip())
END",
        outside.theirs
    )
}

async fn falls_back(pods: &Pods<'_>, agent: &Agent, outside: &Outside, tool: &str) -> Result<()> {
    let victim = program_of(agent.pid, tool).context("the program does not run")?;
    let victim = rustix::process::Pid::from_raw(victim).context("no process")?;
    rustix::process::kill_process(victim, rustix::process::Signal::KILL)?;
    agent.until_logged("the pods' way out ended").await?;
    until("the label", async || Ok(label(pods.stage, agent).await? == "proxy")).await?;
    let text = says(pods, "after", &by_proxy(outside), here(agent)).await?;
    equal("by the proxy", text, format!("hello {}\n", outside.ours))
}

/// A killed agent takes the program along.
async fn killed(stage: &Stage, outside: &Outside, options: AgentOptions, tool: &str) -> Result<()> {
    let (host, mut traces) = (Host::look()?, Traces::default());
    let agent = Agent::start(stage, options).await?;
    let pods = Pods::open(stage, "killed").await?;
    let gate = Gate::new()?;
    let script = format!(
        "exec python3 -c \"import socket; c = socket.create_connection(('{}', 7000)); \
         open('/gate/connected', 'w'); [c.sendall(b'x\\n' * 1000) or c.recv(1 << 16) for i in iter(int, 1)]\"",
        outside.theirs
    );
    let mut spec = here(&agent);
    for (key, value) in gate.spec().as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    pods.shell("busy", &script, spec).await?;
    gate.until("connected").await?;
    program_of(agent.pid, tool).context("the program does not run")?;
    traces.look(agent.pid);
    agent.kill().await?;
    traces.are_gone(AT_ONCE).await?;
    pods.delete("busy", Some(0)).await?;
    host.is_as_before()
}

/// Without a word about it, an agent takes what is installed and works.
async fn by_itself(stage: &Stage) -> Result<()> {
    if !possible(&["slirp4netns"])? {
        return Ok(());
    }
    let agent = Agent::start(stage, AgentOptions::default()).await?;
    contains("log", &agent.log_text(), &["outbound=\"slirp4netns\""])?;
    equal("label", label(stage, &agent).await?.as_str(), "slirp4netns")?;
    agent.stop().await?;
    // Programs are there, but cannot work.
    let options = AgentOptions { who: Who::Tapless, ..AgentOptions::default() };
    let agent = Agent::start(stage, options).await?;
    let words = ["a way out of the pods' network is not used", "slirp4netns: ", "/dev/net/tun"];
    contains("log", &agent.log_text(), &words)?;
    contains("log", &agent.log_text(), &["outbound=\"the node's HTTP proxy"])?;
    equal("label", label(stage, &agent).await?.as_str(), "proxy")?;
    agent.stop().await
}

/// What is asked for and cannot be had ends the agent.
async fn cannot_be_had(stage: &Stage) -> Result<()> {
    if !possible(&["slirp4netns", "pasta"])? {
        return Ok(());
    }
    for tool in ["slirp4netns", "pasta"] {
        let flag = format!("--outbound={tool}");
        let options =
            AgentOptions { who: Who::Tapless, flags: flags(&[&flag]), ..AgentOptions::default() };
        let refused = Agent::start(stage, options).await.err().context("it runs all the same")?;
        let required = format!("{flag} was required and cannot be had here");
        contains("why", &format!("{refused:#}"), &[&required, "it ended with exit code"])?;
    }
    let options = AgentOptions {
        flags: flags(&["--network=loopback", "--outbound=none"]),
        ..AgentOptions::default()
    };
    let refused = Agent::start(stage, options).await.err().context("it runs all the same")?;
    let required = "--outbound=none was required and cannot be had here";
    contains("why", &format!("{refused:#}"), &[required, "--network=bridge"])
}

/// The proxy when it is asked for, and nothing at all.
async fn proxy_and_none(stage: &Stage) -> Result<()> {
    if !possible(&["ip", "nsenter", "python3"])? {
        return Ok(());
    }
    let outside = Outside::open()?;
    let alone = "exec python3 -c \"import socket
for port in (7000, 3128):
    try:
        socket.create_connection(('ADDRESS' if port == 7000 else '10.77.0.1', port), timeout=1.5)
        print('reached', port)
    except OSError:
        print('kept in')\"";
    let alone = alone.replace("ADDRESS", &outside.theirs);
    let start = async |way: &str| {
        let flags = flags(&[&format!("--outbound={way}")]);
        let agent = Agent::start(stage, AgentOptions { flags, ..AgentOptions::default() }).await?;
        equal("label", label(stage, &agent).await?.as_str(), way)?;
        Ok::<_, anyhow::Error>(agent)
    };
    let pods = Pods::open(stage, "ways").await?;
    let agent = start("proxy").await?;
    let text = says(&pods, "proxy", &by_proxy(&outside), here(&agent)).await?;
    equal("by the proxy", text, format!("hello {}\n", outside.ours))?;
    let text = says(&pods, "without", &alone, here(&agent)).await?;
    equal("without it", text.as_str(), "kept in\nreached 3128\n")?;
    agent.stop().await?;
    let agent = start("none").await?;
    let script = format!("env | grep -i _proxy=; {alone}");
    let text = says(&pods, "none", &script, here(&agent)).await?;
    equal("none", text.as_str(), "kept in\nkept in\n")?;
    agent.stop().await
}
