//! What an identity may do: everything for masters, what roles say for all others, and beside it what
//! comes with being a node.
//!
//! Pure reading of stored roles and bindings. Must not know how an identity was proven.

use serde_json::Value;

use super::auth::MASTERS;
use super::nodes;
use crate::failure::Failure;
use crate::kind::{Caller, World};

const ROLES: &str = "roles.rbac.authorization.k8s.io";
const ROLE_BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const CLUSTER_ROLE_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";

/// One thing that somebody wants to do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Act<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    /// `pods` or `pods/log`.
    pub(crate) resource: String,
    /// Empty for kinds outside namespaces and for all namespaces.
    pub(crate) namespace: &'a str,
    /// Empty for lists, unless they select one name.
    pub(crate) name: &'a str,
    /// The node to whose pods a list or a watch keeps; empty for all.
    pub(crate) on_node: &'a str,
}

/// Refuses what an identity may not do.
pub(crate) fn check(world: &dyn World, caller: &Caller, act: &Act<'_>) -> Result<(), Failure> {
    if may(world, caller, act) {
        return Ok(());
    }
    let place = if act.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", act.namespace)
    };
    let resource = act.resource.split('/').next().unwrap_or_default();
    let about = crate::failure::About::new(act.group, resource, act.name);
    let mut why = format!(
        "User {:?} cannot {} resource {:?} in API group {:?} {place}",
        caller.name, act.verb, act.resource, act.group
    );
    let of_node = nodes::node(caller).and_then(|node| nodes::refusal(world, node, act));
    if let Some(more) = of_node.filter(|more| !more.is_empty()) {
        why = format!("{why}: {more}");
    }
    if act.name.is_empty() {
        let shown = if act.group.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}.{}", act.group)
        };
        let mut failure = Failure::new(403, "Forbidden", format!("{shown} is forbidden: {why}"));
        failure.about = Some(Box::new(about));
        return Err(failure);
    }
    Err(Failure::forbidden(about, &why))
}

/// Whether an identity may do something.
pub(crate) fn may(world: &dyn World, caller: &Caller, act: &Act<'_>) -> bool {
    is_master(caller)
        || asks_about_itself(act)
        || nodes::node(caller).is_some_and(|node| nodes::may(world, node, act))
        || rules(world, caller, act.namespace).iter().any(|rule| grants(rule, act))
}

/// Whether no role has to say what somebody may do.
pub(crate) fn is_master(caller: &Caller) -> bool {
    caller.groups.iter().any(|group| group == MASTERS)
}

/// The rules that hold for somebody in a namespace, or outside all if it is empty.
pub(crate) fn rules(world: &dyn World, caller: &Caller, namespace: &str) -> Vec<Value> {
    let everywhere = world.list(CLUSTER_ROLE_BINDINGS, None);
    let inside = match namespace {
        "" => Vec::new(),
        namespace => world.list(ROLE_BINDINGS, Some(namespace)),
    };
    let bound = everywhere.iter().chain(&inside).filter(|binding| names(binding, caller));
    let roles = bound.filter_map(|binding| {
        let namespace = binding["metadata"]["namespace"].as_str().unwrap_or_default();
        role(world, &binding["roleRef"], namespace)
    });
    roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect()
}

/// The rules that need no role, as [`asks_about_itself`] has them.
pub(crate) fn for_everybody() -> Vec<Value> {
    let rule = |group: &str, resources: &[&str]| serde_json::json!({"verbs": ["create"], "apiGroups": [group], "resources": resources});
    let access = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    vec![
        rule("authorization.k8s.io", &access),
        rule("authentication.k8s.io", &["selfsubjectreviews"]),
    ]
}

/// Everybody may ask who they are and what they may do.
fn asks_about_itself(act: &Act<'_>) -> bool {
    act.verb == "create"
        && matches!(
            act.resource.as_str(),
            "selfsubjectaccessreviews" | "selfsubjectrulesreviews" | "selfsubjectreviews"
        )
}

