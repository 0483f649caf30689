//! What a private root shows of the host: its programs and libraries, and of `/etc` only what programs
//! need to run. Never accounts, keys, homes, logs or the state of services. Only says what to show;
//! does not mount.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One step of composing the system's part of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemView {
    /// A file or folder of the host, read-only.
    Bind {
        /// On the host.
        source: PathBuf,
        /// Inside.
        target: PathBuf,
    },
    /// A small file of the host, which inside can be changed.
    Copy {
        /// On the host.
        source: PathBuf,
        /// Inside.
        target: PathBuf,
        /// Which state of the file it is.
        stamp: String,
    },
    /// A symbolic link.
    Symlink {
        /// Inside.
        target: PathBuf,
        /// What it points to.
        to: PathBuf,
    },
    /// A folder of its own, writable as its mode says.
    Directory {
        /// Inside.
        target: PathBuf,
        /// Permission bits.
        mode: u32,
    },
    /// A file of its own.
    File {
        /// Inside.
        target: PathBuf,
        /// What it holds.
        content: String,
        /// Permission bits.
        mode: u32,
    },
}

/// Folders at the top; where `/bin` and its like are links into `/usr` they stay links.
const TOP: [&str; 11] = [
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "opt",
    "nix/store",
    "gnu/store",
    "usr/lib/wsl",
];

/// The folder among these that is the place of programs that no package manager knows.
const EXTENDED: &str = "opt";
/// Each of its parts is a mount more for every container.
const MOST_PARTS: usize = 32;

/// Names under `/etc`; a star at the end takes all that begin so. Of `ssl` and `pki` only what is public.
const ETC: [&str; 44] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/ca-trust",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "crypto-policies",
    "localtime",
    "timezone",
    "locale.conf",
    "locale.alias",
    "alternatives",
    "protocols",
    "services",
    "networks",
    "rpc",
    "ethertypes",
    "gai.conf",
    "mime.types",
    "magic",
    "magic.mime",
    "terminfo",
    "inputrc",
    "profile",
    "bash.bashrc",
    "bashrc",
    "python3*",
    "perl",
    "java*",
    "fonts",
    "pip.conf",
    "os-release",
    "debian_version",
    "redhat-release",
    "OpenCL",
    "vulkan",
    "glvnd",
    "lsb-release",
];

/// Folders that belong to the container, with their modes. The home is open to any user the container
/// may run as: nobody else sees it.
const OWN: [(&str, u32); 12] = [
    ("/etc", 0o755),
    ("/tmp", 0o1777),
    ("/var", 0o755),
    ("/var/tmp", 0o1777),
    ("/var/log", 0o755),
    ("/var/cache", 0o755),
    ("/run", 0o755),
    ("/root", 0o777),
    ("/home", 0o755),
    ("/mnt", 0o755),
    ("/media", 0o755),
    ("/srv", 0o755),
];

/// Larger files are bound; a bind for each of the small ones would cost every container more than the
/// memory for one copy that all can share.
const MOST_COPIED: u64 = 128 << 10;

/// What changes on the host is seen by containers that start this much later.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Names are looked up in files and by DNS alone: the host's other sources have no servers inside.
const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n\
                        protocols: files\nservices: files\nethers: files\nrpc: files\n";

/// What a private root shows of the host, in the order in which it is composed, for a container that
/// runs as this user and group.
#[must_use]
pub fn system_views(uid: u32, gid: u32) -> Vec<SystemView> {
    let mut views = seen_lately();
    views.extend(accounts(uid, gid));
    views
}

/// The host's part. It takes some hundred looks at files, and changes hardly ever: pods that start
/// together share what the first one found.
fn seen_lately() -> Vec<SystemView> {
    static LAST: Mutex<Option<(Instant, Vec<SystemView>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((when, views)) if when.elapsed() < LOOK_AGAIN => views.clone(),
        _ => {
            let views = host(Path::new("/"));
            *last = Some((Instant::now(), views.clone()));
            views
        }
    }
}

/// Whether a path of the host is shown by these views already.
pub(crate) fn is_shown(path: &Path) -> bool {
    TOP.iter().any(|top| path.starts_with(Path::new("/").join(top)))
}

/// Whether a path of the host is shown, or is one of the files of `/etc` that are.
pub(crate) fn shows(path: &Path) -> bool {
    is_shown(path) || ETC.iter().any(|name| path.starts_with(Path::new("/etc").join(name)))
}

