//! A disk that is full: pods say so, and go on when there is room again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::look::{Gate, ended};
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage};

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(3),
        cases!["full":
            disk,
        ],
    )
}

/// A small disk in memory, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("trainyard-small-").tempdir()?.keep();
        let words = ["-t", "tmpfs", "-o", "size=6m", "trainyard-test"];
        let status = Command::new("mount").args(words).arg(&folder).status()?;
        ensure!(status.success(), "no disk could be made: {status}");
        Ok(Self(folder))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What cannot be removed here is left to whoever cleans the temporary folder.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

async fn disk(stage: &Stage) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        // Only root can make a disk.
        return Ok(());
    }
    let disk = SmallDisk::mount()?;
    let nodes = vec!["rowan".to_owned()];
    let options =
        AgentOptions { nodes, state: Some(disk.path().to_owned()), ..AgentOptions::default() };
    let agent = Agent::start(stage, options).await?;
    let (pods, gate) = (Pods::open(stage, "full").await?, Gate::new()?);
    // The agents before it may still seem to be there.
    let here = json!({"kubernetes.io/hostname": "rowan"});
    let more = json!({
        "nodeSelector": here,
        "volumes": [{"name": "work", "emptyDir": {}}, gate.volume()],
        "containers": [{"volumeMounts": [{"name": "work", "mountPath": "/fill"}, Gate::mount()]}],
    });
    let script = "cat /dev/zero > /fill/data; touch /gate/full; \
                  until [ -e /gate/end ]; do sleep 0.05; done; yes | head -c 100000; exit 3";
    pods.shell("filler", script, more).await?;
    gate.until("full").await?;
    pods.shell("victim", "echo it runs", json!({"nodeSelector": here})).await?;
    let event = pods.until_event("victim", "No space left on device").await?;
    let place = disk.path().display().to_string();
    let says_where = event.contains(" for volume \"kube-api-access-") || event.contains(&place);
    ensure!(says_where, "it does not say where: {event}");
    // A program whose output cannot be kept ends as it would.
    gate.open("end")?;
    let pod = pods.until_phase("filler", "Failed").await?;
    ensure!(ended(&pod, "main")?.exit_code == 3, "{:?}", pod.status);
    pods.until_event("filler", "LogLost: ").await?;
    // Its volume ended with it: there is room again.
    pods.until_phase("victim", "Succeeded").await?;
    ensure!(pods.logs(&["victim"]).await? == "it runs\n");
    agent.check()?;
    agent.stop().await
}
