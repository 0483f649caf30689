//! What the files of a run mount of this machine: folders that pods name by hostPath, and volumes that are
//! made of such. Pure.
//!
//! Looks at every object, whatever its kind: where there are `volumes` with a `hostPath`, there is a pod.

use std::collections::BTreeMap;

use serde_json::Value;

use super::bundle::Bundle;
use crate::commands::files::Manifest;
use crate::failure::Failure;
use crate::present::{items, text};

/// One folder or file of this machine, and who gets it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPath {
    /// Where it was written.
    place: String,
    /// `mnist worker`, `volume data`.
    who: String,
    path: String,
    pub(crate) is_writable: bool,
}

impl HostPath {
    /// `mnist worker mounts /data of this machine, writable`.
    pub(crate) fn words(&self) -> String {
        let how = if self.is_writable { "writable" } else { "read-only" };
        format!("{} mounts {} of this machine, {how}", self.who, self.path)
    }
}

/// All of a run, each once.
pub(crate) fn all(bundle: &Bundle) -> Vec<HostPath> {
    let jobs = bundle.jobs.iter().map(|job| (job.place.as_str(), job.name.as_str(), &job.object));
    let others = bundle.others.iter().map(|Manifest { place, object }| {
        (place.as_str(), text(object, &["metadata", "name"]), object)
    });
    let mut found = BTreeMap::new();
    for (place, name, object) in jobs.chain(others) {
        let mut walk = Walk { place, found: &mut found };
        if object["kind"] == "PersistentVolume" {
            walk.volume(name, &object["spec"]);
        }
        walk.below(name, object);
    }
    let whole = |((place, who, path), is_writable)| HostPath { place, who, path, is_writable };
    found.into_iter().map(whole).collect()
}

/// A failure where a run mounts anything of this machine.
pub(crate) fn refuse(paths: &[HostPath]) -> Result<(), Failure> {
    if paths.is_empty() {
        return Ok(());
    }
    let problem = |path: &HostPath| format!("{}: {}", path.place, path.words());
    Err(Failure::invalid(paths.iter().map(problem).collect()).hint(
        "--no-host-paths allows none: take the hostPath out and use a claim or an emptyDir, or leave the \
         flag out if you trust the files with these folders",
    ))
}

/// A look through one object.
struct Walk<'a> {
    place: &'a str,
    /// Place, who and path, and whether somebody may write there.
    found: &'a mut BTreeMap<(String, String, String), bool>,
}

