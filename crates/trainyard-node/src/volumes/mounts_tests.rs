//! Mounts of containers: order, rights, and paths that must not leave a volume.

use std::fs;
use std::os::unix::fs::symlink;
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
        Mount::Bind { source, target, read_only } => (source, target, read_only),
        Mount::SubPath { volume, path, target, read_only } => {
            (volume.join(path), target, read_only)
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
    assert!(at("data/a/b").is_dir());
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
fn nothing_outside_of_a_volume_can_be_had() {
    let world = world();
    symlink("/etc", world.root.join("data/etc")).unwrap();
    symlink("../config", world.root.join("data/side")).unwrap();
    let one = |sub_path: &str| {
        let mount = json!([{"name": "data", "mountPath": "/x", "subPath": sub_path}]);
        mounted(&world.volumes, &mount).unwrap_err()
    };
    assert_eq!(one("/etc"), "error SubPath `/etc` must not be an absolute path");
    assert_eq!(one("../x"), "unable to provision SubPath `../x`: must not contain '..'");
    assert_eq!(one("a/../../x"), "unable to provision SubPath `a/../../x`: must not contain '..'");
    for sub_path in ["etc", "etc/passwd", "etc/new", "side", "side/app.conf"] {
        assert_eq!(
            one(sub_path),
            "failed to prepare subPath for volumeMount \"data\" of container \"main\""
        );
    }
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
fn a_memory_backed_volume_is_reached_through_the_holder() {
    let mut world = world();
    let wanted = json!([{"name": "memory", "mountPath": "/x", "subPath": "part"}]);
    let error = mounted(&world.volumes, &wanted).unwrap_err();
    assert!(error.starts_with("subPath of the memory-backed volume \"memory\""), "{error}");
    let view = world.root.join("view");
    let path = world.root.join("memory");
    let seen = view.join(path.strip_prefix("/").unwrap());
    fs::create_dir_all(&seen).unwrap();
    world.volumes.look_through(view);
    assert_eq!(mounted(&world.volumes, &wanted).unwrap()[0].0, path.join("part"));
    assert!(seen.join("part").is_dir() && !path.join("part").exists());
}
