//! The limits of the cgroups this process is in, so that a node inside a container or a slice shows
//! what it really may use. Reads files only; makes no cgroup.

use std::fs;
use std::path::{Path, PathBuf};

/// What the cgroups around this process allow; none means no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) cpu_millis: Option<u64>,
    pub(super) memory: Option<u64>,
}

/// Limits above this are version 1's way to say there is none.
const NO_LIMIT: u64 = 1 << 60;

/// Reads the bounds below `root`, which is `/` except in tests. What cannot be read bounds nothing.
pub(super) fn bounds(root: &Path) -> Bounds {
    let (Ok(memberships), Ok(mounts)) = (
        fs::read_to_string(root.join("proc/self/cgroup")),
        fs::read_to_string(root.join("proc/self/mountinfo")),
    ) else {
        return Bounds::default();
    };
    let mut found = Bounds::default();
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let Some(mount) = find_mount(&mounts, controllers) else { continue };
        for folder in ancestry(root, &mount, path) {
            let here = if controllers.is_empty() {
                version_2(&folder)
            } else {
                version_1(&folder, controllers)
            };
            found.cpu_millis = least(found.cpu_millis, here.cpu_millis);
            found.memory = least(found.memory, here.memory);
        }
    }
    found
}

struct CgroupMount {
    /// The cgroup that is seen at `point`.
    top: PathBuf,
    point: PathBuf,
}

/// The mount of a version 1 hierarchy with these controllers, or of version 2 for none.
fn find_mount(mounts: &str, controllers: &str) -> Option<CgroupMount> {
    mounts.lines().find_map(|line| {
        let (place, file_system) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mount = CgroupMount { top: place.next()?.into(), point: place.next()?.into() };
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let options = file_system.nth(1).unwrap_or_default();
        let fits = if controllers.is_empty() {
            kind == "cgroup2"
        } else {
            kind == "cgroup"
                && controllers.split(',').all(|name| options.split(',').any(|one| one == name))
        };
        fits.then_some(mount)
    })
}

/// The folders of a cgroup and of all above it that can be seen, innermost first.
fn ancestry(root: &Path, mount: &CgroupMount, path: &str) -> Vec<PathBuf> {
    let point = root.join(mount.point.strip_prefix("/").unwrap_or(&mount.point));
    let Ok(below) = Path::new(path).strip_prefix(&mount.top) else { return vec![point] };
    below.ancestors().map(|step| point.join(step)).collect()
}

fn version_2(folder: &Path) -> Bounds {
    let cpu = fs::read_to_string(folder.join("cpu.max")).ok().and_then(|text| {
        let (quota, period) = text.trim().split_once(' ')?;
        millis(quota.parse().ok()?, period.parse().ok()?)
    });
    Bounds { cpu_millis: cpu, memory: number(&folder.join("memory.max")) }
}

fn version_1(folder: &Path, controllers: &str) -> Bounds {
    let has = |name: &str| controllers.split(',').any(|one| one == name);
    let mut bounds = Bounds::default();
    if has("cpu") {
        let quota = number(&folder.join("cpu.cfs_quota_us"));
        let period = number(&folder.join("cpu.cfs_period_us"));
        bounds.cpu_millis = quota.zip(period).and_then(|(quota, period)| millis(quota, period));
    }
    if has("memory") {
        bounds.memory = number(&folder.join("memory.limit_in_bytes"));
    }
    bounds
}

/// A positive number; `max`, `-1` and version 1's huge numbers are none.
fn number(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.trim().parse().ok().filter(|value| (1..NO_LIMIT).contains(value))
}

fn millis(quota: u64, period: u64) -> Option<u64> {
    quota.checked_mul(1000)?.checked_div(period).filter(|value| *value > 0)
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const V2_MOUNTS: &str = "24 1 0:22 / /proc rw - proc proc rw\n\
        30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn version_2_takes_the_tightest_of_all_above() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/user.slice/agent.scope\n"),
            ("proc/self/mountinfo", V2_MOUNTS),
            ("sys/fs/cgroup/user.slice/memory.max", "4294967296\n"),
            ("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user.slice/agent.scope/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/agent.scope/cpu.max", "150000 100000\n"),
        ]);
        assert_eq!(
            bounds(root.path()),
            Bounds { cpu_millis: Some(1500), memory: Some(4_294_967_296) }
        );
    }

    #[test]
    fn version_1_reads_each_hierarchy_and_knows_its_word_for_none() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let root = machine(&[
            ("proc/self/cgroup", "4:memory:/jobs/a\n1:cpu,cpuacct:/jobs\n0::/\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(bounds(root.path()), Bounds { cpu_millis: None, memory: Some(1 << 30) });
    }

    #[test]
    fn inside_a_container_the_mount_begins_below_the_top() {
        let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let root = machine(&[
            ("proc/self/cgroup", "0::/docker/abc/inner\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory.max", "2147483648\n"),
        ]);
        assert_eq!(bounds(root.path()).memory, Some(2 << 30));
    }

    #[test]
    fn rubbish_bounds_nothing() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/x\nnonsense\n"),
            ("proc/self/mountinfo", V2_MOUNTS),
            ("sys/fs/cgroup/x/cpu.max", "100 0\n"),
            ("sys/fs/cgroup/x/memory.max", "-5\n"),
        ]);
        assert_eq!(bounds(root.path()), Bounds::default());
        assert_eq!(bounds(Path::new("/nowhere/at/all")), Bounds::default());
    }
}
