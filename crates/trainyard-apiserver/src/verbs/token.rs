//! What only service accounts have: tokens for pods.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::{Ask, read};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::clock;
use crate::failure::Failure;
use crate::http::nodes::restriction;
use crate::names;
use crate::openapi::types;
use crate::request::body;
use crate::tokens::Claim;

const SHORTEST: i64 = 600;
const USUAL: i64 = 3600;
const LONGEST: i64 = 1 << 32;

/// Makes a token.
pub(super) fn create(api: &Api, ask: &Ask, bytes: &Bytes) -> Result<Response<Body>, Failure> {
    let name = ask.target.name.as_deref().unwrap_or_default();
    let mut request = body::json(bytes)?.value;
    types::read_type("authentication.TokenRequest", &mut request).map_err(|why| {
        let words = "TokenRequest in version \"v1\" cannot be handled as a TokenRequest";
        Failure::bad_request(format!("{words}: {why}"))
    })?;
    let account = read::find(api, ask, name)?;
    restriction::token(api, &ask.caller, (&ask.target.namespace, name), &request)?;
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(USUAL);
    if !(SHORTEST..=LONGEST).contains(&seconds) {
        return Err(out_of_bounds(seconds));
    }
    let now = api.clock.now();
    let audiences = request["spec"]["audiences"]
        .as_array()
        .map(|list| list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
        .filter(|list: &Vec<String>| !list.is_empty())
        .unwrap_or_else(|| vec![crate::tokens::ISSUER.to_owned()]);
    let bound = bound(api, ask, name, &request["spec"]["boundObjectRef"])?;
    let claim = Claim {
        id: names::uid(),
        namespace: ask.target.namespace.clone(),
        account: name.to_owned(),
        account_uid: account.meta.uid.to_string(),
        audiences: audiences.clone(),
        bound,
        issued: now.as_second(),
        expires: now.as_second().saturating_add(seconds),
    };
    let token = api.tokens.sign(&claim).map_err(Failure::internal)?;
    let expires = jiff::Timestamp::from_second(claim.expires).unwrap_or(now);
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["kind"] = json!("TokenRequest");
    request["metadata"] = json!({
        "name": name, "namespace": ask.target.namespace, "uid": claim.account_uid,
        "creationTimestamp": api.clock.text(),
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = json!(seconds);
    request["status"] = json!({"token": token, "expirationTimestamp": clock::seconds(expires)});
    Ok(answer::value(201, &request))
}

fn out_of_bounds(seconds: i64) -> Failure {
    let detail = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else {
        "may not specify a duration larger than 2^32 seconds"
    };
    let error = trainyard_schema::FieldError::invalid("spec.expirationSeconds", seconds, detail);
    let about = crate::failure::About::new("authentication.k8s.io", "TokenRequest", "");
    Failure::invalid(about, &[error])
}

/// The object with which a token ends: kind, name and identity.
fn bound(
    api: &Api,
    ask: &Ask,
    account: &str,
    reference: &Value,
) -> Result<Option<(String, String, String)>, Failure> {
    let Some(kind) = reference["kind"].as_str().filter(|kind| !kind.is_empty()) else {
        return Ok(None);
    };
    let name = reference["name"].as_str().unwrap_or_default();
    let storage = match kind {
        "Pod" => "pods",
        "Secret" => "secrets",
        "Node" => "nodes",
        other => {
            let version = reference["apiVersion"].as_str().unwrap_or_default();
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            return Err(Failure::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={other}"
            )));
        }
    };
    let namespace = if kind == "Node" { "" } else { ask.target.namespace.as_str() };
    let found = api.store.get(storage, namespace, name);
    let found =
        found.ok_or_else(|| Failure::not_found(crate::failure::About::new("", storage, name)))?;
    if kind == "Pod" && found.value()["spec"]["serviceAccountName"] != account {
        return Err(Failure::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        )));
    }
    let said = reference["uid"].as_str().unwrap_or_default();
    if !said.is_empty() && said != &*found.meta.uid {
        return Err(Failure::conflict(
            crate::failure::About::new("", kind, name),
            &format!(
                "the UID in the bound object reference ({said}) does not match the UID in record. The object might have been deleted and then recreated"
            ),
        ));
    }
    Ok(Some((kind.to_owned(), name.to_owned(), found.meta.uid.to_string())))
}
