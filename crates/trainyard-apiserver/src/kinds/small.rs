//! Kinds with little to say: accounts, leases, classes of priority and runtimes, budgets, quotas,
//! limits and network policies.

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{
    count_generation,
    json::{among, faults, fill, items, items_mut, keep, members, not_negative, text, unchanged},
    metadata::{self, shown},
    naming,
    pods::{resources, round_up, scheduling},
};
use crate::{
    failure::{About, Failure},
    kind::{Part, Rules, World},
};

/// The rules of service accounts.
pub(super) struct Accounts;

impl Rules for Accounts {
    /// Only the names of secrets count.
    fn prepare_create(&self, object: &mut Value) {
        for secret in items_mut(object, "secrets") {
            *secret = json!({"name": text(secret, "name")});
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        metadata::known_finalizers(&object["metadata"])
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _part: Part) {
        self.prepare_create(new);
    }

    fn validate_update(&self, new: &Value, _old: &Value, _part: Part) -> Vec<FieldError> {
        metadata::again(&new["metadata"], true, self)
    }
}

/// The rules of leases.
pub(super) struct Leases;

impl Rules for Leases {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|number| *number <= 0) {
            let path = "spec.leaseDurationSeconds";
            errors.push(FieldError::invalid(path, seconds, "must be greater than 0"));
        }
        errors.extend(not_negative(&spec["leaseTransitions"], "spec.leaseTransitions"));
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value, _part: Part) -> Vec<FieldError> {
        self.validate_create(new)
    }
}

/// The rules of classes of priority.
pub(super) struct Priorities;

const SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
const HIGHEST: i64 = 1_000_000_000;

impl Rules for Priorities {
    fn default(&self, object: &mut Value) {
        fill(object, "preemptionPolicy", "PreemptLowerPriority");
    }

    fn admit(&self, object: &mut Value, world: &dyn World) -> Result<(), Failure> {
        only_default(object, world)
    }

    fn admit_update(
        &self,
        new: &mut Value,
        _old: &Value,
        _part: Part,
        world: &dyn World,
    ) -> Result<(), Failure> {
        only_default(new, world)
    }

    fn prepare_create(&self, object: &mut Value) {
        object["metadata"]["generation"] = json!(1);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let name = text(&object["metadata"], "name");
        let value = object["value"].as_i64().unwrap_or(0);
        let known = SYSTEM.iter().find(|(known, _)| *known == name);
        if name.starts_with("system-") {
            let why = match known {
                None => Some(format!("{name} is not a known system priority class")),
                Some((_, wanted)) if *wanted != value => {
                    Some(format!("value of {name} PriorityClass must be {wanted}"))
                }
                Some(_) => None,
            };
            if let Some(why) = why {
                let words = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
                );
                errors.push(FieldError::forbidden("metadata.name", words));
            }
        } else if value > HIGHEST {
            let words = format!("maximum allowed value of a user defined priority is {HIGHEST}");
            errors.push(FieldError::forbidden("value", words));
        }
        let policies = ["PreemptLowerPriority", "Never"];
        errors.extend(among(&object["preemptionPolicy"], &policies, "preemptionPolicy"));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if new["value"] != old["value"] {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        let (now, before) = (&new["preemptionPolicy"], &old["preemptionPolicy"]);
        errors.extend(unchanged(now, before, "preemptionPolicy"));
        errors
    }
}

fn only_default(class: &Value, world: &dyn World) -> Result<(), Failure> {
    if class["globalDefault"].as_bool() != Some(true) {
        return Ok(());
    }
    let name = text(&class["metadata"], "name");
    let others = world.list("priorityclasses.scheduling.k8s.io", None);
    let other = others.iter().find(|other| {
        other["globalDefault"].as_bool() == Some(true) && text(&other["metadata"], "name") != name
    });
    let Some(other) = other else { return Ok(()) };
    let why = format!(
        "PriorityClass {} is already marked as default. Only one default can exist",
        text(&other["metadata"], "name")
    );
    Err(Failure::forbidden(About::new("scheduling.k8s.io", "priorityclasses", name), &why))
}

/// The rules of classes of runtimes.
pub(super) struct Runtimes;

impl Rules for Runtimes {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let handler = text(object, "handler");
        if handler.is_empty() {
            return vec![FieldError::required("handler", "")];
        }
        faults(naming::label(handler), handler, "handler")
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        unchanged(&new["handler"], &old["handler"], "handler").into_iter().collect()
    }
}

/// The rules of disruption budgets.
pub(super) struct Budgets;

impl Rules for Budgets {
    fn prepare_create(&self, object: &mut Value) {
        object["metadata"]["generation"] = json!(1);
        object["status"] = json!({
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
        });
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
        if !least.is_null() && !most.is_null() {
            // The real server shows its own form of the specification.
            let value = format!(
                "{{\"MinAvailable\":{least},\"Selector\":{},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{}}}",
                spec["selector"], spec["unhealthyPodEvictionPolicy"]
            );
            let words = "minAvailable and maxUnavailable cannot be both set";
            errors.push(shown("spec", &value, words));
        }
        errors.extend(scheduling::label_selector(&spec["selector"], "spec.selector"));
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        parts(new, old, part);
    }

