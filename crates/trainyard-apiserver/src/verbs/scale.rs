//! The scale subresource: a number of replicas, wherever the kind keeps it.

use bytes::Bytes;
use http::{Method, Response};
use serde_json::Value;
use trainyard_schema::patch;

use super::{Ask, read, update, write};
use crate::answer::{self, Body, View};
use crate::api::Api;
use crate::crd::scale;
use crate::failure::{About, Failure};
use crate::request::body;

/// Reads or writes a scale.
pub(super) async fn perform(
    api: &Api,
    method: &Method,
    ask: &Ask,
    bytes: &Bytes,
) -> Result<Response<Body>, Failure> {
    let name = ask.target.name.as_deref().unwrap_or_default();
    let version = ask.target.version().ok_or_else(Failure::no_such_path)?;
    let paths = version.scale.as_ref().ok_or_else(Failure::no_such_path)?;
    let view = View::new(ask.target.kind.clone(), ask.target.version, api.clock.now());
    let old = read::find(api, ask, name)?;
    let mut object = view.value(&old);
    let current = scale::read(paths, &object).map_err(|error| invalid(name, &error))?;
    let wanted = match *method {
        Method::GET => return Ok(answer::value(200, &current)),
        Method::PUT => body::json(bytes)?.value,
        Method::PATCH => patched(ask, &current, bytes)?,
        _ => return Err(super::not_allowed()),
    };
    let said = wanted["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !said.is_empty() && said != old.revision.to_string() {
        return Err(Failure::stale(ask.target.about(name)));
    }
    let replicas = replicas(name, &wanted)?;
    scale::write(paths, &mut object, replicas).map_err(|error| invalid(name, &error))?;
    let incoming = write::understand(ask, object, &[])?;
    let main = Ask {
        target: super::Target { subresource: None, ..ask.target.clone() },
        query: ask.query.clone(),
        caller: ask.caller.clone(),
        form: ask.form,
        content_type: ask.content_type.clone(),
    };
    let dry = ask.query.dry_run()?;
    let (stored, warnings) = update::change(api, &main, &old, incoming, dry).await?;
    let shown = scale::read(paths, &view.value(&stored)).map_err(|error| invalid(name, &error))?;
    let mut response = answer::value(200, &shown);
    answer::warn(&mut response, &warnings);
    Ok(response)
}

fn patched(ask: &Ask, current: &Value, bytes: &Bytes) -> Result<Value, Failure> {
    let patch = body::json(bytes)?.value;
    let patched = match ask.content_type.as_str() {
        "application/json-patch+json" => patch::json_patch(current, &patch),
        // A scale has no lists to merge: both patches mean the same.
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            patch::merge_patch(current, &patch)
        }
        other => {
            return Err(Failure::new(
                415,
                "UnsupportedMediaType",
                format!("a scale cannot be patched by {other:?}: use application/merge-patch+json"),
            ));
        }
    };
    patched.map_err(|error| Failure::bad_request(error.to_string()))
}

fn replicas(name: &str, wanted: &Value) -> Result<i64, Failure> {
    let value = &wanted["spec"]["replicas"];
    let number = if value.is_null() { Some(0) } else { value.as_i64() };
    number.filter(|n| (0..=i64::from(i32::MAX)).contains(n)).ok_or_else(|| {
        let error = trainyard_schema::FieldError::invalid(
            "spec.replicas",
            value.clone(),
            "should be a non-negative integer",
        );
        invalid_scale(name, &error)
    })
}

fn invalid_scale(name: &str, error: &trainyard_schema::FieldError) -> Failure {
    Failure::invalid(About::new("autoscaling", "Scale", name), std::slice::from_ref(error))
}

fn invalid(name: &str, error: &trainyard_schema::FieldError) -> Failure {
    invalid_scale(name, error)
}
