//! Plugin `env`: every container knows the index of its pod.
//!
//! Must not know other plugins.

use serde_json::{Value, json};
use trainyard_api::volcano::TaskSpec;

use super::{Plugin, Scene};
use crate::container::{containers, set_env};

/// The plugin.
pub(super) struct Env;

impl Plugin for Env {
    fn name(&self) -> &'static str {
        "env"
    }

    fn dress(&self, _: &Scene<'_>, _: &TaskSpec, index: u32, pod_spec: &mut Value) {
        for container in containers(pod_spec, true) {
            for name in ["VK_TASK_INDEX", "VC_TASK_INDEX"] {
                set_env(container, &json!({"name": name, "value": index.to_string()}));
            }
        }
    }
}
