//! What a cluster needs of the machine, and why it cannot be had here, if so.

use std::path::Path;

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::node::finish;
use super::{cgroup, configuration, folder};
use crate::control_plane::{Binaries, Program};
use crate::packages;

/// Programs of the distribution, each with its package. Those of `util-linux` and `mount` are everywhere.
const PACKAGES: [(&str, &str); 10] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("socat", "socat"),
    ("tini", "tini"),
    ("busybox", "busybox"),
    ("mmdebstrap", "mmdebstrap"),
    ("cc", "gcc"),
];

/// Tries what nodes do: namespaces, mounts of both kinds, a bridge, a setting of the network.
const TRIAL: &str = "set -e
mount -t tmpfs tmpfs /run
mkdir /run/l /run/u /run/w /run/m
mount -t overlay overlay -o lowerdir=/run/l,upperdir=/run/u,workdir=/run/w /run/m
ip link set lo up
ip link add trial type bridge
ip link add cable type veth peer name other
iptables -t nat -n -L >/dev/null
echo 1 > /proc/sys/net/ipv4/ip_forward
";
/// Where a package may have put a program of root's.
const PLACES: &str = super::node::PATH;

/// The reason why there cannot be a cluster on this machine, if so.
pub(super) async fn obstacle() -> Result<Option<String>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Some(
            "a cluster's nodes have namespaces, mounts and control groups of their own, and that takes root: \
             run it as root"
                .to_owned(),
        ));
    }
    if let Some(obstacle) = Binaries::obstacle(&Program::ALL).await? {
        return Ok(Some(obstacle));
    }
    packages::install(&PACKAGES).await?;
    let missing = packages::missing(&PACKAGES);
    if !missing.is_empty() {
        let names = missing.join(", ");
        return Ok(Some(format!("these packages are missing and cannot be installed: {names}")));
    }
    if let Err(error) = trial().await {
        return Ok(Some(format!("this machine does not allow what nodes are made of: {error:#}")));
    }
    Ok(None)
}

/// Tries namespaces and control groups, and leaves nothing.
async fn trial() -> Result<()> {
    let mut unshare = Command::new("unshare");
    let words =
        ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"];
    unshare.args(words).args(["--propagation", "private", "--", "sh", "-c", TRIAL]);
    finish(unshare.env("PATH", PLACES).kill_on_drop(true)).await.context("namespaces")?;
    let own = format!("trial-{}", std::process::id());
    let made = cgroup::create(&own, 0);
    cgroup::remove(&own, 0).await.and(made).context("control groups")
}

/// Installs packages and builds programs that are missing.
pub(super) async fn provide() -> Result<Binaries> {
    packages::install(&PACKAGES).await?;
    let plugins = Path::new(configuration::PLUGINS);
    anyhow::ensure!(plugins.is_dir(), "there are no network plugins in {}", plugins.display());
    let all = folder::all()?;
    std::fs::create_dir_all(&all).with_context(|| format!("cannot make {}", all.display()))?;
    Binaries::provide(&Program::ALL).await
}
