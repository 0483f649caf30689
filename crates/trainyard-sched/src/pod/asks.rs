//! What a pod asks for, as kube-scheduler counts it.
//!
//! Owns the sum over containers, the requests of the pod as a whole, and what a resize in place
//! makes of both. Must not know nodes.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Amounts;

/// Requests by resource, as written.
type Requests = BTreeMap<String, String>;

/// The resources that a pod may ask for as a whole, besides huge pages.
const OF_WHOLE_PODS: [&str; 2] = ["cpu", "memory"];

/// `resources` of a container or of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    requests: Requests,
}

impl Resources {
    /// The resources that are asked for.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.requests.keys().map(String::as_str)
    }
}

/// A container as far as its requests go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'w> {
    pub(super) name: &'w str,
    pub(super) resources: &'w Resources,
    /// Whether it is an initial container that stays (`restartPolicy: Always`).
    pub(super) is_staying: bool,
}

/// What a node says of the resources of a container, or of a pod as a whole.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Actuated {
    name: String,
    /// What is in effect.
    resources: Option<Resources>,
    /// What the node has set aside.
    allocated_resources: Requests,
}

impl Actuated {
    /// Of a pod as a whole, whose status has these fields itself.
    pub(super) fn of_pod(resources: Option<Resources>, allocated_resources: Requests) -> Self {
        Self { name: String::new(), resources, allocated_resources }
    }
}

/// What the status of a pod says of a resize in place.
#[derive(Debug, Default)]
pub(super) struct Resize {
    /// Initial containers and others.
    pub(super) containers: Vec<Actuated>,
    pub(super) pod: Actuated,
    /// Whether the node can never do what the specification asks for now.
    pub(super) is_infeasible: bool,
}

impl Resize {
    /// What counts: the most of what is asked for, in effect and set aside, since a resize may be
    /// under way; without what is asked for if that can never be.
    fn effective(&self, asked: &Requests, actuated: Option<&Actuated>) -> Amounts {
        let asked = Amounts::read(asked);
        let Some(actuated) = actuated else { return asked };
        let Some(resources) = &actuated.resources else { return asked };
        let mut most = Amounts::read(&resources.requests);
        most.most(&Amounts::read(&actuated.allocated_resources));
        if !self.is_infeasible {
            most.most(&asked);
        }
        most
    }

    fn of_container(&self, container: &Asking<'_>) -> Amounts {
        let known = self.containers.iter().find(|known| known.name == container.name);
        self.effective(&container.resources.requests, known)
    }
}

/// What the pod needs at its worst moment: all containers together, or one initial container
/// before them beside those that stay; what the pod asks for as a whole goes before that.
/// And one place among the node's pods.
pub(super) fn asks(
    containers: &[Asking<'_>],
    initial: &[Asking<'_>],
    whole: Option<&Resources>,
    overhead: &Requests,
    resize: &Resize,
) -> Amounts {
    let mut together = Amounts::default();
    for container in containers {
        together.add(&resize.of_container(container));
    }
    let mut staying = Amounts::default();
    let mut worst = Amounts::default();
    for container in initial {
        if container.is_staying {
            staying.add(&resize.of_container(container));
            worst.most(&staying);
        } else {
            let mut moment = staying.clone();
            moment.add(&Amounts::read(&container.resources.requests));
            worst.most(&moment);
        }
    }
    together.add(&staying);
    together.most(&worst);
    if let Some(whole) = whole {
        let effective = resize.effective(&whole.requests, Some(&resize.pod));
        let is_of_whole =
            |name: &str| OF_WHOLE_PODS.contains(&name) || name.starts_with("hugepages-");
        for name in whole.requests.keys().filter(|name| is_of_whole(name)) {
            together.set(name, effective.get(name));
        }
    }
    together.add(&Amounts::read(overhead));
    together.put(crate::vector::PODS, 1);
    together
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use crate::{Amounts, Pod};

    fn asks(value: Value) -> Amounts {
        from_value::<Pod>(value).unwrap().asks
    }

    fn cpu(amount: &str) -> Value {
        json!({"resources": {"requests": {"cpu": amount}}})
    }

    #[test]
    fn a_pod_asks_for_its_worst_moment() {
        let mut sidecar = cpu("100m");
        sidecar["restartPolicy"] = json!("Always");
        let asked = asks(json!({"spec": {
            "containers": [cpu("1"), cpu("500m")],
            "initContainers": [sidecar, cpu("3")],
            "overhead": {"cpu": "10m"},
        }}));
        assert_eq!((asked.get("cpu"), asked.get("pods")), (3110, 1));
    }

    #[test]
    fn requests_of_the_whole_pod_go_before_those_of_its_containers() {
        let asked = asks(json!({"spec": {
            "containers": [
                {"resources": {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}},
            ],
            "initContainers": [cpu("8")],
            "overhead": {"cpu": "250m"},
            "resources": {"requests":
                {"cpu": "4", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"}},
        }}));
        assert_eq!(asked.get("cpu"), 4250);
        assert_eq!((asked.get("memory"), asked.get("hugepages-2Mi")), (1 << 30, 4 << 20));
        // Devices are asked for by containers only.
        assert_eq!(asked.get("nvidia.com/gpu"), 1);
        let limits_only = json!({"spec": {"containers": [cpu("1")],
            "resources": {"limits": {"cpu": "4"}}}});
        assert_eq!(asks(limits_only).get("cpu"), 1000);
    }

    fn resized(spec: &str, actuated: &Value, allocated: &str, reason: &str) -> i64 {
        let mut container = cpu(spec);
        container["name"] = json!("c");
        let status = json!({"name": "c", "resources": actuated,
            "allocatedResources": {"cpu": allocated}});
        asks(json!({
            "spec": {"containers": [container]},
            "status": {"containerStatuses": [status], "conditions":
                [{"type": "PodResizePending", "status": "True", "reason": reason}]},
        }))
        .get("cpu")
    }

    #[test]
    fn a_resize_under_way_counts_with_the_most_of_what_is_asked_and_what_is_there() {
        let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
        assert_eq!(resized("1", &requests("2"), "3", "Deferred"), 3000);
        assert_eq!(resized("4", &requests("2"), "3", "Deferred"), 4000);
        assert_eq!(resized("4", &requests("2"), "3", "Infeasible"), 3000);
        // Before a node has said anything only the specification counts.
        assert_eq!(resized("1", &json!(null), "3", ""), 1000);
    }

    #[test]
    fn a_pod_that_is_resized_as_a_whole_counts_alike() {
        let asked = asks(json!({
            "spec": {"containers": [cpu("1")], "resources": {"requests": {"cpu": "2"}}},
            "status": {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "3"}},
        }));
        assert_eq!(asked.get("cpu"), 5000);
    }
}
