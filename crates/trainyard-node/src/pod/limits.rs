//! What the resources of containers and pods mean to the machine. Pure.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use trainyard_api::quantity::{self, Quantity};
use trainyard_holder::protocol::Limits;

/// What `/dev/shm` holds, as container runtimes have it. A memory-backed `emptyDir` there is larger.
pub(crate) const SHARED_MEMORY: u64 = 64 << 20;
/// Below this, TensorFlow thrashes or is killed while it loads.
pub(crate) const TENSORFLOW_NEEDS: u64 = 400 << 20;

/// The limits of a container.
pub(crate) fn limits(container: &Container) -> Limits {
    let resources = container.resources.clone().unwrap_or_default();
    Limits {
        memory: read(&resources, Side::Limit, "memory", quantity::Quantity::value),
        cpu_millis: read(&resources, Side::Limit, "cpu", quantity::Quantity::millis),
        cpu_request_millis: read(&resources, Side::Request, "cpu", quantity::Quantity::millis),
        // The pod's hold for all its containers.
        pids: None,
    }
}

/// The limits of all containers of a pod together; `pids` is what the node gives each pod.
pub(crate) fn of_pod(spec: &PodSpec, pids: u64) -> Limits {
    let memory = most(spec, "memory").and_then(|bytes| u64::try_from(bytes.value()).ok());
    Limits { memory: memory.filter(|bytes| *bytes > 0), pids: Some(pids), ..Limits::default() }
}

/// How much of a resource a pod is bounded to: by itself, or if every container is.
pub(crate) fn most(spec: &PodSpec, name: &str) -> Option<Quantity> {
    if let Some(whole) = spec.resources.as_ref().and_then(|resources| limit(resources, name)) {
        return Some(whole);
    }
    let of = |container: &Container| limit(container.resources.as_ref()?, name);
    let together: Quantity =
        spec.containers.iter().map(of).collect::<Option<Vec<_>>>()?.into_iter().sum();
    let before: Option<Vec<_>> = spec.init_containers.iter().flatten().map(of).collect();
    before?.into_iter().chain([together]).max()
}

/// What the limit of a resource says, where there is one.
pub(crate) fn limit(resources: &ResourceRequirements, name: &str) -> Option<Quantity> {
    quantity::parse(&resources.limits.as_ref()?.get(name)?.0).ok()
}

/// Whether a pod relies on limits.
pub(crate) fn are_asked(spec: &PodSpec) -> bool {
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.map(limits).any(|limits| limits.memory.is_some() || limits.cpu_millis.is_some())
}

#[derive(Clone, Copy)]
enum Side {
    Limit,
    Request,
}

fn read(
    resources: &ResourceRequirements,
    side: Side,
    name: &str,
    amount: impl Fn(quantity::Quantity) -> i64,
) -> Option<u64> {
    let given = match side {
        Side::Limit => resources.limits.as_ref(),
        Side::Request => resources.requests.as_ref(),
    };
    // The API server has read these quantities before.
    let quantity = quantity::parse(&given?.get(name)?.0).ok()?;
    u64::try_from(amount(quantity)).ok().filter(|amount| *amount > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_read_in_bytes_and_millis() {
        let container: Container = serde_json::from_value(json!({"name": "c", "resources": {
            "limits": {"memory": "1Gi", "cpu": "500m"}, "requests": {"cpu": "0.1"},
        }}))
        .unwrap();
        let limits = limits(&container);
        assert_eq!((limits.memory, limits.cpu_millis), (Some(1 << 30), Some(500)));
        assert_eq!(limits.cpu_request_millis, Some(100));
        let relying = |container: &Container| {
            are_asked(&PodSpec { containers: vec![container.clone()], ..PodSpec::default() })
        };
        let bare: Container = serde_json::from_value(json!({"name": "c"})).unwrap();
        assert_eq!(super::limits(&bare).memory, None);
        assert!(relying(&container) && !relying(&bare));
    }

    #[test]
    fn a_pod_is_bounded_where_all_its_containers_are() {
        let memory = |main: &[Option<&str>], init: &[Option<&str>], whole: Option<&str>| {
            let of = |limit: Option<&str>| match limit {
                Some(limit) => json!({"name": "c", "resources": {"limits": {"memory": limit}}}),
                None => json!({"name": "c"}),
            };
            let all = |limits: &[Option<&str>]| limits.iter().copied().map(of).collect::<Vec<_>>();
            let mut spec = json!({"containers": all(main), "initContainers": all(init)});
            if let Some(whole) = whole {
                spec["resources"] = json!({"limits": {"memory": whole}});
            }
            let spec: PodSpec = serde_json::from_value(spec).unwrap();
            let limits = of_pod(&spec, 77);
            assert_eq!((limits.pids, limits.cpu_millis), (Some(77), None));
            limits.memory
        };
        assert_eq!(memory(&[Some("100"), Some("50")], &[], None), Some(150));
        assert_eq!(memory(&[Some("100"), None], &[], None), None);
        // They run before the others, one at a time.
        assert_eq!(memory(&[Some("100")], &[Some("300"), Some("200")], None), Some(300));
        assert_eq!(memory(&[Some("100")], &[None], None), None);
        assert_eq!(memory(&[None], &[], Some("500")), Some(500));
        assert_eq!(memory(&[Some("0")], &[], None), None);
    }
}
