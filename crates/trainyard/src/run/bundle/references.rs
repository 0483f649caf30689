//! Objects that jobs use and no file brings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::kinds::Use;
use super::Job;
use crate::commands::files::Manifest;
use crate::present::{items, text};

/// Every namespace has it.
const ROOT_CA: &str = "kube-root-ca.crt";

/// What is not there.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Claims, which can be made up: namespace and name.
    pub(super) claims: Vec<(String, String)>,
    /// The rest, which cannot.
    pub(super) problems: Vec<String>,
}

/// Looks through the pods of all jobs.
pub(super) fn missing(jobs: &[Job], others: &[Manifest]) -> Missing {
    let there: BTreeSet<(&str, &str, &str)> = others
        .iter()
        .map(|Manifest { object, .. }| {
            let metadata = |field: &str| text(object, &["metadata", field]);
            (text(object, &["kind"]), metadata("namespace"), metadata("name"))
        })
        .collect();
    let mut found = Missing::default();
    let mut told = BTreeSet::new();
    for job in jobs {
        let own = (job.row.uses)(&job.object);
        let own = own.into_iter().map(|one| (job.name.clone(), one));
        let members = (job.row.members)(&job.object);
        let of_pods = members.iter().flat_map(|member| {
            let used = used(&member.template["spec"]).into_iter();
            used.map(|(kind, name)| (member.replica(), Use { kind, name, is_namespaced: true }))
        });
        for (who, Use { kind, name, is_namespaced }) in own.chain(of_pods) {
            let namespace = if is_namespaced { job.namespace.as_str() } else { "" };
            if there.contains(&(kind, namespace, name)) || !told.insert((kind, namespace, name)) {
                continue;
            }
            if kind == "PersistentVolumeClaim" {
                found.claims.push((namespace.to_owned(), name.to_owned()));
            } else if name != ROOT_CA {
                let scope = if is_namespaced {
                    format!(" (namespace {namespace:?})")
                } else {
                    String::new()
                };
                found.problems.push(format!(
                    "{}: {who} uses {kind} {name:?}, which is in no file{scope}",
                    job.place
                ));
            }
        }
    }
    found
}

/// The objects that a pod cannot start without: kind and name.
fn used(pod: &Value) -> Vec<(&'static str, &str)> {
    let mut all = Vec::new();
    for volume in items(pod, &["volumes"]) {
        take(&mut all, "ConfigMap", &volume["configMap"], "name");
        take(&mut all, "Secret", &volume["secret"], "secretName");
        take(&mut all, "PersistentVolumeClaim", &volume["persistentVolumeClaim"], "claimName");
        for source in items(volume, &["projected", "sources"]) {
            take(&mut all, "ConfigMap", &source["configMap"], "name");
            take(&mut all, "Secret", &source["secret"], "name");
        }
    }
    for container in items(pod, &["initContainers"]).chain(items(pod, &["containers"])) {
        for from in items(container, &["envFrom"]) {
            take(&mut all, "ConfigMap", &from["configMapRef"], "name");
            take(&mut all, "Secret", &from["secretRef"], "name");
        }
        for variable in items(container, &["env"]) {
            take(&mut all, "ConfigMap", &variable["valueFrom"]["configMapKeyRef"], "name");
            take(&mut all, "Secret", &variable["valueFrom"]["secretKeyRef"], "name");
        }
    }
    all
}

fn take<'a>(
    all: &mut Vec<(&'static str, &'a str)>,
    kind: &'static str,
    source: &'a Value,
    field: &str,
) {
    let name = text(source, &[field]);
    if !name.is_empty() && source["optional"] != true {
        all.push((kind, name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_a_pod_needs_is_found() {
        let pod = json!({
            "volumes": [
                {"configMap": {"name": "a"}}, {"secret": {"secretName": "b"}},
                {"configMap": {"name": "maybe", "optional": true}},
                {"persistentVolumeClaim": {"claimName": "c"}}, {"emptyDir": {}},
                {"projected": {"sources": [{"secret": {"name": "d"}}]}},
            ],
            "containers": [{
                "envFrom": [{"configMapRef": {"name": "e"}}],
                "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "f", "key": "k"}}}],
            }],
        });
        let names: Vec<&str> = used(&pod).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f"]);
    }
}
