//! Giving rights away: what is covered, what is refused and in which words.

use serde_json::{Value, json};

use super::{check, missing};
use crate::failure::Failure;
use crate::http::auth::{self, caller};
use crate::kind::World;

/// A world of roles and bindings, by storage name.
struct Stored(Vec<(&'static str, Value)>);

impl World for Stored {
    fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        self.list(storage, Some(namespace)).into_iter().find(|o| o["metadata"]["name"] == name)
    }

    fn list(&self, storage: &str, namespace: Option<&str>) -> Vec<Value> {
        let inside = |object: &Value| {
            namespace.is_none_or(|ns| object["metadata"]["namespace"].as_str().unwrap_or("") == ns)
        };
        let all = self.0.iter().filter(|(at, object)| *at == storage && inside(object));
        all.map(|(_, object)| object.clone()).collect()
    }

    fn now(&self) -> String {
        String::new()
    }
}

/// Jane may write roles and bindings, read pods, and what `more` says, in namespace `a`.
fn world(more: &Value) -> Stored {
    let mut rules = vec![
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "update"]}),
        json!({"apiGroups": [""], "resources": ["pods", "*/log"], "verbs": ["get", "list"]}),
    ];
    rules.extend(more.as_array().cloned().unwrap_or_default());
    Stored(vec![
        (
            "roles.rbac.authorization.k8s.io",
            json!({"metadata": {"name": "jane", "namespace": "a"}, "rules": rules}),
        ),
        (
            "rolebindings.rbac.authorization.k8s.io",
            json!({
                "metadata": {"name": "jane", "namespace": "a"},
                "roleRef": {"kind": "Role", "name": "jane"},
                "subjects": [{"kind": "User", "name": "jane"}],
            }),
        ),
        (
            "clusterroles.rbac.authorization.k8s.io",
            json!({"metadata": {"name": "admin"}, "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            ]}),
        ),
    ])
}

fn role(rules: &Value) -> Value {
    json!({"metadata": {"name": "r", "namespace": "a"}, "rules": rules})
}

fn writes(world: &Stored, plural: &str, object: &Value) -> Result<(), Failure> {
    check(world, &caller("jane", &[]), ("rbac.authorization.k8s.io", plural), object, None)
}

#[test]
fn rules_are_covered_as_a_whole_or_not_at_all() {
    let rule = |group: &str, resource: &str, verb: &str, names: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": [verb], "resourceNames": names});
    for (held, granted, count) in [
        (rule("", "pods", "get", &[]), rule("", "pods", "get", &[]), 0),
        (rule("", "pods", "get", &[]), rule("", "pods", "get", &["x"]), 0),
        (rule("", "pods", "get", &["x"]), rule("", "pods", "get", &[]), 1),
        (rule("", "pods", "get", &["x"]), rule("", "pods", "get", &["x", "y"]), 1),
        (rule("*", "*", "*", &[]), rule("apps", "deployments", "delete", &[]), 0),
        (rule("", "pods", "*", &[]), rule("", "*", "get", &[]), 1),
        (rule("", "*/log", "get", &[]), rule("", "pods/log", "get", &[]), 0),
        (rule("", "*/log", "get", &[]), rule("", "pods", "get", &[]), 1),
        (
            json!({"nonResourceURLs": ["/api/*"], "verbs": ["get"]}),
            json!({"nonResourceURLs": ["/api/v1", "/metrics"], "verbs": ["get"]}),
            1,
        ),
        (rule("*", "*", "*", &[]), json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}), 1),
    ] {
        let granted = json!([granted]);
        let held = [held];
        assert_eq!(missing(&held, &granted).len(), count, "{held:?} over {granted}");
    }
}

// A service account with nothing but `create` and `update` on roles and bindings made itself a role
// that may do everything, and read a Secret of another namespace.
#[test]
fn nobody_gives_away_more_than_they_have() {
    let world = world(&json!([]));
    let own = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    assert!(writes(&world, "roles", &role(&own)).is_ok());
    let more = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete", "create"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["s"]},
    ]);
    let refused = writes(&world, "roles", &role(&more)).unwrap_err();
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"create\"]}\n{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"s\"], Verbs:[\"get\"]}"
    );
    let binding = |kind: &str, name: &str| {
        json!({
            "metadata": {"name": "b", "namespace": "a"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "User", "name": "jane"}],
        })
    };
    assert!(writes(&world, "rolebindings", &binding("Role", "jane")).is_ok());
    assert_eq!(
        writes(&world, "rolebindings", &binding("ClusterRole", "admin")).unwrap_err().code,
        403
    );
    assert_eq!(
        writes(&world, "rolebindings", &binding("ClusterRole", "gone")).unwrap_err().code,
        404
    );
    let master = caller("me", &[auth::MASTERS]);
    let group = ("rbac.authorization.k8s.io", "rolebindings");
    assert!(check(&world, &master, group, &binding("ClusterRole", "gone"), None).is_ok());
    assert!(check(&world, &caller("jane", &[]), ("", "pods"), &role(&more), None).is_ok());
}

#[test]
fn the_verbs_escalate_and_bind_allow_it() {
    let rbac = "rbac.authorization.k8s.io";
    let world = world(&json!([
        {"apiGroups": [rbac], "resources": ["roles"], "verbs": ["escalate"]},
        {"apiGroups": [rbac], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["admin"]},
    ]));
    assert!(writes(&world, "roles", &role(&super::all())).is_ok());
    let binding = json!({
        "metadata": {"name": "b", "namespace": "a"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "admin"},
    });
    assert!(writes(&world, "rolebindings", &binding).is_ok());
}

#[test]
fn a_change_that_only_lets_go_of_an_object_gives_nothing() {
    let world = world(&json!([]));
    let before = json!({
        "metadata": {"name": "r", "namespace": "a", "finalizers": ["x"], "resourceVersion": "1"},
        "rules": super::all(),
    });
    let mut after = before.clone();
    after["metadata"]["finalizers"] = json!([]);
    let jane = caller("jane", &[]);
    let group = ("rbac.authorization.k8s.io", "roles");
    assert!(check(&world, &jane, group, &after, Some(&before)).is_ok());
    after["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(check(&world, &jane, group, &after, Some(&before)).unwrap_err().code, 403);
}

#[test]
fn a_role_that_gathers_others_takes_everything() {
    let world = world(&json!([]));
    let gathering = json!({
        "metadata": {"name": "g"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    });
    let refused = writes(&world, "clusterroles", &gathering).unwrap_err();
    assert!(refused.message.contains("to use the aggregationRule"), "{refused}");
}
