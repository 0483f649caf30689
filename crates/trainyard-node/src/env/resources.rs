//! Resources of a container that it may ask about: `limits.cpu`, `requests.memory` …
//!
//! Must not know where the answer goes (a variable or a file).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use trainyard_api::quantity::{self, Quantity, QuantityError};

/// Why a resource cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResourceError {
    /// Neither cpu, memory, ephemeral-storage nor hugepages.
    #[error("unsupported container resource : {resource}")]
    Unknown {
        /// What was written.
        resource: String,
    },
    /// Another container of the pod was named, which is not there.
    #[error("container {name} not found")]
    NoContainer {
        /// What was written.
        name: String,
    },
    /// A quantity that is none.
    #[error("{place}: {problem}")]
    Quantity {
        /// Which one.
        place: String,
        /// What is wrong.
        problem: QuantityError,
    },
}

/// The value of a `resourceFieldRef`: of the container it names, else of `own`. A limit that is not
/// set is what the pod, or else the node, has to give.
pub(crate) fn resource_value(
    selector: &ResourceFieldSelector,
    pod: &Pod,
    own: Option<&Container>,
    allocatable: &BTreeMap<String, Quantity>,
) -> Result<String, ResourceError> {
    let wanted = selector.container_name.as_deref().unwrap_or_default();
    let container = if wanted.is_empty() { own } else { named(pod, wanted) };
    let container =
        container.ok_or_else(|| ResourceError::NoContainer { name: wanted.to_owned() })?;
    let unknown = || ResourceError::Unknown { resource: selector.resource.clone() };
    let (side, resource) = selector.resource.split_once('.').ok_or_else(unknown)?;
    let common = matches!(resource, "cpu" | "memory" | "ephemeral-storage");
    if !common && !resource.starts_with("hugepages-") {
        return Err(unknown());
    }
    let resources = container.resources.as_ref();
    let amount = match side {
        "requests" => set(resources.and_then(|r| r.requests.as_ref()), resource)?,
        "limits" => {
            let mut limit = set(limits(resources), resource)?;
            if limit.is_none() && common {
                let whole = pod.spec.as_ref().and_then(|s| s.resources.as_ref());
                limit =
                    set(limits(whole), resource)?.or_else(|| allocatable.get(resource).copied());
            }
            limit
        }
        _ => return Err(unknown()),
    };
    let divisor = match &selector.divisor {
        Some(written) => read("divisor", written)?,
        None => Quantity::ZERO,
    };
    let divisor = if divisor.is_zero() { Quantity::from_value(1) } else { divisor };
    let amount = amount.unwrap_or_default();
    let (amount, divisor) = match resource {
        "cpu" => (amount.millis(), divisor.millis()),
        _ => (amount.value(), divisor.value()),
    };
    Ok(divided_up(amount, divisor).to_string())
}

fn named<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let init = spec.init_containers.iter().flatten();
    spec.containers.iter().chain(init).find(|c| c.name == name)
}

fn limits(resources: Option<&ResourceRequirements>) -> Option<&BTreeMap<String, Written>> {
    resources.and_then(|r| r.limits.as_ref())
}

/// The amount given for a resource; nothing and zero both mean that none is.
fn set(
    amounts: Option<&BTreeMap<String, Written>>,
    resource: &str,
) -> Result<Option<Quantity>, ResourceError> {
    let written = amounts.and_then(|a| a.get(resource));
    let amount = written.map(|w| read(resource, w)).transpose()?;
    Ok(amount.filter(|a| !a.is_zero()))
}

fn read(place: &str, written: &Written) -> Result<Quantity, ResourceError> {
    quantity::parse(&written.0)
        .map_err(|problem| ResourceError::Quantity { place: place.to_owned(), problem })
}

