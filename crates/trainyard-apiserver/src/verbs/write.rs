//! What all writes have in common: reading an object from a body, checking it, storing it.
//!
//! Owns the order of decoding, pruning, defaulting, admission and validation. Must not know any
//! kind.

use http::Response;
use serde_json::{Value, json};
use trainyard_schema::{FieldError, golang};

use super::Ask;
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::{About, Failure};
use crate::kind::Part;
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
                let about = crate::failure::About::new("meta.k8s.io", ask.options, "");
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
    let read = body::json(bytes).map_err(|failure| match golang::json_fault(bytes) {
        Some(fault) => unrecognized(ask, &parse_error(&fault.to_string()), bytes),
        None => failure,
    })?;
    if !read.value.is_object() {
        let why =
            format!("json: cannot unmarshal {} into Go value of type {HEAD}", word(&read.value));
        return Err(unrecognized(ask, &parse_error(&why), bytes));
    }
    if ask.target.kind.defined && text(&read.value, "kind").is_empty() {
        let shown = String::from_utf8_lossy(bytes);
        return Err(unrecognized(ask, &format!("Object 'Kind' is missing in '{shown}'"), bytes));
    }
    let told = read.duplicates.iter().map(|path| Told::duplicate(path)).collect();
    understand(ask, read.value, told).map_err(|error| error.of_object(ask))
}

/// The type into which the real server looks first.
const HEAD: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
    Kind string \"json:\\\"kind,omitempty\\\"\" }";

fn parse_error(why: &str) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// A body that is no object of any kind.
fn unrecognized(ask: &Ask, why: &str, bytes: &[u8]) -> Failure {
    let kind = &ask.target.kind.kind;
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(bytes)
    ))
}

/// The beginning of a body, as the real server shows it.
fn summary(bytes: &[u8]) -> String {
    const SHOWN: usize = 30;
    let head = bytes.get(..SHOWN).unwrap_or(bytes);
    let more = if bytes.len() > SHOWN { " ..." } else { "" };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => {
            let hex = head.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            format!("{hex}{more}")
        }
    }
}

/// That a kind is not known, in the real server's words.
pub(super) fn unregistered(kind: &str, api_version: &str) -> String {
    let (kind, version) = (golang::quote(kind), golang::quote(api_version));
    format!(
        "no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""
    )
}

/// Something about a field that a client may want to know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told {
    path: String,
    words: String,
}

impl Told {
    /// It stands twice.
    pub(super) fn duplicate(path: &str) -> Self {
        let words = format!("duplicate field {}", golang::quote(path));
        Self { path: path.to_owned(), words }
    }

    /// Nobody knows it.
    fn unknown(path: &str) -> Self {
        let words = format!("unknown field {}", golang::quote(path));
        Self { path: path.to_owned(), words }
    }

    /// It stands in a patch and means nothing there.
    pub(super) fn of_patch(words: String) -> Self {
        Self { path: String::new(), words }
    }
}

/// Why an object of a request is not understood.
pub(super) enum Misread {
    /// It is of another kind, or has fields of wrong types.
    Unlike { kind: String, version: String, why: String },
    /// Something else.
    Refused(Failure),
}

impl From<Failure> for Misread {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl Misread {
    /// The refusal of an object that was sent whole.
    pub(super) fn of_object(self, ask: &Ask) -> Failure {
        match self {
            Self::Unlike { kind, version, why } => Failure::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {}: {why}",
                ask.target.kind.kind
            )),
            Self::Refused(failure) => failure,
        }
    }
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
    mut told: Vec<Told>,
) -> Result<Incoming, Misread> {
    let target = &ask.target;
    let kind = &target.kind;
    let version = target.version().ok_or_else(Failure::no_such_path)?;
    check_type(ask, &mut object)?;
    let mode = Unknown::read(ask)?;
    let unlike = |why: String| Misread::Unlike {
        kind: kind.kind.clone(),
        version: version.name.clone(),
        why,
    };
    let unknown = version.schema.read(&mut object).map_err(unlike)?;
    let mut warnings = Vec::new();
    if mode != Unknown::Ignored {
        // Of a field that nobody knows it does not matter how often it stands there.
        told.retain(|told| !unknown.contains(&told.path));
        told.extend(unknown.iter().map(|path| Told::unknown(path)));
        told.sort();
        warnings.extend(told.into_iter().map(|told| told.words));
    }
    if mode == Unknown::Refused && !warnings.is_empty() {
        return Err(unlike(format!("strict decoding error: {}", warnings.join(", "))));
    }
    let mut object = kind.rules.to_stored(object);
    object["apiVersion"] = json!(kind.storage_api_version);
    object["kind"] = json!(kind.kind);
    kind.rules.default(&mut object);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("selfLink");
    }
    Ok(Incoming { object, warnings })
}

