//! What a job asks of the scheduler that starts its pods all together.
//!
//! Must not know whether there is such a scheduler.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{SpecError, number, text};
use crate::{limits::RESOURCES_MAX, quantity};

const PATH: &str = "spec.runPolicy.schedulingPolicy";

/// How the pods of a job are scheduled together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedulingPolicy {
    /// Pods that must fit at once before any of them starts; all of them when not given.
    pub min_available: Option<u32>,
    /// The queue that the job waits in.
    pub queue: Option<String>,
    /// What must be free before any pod starts; computed from the pods when not given.
    pub min_resources: Option<BTreeMap<String, String>>,
    /// Priority class of the group of pods.
    pub priority_class: Option<String>,
    /// Seconds that the group may wait, for schedulers that know such a limit.
    pub schedule_timeout_seconds: Option<i64>,
}

/// Reads the policy from the run policy.
pub(super) fn scheduling_policy(
    run_policy: &Map<String, Value>,
) -> Result<Option<SchedulingPolicy>, SpecError> {
    let policy = match run_policy.get("schedulingPolicy") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(policy)) => policy,
        Some(_) => return Err(SpecError::new(PATH, "must be an object")),
    };
    let named = |key| {
        let name = text(policy, PATH, key)?.filter(|name| !name.is_empty());
        Ok::<_, SpecError>(name.map(str::to_owned))
    };
    Ok(Some(SchedulingPolicy {
        min_available: within(policy, "minAvailable", 1)?.and_then(|n| u32::try_from(n).ok()),
        queue: named("queue")?,
        min_resources: min_resources(policy)?,
        priority_class: named("priorityClass")?,
        schedule_timeout_seconds: within(policy, "scheduleTimeoutSeconds", 0)?,
    }))
}

/// A number that is at least so large and fits 31 bits.
fn within(policy: &Map<String, Value>, key: &str, least: i64) -> Result<Option<i64>, SpecError> {
    match number(policy, PATH, key)? {
        Some(value) if !(least..=i64::from(i32::MAX)).contains(&value) => Err(SpecError::new(
            format!("{PATH}.{key}"),
            format!("{value} must be between {least} and {}", i32::MAX),
        )),
        other => Ok(other),
    }
}

fn min_resources(
    policy: &Map<String, Value>,
) -> Result<Option<BTreeMap<String, String>>, SpecError> {
    let path = format!("{PATH}.minResources");
    let given = match policy.get("minResources") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(given)) => given,
        Some(_) => {
            return Err(SpecError::new(path, "must be an object, as {\"cpu\": \"4\"}"));
        }
    };
    if given.len() > RESOURCES_MAX as usize {
        let told = format!("names {} resources, at most {RESOURCES_MAX} are allowed", given.len());
        return Err(SpecError::new(path, told));
    }
    let amounts = given.iter().map(|(resource, amount)| {
        let text = match amount {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match quantity::parse(&text) {
            Ok(amount) if amount < quantity::Quantity::ZERO => Err(SpecError::new(
                format!("{path}[{resource}]"),
                format!("{text} is negative; use 0 or more"),
            )),
            Ok(_) => Ok((resource.clone(), text)),
            Err(error) => Err(SpecError::new(format!("{path}[{resource}]"), error.to_string())),
        }
    });
    amounts.collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(policy: &Value) -> Result<Option<SchedulingPolicy>, String> {
        let mut run_policy = Map::new();
        run_policy.insert("schedulingPolicy".into(), policy.clone());
        scheduling_policy(&run_policy).map_err(|error| error.to_string())
    }

    #[test]
    fn every_field() {
        let policy = read(&json!({
            "minAvailable": 3, "queue": "research", "priorityClass": "high",
            "minResources": {"cpu": 4, "memory": "8Gi"}, "scheduleTimeoutSeconds": 60,
        }));
        let resources = [("cpu", "4"), ("memory", "8Gi")];
        let expected = SchedulingPolicy {
            min_available: Some(3),
            queue: Some("research".into()),
            min_resources: Some(resources.map(|(k, v)| (k.to_owned(), v.to_owned())).into()),
            priority_class: Some("high".into()),
            schedule_timeout_seconds: Some(60),
        };
        assert_eq!(policy, Ok(Some(expected)));
    }

    #[test]
    fn what_is_empty_is_not_given() {
        assert_eq!(read(&Value::Null), Ok(None));
        let policy = read(&json!({"queue": "", "priorityClass": "", "minResources": null}));
        assert_eq!(policy, Ok(Some(SchedulingPolicy::default())));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let path = "spec.runPolicy.schedulingPolicy";
        for (policy, problem) in [
            (json!([]), ": must be an object"),
            (json!({"minAvailable": 0}), ".minAvailable: 0 must be between 1 and 2147483647"),
            (json!({"minAvailable": "3"}), ".minAvailable: \"3\" must be a whole number"),
            (
                json!({"scheduleTimeoutSeconds": -1}),
                ".scheduleTimeoutSeconds: -1 must be between 0 and 2147483647",
            ),
            (json!({"queue": 7}), ".queue: 7 must be a string"),
            (json!({"minResources": 1}), ".minResources: must be an object, as {\"cpu\": \"4\"}"),
            (
                json!({"minResources": {"cpu": "-1"}}),
                ".minResources[cpu]: -1 is negative; use 0 or more",
            ),
            (
                json!({"minResources": {"cpu": "many"}}),
                ".minResources[cpu]: \"many\" is no quantity: write a number with an optional \
                 suffix, as 500m, 2, 1.5Gi or 1e3",
            ),
        ] {
            assert_eq!(read(&policy), Err(format!("{path}{problem}")), "{policy}");
        }
    }
}
