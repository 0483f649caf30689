//! Who a container runs as, what it may do, and what it cannot see.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Shared;
use super::objects::{ended, hindered, says, value};
use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage, exit_code};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["security":
        users,
        groups,
        non_root,
        read_only_root,
        capabilities,
        confinement,
        unseen,
        refused,
        processes,
        shared_processes,
    ]
}

fn context(own: &Value) -> Value {
    json!({"containers": [{"securityContext": own}]})
}

async fn users(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "users").await?;
    let more = json!({"securityContext": {"runAsUser": 1234, "runAsGroup": 2345}});
    let script = "id -u; id -g; touch /usr/x 2>/dev/null || echo kept out; whoami; echo $HOME";
    let text = says(&pods, "named", script, more).await?;
    equal("what it is", text.as_str(), "1234\n2345\nkept out\nuser\n/root\n")?;
    // The container's own words win over the pod's.
    let more = json!({
        "securityContext": {"runAsUser": 1234},
        "containers": [{"securityContext": {"runAsUser": 77, "runAsGroup": 78}}],
    });
    equal("own", says(&pods, "own", "id -u; id -g", more).await?.as_str(), "77\n78\n")?;
    equal("root", says(&pods, "root", "id -u; id -g", json!({})).await?.as_str(), "0\n0\n")
}

async fn groups(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "groups").await?;
    let more = json!({
        "securityContext": {"runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456, "supplementalGroups": [4567]},
        "containers": [{"volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "token", "mountPath": "/token"}]}],
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "token", "projected": {"defaultMode": 0o400, "sources": [
                {"serviceAccountToken": {"path": "token"}}]}},
        ],
    });
    let script = "id -G | tr ' ' '\\n' | sort | tr '\\n' ' '; echo x > /data/x; stat -c %u:%g /data/x; \
                  stat -c %g /data; head -c 2 /token/token; stat -L -c ' %g' /token/token";
    let text = says(&pods, "named", script, more).await?;
    equal("its groups", text.as_str(), "2345 3456 4567 1234:3456\n3456\ney 3456\n")
}

async fn non_root(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "non-root").await?;
    pods.shell("root", "true", context(&json!({"runAsNonRoot": true}))).await?;
    let words = hindered(&pods, "root", "main", "CreateContainerConfigError").await?;
    contains("why", &words, &["runAsNonRoot and image will run as root", "runAsUser"])?;
    pods.until_event("root", "Failed: Error: container has runAsNonRoot").await?;
    let more = context(&json!({"runAsNonRoot": true, "runAsUser": 5}));
    equal("another", says(&pods, "other", "id -u", more).await?.as_str(), "5\n")
}

async fn read_only_root(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "read-only").await?;
    let script = "for F in /podx /etc/podx /tmp/podx /srv/podx /usr/podx; do \
                    (echo a > $F) 2>/dev/null && echo wrote $F || echo kept $F; done; \
                  echo a > /data/x && echo wrote data; echo a > /dev/shm/x && echo wrote shm";
    let more = json!({
        "containers": [{"securityContext": {"readOnlyRootFilesystem": true},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    });
    let text = says(&pods, "closed", script, more).await?;
    let wanted = "kept /podx\nkept /etc/podx\nkept /tmp/podx\nkept /srv/podx\nkept /usr/podx\nwrote data\nwrote shm\n";
    equal("closed", text.as_str(), wanted)?;
    let script = "for F in /podx /etc/podx /tmp/podx /srv/podx /usr/podx; do \
                    (echo a > $F) 2>/dev/null && echo wrote $F || echo kept $F; done";
    let text = says(&pods, "open", script, json!({})).await?;
    let wanted = "wrote /podx\nwrote /etc/podx\nwrote /tmp/podx\nwrote /srv/podx\nkept /usr/podx\n";
    equal("open", text.as_str(), wanted)?;
    // What was written stayed in the pod.
    for file in ["/podx", "/etc/podx", "/tmp/podx", "/srv/podx"] {
        ensure!(!std::path::Path::new(file).exists(), "{file} is on the machine");
    }
    Ok(())
}

const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;

/// The sets of capabilities of a shell in a new pod: effective and bounding.
async fn caps(pods: &Pods<'_>, name: &str, own: Value) -> Result<(u64, u64)> {
    let text = says(pods, name, "cat /proc/self/status", context(&own)).await?;
    let set = |name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        Ok(u64::from_str_radix(line.with_context(|| text.clone())?.trim(), 16)?)
    };
    Ok((set("CapEff:")?, set("CapBnd:")?))
}