/// Rounded towards plus infinity. The divisor is never zero: what is not zero does not round to it.
fn divided_up(amount: i64, divisor: i64) -> i64 {
    let (amount, divisor) = (i128::from(amount), i128::from(divisor));
    let whole = amount.checked_div(divisor).unwrap_or(amount);
    let inexact = whole * divisor != amount;
    let positive = (amount < 0) == (divisor < 0);
    i64::try_from(if inexact && positive { whole + 1 } else { whole }).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::resource_value;
    use k8s_openapi::api::core::v1::{Pod, ResourceFieldSelector};
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
    use std::collections::BTreeMap;
    use trainyard_api::quantity::{Quantity, parse};

    fn pod() -> Pod {
        serde_json::from_str(
            r#"{"metadata": {}, "spec": {
                "initContainers": [{"name": "init", "resources": {"limits": {"cpu": "250m"}}}],
                "containers": [
                    {"name": "main", "resources": {
                        "limits": {"cpu": "1500m", "memory": "64Mi", "hugepages-2Mi": "4Mi",
                            "bad": "x", "ephemeral-storage": "0"},
                        "requests": {"cpu": "100m", "memory": "1000k"}}},
                    {"name": "free"},
                    {"name": "broken", "resources": {"limits": {"cpu": "much"}}}]}}"#,
        )
        .unwrap()
    }

    fn ask(container: &str, resource: &str, divisor: Option<&str>) -> Result<String, String> {
        let allocatable: BTreeMap<String, Quantity> =
            [("cpu", "4"), ("memory", "8Gi"), ("ephemeral-storage", "10G")]
                .into_iter()
                .map(|(k, v)| (k.to_owned(), parse(v).unwrap()))
                .collect();
        let pod = pod();
        let own = &pod.spec.as_ref().unwrap().containers[0];
        let selector = ResourceFieldSelector {
            container_name: (!container.is_empty()).then(|| container.to_owned()),
            divisor: divisor.map(|d| Written(d.to_owned())),
            resource: resource.to_owned(),
        };
        resource_value(&selector, &pod, Some(own), &allocatable).map_err(|e| e.to_string())
    }

    #[test]
    fn amounts_in_units_of_the_divisor_rounded_up() {
        for (container, resource, divisor, value) in [
            ("", "limits.cpu", None, "2"),
            ("", "limits.cpu", Some("1m"), "1500"),
            ("", "limits.cpu", Some("0"), "2"),
            ("", "limits.memory", None, "67108864"),
            ("", "limits.memory", Some("1Mi"), "64"),
            ("", "limits.memory", Some("1G"), "1"),
            ("", "requests.cpu", Some("1m"), "100"),
            ("", "requests.memory", Some("1Mi"), "1"),
            ("", "limits.hugepages-2Mi", Some("2Mi"), "2"),
            ("", "limits.ephemeral-storage", Some("1G"), "10"),
            ("init", "limits.cpu", Some("1m"), "250"),
            ("init", "limits.memory", Some("1Gi"), "8"),
            ("free", "limits.cpu", None, "4"),
            ("free", "requests.cpu", None, "0"),
            ("free", "limits.hugepages-2Mi", None, "0"),
            ("", "limits.cpu", Some("1n"), "1500"),
        ] {
            let answer = ask(container, resource, divisor);
            assert_eq!(answer.as_deref(), Ok(value), "{container} {resource} {divisor:?}");
        }
    }

    #[test]
    fn bad_references_say_what_is_wrong() {
        for (container, resource, divisor, words) in [
            ("gone", "limits.cpu", None, "container gone not found"),
            ("", "limits.bad", None, "unsupported container resource : limits.bad"),
            ("", "cpu", None, "unsupported container resource : cpu"),
            ("", "wishes.cpu", None, "unsupported container resource : wishes.cpu"),
            ("broken", "limits.cpu", None, "cpu: \"much\" is no quantity"),
            ("", "limits.cpu", Some("?"), "divisor: \"?\" is no quantity"),
        ] {
            let error = ask(container, resource, divisor).unwrap_err();
            assert!(error.starts_with(words), "{error}");
        }
    }

    #[test]
    fn a_pods_own_limit_stands_before_the_nodes() {
        let mut pod = pod();
        let spec = pod.spec.as_mut().unwrap();
        spec.resources = serde_json::from_str(r#"{"limits": {"memory": "1Gi"}}"#).unwrap();
        let selector = ResourceFieldSelector {
            container_name: Some("free".to_owned()),
            divisor: Some(Written("1Mi".to_owned())),
            resource: "limits.memory".to_owned(),
        };
        let value = resource_value(&selector, &pod, None, &BTreeMap::new()).unwrap();
        assert_eq!(value, "1024");
    }
}
