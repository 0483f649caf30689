//! What the audit log says about the rights of the operator, or of nodes: no request was refused for
//! want of one, and no right is there that no request needed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use http::{Method, Request};
use serde_json::{Value, json};

use super::install;
use crate::control_plane::{ControlPlane, Identity};
use crate::kubectl::Kubectl;
use crate::manifest::tfjob;
use crate::rest::{Resource, Rest};
use crate::seen::text;

/// Rights that no request of the operator's own shows: admission asks for them on its behalf, when
/// a pod with a blocking owner is created. That they are needed is shown by a scenario.
const ASKED_BY_ADMISSION: [(&str, &str); 2] =
    [("tfjobs/finalizers", "update"), ("jobs/finalizers", "update")];

/// A user who may create pods, and later set finalizers of jobs.
const SOMEBODY: &str = "somebody-with-pods";

/// Shows that the right that only admission asks for is needed: a pod whose job must not go before
/// it is refused without that right and accepted with it.
pub(super) async fn check_admission(plane: &ControlPlane) -> Result<()> {
    let rest = Rest::new(plane.client(Identity::Admin)?, "default");
    let job = rest.create(Resource::Jobs, &tfjob("owner").workers(0).json()).await?;
    grant(
        &rest,
        "pods-only",
        json!([{"apiGroups": [""], "resources": ["pods"],
        "verbs": ["create"]}]),
    )
    .await?;
    let refused = until(async || match create_owned_pod(&rest, &job).await {
        // The authorizer takes a moment to see the binding.
        Err(kube::Error::Api(status)) => status.message.contains("blockOwnerDeletion"),
        _ => false,
    });
    ensure!(refused.await, "a pod with a blocking owner was not refused for want of the right");
    grant(
        &rest,
        "finalizers",
        json!([{"apiGroups": ["kubeflow.org"],
        "resources": ["tfjobs/finalizers"], "verbs": ["update"]}]),
    )
    .await?;
    let accepted = until(async || create_owned_pod(&rest, &job).await.is_ok());
    ensure!(accepted.await, "a pod with a blocking owner was refused although the right is there");
    Ok(())
}

async fn until(mut holds: impl AsyncFnMut() -> bool) -> bool {
    for _ in 0..100 {
        if holds().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}

async fn grant(rest: &Rest, name: &str, rules: Value) -> Result<()> {
    let base = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": SOMEBODY}],
    });
    rest.send(Method::POST, &format!("{base}/clusterroles"), Some(&role)).await?;
    rest.send(Method::POST, &format!("{base}/clusterrolebindings"), Some(&binding)).await?;
    Ok(())
}

async fn create_owned_pod(rest: &Rest, job: &Value) -> Result<Value, kube::Error> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "owned", "ownerReferences": [{
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "owner",
            "uid": job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }]},
        "spec": {"containers": [{"name": "tensorflow", "image": "example.com/train:1"}]},
    });
    let path = format!("{}?dryRun=All", rest.path(Resource::Pods));
    let request = Request::post(path)
        .header("content-type", "application/json")
        .header("impersonate-user", SOMEBODY)
        .body(pod.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    rest.client().request(request).await
}

/// Verb and resource (with subresource), as `create pods`.
type Right = (String, String);

/// Checks the whole log for the rights that this one has by its roles.
pub(crate) async fn check(log: &Path, user: &str, kubectl: &Kubectl) -> Result<()> {
    let exercised = exercised(log, user).await?;
    let rules = install::rules(kubectl, user).await?;
    ensure!(!rules.is_empty(), "no role is bound to {user}");
    let idle: Vec<_> = granted(&rules).difference(&exercised).cloned().collect();
    ensure!(idle.is_empty(), "the roles of {user} have rights that were never used: {idle:?}");
    Ok(())
}

/// Checks that nothing was refused, though not everything may have been tried.
pub(crate) async fn check_refusals(log: &Path, user: &str) -> Result<()> {
    exercised(log, user).await.map(drop)
}

async fn exercised(log: &Path, user: &str) -> Result<BTreeSet<Right>> {
    let log = tokio::fs::read_to_string(log).await.context("reading the audit log")?;
    used(&log, user)
}

/// The rights that the user's requests made use of; an error when one was refused.
fn used(log: &str, user: &str) -> Result<BTreeSet<Right>> {
    let mut exercised = BTreeSet::new();
    let mut refused = BTreeSet::new();
    for line in log.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if entry["user"]["username"] != user {
            continue;
        }
        let object = &entry["objectRef"];
        let mut resource = text(&object["resource"]).to_owned();
        if let Some(part) = object["subresource"].as_str() {
            resource = format!("{resource}/{part}");
        }
        let right = (text(&entry["verb"]).to_owned(), resource);
        let message = text(&entry["responseStatus"]["message"]);
        // A full namespace is no want of rights, nor is one that is being deleted.
        let is_closed = |words| message.contains(words);
        let closed =
            ["exceeded quota", "because it is being terminated"].into_iter().any(is_closed);
        if entry["responseStatus"]["code"] == 403 && !closed {
            refused.insert((right.clone(), message.to_owned()));
        }
        exercised.insert(right);
    }
    if !refused.is_empty() {
        bail!("{user} was refused: {refused:?}");
    }
    Ok(exercised)
}

/// The rights that rules give, one by one.
fn granted(rules: &[Value]) -> BTreeSet<Right> {
    let words = |list: &Value| -> Vec<String> {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        list.iter().map(|word| text(word).to_owned()).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in rules {
        for resource in words(&rule["resources"]) {
            for verb in words(&rule["verbs"]) {
                if !ASKED_BY_ADMISSION.contains(&(resource.as_str(), verb.as_str())) {
                    granted.insert((verb, resource.clone()));
                }
            }
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verb: &str, resource: &str, code: u16) -> String {
        json!({"user": {"username": "op"}, "verb": verb, "objectRef": {"resource": resource},
            "responseStatus": {"code": code}})
        .to_string()
    }

    #[test]
    fn a_refused_request_is_an_error() {
        let log = [entry("list", "pods", 200), entry("get", "secrets", 403)].join("\n");
        assert!(used(&log, "op").unwrap_err().to_string().contains("secrets"));
        assert!(used(&log, "somebody else").unwrap().is_empty());
    }

    #[test]
    fn rights_are_told_one_by_one_but_for_those_of_admission() {
        let rules = [
            json!({"resources": ["pods", "services"], "verbs": ["get", "list"]}),
            json!({"resources": ["tfjobs/finalizers"], "verbs": ["update"]}),
        ];
        assert_eq!(granted(&rules).len(), 4);
        let log = entry("list", "pods", 200);
        let seen = used(&log, "op").unwrap();
        let idle: Vec<_> = granted(&rules).into_iter().filter(|r| !seen.contains(r)).collect();
        assert_eq!(idle.len(), 3);
    }
}
