//! What the command line changes in the jobs of manifests: variables, a name, a TensorBoard. Pure.

use serde_json::{Value, json};
use trainyard_api::names;

use super::kinds::{self, JobKind};
use crate::commands::files::Manifest;
use crate::failure::Failure;
use crate::present::text;

/// What is to be changed.
#[derive(Debug, Default)]
pub(crate) struct Overrides<'a> {
    pub(crate) env: &'a [(String, String)],
    pub(crate) name: Option<&'a str>,
    /// The folder of summaries, as the job's containers see it.
    pub(crate) tensorboard: Option<&'a str>,
}

impl Overrides<'_> {
    /// Changes every job among the manifests; other objects stay as they are.
    pub(crate) fn apply(&self, manifests: &mut [Manifest]) -> Result<(), Failure> {
        let jobs: Vec<(&'static JobKind, &mut Manifest)> = manifests
            .iter_mut()
            .filter_map(|manifest| Some((kinds::of(&manifest.object)?, manifest)))
            .collect();
        if self.name.is_some() && jobs.len() > 1 {
            return Err(Failure::usage(format!(
                "--name names one job, and the files have {}",
                jobs.len()
            ))
            .hint("write the names into the files"));
        }
        for (row, manifest) in jobs {
            self.change(row, manifest)?;
        }
        Ok(())
    }

    fn change(&self, row: &JobKind, manifest: &mut Manifest) -> Result<(), Failure> {
        let Manifest { place, object } = manifest;
        if let Some(name) = self.name {
            object["metadata"]["name"] = name.into();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("generateName");
            }
        }
        if !self.env.is_empty() {
            for_each_pod(&mut object["spec"], &|pod| self.set_env(pod));
        }
        let Some(folder) = self.tensorboard else { return Ok(()) };
        if row.group != names::GROUP {
            let what = row.title;
            return Err(Failure::usage(format!("{place}: a {what} has no TensorBoard"))
                .hint("--tensorboard is for TFJobs and for commands after `--`"));
        }
        if !folder.starts_with('/') {
            return Err(Failure::usage(format!(
                "--tensorboard {folder:?}: the folder of a manifest's job is one of its containers'"
            ))
            .hint("write the whole path that the program writes its summaries to, as /logs"));
        }
        object["spec"]["tensorBoard"]["logDir"] = json!(folder);
        Ok(())
    }

    /// Sets the variables of the container that trains: `tensorflow`, else the first.
    fn set_env(&self, pod: &mut Value) {
        let Some(containers) = pod["containers"].as_array_mut() else { return };
        let named = containers.iter().position(|one| text(one, &["name"]) == names::CONTAINER);
        let Some(container) = containers.get_mut(named.unwrap_or(0)) else { return };
        if !container["env"].is_array() {
            container["env"] = json!([]);
        }
        let Some(env) = container["env"].as_array_mut() else { return };
        for (name, value) in self.env {
            env.retain(|variable| variable["name"] != name.as_str());
            env.push(json!({"name": name, "value": value}));
        }
    }
}

/// Goes through the specifications of all pods in a job's.
fn for_each_pod(value: &mut Value, change: &impl Fn(&mut Value)) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == "template" && member["spec"]["containers"].is_array() {
                    change(&mut member["spec"]);
                } else {
                    for_each_pod(member, change);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_pod(item, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(object: Value) -> Manifest {
        Manifest { place: "job.yaml: document 1".to_owned(), object }
    }

    fn tfjob() -> Manifest {
        manifest(json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
            "metadata": {"generateName": "mnist-"},
            "spec": {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [
                {"name": "side"},
                {"name": "tensorflow", "env": [{"name": "A", "value": "old"}]}]}}}}},
        }))
    }

    fn volcanos() -> Manifest {
        manifest(json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "vj"},
            "spec": {"tasks": [{"template": {"spec": {"containers": [{"name": "main"}]}}}]},
        }))
    }

    #[test]
    fn variables_name_and_board_reach_the_jobs_of_manifests() {
        let env = [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())];
        let overrides = Overrides { env: &env, name: Some("digits"), tensorboard: Some("/logs") };
        let other = manifest(json!({"apiVersion": "v1", "kind": "ConfigMap"}));
        let mut all = [tfjob(), other];
        overrides.apply(&mut all).unwrap();
        let job = &all[0].object;
        assert_eq!(job["metadata"], json!({"name": "digits"}));
        assert_eq!(job["spec"]["tensorBoard"]["logDir"], "/logs");
        let pod = &job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
        let expected = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
        assert_eq!(pod["containers"][1]["env"], expected);
        assert!(pod["containers"][0]["env"].is_null());
        assert_eq!(all[1].object, json!({"apiVersion": "v1", "kind": "ConfigMap"}));
        let mut all = [volcanos()];
        Overrides { env: &env, ..Overrides::default() }.apply(&mut all).unwrap();
        let pod = &all[0].object["spec"]["tasks"][0]["template"]["spec"];
        assert_eq!(pod["containers"][0]["env"], expected);
    }

    #[test]
    fn what_cannot_be_changed_is_refused_with_what_to_write() {
        let refused = |overrides: Overrides<'_>, mut all: Vec<Manifest>| {
            overrides.apply(&mut all).unwrap_err().to_string()
        };
        let name = Overrides { name: Some("x"), ..Overrides::default() };
        assert!(refused(name, vec![tfjob(), tfjob()]).contains("the files have 2"));
        let board = |folder| Overrides { tensorboard: Some(folder), ..Overrides::default() };
        assert!(refused(board("/logs"), vec![volcanos()]).contains("has no TensorBoard"));
        assert!(refused(board("logs"), vec![tfjob()]).contains("write the whole path"));
    }
}
