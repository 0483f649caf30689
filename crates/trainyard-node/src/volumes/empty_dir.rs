//! Empty folders for a pod: how large they may be, and how large they are.
//!
//! Must not know how memory-backed ones are mounted.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use rustix::fs::{FileType, Stat};
use trainyard_api::quantity::Quantity;
use trainyard_holder::beneath;

use crate::pod::limits;
use crate::volumes::walk;

/// What a memory-backed folder may hold: its own limit, the pod's memory limit or the node's memory,
/// whichever is least.
pub(crate) fn memory_size(
    pod: &Pod,
    allocatable: &BTreeMap<String, Quantity>,
    limit: Option<Quantity>,
) -> Option<u64> {
    let of_pod = pod.spec.as_ref().and_then(|spec| limits::most(spec, "memory"));
    let bounds = [allocatable.get("memory").copied(), of_pod, limit];
    let least = bounds.into_iter().flatten().filter(|q| *q > Quantity::ZERO).min()?;
    u64::try_from(least.value()).ok()
}

/// What any file or folder counts for, an empty one too: a disk has only so many of them.
const LEAST: u64 = 4096;

/// Bytes a folder takes on the disk, without following links; what vanishes meanwhile counts nothing,
/// nor does what cannot be looked at. Folders nested deeper than anybody needs hide nothing: they take
/// more than any limit.
pub(crate) fn used(root: &Path) -> u64 {
    // A walk holds many descriptors open: one at a time.
    static WALK: Mutex<()> = Mutex::new(());
    let _one = WALK.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(top) = beneath::real(root) else { return 0 };
    let mut bytes = 0_u64;
    let mut linked = HashSet::new();
    let add = |_: &OwnedFd, seen: &Stat| {
        let is_folder = FileType::from_raw_mode(seen.st_mode).is_dir();
        if is_folder || seen.st_nlink < 2 || linked.insert((seen.st_dev, seen.st_ino)) {
            let blocks = u64::try_from(seen.st_blocks).unwrap_or(0);
            bytes = bytes.saturating_add(blocks.saturating_mul(512).max(LEAST));
        }
        Ok(())
    };
    match walk::below(&top, add, |_| Ok(())) {
        Err(error) if error.kind() == io::ErrorKind::Other => u64::MAX,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::{memory_size, used};
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;
    use std::fs;
    use trainyard_api::quantity::parse;

    #[test]
    fn memory_is_bounded_by_the_least() {
        let pod = |containers: serde_json::Value, init: serde_json::Value| -> Pod {
            let spec = json!({"containers": containers, "initContainers": init});
            serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
        };
        let with = |memory: &str| json!({"name": "c", "resources": {"limits": {"memory": memory}}});
        let free = || json!({"name": "c"});
        for (containers, init, limit, size) in [
            (json!([free()]), json!([]), None, 1000),
            (json!([free()]), json!([]), Some("10"), 10),
            (json!([free()]), json!([]), Some("0"), 1000),
            (json!([free()]), json!([]), Some("5000"), 1000),
            (json!([with("100"), with("50")]), json!([]), None, 150),
            (json!([with("100"), free()]), json!([]), None, 1000),
            (json!([with("100")]), json!([with("300")]), None, 300),
            (json!([with("100")]), json!([free()]), None, 1000),
            (json!([with("100")]), json!([]), Some("64"), 64),
            (json!([with("100")]), json!([]), Some("200"), 100),
            (json!([with("bad")]), json!([]), None, 1000),
        ] {
            let allocatable = [("memory".to_owned(), parse("1000").unwrap())].into();
            let limit = limit.map(|l| parse(l).unwrap());
            let pod = pod(containers, init);
            assert_eq!(memory_size(&pod, &allocatable, limit), Some(size));
        }
    }

    #[test]
    fn what_is_used_is_counted_once_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        assert_eq!(used(&root.join("gone")), 0);
        fs::create_dir(root.join("d")).unwrap();
        let empty = used(root);
        fs::write(root.join("d/file"), vec![1; 100_000]).unwrap();
        let once = used(root);
        assert!(once >= empty + 100_000 && once < empty + 200_000, "{empty} {once}");
        fs::hard_link(root.join("d/file"), root.join("again")).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("out")).unwrap();
        std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
        assert!(used(root) < once + 100_000);
    }

    // By their paths, files below some four thousand letters of folders could not be found: a pod kept
    // there whatever it liked.
    #[test]
    fn nothing_is_hidden_by_depth() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("v");
        fs::create_dir(&root).unwrap();
        let flags = rustix::fs::OFlags::RDONLY;
        let mut here = rustix::fs::open(&root, flags, rustix::fs::Mode::empty()).unwrap();
        let name = "n".repeat(200);
        for depth in 0..40 {
            if depth == 30 {
                let new = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
                let file = rustix::fs::openat(&here, "f", new, rustix::fs::Mode::RWXU).unwrap();
                rustix::io::write(&file, &vec![1; 100_000]).unwrap();
            }
            rustix::fs::mkdirat(&here, &*name, rustix::fs::Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, &*name, flags, rustix::fs::Mode::empty()).unwrap();
        }
        let seen = used(&root);
        assert!((100_000..1_000_000).contains(&seen), "{seen}");
        for _ in 0..200 {
            rustix::fs::mkdirat(&here, "d", rustix::fs::Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, "d", flags, rustix::fs::Mode::empty()).unwrap();
        }
        assert_eq!(used(&root), u64::MAX);
        trainyard_holder::sweep::sweep(&root).unwrap();
    }

    // By its path, a folder that was exchanged for a link between two looks was that link's folder, and
    // what is in there was counted.
    #[test]
    fn a_folder_that_is_exchanged_for_a_link_is_never_left() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};

        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("v/a")).unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        fs::write(root.join("outside/large"), vec![1; 1_000_000]).unwrap();
        std::os::unix::fs::symlink("../outside", root.join("v/b")).unwrap();
        let (a, b) = (root.join("v/a"), root.join("v/b"));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let most = (0..5000).map(|_| used(&root.join("v"))).max();
            done.store(true, Ordering::Relaxed);
            assert!(most.is_some_and(|most| most > 0 && most < 500_000), "{most:?}");
        });
    }

    // A million empty files counted nothing: no size of an emptyDir kept a pod from taking all that
    // the disk has.
    #[test]
    fn empty_files_and_links_count_too() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..100 {
            fs::write(place.path().join(format!("file-{number}")), "").unwrap();
            std::os::unix::fs::symlink("x", place.path().join(format!("link-{number}"))).unwrap();
        }
        assert!(used(place.path()) >= 200 * 4096);
    }
}
