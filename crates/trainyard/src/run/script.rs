//! A TFJob for a command line: the current folder as its working directory, replicas as they were asked
//! for. Pure.

use std::path::Path;

use serde_json::{Map, Value, json};
use trainyard_api::names;

use crate::failure::Failure;

/// What a script runs in unless told otherwise.
pub(crate) const IMAGE: &str = "tensorflow/tensorflow:2.21.0";
const TF_CONFIG: &str = "TF_CONFIG";
/// The image that is this machine's own programs.
pub(crate) const HOST: &str = "host";

/// How a Python environment in a folder is named instead of an image, and the image that it stands for.
pub(crate) const ENVIRONMENT: &str = "env:";
pub(crate) const ENVIRONMENT_IMAGE: &str = "python-environment";

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) workers: Option<u32>,
    pub(crate) ps: u32,
    pub(crate) chief: bool,
    pub(crate) evaluator: bool,
    /// Where summaries are, for a TensorBoard.
    pub(crate) tensorboard: Option<&'a str>,
    pub(crate) image: &'a str,
    /// Packages that the program needs.
    pub(crate) requirements: &'a [String],
    pub(crate) env: &'a [(String, String)],
    pub(crate) command: &'a [String],
    pub(crate) namespace: &'a str,
}

impl Script<'_> {
    /// The job, with the folder that is current.
    pub(crate) fn job(&self, folder: &Path) -> Result<Value, Failure> {
        let here = folder.to_str().filter(|path| path.starts_with('/') && *path != "/");
        let here = here.ok_or_else(|| {
            Failure::usage(format!("{} cannot be mounted into pods", folder.display()))
                .hint("change to the folder of your program first")
        })?;
        let workers = self.workers.unwrap_or(u32::from(!self.chief || self.ps > 0));
        if workers == 0 && !self.chief {
            return Err(Failure::usage("a job needs at least one worker or a chief"));
        }
        let counts = [
            ("Chief", u32::from(self.chief)),
            ("PS", self.ps),
            ("Worker", workers),
            ("Evaluator", u32::from(self.evaluator)),
        ];
        let name = self.own_name(folder);
        let mut template = self.template(here);
        if counts.iter().map(|(_, count)| count).sum::<u32>() == 1 {
            let role = if self.chief { "chief" } else { "worker" };
            self.add_tf_config(&mut template, &name, role);
        }
        let mut replicas = Map::new();
        for (role, count) in counts {
            if count > 0 {
                let spec = json!({
                    "replicas": count, "restartPolicy": "Never", "template": template.clone(),
                });
                replicas.insert(role.to_owned(), spec);
            }
        }
        let mut job = json!({
            "apiVersion": names::API_VERSION, "kind": names::KIND,
            "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": replicas},
        });
        // Nobody leads: the work is done when everybody's is.
        if !self.chief && workers > 1 {
            job["spec"]["successPolicy"] = "AllWorkers".into();
        }
        if !self.requirements.is_empty() {
            job["metadata"]["annotations"] =
                json!({"trainyard.dev/requirements": self.requirements.join("\n")});
        }
        if let Some(logs) = self.tensorboard {
            let logs = folder.join(logs);
            job["spec"]["tensorBoard"] = json!({"logDir": logs});
        }
        Ok(job)
    }

    fn template(&self, here: &str) -> Value {
        let mut container = json!({
            "name": names::CONTAINER, "image": self.image, "command": self.command,
            "workingDir": here,
            "volumeMounts": [{"name": "here", "mountPath": here}],
        });
        if !self.env.is_empty() {
            let env = self.env.iter().map(|(name, value)| json!({"name": name, "value": value}));
            container["env"] = env.collect();
        }
        json!({"spec": {
            "containers": [container],
            "volumes": [{"name": "here", "hostPath": {"path": here, "type": "Directory"}}],
        }})
    }

    /// Says the cluster of one to a job of one replica, to which operators give none: the same program
    /// runs with one worker as with two.
    fn add_tf_config(&self, template: &mut Value, job: &str, role: &str) {
        let address = format!("{job}-{role}-0.{}.svc:{}", self.namespace, names::PORT);
        let config = json!({
            "cluster": {role: [address]}, "task": {"type": role, "index": 0}, "environment": "cloud",
        });
        let container = &mut template["spec"]["containers"][0];
        if !container["env"].is_array() {
            container["env"] = json!([]);
        }
        if let Some(env) = container["env"].as_array_mut()
            && env.iter().all(|variable| variable["name"] != TF_CONFIG)
        {
            env.push(json!({"name": TF_CONFIG, "value": config.to_string()}));
        }
    }

    /// The name that was given, or that of the program, or that of the folder.
    fn own_name(&self, folder: &Path) -> String {
        if let Some(name) = self.name {
            return name.to_owned();
        }
        let script = self.command.iter().find(|word| Path::new(word).extension().is_some());
        let script = script.and_then(|word| Path::new(word).file_stem());
        let stem = script.or_else(|| folder.file_name()).unwrap_or_default();
        let plain: String = stem
            .to_string_lossy()
            .to_lowercase()
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .take(40)
            .collect();
        let plain = plain.trim_matches('-');
        let starts_well = plain.starts_with(|letter: char| letter.is_ascii_lowercase());
        if starts_well {
            plain.to_owned()
        } else {
            format!("run-{plain}").trim_matches('-').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_becomes_a_job_that_every_cluster_takes() {
        let command = words("python src/Train_mnist.py --epochs 3");
        let requirements = ["scikit-learn".to_owned()];
        let script = Script {
            workers: Some(2),
            ps: 1,
            chief: true,
            image: IMAGE,
            requirements: &requirements,
            tensorboard: Some("logs"),
            command: &command,
            ..Script::default()
        };
        let job = script.job(Path::new("/data/digits")).unwrap();
        assert_eq!(job["metadata"]["name"], "train-mnist");
        let replicas = job["spec"]["tfReplicaSpecs"].as_object().unwrap();
        let counts: Vec<(&str, u64)> = replicas
            .iter()
            .map(|(role, spec)| (role.as_str(), spec["replicas"].as_u64().unwrap()))
            .collect();
        assert_eq!(counts, [("Chief", 1), ("PS", 1), ("Worker", 2)]);
        assert_eq!(job["spec"]["tensorBoard"]["logDir"], "/data/digits/logs");
        let container = &replicas["Worker"]["template"]["spec"]["containers"][0];
        assert_eq!(container["workingDir"], "/data/digits");
        trainyard_api::validate(&job, None).unwrap();
    }

    #[test]
    fn without_a_chief_all_workers_must_end() {
        let command = words("python train.py");
        let policy = |workers, ps, chief| {
            let script = Script {
                workers: Some(workers),
                ps,
                chief,
                command: &command,
                ..Script::default()
            };
            script.job(Path::new("/x/y")).unwrap()["spec"]["successPolicy"].clone()
        };
        assert_eq!(policy(3, 0, false), "AllWorkers");
        assert_eq!(policy(2, 1, false), "AllWorkers");
        assert_eq!(policy(1, 0, false), Value::Null);
        assert_eq!(policy(2, 0, true), Value::Null);
    }

    #[test]
    fn one_replica_is_told_its_cluster_as_two_are() {
        let command = words("python train.py");
        let script = |workers, chief, env| {
            let script = Script {
                workers: Some(workers),
                chief,
                env,
                command: &command,
                namespace: "team",
                ..Script::default()
            };
            script.job(Path::new("/x/y")).unwrap()["spec"]["tfReplicaSpecs"].clone()
        };
        let env = |job: &Value, role: &str| {
            let container = &job[role]["template"]["spec"]["containers"][0];
            container["env"][0]["value"].as_str().map(str::to_owned)
        };
        let told: Value =
            serde_json::from_str(&env(&script(1, false, &[]), "Worker").unwrap()).unwrap();
        assert_eq!(told["cluster"], json!({"worker": ["train-worker-0.team.svc:2222"]}));
        assert_eq!(told["task"], json!({"type": "worker", "index": 0}));
        let told = env(&script(0, true, &[]), "Chief").unwrap();
        assert!(told.contains("train-chief-0.team.svc"), "{told}");
        assert_eq!(env(&script(2, false, &[]), "Worker"), None, "the operator says it");
        let own = [("TF_CONFIG".to_owned(), "{}".to_owned())];
        assert_eq!(env(&script(1, false, &own), "Worker").as_deref(), Some("{}"));
    }

    #[test]
    fn names_are_fit_for_a_cluster() {
        for (command, folder, name) in [
            ("python train.py", "/x/y", "train"),
            ("./run", "/x/My Folder", "my-folder"),
            ("sh -c exit", "/x/2024", "run-2024"),
            ("python 1.py", "/x/y", "run-1"),
        ] {
            let command = words(command);
            let script = Script { command: &command, image: IMAGE, ..Script::default() };
            let job = script.job(Path::new(folder)).unwrap();
            assert_eq!(job["metadata"]["name"], name);
            assert_eq!(job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"], 1);
        }
        let alone = Script { chief: true, image: IMAGE, ..Script::default() };
        let job = alone.job(Path::new("/x")).unwrap();
        assert!(job["spec"]["tfReplicaSpecs"]["Worker"].is_null());
        assert_eq!(alone.job(Path::new("/")).unwrap_err().exit_code(), 2);
    }
}