fn names(binding: &Value, caller: &Caller) -> bool {
    let own = binding["metadata"]["namespace"].as_str().unwrap_or_default();
    binding["subjects"].as_array().into_iter().flatten().any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str().unwrap_or_default() {
            "User" => caller.name == name,
            "Group" => caller.groups.iter().any(|group| group == name),
            "ServiceAccount" => {
                let namespace = subject["namespace"].as_str().unwrap_or(own);
                caller.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
        }
    })
}

/// The role that a binding in this namespace, or outside all, refers to.
pub(crate) fn role(world: &dyn World, reference: &Value, namespace: &str) -> Option<Value> {
    let name = reference["name"].as_str()?;
    match reference["kind"].as_str()? {
        "ClusterRole" => world.get(CLUSTER_ROLES, "", name),
        "Role" => world.get(ROLES, namespace, name),
        _ => None,
    }
}

fn grants(rule: &Value, act: &Act<'_>) -> bool {
    let has = |key: &str, wanted: &str| {
        let words = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        words.into_iter().any(|word| word == "*" || word == wanted)
    };
    let named = rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
        || (!act.name.is_empty() && has("resourceNames", act.name));
    let any_of_sub =
        act.resource.split_once('/').is_some_and(|(_, sub)| has("resources", &format!("*/{sub}")));
    has("verbs", act.verb)
        && has("apiGroups", act.group)
        && (has("resources", &act.resource) || any_of_sub)
        && named
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::auth::caller;

    struct Stored(Vec<(&'static str, Value)>);

    impl World for Stored {
        fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
            self.list(storage, Some(namespace)).into_iter().find(|o| o["metadata"]["name"] == name)
        }

        fn list(&self, storage: &str, namespace: Option<&str>) -> Vec<Value> {
            let inside = |object: &Value| {
                namespace
                    .is_none_or(|ns| object["metadata"]["namespace"].as_str().unwrap_or("") == ns)
            };
            let all = self.0.iter().filter(|(at, object)| *at == storage && inside(object));
            all.map(|(_, object)| object.clone()).collect()
        }

        fn now(&self) -> String {
            String::new()
        }
    }

    fn act<'a>(verb: &'a str, resource: &str, namespace: &'a str, name: &'a str) -> Act<'a> {
        Act { verb, group: "", resource: resource.to_owned(), namespace, name, on_node: "" }
    }

    #[test]
    fn roles_are_read_as_they_are_bound() {
        let world = Stored(vec![
            (
                ROLES,
                json!({
                    "metadata": {"name": "reader", "namespace": "a"},
                    "rules": [
                        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
                        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"], "resourceNames": ["mine"]},
                    ],
                }),
            ),
            (
                ROLE_BINDINGS,
                json!({
                    "metadata": {"name": "reader", "namespace": "a"},
                    "roleRef": {"kind": "Role", "name": "reader"},
                    "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "a"}],
                }),
            ),
        ]);
        let account = caller("system:serviceaccount:a:default", &[]);
        assert!(may(&world, &account, &act("list", "pods", "a", "")));
        assert!(!may(&world, &account, &act("list", "pods", "b", "")));
        assert!(!may(&world, &account, &act("list", "pods", "", "")));
        assert!(!may(&world, &account, &act("delete", "pods", "a", "x")));
        assert!(!may(&world, &account, &act("get", "pods/log", "a", "x")));
        assert!(may(&world, &account, &act("get", "secrets", "a", "mine")));
        assert!(!may(&world, &account, &act("get", "secrets", "a", "other")));
        assert!(may(&world, &account, &act("create", "selfsubjectreviews", "", "")));
        assert!(may(&world, &caller("me", &[MASTERS]), &act("delete", "nodes", "", "n")));
        let text = check(&world, &account, &act("list", "pods", "b", "")).unwrap_err().message;
        assert_eq!(
            text,
            "pods is forbidden: User \"system:serviceaccount:a:default\" cannot list resource \"pods\" in API group \"\" in the namespace \"b\""
        );
    }
}