    fn validate_update(&self, new: &Value, _old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Main { self.validate_create(new) } else { Vec::new() }
    }
}

/// Specification and status are written apart; a new specification is a new generation.
fn parts(new: &mut Value, old: &Value, part: Part) {
    if part == Part::Status {
        keep(new, old, "spec");
        return;
    }
    keep(new, old, "status");
    if new["spec"] != old["spec"] {
        count_generation(new, old);
    }
}

/// The rules of quotas.
pub(super) struct Quotas;

impl Rules for Quotas {
    fn default(&self, object: &mut Value) {
        if let Some(hard) = object["spec"].get_mut("hard") {
            round_up(hard);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({});
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (name, value) in members(&object["spec"], "hard") {
            let path = format!("spec.hard[{name}]");
            errors.extend(resources::quota_name(name, &path));
            errors.extend(resources::resource_amount(name, value, &path));
        }
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        keep(new, old, if part == Part::Main { "status" } else { "spec" });
    }

    fn validate_update(&self, new: &Value, _old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Main { self.validate_create(new) } else { Vec::new() }
    }
}

/// The rules of limits.
pub(super) struct Limits;

impl Rules for Limits {
    /// What is not said follows from what is: from the most, from the usual, from the least.
    fn default(&self, object: &mut Value) {
        for limit in items_mut(&mut object["spec"], "limits") {
            if text(limit, "type") != "Container" {
                continue;
            }
            for (from, to) in
                [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
            {
                let given: Vec<(String, Value)> = members(limit, from)
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                for (name, value) in given {
                    fill(limit, to, json!({}));
                    fill(&mut limit[to], &name, value);
                }
            }
        }
    }
}

/// The rules of network policies.
pub(super) struct Policies;

const NOT_ENFORCED: &str =
    "this NetworkPolicy is stored and not enforced here: pods reach each other whatever it says";

impl Rules for Policies {
    fn default(&self, object: &mut Value) {
        let spec = &mut object["spec"];
        for key in ["ingress", "egress"] {
            for rule in items_mut(spec, key) {
                for port in items_mut(rule, "ports") {
                    fill(port, "protocol", "TCP");
                }
            }
        }
        let types = if items(spec, "egress").is_empty() {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        fill(spec, "policyTypes", types);
    }

    fn prepare_create(&self, object: &mut Value) {
        object["metadata"]["generation"] = json!(1);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        scheduling::label_selector(&object["spec"]["podSelector"], "spec.podSelector")
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _part: Part) {
        if new["spec"] != old["spec"] {
            count_generation(new, old);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _part: Part) -> Vec<FieldError> {
        self.validate_create(new)
    }

    /// Whoever relies on it is told, and not left to believe it.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        vec![NOT_ENFORCED.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::Few;

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn priorities_have_a_ceiling_and_reserved_names() {
        let class =
            json!({"metadata": {"name": "p"}, "value": 2_000_000_000, "preemptionPolicy": "X"});
        assert_eq!(
            told(&Priorities.validate_create(&class)),
            [
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
                "preemptionPolicy: Unsupported value: \"X\": supported values: \"PreemptLowerPriority\", \"Never\"",
            ]
        );
        let class = json!({"metadata": {"name": "system-x"}, "value": 5});
        assert_eq!(
            told(&Priorities.validate_create(&class)),
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class"
            ]
        );
    }

    #[test]
    fn there_is_one_default_priority() {
        let other = json!({"metadata": {"name": "a"}, "globalDefault": true});
        let world = Few::of([("priorityclasses.scheduling.k8s.io", other)]);
        let mut class = json!({"metadata": {"name": "b"}, "globalDefault": true});
        let refused = Priorities.admit(&mut class, &world).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "priorityclasses.scheduling.k8s.io \"b\" is forbidden: PriorityClass a is already marked as default. Only one default can exist"
        );
    }

    #[test]
    fn leases_last() {
        let lease = json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}});
        assert_eq!(
            told(&Leases.validate_create(&lease)),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }

    #[test]
    fn limits_follow_from_each_other() {
        let mut limits = json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}}]}});
        Limits.default(&mut limits);
        let expected = json!({
            "type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"},
            "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"},
        });
        assert_eq!(limits["spec"]["limits"][0], expected);
    }

    #[test]
    fn policies_say_which_way_they_go() {
        let mut policy = json!({"spec": {"egress": [{"ports": [{"port": 1}]}]}});
        Policies.default(&mut policy);
        assert_eq!(Policies.warnings(&policy), [NOT_ENFORCED]);
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(policy["spec"]["egress"][0]["ports"][0]["protocol"], "TCP");
    }

    #[test]
    fn quotas_are_of_known_things() {
        let quota = json!({"spec": {"hard": {"foo": "10", "pods": "500m"}}});
        assert_eq!(
            told(&Quotas.validate_create(&quota)),
            [
                "spec.hard[foo]: Invalid value: \"foo\": must be a standard resource type or fully qualified",
                "spec.hard[foo]: Invalid value: \"foo\": must be a standard resource for quota",
                "spec.hard[pods]: Invalid value: \"500m\": must be an integer",
            ]
        );
    }
}
