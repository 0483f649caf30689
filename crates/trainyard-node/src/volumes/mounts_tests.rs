//! Mounts of containers: order, rights, and paths that must not leave a volume.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, from_value, json};
use trainyard_holder::protocol::Mount;

use crate::env::Environment;
use crate::volumes::{Entry, Volumes};

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    volumes: Volumes,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut volumes = Volumes::default();
    for name in ["data", "config", "memory"] {
        let path = root.join(name);
        fs::create_dir(&path).unwrap();
        let entry = Entry {
            path,
            read_only: name == "config",
            in_memory: name == "memory",
            ..Entry::default()
        };
        volumes.entries.insert(name.to_owned(), entry);
    }
    fs::write(root.join("config/app.conf"), "x").unwrap();
    World { _dir: dir, root, volumes }
}

fn mounted(volumes: &Volumes, mounts: &Value) -> Result<Vec<(PathBuf, PathBuf, bool)>, String> {
    let container: Container = from_value(json!({"name": "main", "volumeMounts": mounts})).unwrap();
    let mut env = Environment::new(&[("HOME".to_owned(), "/root".to_owned())]);
    env.set("POD", "worker-0");
    env.set("EMPTY", "");
    env.set("UP", "../..");
    let mounts = volumes.mounts(&container, &env).map_err(|e| e.to_string())?;
    let bind = |mount| match mount {
        Mount::Volume { place, part, target, read_only, .. } => {
            let path = if part.as_os_str().is_empty() { place } else { place.join(part) };
            (path, target, read_only)
        }
        other => panic!("{other:?}"),
    };
    Ok(mounts.into_iter().map(bind).collect())
}

#[test]
fn parents_come_first_and_rights_are_the_stricter() {
    let world = world();
    let mounts = mounted(
        &world.volumes,
        &json!([
            {"name": "config", "mountPath": "/data/conf/app.conf", "subPath": "app.conf"},
            {"name": "data", "mountPath": "/data/conf/", "subPath": "a/b", "readOnly": true},
            {"name": "data", "mountPath": "data"},
            {"name": "memory", "mountPath": "/dev/shm"},
        ]),
    )
    .unwrap();
    let at = |path: &str| world.root.join(path);
    let target = |path: &str| PathBuf::from(path);
    assert_eq!(
        mounts,
        [
            (at("data"), target("/data"), false),
            (at("data/a/b"), target("/data/conf"), true),
            (at("memory"), target("/dev/shm"), false),
            (at("config/app.conf"), target("/data/conf/app.conf"), true),
        ]
    );
    // That is the holder's, at the time when it is mounted.
    assert!(!at("data/a").exists());
}

#[test]
fn sub_paths_are_made_from_variables() {
    let world = world();
    let one = |expression: &str| {
        let mount = json!([{"name": "data", "mountPath": "/x", "subPathExpr": expression}]);
        mounted(&world.volumes, &mount)
    };
    assert_eq!(one("logs/$(POD)").unwrap()[0].0, world.root.join("data/logs/worker-0"));
    assert_eq!(one("$$(POD)").unwrap()[0].0, world.root.join("data/$(POD)"));
    assert_eq!(one("$(B)/$(EMPTY)/$(A)").unwrap_err(), "missing value for A, B, EMPTY");
    assert_eq!(one("$(HOME)").unwrap_err(), "missing value for HOME");
    assert_eq!(
        one("$(UP)/etc").unwrap_err(),
        "unable to provision SubPath `../../etc`: must not contain '..'"
    );
}

#[test]
fn a_sub_path_that_goes_up_is_refused() {
    let world = world();
    let one = |sub_path: &str| {
        let mount = json!([{"name": "data", "mountPath": "/x", "subPath": sub_path}]);
        mounted(&world.volumes, &mount).unwrap_err()
    };
    assert_eq!(one("/etc"), "error SubPath `/etc` must not be an absolute path");
    assert_eq!(one("../x"), "unable to provision SubPath `../x`: must not contain '..'");
    assert_eq!(one("a/../../x"), "unable to provision SubPath `a/../../x`: must not contain '..'");
}

#[test]
fn targets_stay_below_the_root() {
    let world = world();
    let one = |path: &str| mounted(&world.volumes, &json!([{"name": "data", "mountPath": path}]));
    for (path, target) in
        [("/a", "/a"), ("a/b", "/a/b"), ("/../../a", "/a"), ("/a/./b/../c//", "/a/c")]
    {
        assert_eq!(one(path).unwrap()[0].1, Path::new(target), "{path}");
    }
    for path in ["/", "", ".", "/..", "/a/..", "/a\0b"] {
        let error = one(path).unwrap_err();
        assert!(error.ends_with("name a folder below the root"), "{error}");
    }
    let error = mounted(&world.volumes, &json!([{"name": "gone", "mountPath": "/x"}])).unwrap_err();
    assert_eq!(error, "cannot find volume \"gone\" to mount into container \"main\"");
}

#[test]
fn what_means_nothing_in_a_sub_path_is_left_out() {
    let world = world();
    for (sub_path, part) in [("", ""), (".", ""), ("./v1//file", "v1/file"), ("a/", "a")] {
        let mount = json!([{"name": "memory", "mountPath": "/x", "subPath": sub_path}]);
        let expected = world.root.join("memory").join(part);
        assert_eq!(mounted(&world.volumes, &mount).unwrap()[0].0, expected, "{sub_path:?}");
    }
}
