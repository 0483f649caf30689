//! Reviews whose answer needs more than the question: whose token, and may they.
//!
//! Must not know how rights are written down.

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::Ask;
use crate::api::Api;
use crate::failure::{About, Failure};
use crate::http::{auth, rights};
use crate::kind::Caller;
use crate::kinds::reviews;

/// The answer to a review; `None` for those that the kind itself answers.
pub(super) fn answer(api: &Api, ask: &Ask, review: &Value) -> Result<Option<Value>, Failure> {
    match ask.target.kind.kind.as_str() {
        "TokenReview" => token(api, review),
        "SelfSubjectReview" => {
            let mut review = review.clone();
            review["metadata"] = json!({"creationTimestamp": api.clock.text()});
            review["status"] = json!({"userInfo": reviews::user(&ask.caller)});
            Ok(Some(review))
        }
        "SelfSubjectRulesReview" if !rights::is_master(&ask.caller) => {
            let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
            if namespace.is_empty() {
                return Err(Failure::bad_request("no namespace on request"));
            }
            Ok(Some(all_rules(api, &ask.caller, namespace, review)))
        }
        "SelfSubjectAccessReview" => {
            check_attributes(&review["spec"])?;
            Ok(Some(judged(api, &ask.caller, review)))
        }
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let spec = &review["spec"];
            check_attributes(spec)?;
            let groups = texts(&spec["groups"]);
            let user = spec["user"].as_str().unwrap_or_default();
            if user.is_empty() && groups.is_empty() {
                let words = "at least one of user or group must be specified";
                return Err(invalid(FieldError::invalid("spec.user", user, words)));
            }
            let caller = Caller { name: user.to_owned(), groups, ..Caller::default() };
            Ok(Some(judged(api, &caller, review)))
        }
        _ => Ok(None),
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

fn invalid(error: FieldError) -> Failure {
    Failure::invalid(About::new("authorization.k8s.io", "", ""), &[error])
}

/// A question is about objects or about a path.
fn check_attributes(spec: &Value) -> Result<(), Failure> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if resource.is_null() && path.is_null() {
        let words = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(invalid(FieldError::invalid("spec.resourceAttributes", Value::Null, words)));
    }
    if !resource.is_null() && !path.is_null() {
        let text = |key: &str| path[key].as_str().unwrap_or_default();
        let shown = json!({"Path": text("path"), "Verb": text("verb")});
        let words = "cannot be specified in combination with resourceAttributes";
        return Err(invalid(FieldError::invalid("spec.nonResourceAttributes", shown, words)));
    }
    Ok(())
}

/// A review with all that somebody may do in a namespace.
fn all_rules(api: &Api, caller: &Caller, namespace: &str, review: &Value) -> Value {
    let mut rules = rights::rules(api, caller, namespace);
    rules.extend(rights::for_everybody());
    let (paths, resources): (Vec<Value>, Vec<Value>) =
        rules.into_iter().partition(|rule| !rule["nonResourceURLs"].is_null());
    let mut review = review.clone();
    review["status"] = json!({
        "resourceRules": resources, "nonResourceRules": paths, "incomplete": false,
    });
    review["spec"] = json!({});
    review
}

/// A review with its judgement.
fn judged(api: &Api, caller: &Caller, review: &Value) -> Value {
    let asked = &review["spec"]["resourceAttributes"];
    let text = |key: &str| asked[key].as_str().unwrap_or_default();
    let resource = match text("subresource") {
        "" => text("resource").to_owned(),
        subresource => format!("{}/{subresource}", text("resource")),
    };
    let act = rights::Act {
        verb: text("verb"),
        group: text("group"),
        resource,
        namespace: text("namespace"),
        name: text("name"),
        on_node: on_node(&asked["fieldSelector"]),
    };
    // Paths beside the objects are for those who may do everything.
    let allowed = if asked.is_null() {
        caller.groups.iter().any(|group| group == auth::MASTERS)
    } else {
        rights::may(api, caller, &act)
    };
    let mut review = review.clone();
    review["status"] = json!({"allowed": allowed});
    review
}

/// The one node to which a question about a list keeps.
fn on_node(selector: &Value) -> &str {
    let requirements = selector["requirements"].as_array().into_iter().flatten();
    let mut exact =
        requirements.filter(|one| one["key"] == "spec.nodeName" && one["operator"] == "In");
    let values = exact.next().and_then(|one| one["values"].as_array());
    match values.map(Vec::as_slice) {
        Some([one]) => one.as_str().unwrap_or_default(),
        _ => "",
    }
}

/// Says whose token a review asks about, if it is one of ours.
fn token(api: &Api, review: &Value) -> Result<Option<Value>, Failure> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    let Ok(caller) = auth::service_account(api, token) else { return Ok(None) };
    let mut review = review.clone();
    review["status"] = json!({
        "authenticated": true, "user": reviews::user(&caller),
        "audiences": [crate::tokens::ISSUER],
    });
    Ok(Some(review))
}