impl Walk<'_> {
    fn take(&mut self, who: &str, path: &str, is_writable: bool) {
        let key = (self.place.to_owned(), who.to_owned(), path.to_owned());
        *self.found.entry(key).or_default() |= is_writable;
    }

    /// A volume for claims. Who mounts the claim may write, unless every mount is read-only.
    fn volume(&mut self, name: &str, spec: &Value) {
        let modes = items(spec, &["accessModes"]).all(|mode| mode == "ReadOnlyMany");
        let has_modes = items(spec, &["accessModes"]).next().is_some();
        for source in ["hostPath", "local"] {
            let path = text(spec, &[source, "path"]);
            if !path.is_empty() {
                self.take(&format!("volume {name}"), path, !(modes && has_modes));
            }
        }
    }

    /// What an object and all in it mount.
    fn below(&mut self, who: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                self.pod(who, value);
                for (key, member) in members {
                    let replicas = (key == "tfReplicaSpecs").then(|| member.as_object()).flatten();
                    for (role, replica) in replicas.into_iter().flatten() {
                        self.below(&format!("{who} {}", role.to_lowercase()), replica);
                    }
                    if key == "tensorBoard" {
                        self.below(&format!("{who} tensorboard"), member);
                    } else if replicas.is_none() {
                        self.below(who, member);
                    }
                }
            }
            Value::Array(elements) => {
                for element in elements {
                    // A task of a Volcano Job, told apart from a container by its template.
                    let task = text(element, &["name"]);
                    if element["template"].is_object() && !task.is_empty() {
                        self.below(&format!("{who} {task}"), element);
                    } else {
                        self.below(who, element);
                    }
                }
            }
            _ => {}
        }
    }

    /// What a pod mounts, if this is one, or the TensorBoard of a TFJob, which mounts as a container does.
    fn pod(&mut self, who: &str, spec: &Value) {
        for volume in items(spec, &["volumes"]) {
            let path = text(volume, &["hostPath", "path"]);
            if path.is_empty() {
                continue;
            }
            let lists = ["initContainers", "containers", "ephemeralContainers"];
            let containers = lists.into_iter().flat_map(|list| items(spec, &[list]));
            let mounts = containers.chain([spec]).flat_map(|one| items(one, &["volumeMounts"]));
            let own = mounts.filter(|mount| mount["name"] == volume["name"]);
            let read_only: Vec<bool> = own.map(|mount| mount["readOnly"] == true).collect();
            // One that nothing mounts is not named: a pod does not see it.
            if !read_only.is_empty() {
                self.take(who, path, read_only.contains(&false));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(path: &str, mount: &Value) -> Value {
        json!({"template": {"spec": {
            "volumes": [{"name": "v", "hostPath": {"path": path}}, {"name": "unused", "hostPath": {"path": "/x"}}],
            "containers": [{"name": "a", "image": "b", "volumeMounts": [mount]}]}}})
    }

    fn bundle(objects: Vec<Value>) -> Bundle {
        let manifest = |object| Manifest { place: "a.yaml".to_owned(), object };
        Bundle::sort(objects.into_iter().map(manifest).collect(), "default", &[]).unwrap()
    }

    fn tfjob(worker: &Value) -> Value {
        json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist"},
            "spec": {"tfReplicaSpecs": {"Worker": worker}}})
    }

    #[test]
    fn every_folder_is_named_with_who_gets_it() {
        let mut job = tfjob(&pod("/data", &json!({"name": "v", "mountPath": "/d"})));
        let read_only = json!({"name": "v", "mountPath": "/d", "readOnly": true});
        job["spec"]["tfReplicaSpecs"]["PS"] = pod("/home", &read_only);
        job["spec"]["tensorBoard"] = json!({"logDir": "/l",
            "volumes": [{"name": "l", "hostPath": {"path": "/logs"}}],
            "volumeMounts": [{"name": "l", "mountPath": "/l"}]});
        let mut task = pod("/", &json!({"name": "v", "mountPath": "/d"}));
        task["name"] = json!("lead");
        let volcano = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": {"name": "vj"}, "spec": {"tasks": [task]}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": pod("/etc", &json!({"name": "v"}))["template"]["spec"]});
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "w"},
            "spec": {"local": {"path": "/srv"}, "accessModes": ["ReadWriteOnce"]}});
        let words: Vec<String> =
            all(&bundle(vec![job, volcano, pod, volume])).iter().map(HostPath::words).collect();
        assert_eq!(
            words,
            [
                "mnist ps mounts /home of this machine, read-only",
                "mnist tensorboard mounts /logs of this machine, writable",
                "mnist worker mounts /data of this machine, writable",
                "p mounts /etc of this machine, writable",
                "vj lead mounts / of this machine, writable",
                "volume w mounts /srv of this machine, writable",
            ]
        );
    }

    #[test]
    fn one_writable_mount_makes_it_writable() {
        let mut worker = pod("/data", &json!({"name": "v", "mountPath": "/d", "readOnly": true}));
        let container = json!({"name": "b", "volumeMounts": [{"name": "v", "mountPath": "/e"}]});
        worker["template"]["spec"]["initContainers"] = json!([container]);
        assert!(all(&bundle(vec![tfjob(&worker)])).iter().all(|path| path.is_writable));
    }

    #[test]
    fn none_is_let_in_when_none_is_wanted() {
        let job = tfjob(&pod("/data", &json!({"name": "v", "mountPath": "/d"})));
        let failure = refuse(&all(&bundle(vec![job]))).unwrap_err();
        assert_eq!(failure.exit_code(), crate::failure::INVALID);
        let text = failure.to_string();
        assert!(text.contains("a.yaml: mnist worker mounts /data"), "{text}");
        let job = tfjob(&pod("/data", &json!({"name": "other", "mountPath": "/d"})));
        refuse(&all(&bundle(vec![job]))).unwrap();
    }
}