/// What does not depend on who looks.
fn host(root: &Path) -> Vec<SystemView> {
    let mut views = Vec::new();
    let usr = root.join("usr").canonicalize().ok();
    let show = |name: &str| show(root, name, usr.as_deref()?);
    for name in TOP {
        // What lies inside another is there for `is_shown` only.
        if name.starts_with("usr/") {
            continue;
        }
        match parts(root, name) {
            Some(parts) => {
                let target = Path::new("/").join(name);
                views.push(SystemView::Directory { target, mode: 0o755 });
                views.extend(parts.iter().filter_map(|part| show(part)));
            }
            None => views.extend(show(name)),
        }
    }
    for (target, mode) in OWN {
        views.push(SystemView::Directory { target: target.into(), mode });
    }
    views.push(SystemView::Symlink { target: "/var/run".into(), to: "/run".into() });
    let mut parents = BTreeSet::new();
    for name in ETC.iter().flat_map(|name| expand(root, name)) {
        let Some(view) = show(&name) else { continue };
        let inner = Path::new(&name).ancestors().skip(1).filter(|dir| dir.components().count() > 1);
        let mut missing: Vec<_> = inner.map(|dir| Path::new("/").join(dir)).collect();
        missing.reverse();
        for target in missing {
            if parents.insert(target.clone()) {
                views.push(SystemView::Directory { target, mode: 0o755 });
            }
        }
        views.push(view);
    }
    views.push(SystemView::Symlink { target: "/etc/mtab".into(), to: "/proc/mounts".into() });
    views.push(file("/etc/nsswitch.conf", NSSWITCH.to_owned()));
    views.push(file("/etc/host.conf", "multi on\n".to_owned()));
    views
}

/// What is in a folder that images put programs of their own into, so that it can have more inside than
/// on the host; none where it is shown as it is.
fn parts(root: &Path, name: &str) -> Option<Vec<String>> {
    let path = root.join(name);
    if name != EXTENDED || !path.symlink_metadata().ok()?.is_dir() {
        return None;
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).ok()? {
        let entry = entry.ok()?.file_name().into_string().ok()?;
        found.push(format!("{name}/{entry}"));
        if found.len() > MOST_PARTS {
            return None;
        }
    }
    found.sort();
    Some(found)
}

/// Who there is inside.
fn accounts(uid: u32, gid: u32) -> [SystemView; 2] {
    [file("/etc/passwd", passwd(uid, gid)), file("/etc/group", group(gid))]
}

fn file(target: &str, content: String) -> SystemView {
    SystemView::File { target: target.into(), content, mode: 0o644 }
}

/// A link into `/usr` stays one, a small file is copied, anything else is bound; what not everyone may
/// read is left out.
fn show(root: &Path, name: &str, usr: &Path) -> Option<SystemView> {
    let path = root.join(name);
    let target = Path::new("/").join(name);
    let data = path.symlink_metadata().ok()?;
    let source = path.canonicalize().ok()?;
    if data.is_symlink() && source.starts_with(usr) {
        return Some(SystemView::Symlink { target, to: std::fs::read_link(&path).ok()? });
    }
    let data = source.metadata().ok()?;
    let wanted = if data.is_dir() { 0o005 } else { 0o004 };
    if data.permissions().mode() & wanted != wanted {
        return None;
    }
    if data.is_file() && data.len() <= MOST_COPIED {
        let stamp = format!(
            "{}-{}-{}-{}.{:09}",
            data.dev(),
            data.ino(),
            data.len(),
            data.ctime(),
            data.ctime_nsec()
        );
        return Some(SystemView::Copy { source, target, stamp });
    }
    Some(SystemView::Bind { source, target })
}

fn expand(root: &Path, name: &str) -> Vec<String> {
    let Some(start) = name.strip_suffix('*') else { return vec![format!("etc/{name}")] };
    let entries = std::fs::read_dir(root.join("etc")).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|entry| entry.starts_with(start))
        .map(|entry| format!("etc/{entry}"))
        .collect();
    found.sort();
    found
}

fn passwd(uid: u32, gid: u32) -> String {
    let mut text = "root:x:0:0:root:/root:/bin/bash\n\
                    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        .to_owned();
    if uid != 0 && uid != 65534 {
        text = format!("{text}user:x:{uid}:{gid}:user:/root:/bin/bash\n");
    }
    text
}

