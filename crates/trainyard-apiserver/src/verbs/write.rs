//! What all writes have in common: reading an object from a body, checking it, storing it.
//!
//! Owns the order of decoding, pruning, defaulting, admission and validation. Must not know any
//! kind.

use http::Response;
use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::Ask;
use crate::answer::{self, Body};
use crate::api::{Api, DEFINITIONS};
use crate::failure::Failure;
use crate::kind::{Kind, Part, Version};
use crate::kinds::metadata;
use crate::object::{Draft, Object};
use crate::request::body;
use crate::store::{Change, CommitError, Expect, Key};

/// The largest object.
const LARGEST: usize = 1_572_864;

/// What becomes of fields that nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Ignored,
    Warned,
    Refused,
}

impl Unknown {
    fn read(ask: &Ask) -> Result<Self, Failure> {
        match ask.query.text("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warned),
            Some("Ignore") => Ok(Self::Ignored),
            Some("Strict") => Ok(Self::Refused),
            Some(other) => {
                let error = FieldError::not_supported(
                    "fieldValidation",
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                );
                let about = crate::failure::About::new("meta.k8s.io", "CreateOptions", "");
                Err(Failure::invalid(about, &[error]))
            }
        }
    }
}

/// An object from a request, in its stored form, with what the client is to be warned of.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

/// Reads the object of a `POST` or `PUT`.
pub(super) fn incoming(ask: &Ask, bytes: &[u8]) -> Result<Incoming, Failure> {
    check_media(&ask.content_type)?;
    let read = body::json(bytes)?;
    understand(ask, read.value, &read.duplicates)
}

/// `Content-Type` of objects.
pub(super) fn check_media(content_type: &str) -> Result<(), Failure> {
    match content_type {
        "" | "application/json" => Ok(()),
        _ => Err(Failure::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json",
        )),
    }
}

/// Makes an object of a value: its type checked, unknown fields gone, defaults filled in.
pub(super) fn understand(
    ask: &Ask,
    mut object: Value,
    duplicates: &[String],
) -> Result<Incoming, Failure> {
    let target = &ask.target;
    let kind = &target.kind;
    let version = target.version().ok_or_else(Failure::no_such_path)?;
    check_type(ask, &mut object)?;
    let mode = Unknown::read(ask)?;
    let unknown =
        version.schema.read(&mut object).map_err(|why| cannot_be_handled(kind, version, &why))?;
    let mut warnings = Vec::new();
    if mode != Unknown::Ignored {
        let told = duplicates
            .iter()
            .map(|path| format!("duplicate field {path:?}"))
            .chain(unknown.iter().map(|path| format!("unknown field {path:?}")));
        warnings.extend(told);
    }
    if mode == Unknown::Refused && !warnings.is_empty() {
        return Err(cannot_be_handled(
            kind,
            version,
            &format!("strict decoding error: {}", warnings.join(", ")),
        ));
    }
    let mut object = kind.rules.to_stored(object);
    object["apiVersion"] = json!(kind.storage_api_version);
    object["kind"] = json!(kind.kind);
    kind.rules.default(&mut object);
    check_metadata_types(kind, version, &mut object)?;
    Ok(Incoming { object, warnings })
}

/// A member that is null is one that is not there: built-in kinds have no others. (The schema in a
/// definition may say that null is a default.)
pub(super) fn without_nulls(kind: &Kind, object: &mut Value) {
    if !kind.defined && kind.storage != DEFINITIONS {
        drop_nulls(object);
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn cannot_be_handled(kind: &Kind, version: &Version, why: &str) -> Failure {
    Failure::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {why}",
        kind.kind, version.name, kind.kind
    ))
}

