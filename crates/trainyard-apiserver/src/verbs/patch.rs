//! Patching an object.

use bytes::Bytes;
use http::Response;
use serde_json::Value;
use trainyard_schema::patch::{self, PatchError};
use trainyard_schema::{FieldError, golang};

use super::write::{Misread, Told};
use super::{Ask, create, read, update, write};
use crate::answer::{Body, View};
use crate::api::Api;
use crate::failure::{About, Failure};
use crate::request::body;

/// How a patch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Json,
    Merge,
    Strategic,
}

impl Style {
    pub(super) fn read(ask: &Ask) -> Result<Self, Failure> {
        let is_defined = ask.target.kind.defined;
        match ask.content_type.as_str() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !is_defined => Ok(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => Err(unsupported(
                "server-side apply is not served here: use `kubectl apply` without --server-side, or a merge patch",
            )),
            "application/strategic-merge-patch+json" => Err(unsupported(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => {
                let mut failure = unsupported("415: Unsupported Media Type");
                failure.about = Some(Box::new(About::default()));
                Err(failure)
            }
        }
    }

    fn apply(self, ask: &Ask, current: &Value, patch: &Value) -> Result<Value, PatchError> {
        match self {
            Self::Json => patch::json_patch(current, patch),
            Self::Merge => patch::merge_patch(current, patch),
            Self::Strategic => {
                let shape = ask.target.version().and_then(|version| version.schema.shape());
                patch::strategic_merge(current, patch, shape)
            }
        }
    }
}

/// Reads the text of a patch; what is no JSON is told in the words of the real server.
pub(super) fn text(style: Style, bytes: &[u8]) -> Result<body::Read, Failure> {
    body::json(bytes).map_err(|failure| {
        let Some(fault) = golang::json_fault(bytes) else { return failure };
        let before = if style == Style::Strategic { "" } else { "error decoding patch: " };
        Failure::bad_request(format!("{before}{fault}"))
    })
}

fn unsupported(message: &str) -> Failure {
    Failure::new(415, "UnsupportedMediaType", message)
}

/// Patches an object.
pub(super) async fn patch(
    api: &Api,
    ask: &Ask,
    name: &str,
    bytes: &Bytes,
) -> Result<Response<Body>, Failure> {
    let style = Style::read(ask)?;
    let dry = ask.dry_run()?;
    let patch = text(style, bytes)?;
    let mut conflict = None;
    for _ in 0..update::TRIES {
        match once(api, ask, name, style, &patch, dry).await {
            // Someone else wrote in between; a patch that names no revision is meant for any.
            Err(failure) if failure.reason == "Conflict" && !names_revision(&patch.value) => {
                conflict = Some(failure);
            }
            other => return other,
        }
    }
    Err(conflict.unwrap_or_else(|| Failure::stale(ask.target.about(name))))
}

async fn once(
    api: &Api,
    ask: &Ask,
    name: &str,
    style: Style,
    patch: &body::Read,
    dry: bool,
) -> Result<Response<Body>, Failure> {
    let old = read::find(api, ask, name)?;
    let view = View::new(ask.target.kind.clone(), ask.target.version, api.clock.now());
    let current = view.value(&old);
    let patched = style.apply(ask, &current, &patch.value);
    let patched = patched.map_err(|error| refused(&error))?;
    body::check_values(&patched)?;
    let made = match style {
        Style::Strategic => golang::print(&patch.value),
        _ => patched.to_string(),
    };
    let incoming = write::understand(ask, patched, told(style, patch));
    let mut incoming = incoming.map_err(|error| misread(error, made))?;
    update::same_name(name, &incoming.object)?;
    create::place(ask, &mut incoming.object)?;
    let said = incoming.object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !said.is_empty() && said != old.revision.to_string() {
        return Err(Failure::stale(ask.target.about(name)));
    }
    let (stored, warnings) = update::change(api, ask, &old, incoming, dry).await?;
    Ok(write::answer(api, ask, 200, &stored, &warnings))
}

/// What a client may want to know of the patch itself.
fn told(style: Style, patch: &body::Read) -> Vec<Told> {
    let twice = patch.duplicates.iter().map(|path| Told::duplicate(path));
    let unknown = match style {
        Style::Json => patch::json_patch_unknown_fields(&patch.value),
        _ => Vec::new(),
    };
    twice.chain(unknown.into_iter().map(Told::of_patch)).collect()
}

/// A patch after which the object cannot be read any more: the fault is the patch's.
fn misread(error: Misread, made: String) -> Failure {
    match error {
        Misread::Unlike { why, .. } => spoilt(made, why),
        Misread::Refused(failure) => failure,
    }
}

/// The refusal of a patch that made something unreadable.
pub(super) fn spoilt(made: String, why: String) -> Failure {
    Failure::invalid(About::default(), &[FieldError::invalid("patch", made, why)])
}

/// Whether a patch is meant for one revision only.
pub(super) fn names_revision(patch: &Value) -> bool {
    let by_operation =
        |operation: &Value| operation["path"].as_str() == Some("/metadata/resourceVersion");
    match patch {
        Value::Array(operations) => operations.iter().any(by_operation),
        other => other["metadata"]["resourceVersion"].is_string(),
    }
}

/// A patch that cannot be applied.
pub(super) fn refused(error: &PatchError) -> Failure {
    let mut failure = Failure::new(error.code(), error.reason(), error.message());
    if error.has_details() {
        failure.about = Some(Box::new(About::default()));
    }
    failure
}
