//! What pods ask for, counted as the scheduler counts: containers together, init containers one after
//! the other beside the ones that keep running, pod-level requests over both, and the overhead on top.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use trainyard_api::quantity;

/// Amounts by name: processors in thousandths, all else in whole units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Totals(BTreeMap<String, i64>);

impl Totals {
    /// Amounts that cannot be read count as nothing: the API server lets none through.
    pub(super) fn of<'a>(amounts: impl IntoIterator<Item = (&'a String, &'a Written)>) -> Self {
        let read = |name: &str, written: &Written| {
            let amount = quantity::parse(&written.0).ok()?;
            Some(if name == "cpu" { amount.millis() } else { amount.value() })
        };
        Self(
            amounts
                .into_iter()
                .map(|(name, written)| (name.clone(), read(name, written).unwrap_or(0)))
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn add(&mut self, more: &Self) {
        for (name, amount) in &more.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    fn raise_to(&mut self, least: &Self) {
        for (name, amount) in &least.0 {
            let held = self.0.entry(name.clone()).or_default();
            *held = (*held).max(*amount);
        }
    }
}

/// What a pod asks for in all.
pub(super) fn of_pod(pod: &Pod) -> Totals {
    let Some(spec) = &pod.spec else { return Totals::default() };
    let mut total = Totals::default();
    for container in &spec.containers {
        total.add(&of_container(container));
    }
    let (mut lasting, mut most) = (Totals::default(), Totals::default());
    for container in spec.init_containers.iter().flatten() {
        let mut during = of_container(container);
        if keeps_running(container) {
            total.add(&during);
            lasting.add(&during);
            during = lasting.clone();
        } else {
            during.add(&lasting);
        }
        most.raise_to(&during);
    }
    total.raise_to(&most);
    let pod_level = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    for (name, amount) in Totals::of(pod_level.into_iter().flatten()).0 {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            total.0.insert(name, amount);
        }
    }
    total.add(&Totals::of(spec.overhead.iter().flatten()));
    total
}

/// An init container that stays beside the others.
pub(super) fn keeps_running(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn of_container(container: &Container) -> Totals {
    let requests = container.resources.as_ref().and_then(|all| all.requests.as_ref());
    Totals::of(requests.into_iter().flatten())
}

/// Names outside Kubernetes' own domain, as `nvidia.com/gpu`.
pub(super) fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// Names that are counted beside processors, memory, disk and pods.
pub(super) fn is_scalar(name: &str) -> bool {
    is_extended(name)
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
        || name.contains("kubernetes.io/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(spec: &Value) -> (i64, i64, i64) {
        let pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
        let total = of_pod(&pod);
        (total.get("cpu"), total.get("memory"), total.get("nvidia.com/gpu"))
    }

    fn container(cpu: &str, memory: &str) -> Value {
        json!({ "name": "c", "resources": { "requests": { "cpu": cpu, "memory": memory } } })
    }

    #[test]
    fn containers_add_up_and_init_containers_take_turns() {
        let spec = json!({
            "containers": [container("500m", "1Gi"), container("1", "1Gi")],
            "initContainers": [container("2", "100Mi"), container("1", "3Gi")],
        });
        assert_eq!(asked(&spec), (2000, 3 << 30, 0));
    }

    #[test]
    fn init_containers_that_stay_add_to_what_follows() {
        let mut sidecar = container("1", "1Gi");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "containers": [container("500m", "1Gi")],
            "initContainers": [container("1", "0"), sidecar, container("2", "5Gi")],
        });
        // While the last one runs: 2 + 1 cores and 5 + 1 GiB.
        assert_eq!(asked(&spec), (3000, 6 << 30, 0));
    }

    #[test]
    fn the_pod_level_and_the_overhead() {
        let spec = json!({
            "containers": [{ "name": "c", "resources": { "requests":
                { "cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "1" } } }],
            "resources": { "requests": { "cpu": "2", "nvidia.com/gpu": "9" } },
            "overhead": { "cpu": "250m", "memory": "1" },
        });
        assert_eq!(asked(&spec), (2250, (1 << 30) + 1, 1));
    }

    #[test]
    fn nothing_asked_and_nothing_readable() {
        assert_eq!(asked(&json!({ "containers": [{ "name": "c" }] })), (0, 0, 0));
        assert_eq!(asked(&json!({ "containers": [container("lots", "1Q")] })), (0, 0, 0));
        assert_eq!(of_pod(&Pod::default()), Totals::default());
    }
}
