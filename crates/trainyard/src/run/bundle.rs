//! What a run is made of: the jobs, and the objects that they use.
//!
//! Owns telling them apart and finding out what is missing, before anything starts. Pure.

mod references;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kinds::{self, JobKind};
use crate::commands::files::Manifest;
use crate::failure::Failure;
use crate::present::text;

/// A job that is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) row: &'static JobKind,
    /// Where it was written.
    pub(crate) place: String,
    pub(crate) namespace: String,
    /// Its name; of a job with `generateName`, what it will begin with.
    pub(crate) name: String,
    pub(crate) object: Value,
}

/// Everything of a run.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) jobs: Vec<Job>,
    /// What they use, in the order of the files.
    pub(crate) others: Vec<Manifest>,
    /// Claims that jobs mount and no file has: namespace and name.
    pub(crate) claims_made_up: Vec<(String, String)>,
}

impl Bundle {
    /// Sorts manifests. What has no namespace belongs to `namespace`; resources in `without` are
    /// taken out of what jobs ask for.
    pub(crate) fn sort(
        manifests: Vec<Manifest>,
        namespace: &str,
        without: &[String],
    ) -> Result<Self, Failure> {
        let (mut jobs, mut others) = (Vec::new(), Vec::new());
        let mut problems = Vec::new();
        for Manifest { place, object } in manifests {
            let mut object = match first_version(object) {
                Ok(object) => object,
                Err(problem) => {
                    problems.push(format!("{place}: {problem}"));
                    continue;
                }
            };
            let Some(row) = kinds::of(&object) else {
                others.push(Manifest { place, object });
                continue;
            };
            if text(&object, &["metadata", "namespace"]).is_empty() {
                object["metadata"]["namespace"] = namespace.into();
            }
            for resource in without {
                remove_resource(&mut object["spec"], resource);
            }
            let given = [text(&object, &["metadata", "name"]), prefix(&object)];
            let name = given.into_iter().find(|name| !name.is_empty()).unwrap_or("job").to_owned();
            let namespace = text(&object, &["metadata", "namespace"]).to_owned();
            jobs.push(Job { row, place, namespace, name, object });
        }
        if !problems.is_empty() {
            return Err(Failure::invalid(problems).hint("nothing was started"));
        }
        if jobs.is_empty() {
            let problem = format!("there is no job in the files; kinds of job: {}", kinds::names());
            return Err(Failure::invalid(vec![problem]).hint(
                "for objects that are no jobs start a yard with `trainyard up` and apply them there",
            ));
        }
        twice(&jobs)?;
        for other in &mut others {
            let scoped = text(&other.object, &["metadata", "namespace"]);
            if scoped.is_empty() && !is_cluster_wide(text(&other.object, &["kind"])) {
                other.object["metadata"]["namespace"] = namespace.into();
            }
        }
        let missing = references::missing(&jobs, &others);
        if !missing.problems.is_empty() {
            return Err(Failure::invalid(missing.problems).hint(
                "add the object to the files: a run has nothing but what they bring; `kubectl create \
                 configmap NAME --from-file=FILE --dry-run=client -o yaml` writes one",
            ));
        }
        Ok(Self { jobs, others, claims_made_up: missing.claims })
    }

    /// What the run is called: after its jobs.
    pub(crate) fn name(&self) -> String {
        let names: Vec<&str> = self.jobs.iter().map(|job| job.name.as_str()).collect();
        let mut name = names.join("+");
        name.retain(|letter| letter.is_ascii_alphanumeric() || "-_.+".contains(letter));
        name.truncate(100);
        if name.starts_with('.') || name.is_empty() { format!("job{name}") } else { name }
    }

    /// Whether it needs kinds of Volcano's beyond those by which pods are scheduled.
    pub(crate) fn is_volcanos(&self) -> bool {
        let jobs = self.jobs.iter().map(|job| &job.object);
        jobs.chain(self.others.iter().map(|other| &other.object)).any(|object| {
            let version = text(object, &["apiVersion"]);
            version.starts_with("batch.volcano.sh/") || version.starts_with("bus.volcano.sh/")
        })
    }

    /// All namespaces that objects are in.
    pub(crate) fn namespaces(&self) -> BTreeSet<&str> {
        let jobs = self.jobs.iter().map(|job| job.namespace.as_str());
        let others =
            self.others.iter().map(|other| text(&other.object, &["metadata", "namespace"]));
        jobs.chain(others).filter(|namespace| !namespace.is_empty()).collect()
    }
}

/// The first version of TFJob is served nowhere; it is read as what it became.
fn first_version(object: Value) -> Result<Value, String> {
    let is_first = object["apiVersion"] == "kubeflow.org/v1alpha1" && object["kind"] == "TFJob";
    if is_first {
        return trainyard_api::convert(object).map_err(|error| error.to_string());
    }
    Ok(object)
}