async fn capabilities(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "capabilities").await?;
    let (usual, bounding) = caps(&pods, "usual", json!({})).await?;
    ensure!(usual & NET_BIND_SERVICE != 0, "{usual:x}");
    ensure!((usual | bounding) & (SYS_ADMIN | NET_ADMIN) == 0, "{usual:x} {bounding:x}");
    let (none, bounding) = caps(&pods, "none", json!({"capabilities": {"drop": ["ALL"]}})).await?;
    equal("none", (none, bounding), (0, 0))?;
    let some = json!({"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}});
    equal("some", caps(&pods, "some", some).await?, (NET_ADMIN, NET_ADMIN))?;
    let (user, _) = caps(&pods, "user", json!({"runAsUser": 5})).await?;
    equal("user", user, 0)?;
    let much = context(&json!({"capabilities": {"add": ["SYS_ADMIN"]}}));
    pods.shell("much", "true", much).await?;
    let words = hindered(&pods, "much", "main", "CreateContainerConfigError").await?;
    contains("much", &words, &["capability SYS_ADMIN of container main", "NET_ADMIN"])
}

/// What fails with EPERM. `open_tree_attr`, the page at zero and sockets of the families ALG
/// and TIPC got through while the filter only had a list of what it denies.
const REFUSED: [&str; 24] = [
    "keyctl",
    "bpf",
    "kexec_load",
    "init_module",
    "open_tree",
    "open_tree_attr",
    "fsopen",
    "mount_setattr",
    "io_uring_setup",
    "userfaultfd",
    "perf_event_open",
    "add_key",
    "open_by_handle_at",
    "kcmp",
    "fanotify_init",
    "move_pages",
    "modify_ldt",
    "ptrace",
    "alg",
    "vsock",
    "xdp",
    "packet",
    "tipc",
    "page_at_zero",
];

/// What the kernel filters, and that system calls out of the sandbox fail.
const TRIES: &str = "
grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr ':' '='
mount -t tmpfs none /mnt 2>/dev/null && echo mounted
unshare --user true 2>/dev/null && echo user namespace
unshare --mount true 2>/dev/null && echo mount namespace
python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(number, *arguments)
    print(name, ctypes.get_errno())
# Arguments that each call itself would refuse in other words: EBADF, EFAULT, EINVAL.
for name, number in [
    (\"keyctl\", 250), (\"bpf\", 321), (\"kexec_load\", 246), (\"init_module\", 175),
    (\"open_tree\", 428), (\"open_tree_attr\", 467), (\"fsopen\", 430), (\"mount_setattr\", 442),
    (\"io_uring_setup\", 425), (\"userfaultfd\", 323), (\"perf_event_open\", 298), (\"add_key\", 248),
    (\"open_by_handle_at\", 304), (\"kcmp\", 312), (\"fanotify_init\", 300), (\"move_pages\", 279),
    (\"modify_ldt\", 154),
]:
    tried(name, number, -1, 0, -1, 0, 0)
tried(\"x32\", 0x40000000 + 39)
tried(\"newer\", 600)
tried(\"ptrace\", 101, 16, 1, 0, 0)
for name, family in [(\"alg\", 38), (\"vsock\", 40), (\"xdp\", 44), (\"packet\", 17), (\"tipc\", 30)]:
    tried(name, 41, family, 3, 0)
tried(\"page_at_zero\", 135, 0x100000)
tried(\"clone3\", 435, 0, 0)
'
nsenter --target 1 --net true 2>/dev/null && echo entered
true";

async fn confinement(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "confinement").await?;
    let text = says(&pods, "usual", TRIES, json!({})).await?;
    equal("NoNewPrivs", value(&text, "NoNewPrivs"), Some("1"))?;
    equal("Seccomp", value(&text, "Seccomp"), Some("2"))?;
    for word in ["mounted", "namespace", "entered"] {
        ensure!(!text.contains(word), "{text}");
    }
    // EPERM, or ENOSYS: never an answer of the call itself.
    for name in REFUSED {
        ensure!(text.contains(&format!("{name} 1\n")), "{name} got through: {text}");
    }
    for name in ["x32", "newer", "clone3"] {
        ensure!(text.contains(&format!("{name} 38\n")), "{name} got through: {text}");
    }
    let script = "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr ':' '='";
    let open = json!({"allowPrivilegeEscalation": true, "seccompProfile": {"type": "Unconfined"}});
    let text = says(&pods, "open", script, context(&open)).await?;
    equal("NoNewPrivs", value(&text, "NoNewPrivs"), Some("0"))?;
    equal("Seccomp", value(&text, "Seccomp"), Some("0"))?;
    let closed = context(&json!({"seccompProfile": {"type": "RuntimeDefault"}}));
    let text = says(&pods, "closed", script, closed).await?;
    equal("Seccomp", value(&text, "Seccomp"), Some("2"))
}

async fn unseen(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "unseen").await?;
    let home = std::env::var("HOME").context("HOME is not set")?;
    let (kept, dir) = (agent.state.display(), stage.dir.display());
    pods.shell("other", "echo secret > $HOME/mine; sleep 600", json!({})).await?;
    pods.until_phase("other", "Running").await?;
    let script = format!(
        "ls -A {home} 2>/dev/null | wc -l; for F in {kept} {dir} /etc/shadow /etc/ssh /var/lib /boot /sys/fs; do \
           ls $F >/dev/null 2>&1 && echo sees $F; done; \
         find / -xdev -path /usr -prune -o -name mine -print 2>/dev/null; grep -c {kept} /proc/mounts; \
         for P in /proc/[0-9]*; do cat $P/cmdline 2>/dev/null | tr '\\0' ' '; done | grep -c trainyar[d]; true"
    );
    let text = says(&pods, "looks", &script, json!({})).await?;
    pods.delete("other", Some(0)).await?;
    let mut lines = text.lines();
    equal("files in the home folder", lines.next(), Some("0"))?;
    ensure!(!text.contains("sees") && !text.contains("/mine"), "{text}");
    Ok(())
}

async fn refused(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "refused").await?;
    pods.shell("privileged", "true", context(&json!({"privileged": true}))).await?;
    pods.shell("pids", "true", json!({"hostPID": true})).await?;
    pods.shell("ipc", "true", json!({"hostIPC": true})).await?;
    pods.shell(
        "masks",
        "true",
        context(&json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}})),
    )
    .await?;
    let words = hindered(&pods, "privileged", "main", "CreateContainerConfigError").await?;
    contains("privileged", &words, &["securityContext.privileged of container main", "remove it"])?;
    pods.until_event("privileged", "securityContext.privileged of container main").await?;
    for (name, field) in [("pids", "spec.hostPID"), ("ipc", "spec.hostIPC")] {
        let pod = ended(&pods, name).await?;
        let message = pod.status.as_ref().and_then(|status| status.message.as_deref());
        contains(name, message.unwrap_or_default(), &[field, "remove it"])?;
        pods.until_event(name, field).await?;
        equal(name, exit_code(&pod, "main"), None)?;
    }
    let words = hindered(&pods, "masks", "main", "CreateContainerConfigError").await?;
    contains("masks", &words, &["seccompProfile", "RuntimeDefault"])
}

/// All processes that a container sees, by the name of their program.
const SEES: &str = "for P in /proc/[0-9]*; do cat $P/comm; done 2>/dev/null";

async fn processes(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "processes").await?;
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "test", "command": ["sh", "-c", format!("sleep 1; {SEES}; ls /proc/1/root/ >/dev/null; kill -0 1 && echo own")]},
        {"name": "other", "image": "test", "command": ["tail", "-f", "/dev/null"]},
    ]});
    pods.create("two", spec).await?;
    let pod = pods.until("two", "half ended", |pod| exit_code(pod, "main").is_some()).await?;
    equal("main", exit_code(&pod, "main"), Some(0))?;
    let text = pods.logs(&["two", "-c", "main"]).await?;
    ensure!(!text.contains("tail"), "it sees the other container: {text}");
    // Itself, perhaps an init, and what reads the names.
    ensure!((2..=5).contains(&text.lines().count()), "{text}");
    contains("own", &text, &["sh\n", "own\n"])?;
    pods.delete("two", Some(0)).await
}

async fn shared_processes(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "shared").await?;
    let script = format!(
        "for I in $(seq 100); do ({SEES}) | grep -q '^tail$' && break; sleep 0.1; done; {SEES}; \
         kill $(pidof tail)"
    );
    let spec = json!({"restartPolicy": "Never", "shareProcessNamespace": true, "containers": [
        {"name": "main", "image": "test", "command": ["sh", "-c", script]},
        {"name": "other", "image": "test", "command": ["tail", "-f", "/dev/null"]},
    ]});
    pods.create("two", spec).await?;
    let pod = ended(&pods, "two").await?;
    equal("other", exit_code(&pod, "other"), Some(128 + 15))?;
    let text = pods.logs(&["two", "-c", "main"]).await?;
    contains("main", &text, &["tail\n", "sh\n"])?;
    // The others that it sees are what holds the pod's containers, not the machine's.
    let others = text.lines().filter(|line| !matches!(*line, "tail" | "sh" | "cat"));
    ensure!(
        others.clone().count() <= 3 && others.clone().all(|line| line == "trainyard"),
        "{text}"
    );
    // Still the pod's alone.
    let text = says(&pods, "alone", SEES, json!({"shareProcessNamespace": true})).await?;
    ensure!(!text.contains("tail") && !text.contains("etcd"), "{text}");
    Ok(())
}
