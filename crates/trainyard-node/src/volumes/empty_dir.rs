//! Empty folders for a pod: how large they may be, and how large they are.
//!
//! Must not know how memory-backed ones are mounted.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use k8s_openapi::api::core::v1::{Container, Pod};
use trainyard_api::quantity::{self, Quantity};

/// What a memory-backed folder may hold: its own limit, the pod's memory limit or the node's memory,
/// whichever is least.
pub(crate) fn memory_size(
    pod: &Pod,
    allocatable: &BTreeMap<String, Quantity>,
    limit: Option<Quantity>,
) -> Option<u64> {
    let bounds = [allocatable.get("memory").copied(), pod_limit(pod), limit];
    let least = bounds.into_iter().flatten().filter(|q| *q > Quantity::ZERO).min()?;
    u64::try_from(least.value()).ok()
}

/// The memory a pod is bounded to, if every container is.
fn pod_limit(pod: &Pod) -> Option<Quantity> {
    let spec = pod.spec.as_ref()?;
    let read = |limits: Option<&BTreeMap<String, _>>| {
        let written: &k8s_openapi::apimachinery::pkg::api::resource::Quantity =
            limits?.get("memory")?;
        quantity::parse(&written.0).ok()
    };
    if let Some(whole) = read(spec.resources.as_ref().and_then(|r| r.limits.as_ref())) {
        return Some(whole);
    }
    let of = |c: &Container| read(c.resources.as_ref().and_then(|r| r.limits.as_ref()));
    let together: Quantity =
        spec.containers.iter().map(of).collect::<Option<Vec<_>>>()?.into_iter().sum();
    let before: Option<Vec<Quantity>> = spec.init_containers.iter().flatten().map(of).collect();
    before?.into_iter().chain([together]).max()
}

/// Bytes a folder takes on the disk, without following links; what vanishes meanwhile counts nothing.
pub(crate) fn used(root: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut linked = HashSet::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Of the entry itself, not of what a link points to.
            let Ok(seen) = entry.metadata() else { continue };
            if seen.is_dir() {
                waiting.push(entry.path());
            } else if seen.nlink() > 1 && !linked.insert((seen.dev(), seen.ino())) {
                continue;
            }
            bytes = bytes.saturating_add(seen.blocks().saturating_mul(512));
        }
    }
    bytes
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
}