/// An object says what it is, and it is what the path says.
fn check_type(ask: &Ask, object: &mut Value) -> Result<(), Failure> {
    let target = &ask.target;
    let Some(members) = object.as_object_mut() else {
        return Err(Failure::bad_request(
            "the body is not a JSON object: send one with apiVersion, kind and metadata",
        ));
    };
    let expected = target.api_version();
    let text = |members: &serde_json::Map<String, Value>, key: &str| {
        members.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (text(members, "apiVersion"), text(members, "kind"));
    // Built-in kinds are known by the path; a custom resource has to say what it is.
    if target.kind.defined && kind.is_empty() {
        let shown = Value::Object(members.clone()).to_string();
        return Err(Failure::bad_request(format!("Object 'Kind' is missing in '{shown}'")));
    }
    if !kind.is_empty() && kind != target.kind.kind {
        let version = api_version.rsplit_once('/').map_or(&*api_version, |(_, version)| version);
        let why = format!(
            "{} in version {version:?} cannot be handled as a {}: no kind {kind:?} is registered for version {:?} in scheme",
            kind, target.kind.kind, api_version
        );
        return Err(Failure::bad_request(why));
    }
    if !api_version.is_empty() && api_version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    members.insert("apiVersion".to_owned(), json!(expected));
    members.insert("kind".to_owned(), json!(target.kind.kind));
    if !members.get("metadata").is_some_and(Value::is_object) {
        match members.get("metadata") {
            None | Some(Value::Null) => {
                members.insert("metadata".to_owned(), json!({}));
            }
            Some(_) => {
                return Err(Failure::bad_request("metadata is not an object"));
            }
        }
    }
    Ok(())
}

/// Everything downstream relies on metadata being of the right types.
fn check_metadata_types(kind: &Kind, version: &Version, object: &mut Value) -> Result<(), Failure> {
    let Some(members) = object["metadata"].as_object_mut() else { return Ok(()) };
    members.remove("managedFields");
    members.remove("selfLink");
    members.retain(|_, value| !value.is_null());
    metadata::check_types(members).map_err(|why| cannot_be_handled(kind, version, &why))
}

/// Checks a new object whole.
pub(super) fn check_new(ask: &Ask, object: &Value) -> Result<(), Failure> {
    let kind = &ask.target.kind;
    let mut errors = metadata::validate_new(&object["metadata"], kind.namespaced, &*kind.rules);
    errors.extend(kind.rules.validate_create(object));
    if kind.defined {
        errors.extend(by_schema(ask, object, None));
    }
    refuse(ask, object, &errors)
}

/// Checks a change.
pub(super) fn check_change(ask: &Ask, new: &Value, old: &Value, part: Part) -> Result<(), Failure> {
    let kind = &ask.target.kind;
    let mut errors = metadata::validate_update(&new["metadata"], &old["metadata"]);
    errors.extend(kind.rules.validate_update(new, old, part));
    if kind.defined {
        errors.extend(by_schema(ask, new, Some(old)));
    }
    refuse(ask, new, &errors)
}

fn by_schema(ask: &Ask, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some(version) = ask.target.version() else { return Vec::new() };
    let schema = version.schema.get();
    let mut errors = schema.validate(new, old);
    // As on the real server: rules rely on the types being right.
    if errors.is_empty() {
        errors.extend(schema.rules(new, old));
    }
    errors
}

fn refuse(ask: &Ask, object: &Value, errors: &[FieldError]) -> Result<(), Failure> {
    if errors.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(Failure::invalid(ask.target.about_kind(name), errors))
}

/// The object as it will be stored; refused when it is too large.
pub(super) fn draft(ask: &Ask, object: &Value) -> Result<Draft, Failure> {
    let kind = &ask.target.kind;
    let empty = serde_json::Map::new();
    let members = object.as_object().unwrap_or(&empty);
    let fields = kind.rules.fields(object).into_boxed_slice();
    let draft = Draft::of(&kind.storage_api_version, &kind.kind, members, fields);
    if draft.len() > LARGEST {
        return Err(Failure::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: the object takes {} bytes and at most {LARGEST} are kept",
                draft.len()
            ),
        ));
    }
    Ok(draft)
}

/// Where an object is stored.
pub(super) fn key(ask: &Ask, object: &Value) -> Key {
    let metadata = &object["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    let namespace = if ask.target.kind.namespaced { text("namespace") } else { "" };
    Key::new(ask.target.kind.storage.as_str(), namespace, text("name"))
}

/// Stores an object and does what follows from it.
pub(super) async fn commit(
    api: &Api,
    ask: &Ask,
    object: &Value,
    expect: Expect,
    change: Change,
) -> Result<Object, Failure> {
    let stored = api.store.commit(key(ask, object), expect, change).await;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let stored = stored.map_err(|error| refused(ask, name, &error))?;
    super::definitions::after_write(api, ask).await;
    Ok(stored)
}

/// A refusal of the store in the words of the API.
pub(super) fn refused(ask: &Ask, name: &str, error: &CommitError) -> Failure {
    let target = &ask.target;
    match error {
        CommitError::Exists(_) => Failure::already_exists(target.about(name)),
        CommitError::Missing => Failure::not_found(target.about(name)),
        CommitError::Changed(_) => Failure::stale(target.about(name)),
        CommitError::Full(_) => {
            tracing::warn!(kind = error.kind(), %error, "a write was refused");
            let mut failure = Failure::new(507, "InternalError", error.to_string());
            failure.retry_after = Some(5);
            failure
        }
        CommitError::Closed(_) => {
            let mut failure = Failure::new(503, "ServiceUnavailable", error.to_string());
            failure.retry_after = Some(1);
            failure
        }
    }
}

/// The answer to a write.
pub(super) fn answer(
    api: &Api,
    ask: &Ask,
    code: u16,
    stored: &Object,
    warnings: &[String],
) -> Response<Body> {
    let mut response = answer::text(code, ask.view(api).one(stored));
    answer::warn(&mut response, warnings);
    response
}
