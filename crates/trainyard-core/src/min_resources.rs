//! What the pods that must start at once ask for, in sum.
//!
//! Pods of higher priority come first, pods of equal priority in the order given: the same job always
//! asks for the same. Must not know groups or jobs.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;
use trainyard_api::quantity::{self, Quantity};

/// Amounts by resource.
type Amounts = BTreeMap<String, Quantity>;

/// Resources whose limits a quota counts.
const LIMITED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Pods made from one template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share<'a> {
    /// Value of their priority class.
    pub priority: i64,
    /// How many of them come before any pod that can be spared, if there is a place for all such.
    pub least: i64,
    /// How many.
    pub pods: i64,
    /// Their template.
    pub template: &'a Value,
}

/// By which keys amounts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Those of requests; what is not asked for is left out.
    Requests,
    /// All that a resource quota counts a pod by.
    Quota,
}

/// What so many of the pods ask for.
pub(crate) fn min_resources(
    mut shares: Vec<Share<'_>>,
    members: i64,
    keys: Keys,
) -> BTreeMap<String, String> {
    shares.sort_by_key(|share| Reverse(share.priority));
    let mut left = members;
    let mut sum = Amounts::new();
    for (template, pods) in turns(&shares, members) {
        let pods = pods.clamp(0, left.max(0));
        left -= pods;
        if pods > 0 {
            let asked = match keys {
                Keys::Requests => requests(template),
                Keys::Quota => usage(template),
            };
            add(&mut sum, asked, pods);
        }
    }
    sum.into_iter().map(|(resource, amount)| (resource, amount.to_string())).collect()
}

/// Who is counted in which turn. Where not even all that cannot be spared have a place, nobody is
/// told apart.
fn turns<'a>(shares: &[Share<'a>], members: i64) -> Vec<(&'a Value, i64)> {
    let least: i64 = shares.iter().map(|share| share.least).sum();
    if members < least {
        return shares.iter().map(|share| (share.template, share.pods)).collect();
    }
    let first = shares.iter().map(|share| (share.template, share.least));
    let then = shares.iter().map(|share| (share.template, share.pods - share.least));
    first.chain(then).collect()
}

/// What one pod requests.
fn requests(template: &Value) -> Amounts {
    let mut asked = of_pod(&template["spec"], Side::Requests);
    asked.retain(|_, amount| !amount.is_zero());
    asked
}

/// What one pod uses up of a quota.
fn usage(template: &Value) -> Amounts {
    let spec = &template["spec"];
    let mut usage = Amounts::new();
    for key in ["count/pods", "pods"] {
        usage.insert(key.to_owned(), Quantity::from_value(1));
    }
    for (name, amount) in of_pod(spec, Side::Requests) {
        usage.insert(format!("requests.{name}"), amount);
        usage.insert(name, amount);
    }
    for (name, amount) in of_pod(spec, Side::Limits) {
        if LIMITED.contains(&name.as_str()) {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

/// What is asked for at least, or what may be used at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Requests,
    Limits,
}

/// What a pod takes at its worst moment: all containers together, or one initial container before
/// them beside those that stay; and what its runtime adds.
fn of_pod(spec: &Value, side: Side) -> Amounts {
    let list = |key: &str| spec[key].as_array().into_iter().flatten();
    let mut together = Amounts::new();
    for container in list("containers") {
        add(&mut together, amounts(&container["resources"], side), 1);
    }
    let (mut staying, mut worst) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let mut moment = staying.clone();
        add(&mut moment, amounts(&container["resources"], side), 1);
        if container["restartPolicy"] == "Always" {
            staying.clone_from(&moment);
        }
        raise(&mut worst, moment);
    }
    add(&mut together, staying, 1);
    raise(&mut together, worst);
    // What is said for the whole pod goes before what its containers say.
    together.extend(amounts(&spec["resources"], side));
    let mut overhead = read(&spec["overhead"]);
    // Without a limit there is nothing that the runtime could raise.
    overhead.retain(|name, _| side == Side::Requests || together.contains_key(name));
    add(&mut together, overhead, 1);
    together
}

/// Requests that are not given are the limits, as the API server has it.
fn amounts(resources: &Value, side: Side) -> Amounts {
    let mut amounts = read(&resources["limits"]);
    if side == Side::Requests {
        amounts.extend(read(&resources["requests"]));
    }
    amounts
}

/// What is no quantity counts as nothing: the API server refuses such a pod.
fn read(written: &Value) -> Amounts {
    let written = written.as_object().into_iter().flatten();
    let read = written.filter_map(|(resource, amount)| {
        let amount = match amount {
            Value::String(text) => quantity::parse(text),
            other => quantity::parse(&other.to_string()),
        };
        Some((resource.clone(), amount.ok()?))
    });
    read.collect()
}

fn add(sum: &mut Amounts, more: Amounts, count: i64) {
    for (resource, amount) in more {
        let before = sum.entry(resource).or_insert(Quantity::ZERO);
        *before = *before + times(amount, count);
    }
}

/// The larger of both, resource by resource.
fn raise(most: &mut Amounts, other: Amounts) {
    for (resource, amount) in other {
        let before = most.entry(resource).or_insert(amount);
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
mod tests;