/// An object says what it is, and it is what the path says.
fn check_type(ask: &Ask, object: &mut Value) -> Result<(), Misread> {
    let target = &ask.target;
    let expected = target.api_version();
    let (api_version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    let said = if api_version.is_empty() { expected.as_str() } else { api_version };
    let is_other_kind = !kind.is_empty() && kind != target.kind.kind;
    if is_other_kind || said != expected {
        let shown = if kind.is_empty() { target.kind.kind.as_str() } else { kind };
        let name = text(&object["metadata"], "name");
        return Err(other_kind(ask, said, shown, name));
    }
    let Some(members) = object.as_object_mut() else { return Ok(()) };
    members.insert("apiVersion".to_owned(), json!(expected));
    members.insert("kind".to_owned(), json!(target.kind.kind));
    if members.get("metadata").is_none_or(Value::is_null) {
        members.insert("metadata".to_owned(), json!({}));
    }
    Ok(())
}

/// What is said of an object of another kind or version than the path's.
fn other_kind(ask: &Ask, api_version: &str, kind: &str, name: &str) -> Misread {
    let target = &ask.target;
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let is_other_kind = kind != target.kind.kind;
    if target.kind.defined && is_other_kind {
        let words = format!("must be {}", target.kind.kind);
        let error = FieldError::invalid("kind", kind, words);
        let about = About::new(&target.kind.group, kind, name);
        return Misread::Refused(Failure::invalid(about, &[error]));
    }
    let known = crate::kinds::is_known(group, version, kind);
    if (known || target.kind.defined) && !is_other_kind {
        let expected = target.api_version();
        return Misread::Refused(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    let package = |group: &str| match group.split('.').next() {
        None | Some("") => "core".to_owned(),
        Some(first) => first.to_owned(),
    };
    let why = if known {
        let (own, into) = (&target.kind.kind, package(&target.kind.group));
        format!("converting ({version}.{kind}) to ({into}.{own}): unknown conversion")
    } else {
        unregistered(kind, api_version)
    };
    Misread::Unlike { kind: kind.to_owned(), version: version.to_owned(), why }
}

/// Checks a new object whole.
pub(super) fn check_new(ask: &Ask, object: &Value) -> Result<(), Failure> {
    let kind = &ask.target.kind;
    let mut errors = metadata::validate_new(&object["metadata"], kind.namespaced, &*kind.rules);
    let more = || kind.rules.validate_create(object);
    by_schema(ask, object, None, Part::Main, more, &mut errors);
    refuse(ask, object, &errors)
}

/// Checks a change.
pub(super) fn check_change(ask: &Ask, new: &Value, old: &Value, part: Part) -> Result<(), Failure> {
    let kind = &ask.target.kind;
    let mut errors = metadata::validate_update(&new["metadata"], &old["metadata"]);
    let more = || kind.rules.validate_update(new, old, part);
    by_schema(ask, new, Some(old), part, more, &mut errors);
    refuse(ask, new, &errors)
}

/// What the schema says, with what the kind itself says between values and lists; the rules come
/// last, because they rely on the rest.
fn by_schema(
    ask: &Ask,
    new: &Value,
    old: Option<&Value>,
    part: Part,
    more: impl Fn() -> Vec<FieldError>,
    errors: &mut Vec<FieldError>,
) {
    let Some(version) = ask.target.version() else { return };
    let schema = version.schema.get();
    errors.extend(match (part, old) {
        (Part::Status, Some(old)) => schema.validate_status(new, old),
        _ => schema.validate_values(new, old),
    });
    errors.extend(more());
    errors.extend(schema.validate_lists(new, old));
    schema.conclude(new, old, errors);
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
