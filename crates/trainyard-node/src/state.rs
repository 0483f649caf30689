//! The agent's folder on disk: one agent at a time, nothing left over from one before.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, IFlags, flock, ioctl_getflags, ioctl_setflags};
use tokio::time::{Instant, sleep};
use trainyard_holder::sweep::sweep;

use crate::error::AgentError;
use crate::shared::Places;

/// A holder whose agent was killed takes no longer to end its pods.
const HOLDER_ENDS: Duration = Duration::from_secs(40);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The folder, held against other agents for as long as this lives.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) places: Places,
    /// The same for every agent that uses this folder, and for no other on this machine: the holder
    /// clears away under this name what one before it could not.
    pub(crate) id: String,
    /// Which process holds the pods.
    holder: PathBuf,
    lock: File,
}

impl Drop for State {
    fn drop(&mut self) {
        // Closing the file is not enough while another thread is starting a process: until that one
        // runs its own program it has the file open too.
        let _ = self.lock.unlock();
    }
}

/// Takes the folder.
pub(crate) fn take(folder: &Path) -> Result<State, AgentError> {
    let wrong = |reason: String| AgentError::State { folder: folder.display().to_string(), reason };
    let places = Places {
        pods: folder.join("pods"),
        logs: folder.join("logs"),
        claims: folder.join("claims"),
    };
    let io = |error: io::Error| wrong(error.to_string());
    for place in [&places.pods, &places.logs, &places.claims] {
        fs::create_dir_all(place).map_err(io)?;
    }
    for place in [&places.pods, &places.logs] {
        spread(place);
    }
    let lock = File::create(folder.join("lock")).map_err(io)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        wrong("another agent uses it; give this one its own with --state-dir".to_owned())
    })?;
    let meta = fs::metadata(folder).map_err(io)?;
    let id = format!("{:x}-{:x}", meta.dev(), meta.ino());
    Ok(State { places, id, holder: folder.join("holder"), lock })
}

/// Asks the file system to keep the folders in this one apart from each other. Where many pods come and
/// go, ext4 would look for a place for every new file among those of the pods that have just gone.
fn spread(folder: &Path) {
    let asked = File::open(folder).and_then(|folder| {
        let flags = ioctl_getflags(&folder)?;
        Ok(ioctl_setflags(&folder, flags | IFlags::TOPDIR)?)
    });
    if let Err(error) = asked {
        // Others do not need to be told, or know of no such thing.
        tracing::debug!(folder = %folder.display(), %error, "its folders lie where they may");
    }
}

impl State {
    /// Waits for the holder of an agent that was killed: it is still ending its pods under the name that
    /// this agent's will have. What pods left when their holder was killed too is removed; logs and
    /// claims stay.
    pub(crate) async fn clear(&self) -> Result<(), AgentError> {
        let text = fs::read_to_string(&self.holder).unwrap_or_default();
        let began = Instant::now();
        while is_alive(&text) {
            if began.elapsed() > HOLDER_ENDS {
                let pid = text.split(' ').next().unwrap_or_default();
                return Err(AgentError::HolderStays(pid.to_owned()));
            }
            sleep(LOOK_AGAIN).await;
        }
        for left in fs::read_dir(&self.places.pods).into_iter().flatten().flatten() {
            let path = left.path();
            if let Err(error) = sweep(&path) {
                tracing::warn!(path = %path.display(), %error, "left over from a pod, and cannot be removed");
            }
        }
        Ok(())
    }

    /// This process holds the pods from now on.
    pub(crate) fn note_holder(&self, pid: u32) {
        let text = started(pid).map(|started| format!("{pid} {started}")).unwrap_or_default();
        if let Err(error) = fs::write(&self.holder, text) {
            tracing::warn!(%error, "an agent after this one may not wait for the end of its pods");
        }
    }
}

/// Whether the process noted so runs still.
fn is_alive(noted: &str) -> bool {
    let Some((pid, noted)) = noted.split_once(' ') else { return false };
    pid.parse().ok().and_then(started).is_some_and(|started| started == noted)
}

/// When a process was started, in the kernel's words; none if it has ended. With its number that names
/// it for ever.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let runs = !matches!(fields.first(), Some(&("Z" | "X")) | None);
    fields.get(19).filter(|_| runs).map(|started| (*started).to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn one_agent_at_a_time_and_logs_stay() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path()).unwrap();
        fs::create_dir_all(first.places.pods.join("u1/volumes")).unwrap();
        fs::write(first.places.logs.join("kept"), "x").unwrap();
        let error = take(folder.path()).unwrap_err().to_string();
        assert!(error.contains("--state-dir"), "{error}");
        let id = first.id.clone();
        drop(first);
        let second = take(folder.path()).unwrap();
        second.clear().await.unwrap();
        assert_eq!(second.id, id);
        assert_eq!(fs::read_dir(&second.places.pods).unwrap().count(), 0);
        assert!(second.places.logs.join("kept").exists());
    }

    #[test]
    fn folders_of_pods_are_kept_apart_where_it_matters() {
        const EXT4: u64 = 0xEF53;
        let folder = tempfile::tempdir().unwrap();
        let state = take(folder.path()).unwrap();
        let kind = rustix::fs::statfs(folder.path()).unwrap().f_type;
        if u64::try_from(kind) != Ok(EXT4) {
            return;
        }
        for place in [&state.places.pods, &state.places.logs] {
            let flags = ioctl_getflags(File::open(place).unwrap()).unwrap();
            assert!(flags.contains(IFlags::TOPDIR), "{place:?}");
        }
    }

    #[tokio::test]
    async fn a_holder_that_still_ends_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut holder = Command::new("sleep").arg("0.2").spawn().unwrap();
        let state = take(folder.path()).unwrap();
        state.note_holder(holder.id());
        let began = Instant::now();
        state.clear().await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
        holder.wait().unwrap();
        // Another process that has its number by now is not waited for.
        fs::write(&state.holder, format!("{} 1", std::process::id())).unwrap();
        state.clear().await.unwrap();
    }
}
