//! Plugin `tensorflow`: every ordinary container gets `TF_CONFIG`.
//!
//! Must not make objects: the names are those of plugin `svc`.

use serde::Serialize;
use serde_json::{Value, json};
use trainyard_api::volcano::TaskSpec;

use super::{Flags, Plugin, Scene, host};
use crate::container::{containers, set_env};

/// The plugin: which tasks play which roles, and their port.
pub(super) struct TensorFlow {
    ps: String,
    worker: String,
    chief: String,
    evaluator: String,
    port: u16,
}

#[derive(Serialize)]
struct Config<'a> {
    cluster: Cluster,
    task: Task<'a>,
}

#[derive(Serialize)]
struct Cluster {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ps: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worker: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chief: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evaluator: Vec<String>,
}

#[derive(Serialize)]
struct Task<'a> {
    r#type: &'a str,
    index: u32,
}

impl TensorFlow {
    /// With these arguments.
    pub(super) fn new(flags: &mut Flags<'_>) -> Self {
        Self {
            ps: flags.text("ps", "ps"),
            worker: flags.text("worker", "worker"),
            chief: flags.text("chief", "chief"),
            evaluator: flags.text("evaluator", "evaluator"),
            port: flags.port("port", 2222),
        }
    }

    fn members(&self, scene: &Scene<'_>, name: &str) -> Vec<String> {
        let Some(task) = scene.spec.task(name) else {
            return Vec::new();
        };
        let member = |index| format!("{}:{}", host(scene, task, index), self.port);
        (0..task.replicas).map(member).collect()
    }

    fn config(&self, scene: &Scene<'_>, task: &TaskSpec, index: u32) -> String {
        let roles = [
            (&self.ps, "ps"),
            (&self.worker, "worker"),
            (&self.chief, "chief"),
            (&self.evaluator, "evaluator"),
        ];
        let role = roles.into_iter().find(|(name, _)| **name == task.name);
        let config = Config {
            cluster: Cluster {
                ps: self.members(scene, &self.ps),
                worker: self.members(scene, &self.worker),
                chief: self.members(scene, &self.chief),
                evaluator: self.members(scene, &self.evaluator),
            },
            task: Task { r#type: role.map_or(&task.name, |(_, role)| role), index },
        };
        serde_json::to_string(&config).unwrap_or_default()
    }
}

impl Plugin for TensorFlow {
    fn name(&self) -> &'static str {
        "tensorflow"
    }

    fn dress(&self, scene: &Scene<'_>, task: &TaskSpec, index: u32, pod_spec: &mut Value) {
        if let [only] = scene.spec.tasks.as_slice()
            && only.replicas == 1
        {
            return;
        }
        let text = self.config(scene, task, index);
        for container in containers(pod_spec, false) {
            set_env(container, &json!({"name": "TF_CONFIG", "value": text}));
        }
    }
}
