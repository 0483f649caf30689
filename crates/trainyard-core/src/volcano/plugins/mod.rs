//! Job plugins: what each adds to a job's pods, and the objects it keeps beside them.
//!
//! Owns the interface and the order: environment, names, then frameworks. Must not know what a
//! plugin does.

use serde_json::Value;
use trainyard_api::{
    Meta,
    volcano::{JobSpec, TaskSpec},
};

use super::Observed;
use crate::plan::{Event, Write};

mod env;
mod flags;
mod svc;
mod tensorflow;

use flags::Flags;

/// The job that a plugin serves.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    /// Metadata of the job.
    pub meta: &'a Meta,
    /// What it asks for.
    pub spec: &'a JobSpec,
    /// What is there.
    pub seen: &'a Observed<'a>,
}

/// A job plugin.
pub(super) trait Plugin {
    /// Its name in manifests.
    fn name(&self) -> &'static str;

    /// What makes its objects what they are to be, now.
    fn objects(&self, _scene: &Scene<'_>) -> Vec<Write> {
        Vec::new()
    }

    /// Changes a pod that is about to be made.
    fn dress(&self, scene: &Scene<'_>, task: &TaskSpec, index: u32, pod_spec: &mut Value);
}

type Make = fn(&mut Flags<'_>) -> Box<dyn Plugin>;

/// All plugins, in the order in which they work.
const ALL: [(&str, Make); 3] = [
    ("env", |_| Box::new(env::Env)),
    ("svc", |flags| Box::new(svc::Svc::new(flags))),
    ("tensorflow", |flags| Box::new(tensorflow::TensorFlow::new(flags))),
];

/// The plugins of a job, and what is told about arguments that mean nothing.
pub(super) fn of(spec: &JobSpec) -> (Vec<Box<dyn Plugin>>, Vec<Event>) {
    let (mut plugins, mut warnings) = (Vec::new(), Vec::new());
    for (name, make) in ALL {
        if let Some(words) = spec.plugins.get(name) {
            let mut flags = Flags::read(words);
            plugins.push(make(&mut flags));
            warnings.extend(flags.unknown(name));
        }
    }
    (plugins, warnings)
}

/// The hosts of a task, in order.
fn hosts(scene: &Scene<'_>, task: &TaskSpec) -> Vec<String> {
    if task.template["spec"]["hostname"].as_str().is_some_and(|name| !name.is_empty()) {
        // All its pods answer to one name.
        return vec![host(scene, task, 0)];
    }
    (0..task.replicas).map(|index| host(scene, task, index)).collect()
}

/// The name by which a pod is found.
fn host(scene: &Scene<'_>, task: &TaskSpec, index: u32) -> String {
    let given = |key: &str| {
        task.template["spec"][key].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let name = given("hostname")
        .unwrap_or_else(|| super::objects::pod_name(&scene.meta.name, &task.name, index));
    let domain = given("subdomain").unwrap_or_else(|| scene.meta.name.clone());
    format!("{name}.{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_a_job_may_name_are_there() {
        assert_eq!(ALL.map(|(name, _)| name), trainyard_api::volcano::plugins::SUPPORTED);
    }
}
