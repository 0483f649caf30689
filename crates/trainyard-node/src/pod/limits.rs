//! What a container's resources mean to the machine. Pure.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use trainyard_api::quantity;
use trainyard_holder::protocol::Limits;

/// Processes and threads of one container: TensorFlow takes about a hundred.
const PIDS: u64 = 32_768;
/// Below this, TensorFlow thrashes or is killed while it loads.
pub(crate) const TENSORFLOW_NEEDS: u64 = 400 << 20;

/// The limits of a container.
pub(crate) fn limits(container: &Container) -> Limits {
    let resources = container.resources.clone().unwrap_or_default();
    Limits {
        memory: read(&resources, Side::Limit, "memory", quantity::Quantity::value),
        cpu_millis: read(&resources, Side::Limit, "cpu", quantity::Quantity::millis),
        cpu_request_millis: read(&resources, Side::Request, "cpu", quantity::Quantity::millis),
        pids: Some(PIDS),
    }
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
}