fn group(gid: u32) -> String {
    let mut text = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n".to_owned();
    if ![0, 5, 65534].contains(&gid) {
        text = format!("{text}user:x:{gid}:\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn target(view: &SystemView) -> &Path {
        match view {
            SystemView::Bind { target, .. }
            | SystemView::Copy { target, .. }
            | SystemView::Symlink { target, .. }
            | SystemView::Directory { target, .. }
            | SystemView::File { target, .. } => target,
        }
    }

    fn find<'a>(views: &'a [SystemView], path: &str) -> Option<&'a SystemView> {
        views.iter().find(|view| target(view) == Path::new(path))
    }

    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in [
            "usr/bin",
            "usr/share",
            "lib64",
            "opt",
            "etc/ssl/certs",
            "etc/ssl/private",
            "etc/ssh",
            "etc/python3.11",
            "etc/pki/tls/certs",
            "root",
            "home/me",
            "var/opt",
            "etc/perl",
        ] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in
            ["etc/shadow", "etc/passwd", "etc/ld.so.cache", "usr/share/zone", "etc/services"]
        {
            std::fs::write(root.join(file), "x").unwrap();
        }
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("../usr/share/zone", root.join("etc/localtime")).unwrap();
        symlink("nowhere", root.join("etc/protocols")).unwrap();
        let closed = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(root.join("etc/services"), closed).unwrap();
        dir
    }

    #[test]
    fn programs_are_shown_and_links_stay_links() {
        let machine = machine();
        let views = host(machine.path());
        let source = machine.path().join("usr").canonicalize().unwrap();
        assert_eq!(find(&views, "/usr"), Some(&SystemView::Bind { source, target: "/usr".into() }));
        let link = SystemView::Symlink { target: "/bin".into(), to: "usr/bin".into() };
        assert_eq!(find(&views, "/bin"), Some(&link));
        assert!(matches!(find(&views, "/lib64"), Some(SystemView::Bind { .. })));
        assert!(matches!(find(&views, "/etc/localtime"), Some(SystemView::Symlink { .. })));
        assert!(matches!(find(&views, "/etc/python3.11"), Some(SystemView::Bind { .. })));
        assert_eq!(find(&views, "/etc/protocols"), None, "it points nowhere");
        assert_eq!(find(&views, "/etc/services"), None, "not everyone may read it");
    }

    #[test]
    fn a_place_for_programs_can_have_more_inside() {
        let machine = machine();
        let own = SystemView::Directory { target: "/opt".into(), mode: 0o755 };
        assert_eq!(find(&host(machine.path()), "/opt"), Some(&own));
        std::fs::create_dir(machine.path().join("opt/tool")).unwrap();
        let views = host(machine.path());
        assert_eq!(find(&views, "/opt"), Some(&own));
        assert!(matches!(find(&views, "/opt/tool"), Some(SystemView::Bind { .. })));
        for number in 0..MOST_PARTS {
            std::fs::create_dir(machine.path().join(format!("opt/{number}"))).unwrap();
        }
        assert!(matches!(find(&host(machine.path()), "/opt"), Some(SystemView::Bind { .. })));
    }

    #[test]
    fn small_files_are_copied_and_a_changed_one_is_another() {
        let machine = machine();
        let cache = machine.path().join("etc/ld.so.cache");
        let stamp = || match find(&host(machine.path()), "/etc/ld.so.cache") {
            Some(SystemView::Copy { source, stamp, .. }) => {
                assert_eq!(*source, cache.canonicalize().unwrap());
                stamp.clone()
            }
            other => panic!("{other:?}"),
        };
        let first = stamp();
        assert_eq!(stamp(), first);
        std::fs::write(&cache, "another").unwrap();
        assert_ne!(stamp(), first);
        let large = vec![0; usize::try_from(MOST_COPIED).unwrap() + 1];
        std::fs::write(&cache, large).unwrap();
        let views = host(machine.path());
        assert!(matches!(find(&views, "/etc/ld.so.cache"), Some(SystemView::Bind { .. })));
    }

    #[test]
    fn accounts_keys_and_homes_are_never_shown() {
        let machine = machine();
        let shown: Vec<PathBuf> = host(machine.path())
            .into_iter()
            .filter_map(|view| match view {
                SystemView::Bind { source, .. } | SystemView::Copy { source, .. } => Some(source),
                _ => None,
            })
            .collect();
        let root = machine.path().canonicalize().unwrap();
        for hidden in
            ["etc/shadow", "etc/passwd", "etc/ssh", "etc/ssl/private", "root", "home/me", "var"]
        {
            let hidden = root.join(hidden);
            assert!(!shown.iter().any(|source| hidden.starts_with(source)), "{hidden:?}");
        }
    }

    #[test]
    fn parents_come_before_what_is_in_them() {
        let machine = machine();
        let views = host(machine.path());
        for (at, view) in views.iter().enumerate() {
            let parent = target(view).parent().unwrap();
            let made = views[..at].iter().any(|before| target(before) == parent);
            let itself = parent == Path::new("/");
            assert!(made || itself, "{:?} has no parent", target(view));
        }
    }

    #[test]
    fn the_user_has_a_name_and_a_home() {
        assert_eq!(passwd(0, 0).lines().count(), 2);
        assert!(passwd(1000, 100).ends_with("user:x:1000:100:user:/root:/bin/bash\n"));
        assert!(group(100).contains("user:x:100:\n"));
        assert_eq!(group(0).lines().count(), 3);
        let home = SystemView::Directory { target: "/root".into(), mode: 0o777 };
        assert!(system_views(1000, 100).contains(&home));
    }
}
