//! What a deletion says about itself: grace, propagation, preconditions.

use bytes::Bytes;
use serde_json::{Value, json};
use trainyard_schema::{FieldError, golang};

use super::Ask;
use crate::failure::{About, Failure};
use crate::openapi::types;
use crate::request::body;

/// What becomes of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// `DeleteOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeleteOptions {
    pub(super) grace: Option<i64>,
    pub(super) propagation: Option<Propagation>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) dry: bool,
}

impl DeleteOptions {
    /// Reads them from the body, or from the query where there is none.
    pub(super) fn read(ask: &Ask, bytes: &Bytes) -> Result<Self, Failure> {
        let mut options = Self { dry: ask.dry_run()?, ..Self::default() };
        let is_json = matches!(ask.content_type.as_str(), "" | "application/json");
        let body = if bytes.is_empty() || !is_json { json!({}) } else { body(bytes)? };
        options.take_body(&body)?;
        if options.grace.is_none() {
            options.grace = ask.query.number("gracePeriodSeconds")?;
        }
        let propagation =
            body["propagationPolicy"].as_str().or(ask.query.text("propagationPolicy"));
        let orphan = body["orphanDependents"].as_bool().or(ask.query.choice("orphanDependents"));
        options.propagation = propagate(propagation, orphan)?;
        Ok(options)
    }

    /// Reads what stands in an object of that kind, whose types are right.
    pub(super) fn take_body(&mut self, body: &Value) -> Result<(), Failure> {
        self.grace = body["gracePeriodSeconds"].as_i64();
        let preconditions = &body["preconditions"];
        self.uid = preconditions["uid"].as_str().map(str::to_owned);
        self.resource_version = preconditions["resourceVersion"].as_str().map(str::to_owned);
        let words = body["dryRun"].as_array().into_iter().flatten();
        let words: Vec<&str> = words.filter_map(Value::as_str).collect();
        self.dry |= dry_run(&words, "DeleteOptions")?;
        Ok(())
    }
}

/// Whether `dryRun` asks for a trial.
pub(super) fn dry_run(words: &[&str], options: &str) -> Result<bool, Failure> {
    if words.iter().all(|word| *word == "All") {
        return Ok(!words.is_empty());
    }
    let mut error = FieldError::not_supported("dryRun", "", &["All"]);
    error.value = Some(json!(words));
    Err(Failure::invalid(About::new("meta.k8s.io", options, ""), &[error]))
}

/// Refuses a name of a writer that cannot be written down.
pub(super) fn check_manager(name: Option<&str>, options: &str) -> Result<(), Failure> {
    const LONGEST: usize = 128;
    let Some(name) = name else { return Ok(()) };
    let error = if name.len() > LONGEST {
        Some(FieldError::too_long("fieldManager", LONGEST))
    } else {
        name.char_indices().find(|(_, letter)| letter.is_control()).map(|(at, letter)| {
            let code = u32::from(letter);
            let words = format!("invalid character U+{code:04X} (at position {at})");
            FieldError::invalid("fieldManager", name, words)
        })
    };
    match error {
        Some(error) => Err(Failure::invalid(About::new("meta.k8s.io", options, ""), &[error])),
        None => Ok(()),
    }
}

/// The body of a deletion.
fn body(bytes: &[u8]) -> Result<Value, Failure> {
    let mut body = body::json(bytes).map(|read| read.value).map_err(|failure| {
        let Some(fault) = golang::json_fault(bytes) else { return failure };
        let before = "couldn't get version/kind; json parse error";
        Failure::bad_request(format!("{before}: {fault}"))
    })?;
    let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        let version = body["apiVersion"].as_str().unwrap_or("v1");
        return Err(Failure::bad_request(super::write::unregistered(kind, version)));
    }
    types::read_type("meta.DeleteOptions", &mut body).map_err(Failure::bad_request)?;
    Ok(body)
}

fn propagate(policy: Option<&str>, orphan: Option<bool>) -> Result<Option<Propagation>, Failure> {
    let refuse =
        |error| Err(Failure::invalid(About::new("meta.k8s.io", "DeleteOptions", ""), &[error]));
    match (policy, orphan) {
        (Some(policy), Some(_)) => refuse(FieldError::invalid(
            "propagationPolicy",
            policy,
            "orphanDependents and deletionPropagation cannot be both set",
        )),
        (Some("Background"), None) | (None, Some(false)) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
        (Some("Orphan"), None) | (None, Some(true)) => Ok(Some(Propagation::Orphan)),
        (Some(other), None) => refuse(FieldError::not_supported(
            "propagationPolicy",
            other,
            &["Foreground", "Background", "Orphan", "nil"],
        )),
        (None, None) => Ok(None),
    }
}
