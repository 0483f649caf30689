//! Whether somebody gives away rights that they do not have: by a role, or by a binding to one.
//!
//! Pure: compares the rules that are given with those that the giver has, as the real server does. Must
//! not know how roles are stored or requests arrive.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::rights::{self, Act};
use crate::failure::{About, Failure};
use crate::kind::{Caller, World};

/// The group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Refuses a new or changed role or binding that gives more than its writer has. `plural` is the kind's,
/// `before` what is replaced; other kinds pass.
pub(crate) fn check(
    world: &dyn World,
    caller: &Caller,
    (group, plural): (&str, &str),
    object: &Value,
    before: Option<&Value>,
) -> Result<(), Failure> {
    if group != GROUP
        || rights::is_master(caller)
        || before.is_some_and(|before| changes_only_bookkeeping(object, before))
    {
        return Ok(());
    }
    let at = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let about = || About::new(GROUP, plural, at("name"));
    let granted = match plural {
        "roles" | "clusterroles" => {
            let act = Act {
                verb: "escalate",
                group: GROUP,
                resource: plural.to_owned(),
                namespace: at("namespace"),
                // The name is part of the path of a change only.
                name: if before.is_some() { at("name") } else { "" },
                on_node: "",
            };
            if rights::may(world, caller, &act) {
                return Ok(());
            }
            object["rules"].clone()
        }
        "rolebindings" | "clusterrolebindings" => {
            match bound(world, caller, object, at("namespace")) {
                Bound::Freely => return Ok(()),
                Bound::Rules(rules) => rules,
                // In the words of the real server, which names the resource that was asked for.
                Bound::Missing(name) => {
                    return Err(Failure::not_found(About::new(GROUP, plural, &name)));
                }
            }
        }
        _ => return Ok(()),
    };
    let held = rights::rules(world, caller, at("namespace"));
    let missing = missing(&held, &granted);
    if !missing.is_empty() {
        return Err(Failure::forbidden(about(), &words(caller, &missing)));
    }
    let gathers = |role: &Value| !role["aggregationRule"].is_null();
    if (gathers(object) || before.is_some_and(gathers)) && !self::missing(&held, &all()).is_empty()
    {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(Failure::forbidden(about(), why));
    }
    Ok(())
}

/// What a binding gives.
enum Bound {
    /// Its writer may bind that role in any case.
    Freely,
    Rules(Value),
    /// There is no role of this name.
    Missing(String),
}

fn bound(world: &dyn World, caller: &Caller, binding: &Value, namespace: &str) -> Bound {
    let text = |key: &str| binding["roleRef"][key].as_str().unwrap_or_default();
    let resource = match text("kind") {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        // Refused by validation.
        _ => return Bound::Freely,
    };
    let name = text("name");
    let resource = resource.to_owned();
    let act = Act { verb: "bind", group: GROUP, resource, namespace, name, on_node: "" };
    if rights::may(world, caller, &act) {
        return Bound::Freely;
    }
    let role = rights::role(world, &binding["roleRef"], namespace);
    role.map_or(Bound::Missing(name.to_owned()), |role| Bound::Rules(role["rules"].clone()))
}

/// Whether nothing changes but what the garbage collector writes.
fn changes_only_bookkeeping(object: &Value, before: &Value) -> bool {
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for key in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.remove(key);
            }
        }
        object
    };
    plain(object) == plain(before)
}

fn all() -> Value {
    json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ])
}

/// A rule of one group, one resource and at most one name, or of one path; and of one verb.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Single<'a> {
    Resource { group: &'a str, resource: &'a str, name: Option<&'a str>, verb: &'a str },
    Path { path: &'a str, verb: &'a str },
}

/// What of the granted rules no held one covers.
fn missing<'a>(held: &[Value], granted: &'a Value) -> Vec<Single<'a>> {
    let granted = granted.as_array().into_iter().flatten();
    let singles = granted.flat_map(broken_down);
    singles.filter(|single| !held.iter().any(|rule| covers(rule, single))).collect()
}

fn texts<'a>(rule: &'a Value, key: &str) -> Vec<&'a str> {
    rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn broken_down(rule: &Value) -> Vec<Single<'_>> {
    let verbs = texts(rule, "verbs");
    let names = texts(rule, "resourceNames");
    let names: Vec<Option<&str>> =
        if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
    let mut singles = Vec::new();
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            for verb in &verbs {
                for name in &names {
                    singles.push(Single::Resource { group, resource, name: *name, verb });
                }
            }
        }
    }
    for path in texts(rule, "nonResourceURLs") {
        singles.extend(verbs.iter().map(|verb| Single::Path { path, verb }));
    }
    singles
}

fn covers(rule: &Value, single: &Single<'_>) -> bool {
    let has = |key: &str, wanted: &str| texts(rule, key).contains(&wanted);
    let has_or_all = |key: &str, wanted: &str| has(key, "*") || has(key, wanted);
    match single {
        Single::Resource { group, resource, name, verb } => {
            let of_any = resource
                .split_once('/')
                .is_some_and(|(_, sub)| has("resources", &format!("*/{sub}")));
            let named = texts(rule, "resourceNames").is_empty()
                || name.is_some_and(|name| has("resourceNames", name));
            has_or_all("verbs", verb)
                && has_or_all("apiGroups", group)
                && (has_or_all("resources", resource) || of_any)
                && named
        }
        Single::Path { path, verb } => {
            let reaches = |own: &&str| {
                own == path
                    || own
                        .strip_suffix('*')
                        .is_some_and(|_| path.starts_with(own.trim_end_matches('*')))
            };
            has_or_all("verbs", verb) && texts(rule, "nonResourceURLs").iter().any(reaches)
        }
    }
}

/// The refusal, with the missing rules put together again by their verbs.
fn words(caller: &Caller, missing: &[Single<'_>]) -> String {
    let mut verbs: BTreeMap<(&str, &str, Option<&str>), Vec<&str>> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for single in missing {
        match *single {
            Single::Resource { group, resource, name, verb } => {
                verbs.entry((group, resource, name)).or_default().push(verb);
            }
            Single::Path { path, verb } => {
                lines.insert(format!("{{NonResourceURLs:[{path:?}], Verbs:[{verb:?}]}}"));
            }
        }
    }
    for ((group, resource, name), verbs) in verbs {
        let name = name.map(|name| format!("ResourceNames:[{name:?}], ")).unwrap_or_default();
        let verbs = quoted(verbs.into_iter());
        lines.insert(format!(
            "{{APIGroups:[{group:?}], Resources:[{resource:?}], {name}Verbs:[{verbs}]}}"
        ));
    }
    let lines: Vec<String> = lines.into_iter().collect();
    format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        caller.name,
        quoted(caller.groups.iter().map(String::as_str)),
        lines.join("\n")
    )
}

fn quoted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    quoted.join(" ")
}

#[cfg(test)]
#[path = "escalation_tests.rs"]
mod tests;
