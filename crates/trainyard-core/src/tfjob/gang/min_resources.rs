//! What the pods that must start at once ask for, in sum.
//!
//! Pods of higher priority come first, pods of equal priority in the order given: the same job always
//! asks for the same. Must not know groups or jobs.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;
use trainyard_api::quantity::{self, Quantity};

/// Amounts by resource.
type Amounts = BTreeMap<String, Quantity>;

/// Pods made from one template.
pub(super) struct Share<'a> {
    /// Value of their priority class.
    pub priority: i64,
    /// How many.
    pub pods: i64,
    /// Their template.
    pub template: &'a Value,
}

/// What so many of the pods ask for.
pub(super) fn min_resources(mut shares: Vec<Share<'_>>, members: i64) -> BTreeMap<String, String> {
    shares.sort_by_key(|share| Reverse(share.priority));
    let mut left = members;
    let mut sum = Amounts::new();
    for share in shares {
        let pods = share.pods.min(left);
        left -= pods;
        for (resource, amount) in asks(share.template) {
            add(&mut sum, resource, times(amount, pods));
        }
    }
    let there = sum.into_iter().filter(|(_, amount)| !amount.is_zero());
    there.map(|(resource, amount)| (resource, amount.to_string())).collect()
}

/// What a pod asks for at its worst moment: all containers together, or one initial container
/// before them beside those that stay; and what its runtime adds.
fn asks(template: &Value) -> Amounts {
    let Some(spec) = template.get("spec") else {
        return Amounts::new();
    };
    let list = |key: &str| spec.get(key).and_then(Value::as_array).into_iter().flatten();
    let mut together = Amounts::new();
    for container in list("containers") {
        add_all(&mut together, requests(container));
    }
    let mut staying = Amounts::new();
    let mut worst = Amounts::new();
    for container in list("initContainers") {
        let mut moment = staying.clone();
        add_all(&mut moment, requests(container));
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            staying.clone_from(&moment);
        }
        raise(&mut worst, moment);
    }
    add_all(&mut together, staying);
    raise(&mut together, worst);
    add_all(&mut together, amounts(spec.get("overhead")));
    together
}

/// What a container requests; where it says only a limit, the API server takes that.
fn requests(container: &Value) -> Amounts {
    let part = |key: &str| amounts(container.get("resources").and_then(|all| all.get(key)));
    let mut requests = part("limits");
    requests.extend(part("requests"));
    requests
}

/// What is no quantity counts as nothing: the API server refuses such a pod.
fn amounts(written: Option<&Value>) -> Amounts {
    let written = written.and_then(Value::as_object).into_iter().flatten();
    let read = written.filter_map(|(resource, amount)| {
        let amount = match amount {
            Value::String(text) => quantity::parse(text),
            other => quantity::parse(&other.to_string()),
        };
        Some((resource.clone(), amount.ok()?))
    });
    read.collect()
}

fn add(sum: &mut Amounts, resource: String, amount: Quantity) {
    let before = sum.entry(resource).or_insert(Quantity::ZERO);
    *before = *before + amount;
}

fn add_all(sum: &mut Amounts, more: Amounts) {
    for (resource, amount) in more {
        add(sum, resource, amount);
    }
}

/// The larger of both, resource by resource.
fn raise(most: &mut Amounts, other: Amounts) {
    for (resource, amount) in other {
        let before = most.entry(resource).or_insert(Quantity::ZERO);
        *before = (*before).max(amount);
    }
}

/// The amount so many times, by doubling.
fn times(amount: Quantity, mut count: i64) -> Quantity {
    let (mut sum, mut power) = (Quantity::ZERO, amount);
    while count > 0 {
        if count % 2 == 1 {
            sum = sum + power;
        }
        power = power + power;
        count /= 2;
    }
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asking(resources: &Value) -> Value {
        json!({"spec": {"containers": [{"resources": resources}]}})
    }

    fn sum(shares: &[(i64, i64, &Value)], members: i64) -> Value {
        let shares = shares.iter().map(|(priority, pods, template)| Share {
            priority: *priority,
            pods: *pods,
            template,
        });
        json!(min_resources(shares.collect(), members))
    }

    #[test]
    fn in_the_order_of_priority() {
        let ps = asking(&json!({"requests": {"cpu": "50m"}}));
        let worker = asking(&json!({"requests": {"cpu": "100m"}}));
        for (members, first, second, expected) in [
            (4, 0, 0, "300m"),
            (3, 0, 0, "200m"),
            (2, 0, 0, "100m"),
            (3, 0, 9, "250m"),
            (2, -1, 0, "200m"),
            (1, 5, 5, "50m"),
        ] {
            let shares = [(first, 2, &ps), (second, 2, &worker)];
            assert_eq!(sum(&shares, members), json!({"cpu": expected}), "{members} {first}");
        }
    }

    #[test]
    fn a_limit_is_a_request_where_there_is_none() {
        let template = asking(&json!({
            "requests": {"cpu": "1"}, "limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1},
        }));
        let expected = json!({"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "3"});
        assert_eq!(sum(&[(0, 3, &template)], 3), expected);
    }

    #[test]
    fn the_worst_moment_of_a_pod() {
        let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
        let mut sidecar = cpu("100m");
        sidecar["restartPolicy"] = "Always".into();
        for (first, expected) in [("3", "3110m"), ("1", "1610m")] {
            let template = json!({"spec": {
                "containers": [cpu("1"), cpu("500m")], "initContainers": [sidecar, cpu(first)],
                "overhead": {"cpu": "10m"},
            }});
            assert_eq!(sum(&[(0, 1, &template)], 1), json!({"cpu": expected}), "{first}");
        }
    }

    #[test]
    fn nothing_asked_is_nothing_written() {
        let odd = asking(&json!({"requests": {"cpu": "many", "memory": 0}}));
        assert_eq!(sum(&[(0, 2, &odd), (0, 2, &Value::Null)], 4), json!({}));
        let huge = asking(&json!({"requests": {"memory": "8Ei"}}));
        assert!(sum(&[(0, i64::from(i32::MAX), &huge)], i64::MAX)["memory"].is_string());
    }
}