fn prefix(object: &Value) -> &str {
    text(object, &["metadata", "generateName"]).trim_end_matches('-')
}

fn twice(jobs: &[Job]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for job in jobs {
        let name = text(&job.object, &["metadata", "name"]);
        if !name.is_empty() && !seen.insert((job.row.title, &job.namespace, name)) {
            let problem = format!("{}: a second {} {name:?}", job.place, job.row.title);
            return Err(Failure::invalid(vec![problem]).hint("give each job a name of its own"));
        }
    }
    Ok(())
}

/// Kinds without a namespace that files may hold.
fn is_cluster_wide(kind: &str) -> bool {
    [
        "Namespace",
        "PersistentVolume",
        "StorageClass",
        "PriorityClass",
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
        "Queue",
    ]
    .contains(&kind)
}

/// Takes a resource out of every list of requests and limits.
fn remove_resource(value: &mut Value, resource: &str) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_object_mut() {
                    Some(amounts) if name == "limits" || name == "requests" => {
                        amounts.remove(resource);
                    }
                    _ => remove_resource(member, resource),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_resource(item, resource)),
        _ => {}
    }
}

/// A claim that stands for one that no file has.
pub(crate) fn made_up_claim(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(object: Value) -> Manifest {
        Manifest { place: "f.yaml: document 1".into(), object }
    }

    fn tfjob(metadata: &Value, pod: &Value) -> Manifest {
        manifest(json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata,
            "spec": {"tfReplicaSpecs": {"Worker": {"template": {"spec": pod}}}}}))
    }

    #[test]
    fn jobs_are_told_from_what_they_use() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}});
        let pod = json!({"volumes": [{"configMap": {"name": "code"}},
            {"persistentVolumeClaim": {"claimName": "model"}}]});
        let manifests = vec![manifest(map), tfjob(&json!({"generateName": "mnist-"}), &pod)];
        let bundle = Bundle::sort(manifests, "team", &[]).unwrap();
        assert_eq!(bundle.name(), "mnist");
        assert_eq!(bundle.others[0].object["metadata"]["namespace"], "team");
        assert_eq!(bundle.claims_made_up, [("team".to_owned(), "model".to_owned())]);
        assert_eq!(bundle.namespaces().into_iter().collect::<Vec<_>>(), ["team"]);
    }

    #[test]
    fn what_cannot_be_run_is_invalid() {
        let pod = json!({"volumes": [{"configMap": {"name": "code"}}]});
        let wrong = [
            (vec![], "no job in the files; kinds of job: TFJob"),
            (vec![tfjob(&json!({"name": "a"}), &pod)], "ConfigMap \"code\""),
            (
                vec![
                    tfjob(&json!({"name": "a"}), &json!({})),
                    tfjob(&json!({"name": "a"}), &json!({})),
                ],
                "a second TFJob \"a\"",
            ),
        ];
        for (manifests, words) in wrong {
            let failure = Bundle::sort(manifests, "default", &[]).unwrap_err();
            assert_eq!(failure.exit_code(), 3);
            assert!(failure.to_string().contains(words), "{failure}");
        }
    }

    #[test]
    fn a_volcano_job_brings_its_kinds_and_names_its_queue() {
        let job = |queue: &str| {
            manifest(json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                "metadata": {"name": "vj"}, "spec": {"queue": queue, "tasks": [],
                "volumes": [{"mountPath": "/data", "volumeClaimName": "data"}]}}))
        };
        let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": "vision"}});
        let bundle = Bundle::sort(vec![job("vision"), manifest(queue)], "team", &[]).unwrap();
        assert!(bundle.is_volcanos());
        assert_eq!(bundle.others[0].object["metadata"].get("namespace"), None);
        assert_eq!(bundle.claims_made_up, [("team".to_owned(), "data".to_owned())]);
        let failure = Bundle::sort(vec![job("vision")], "team", &[]).unwrap_err();
        assert!(failure.to_string().contains("vj uses Queue \"vision\", which is in no file"));
        let own = Bundle::sort(vec![tfjob(&json!({"name": "a"}), &json!({}))], "team", &[]);
        assert!(!own.unwrap().is_volcanos());
    }

    #[test]
    fn resources_can_be_left_out() {
        let pod =
            json!({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": 2}}}]});
        let manifests = vec![tfjob(&json!({"name": "a"}), &pod)];
        let bundle = Bundle::sort(manifests, "default", &["nvidia.com/gpu".to_owned()]).unwrap();
        let members = (bundle.jobs[0].row.members)(&bundle.jobs[0].object);
        let limits = &members[0].template["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(*limits, json!({"cpu": 2}));
    }
}
