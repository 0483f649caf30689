//! What a pod may ask for that is not done here. Pure. What a program would miss is refused; what it
//! can do without is said in an event. Nothing is passed over in silence.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// What is found in a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unsupported {
    /// Why the pod is not run at all.
    pub(crate) refusal: Option<String>,
    /// What is left out: the event's reason, and words.
    pub(crate) left_out: Vec<(&'static str, String)>,
}

/// Looks through a pod.
pub(crate) fn unsupported(spec: &PodSpec) -> Unsupported {
    let mut found = Unsupported { refusal: refusal(spec), left_out: Vec::new() };
    let init = spec.init_containers.iter().flatten();
    for container in init.chain(&spec.containers) {
        let name = &container.name;
        let Some(hooks) = &container.lifecycle else { continue };
        if hooks.post_start.is_some() {
            let words = format!("the postStart hook of container {name} is not run on this node");
            found.left_out.push(("FailedPostStartHook", words));
        }
        if hooks.pre_stop.is_some() {
            let words = format!(
                "the preStop hook of container {name} is not run on this node; its program gets SIGTERM \
                 at once"
            );
            found.left_out.push(("FailedPreStopHook", words));
        }
    }
    found
}

fn refusal(spec: &PodSpec) -> Option<String> {
    let sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    if let Some(container) = spec.init_containers.iter().flatten().find(sidecar) {
        return Some(format!(
            "init container {} has restartPolicy Always: sidecars are not run on this node; make it an \
             ordinary container",
            container.name
        ));
    }
    let devices = |container: &&Container| {
        container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty())
    };
    if let Some(container) = spec.containers.iter().find(devices) {
        return Some(format!(
            "container {} asks for raw block devices (volumeDevices), which this node does not have; \
             mount the volume as a file system",
            container.name
        ));
    }
    if spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()) {
        let words = "spec.resourceClaims are not served on this node; ask for devices by \
                     resources.limits, as nvidia.com/gpu";
        return Some(words.to_owned());
    }
    if let Some(class) = &spec.runtime_class_name {
        return Some(format!(
            "spec.runtimeClassName {class:?}: this node has one way to run pods; remove it"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn look(spec: Value) -> Unsupported {
        unsupported(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn an_ordinary_pod_has_nothing() {
        let spec = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]});
        assert_eq!(look(spec), Unsupported::default());
    }

    #[test]
    fn what_a_program_would_miss_is_refused() {
        for (spec, words) in [
            (
                json!({"containers": [], "initContainers": [{"name": "s", "restartPolicy": "Always"}]}),
                "init container s has restartPolicy Always",
            ),
            (
                json!({"containers": [], "runtimeClassName": "gvisor"}),
                "runtimeClassName \"gvisor\"",
            ),
            (json!({"containers": [], "resourceClaims": [{"name": "g"}]}), "resourceClaims"),
            (
                json!({"containers": [{"name": "c", "volumeDevices": [{"name": "v", "devicePath": "/d"}]}]}),
                "volumeDevices",
            ),
        ] {
            let refusal = look(spec).refusal.unwrap();
            assert!(refusal.contains(words), "{refusal}");
        }
    }

    #[test]
    fn hooks_are_told() {
        let hook = json!({"exec": {"command": ["true"]}});
        let spec = json!({"containers": [
            {"name": "c", "lifecycle": {"postStart": hook, "preStop": hook}},
        ]});
        let found = look(spec);
        assert_eq!(found.refusal, None);
        let reasons: Vec<_> = found.left_out.iter().map(|(reason, _)| *reason).collect();
        assert_eq!(reasons, ["FailedPostStartHook", "FailedPreStopHook"]);
    }
}
