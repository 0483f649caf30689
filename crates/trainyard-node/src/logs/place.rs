//! Where a container's log is kept: by namespace, job, replica, pod and attempt, so that it can be found
//! after the pod is gone.
//!
//! Knows of jobs only the labels that their controllers put on pods.

use std::path::{Path, PathBuf};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How controllers label the pods of a job: its name, the part that the pod plays in it, and which of
/// that part it is.
const JOBS: [(&str, &str, &str); 4] = [
    (
        "training.kubeflow.org/job-name",
        "training.kubeflow.org/replica-type",
        "training.kubeflow.org/replica-index",
    ),
    ("volcano.sh/job-name", "volcano.sh/task-spec", "volcano.sh/task-index"),
    ("batch.kubernetes.io/job-name", "", "batch.kubernetes.io/job-completion-index"),
    ("job-name", "", ""),
];

/// The folder of one pod's logs, below the folder of all logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodPlace {
    folder: PathBuf,
}

impl PodPlace {
    /// `<namespace>/<job, or the pod>/<replica, or "pod">/<pod>_<uid>`.
    pub(crate) fn of(pod: &ObjectMeta) -> Self {
        let namespace = pod.namespace.as_deref().unwrap_or("default");
        let name = pod.name.as_deref().unwrap_or("unnamed");
        let uid = pod.uid.as_deref().unwrap_or("none");
        let label = |key: &str| pod.labels.as_ref().and_then(|labels| labels.get(key));
        let (mut job, mut replica) = (name, "pod".to_owned());
        for (job_label, part_label, index_label) in JOBS {
            if let Some(found) = label(job_label) {
                job = found;
                let parts: Vec<&str> = [part_label, index_label]
                    .iter()
                    .filter_map(|key| label(key))
                    .map(String::as_str)
                    .collect();
                if !parts.is_empty() {
                    replica = parts.join("-");
                }
                break;
            }
        }
        let folder = [namespace, job, &replica, &format!("{name}_{uid}")]
            .into_iter()
            .map(component)
            .collect();
        Self { folder }
    }

    /// The pod's folder below `root`.
    pub(crate) fn folder(&self, root: &Path) -> PathBuf {
        root.join(&self.folder)
    }

    /// The log of a container's run; `restart` counts from 0.
    pub(crate) fn log(&self, root: &Path, container: &str, restart: u32) -> PathBuf {
        self.folder(root).join(component(container)).join(format!("{restart}.log"))
    }
}

/// A run of a container, as the path of its log tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logged<'a> {
    pub(crate) uid: &'a str,
    pub(crate) container: &'a str,
    pub(crate) restart: u32,
}

impl<'a> Logged<'a> {
    /// Reads the path of a log; none if it is not one.
    pub(crate) fn read(log: &'a Path) -> Option<Self> {
        let restart = log.file_stem()?.to_str()?.parse().ok()?;
        let folder = log.parent()?;
        let (_, uid) = folder.parent()?.file_name()?.to_str()?.rsplit_once('_')?;
        Some(Self { uid, container: folder.file_name()?.to_str()?, restart })
    }
}

/// One name in a path, whatever it was: nothing leads out of the folder.
pub(super) fn component(name: &str) -> String {
    let mut safe: String = name
        .chars()
        .map(|letter| if letter == '/' || letter.is_control() { '_' } else { letter })
        .collect();
    // File systems take 255 bytes.
    while safe.len() > 250 {
        safe.pop();
    }
    if safe.is_empty() || safe.starts_with('.') {
        safe.insert(0, '_');
    }
    safe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(labels: &serde_json::Value) -> String {
        let pod = json!({
            "namespace": "team", "name": "mnist-worker-1", "uid": "12ab", "labels": labels,
        });
        let place = PodPlace::of(&serde_json::from_value(pod).unwrap());
        place.log(Path::new("/logs"), "tensorflow", 2).to_str().unwrap().to_owned()
    }

    #[test]
    fn logs_are_sorted_by_job_replica_and_attempt() {
        assert_eq!(
            path(&json!({
                "training.kubeflow.org/job-name": "mnist",
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": "1",
            })),
            "/logs/team/mnist/worker-1/mnist-worker-1_12ab/tensorflow/2.log"
        );
        assert_eq!(
            path(&json!({"volcano.sh/job-name": "vj", "volcano.sh/task-spec": "ps"})),
            "/logs/team/vj/ps/mnist-worker-1_12ab/tensorflow/2.log"
        );
        assert_eq!(
            path(&json!({"job-name": "once"})),
            "/logs/team/once/pod/mnist-worker-1_12ab/tensorflow/2.log"
        );
        assert_eq!(
            path(&json!({})),
            "/logs/team/mnist-worker-1/pod/mnist-worker-1_12ab/tensorflow/2.log"
        );
    }

    #[test]
    fn a_path_tells_whose_log_it_is() {
        let path = path(&json!({"job-name": "once"}));
        let expected = Logged { uid: "12ab", container: "tensorflow", restart: 2 };
        assert_eq!(Logged::read(Path::new(&path)), Some(expected));
        assert_eq!(Logged::read(Path::new("/logs/notes.log")), None);
    }

    #[test]
    fn no_name_leads_out() {
        assert_eq!(
            path(&json!({"job-name": "../.."})),
            "/logs/team/_.._../pod/mnist-worker-1_12ab/tensorflow/2.log"
        );
        assert_eq!(component(""), "_");
        assert_eq!(component(".."), "_..");
        assert_eq!(component("a/b\0c"), "a_b_c");
        assert_eq!(component(&"ü".repeat(300)).len(), 250);
        let empty = PodPlace::of(&ObjectMeta::default());
        assert_eq!(empty.folder(Path::new("/l")), Path::new("/l/default/unnamed/pod/unnamed_none"));
    }
}
