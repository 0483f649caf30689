//! The scale subresource: a number of replicas, wherever the kind keeps it.

use bytes::Bytes;
use http::{Method, Response};
use serde_json::Value;
use trainyard_schema::{Fault, FieldError, patch};

use super::patch::{Style, refused, spoilt, text};
use super::{Ask, read, update, write};
use crate::answer::{self, Body, View};
use crate::api::Api;
use crate::crd::scale;
use crate::failure::{About, Failure};
use crate::kind::Scale;
use crate::openapi::types;
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
    let wanted = match *method {
        Method::GET => {
            let stored = read::find(api, ask, name)?;
            let shown = scale::read(paths, &view(api, ask).value(&stored));
            return Ok(answer::value(200, &shown.map_err(|error| fault(name, &error))?));
        }
        Method::PUT => {
            write::check_media(&ask.content_type)?;
            let scale = understood(body::json(bytes)?.value).map_err(|(_, why)| {
                let words = "Scale in version \"v1\" cannot be handled as a Scale";
                Failure::bad_request(format!("{words}: {why}"))
            })?;
            Wanted::Whole(scale)
        }
        Method::PATCH => {
            let style = Style::read(ask)?;
            Wanted::Patch(style, text(style, bytes)?.value)
        }
        _ => return Err(super::not_allowed()),
    };
    let mut conflict = None;
    for _ in 0..update::TRIES {
        match once(api, ask, name, paths, &wanted).await {
            // Someone else wrote in between; a number for any revision is put again.
            Err(failure) if failure.reason == "Conflict" && !wanted.names_revision() => {
                conflict = Some(failure);
            }
            other => return other,
        }
    }
    Err(conflict.unwrap_or_else(|| Failure::stale(ask.target.about(name))))
}

/// How a new scale is told.
enum Wanted {
    Whole(Value),
    Patch(Style, Value),
}

impl Wanted {
    fn names_revision(&self) -> bool {
        match self {
            Self::Whole(scale) | Self::Patch(_, scale) => super::patch::names_revision(scale),
        }
    }

    fn applied(&self, current: &Value) -> Result<Value, Failure> {
        match self {
            Self::Whole(scale) => Ok(scale.clone()),
            Self::Patch(style, patch) => {
                let patched = match style {
                    Style::Json => patch::json_patch(current, patch),
                    // A scale has no lists to merge: the other patches mean the same.
                    Style::Merge | Style::Strategic => patch::merge_patch(current, patch),
                };
                let patched = patched.map_err(|error| refused(&error))?;
                understood(patched).map_err(|(made, why)| spoilt(made, why))
            }
        }
    }
}

async fn once(
    api: &Api,
    ask: &Ask,
    name: &str,
    paths: &Scale,
    wanted: &Wanted,
) -> Result<Response<Body>, Failure> {
    let view = view(api, ask);
    let old = read::find(api, ask, name)?;
    let mut object = view.value(&old);
    let current = scale::current(paths, &object).map_err(|error| fault(name, &error))?;
    let wanted = wanted.applied(&current)?;
    update::same_name(name, &wanted)?;
    let said = wanted["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !said.is_empty() && said != old.revision.to_string() {
        return Err(Failure::stale(ask.target.about(name)));
    }
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or(0);
    scale::write(paths, &mut object, replicas).map_err(|error| fault(name, &error))?;
    let incoming = write::understand(ask, object, Vec::new());
    let incoming = incoming.map_err(|error| error.of_object(ask))?;
    let main = ask.of(super::Target { subresource: None, ..ask.target.clone() });
    let dry = ask.dry_run()?;
    let (stored, warnings) = update::change(api, &main, &old, incoming, dry).await?;
    let shown = scale::read(paths, &view.value(&stored)).map_err(|error| fault(name, &error))?;
    let mut response = answer::value(200, &shown);
    answer::warn(&mut response, &warnings);
    Ok(response)
}

fn view(api: &Api, ask: &Ask) -> View {
    View::new(ask.target.kind.clone(), ask.target.version, api.clock.now())
}

/// A scale from a request, its types checked; else what it was, and what is wrong with it.
fn understood(mut scale: Value) -> Result<Value, (String, String)> {
    let made = scale.to_string();
    match types::read_type("autoscaling.Scale", &mut scale) {
        Ok(_) => Ok(scale),
        Err(why) => Err((made, why)),
    }
}

/// An object whose own numbers cannot be read.
fn fault(name: &str, error: &FieldError) -> Failure {
    if error.fault == Fault::Internal {
        return Failure::internal(&error.detail);
    }
    Failure::invalid(About::new("autoscaling", "Scale", name), std::slice::from_ref(error))
}
