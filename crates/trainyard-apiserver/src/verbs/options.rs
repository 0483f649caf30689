//! What a deletion says about itself: grace, propagation, preconditions.

use bytes::Bytes;
use serde_json::Value;
use trainyard_schema::FieldError;

use super::Ask;
use crate::failure::{About, Failure};
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
        let mut options = Self { dry: ask.query.dry_run()?, ..Self::default() };
        let is_json = matches!(ask.content_type.as_str(), "" | "application/json");
        let body =
            if bytes.is_empty() || !is_json { Value::Null } else { body::json(bytes)?.value };
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

    /// Reads what stands in an object of that kind.
    pub(super) fn take_body(&mut self, body: &Value) -> Result<(), Failure> {
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if kind != "DeleteOptions" {
            return Err(Failure::bad_request(format!("{kind} cannot be handled as DeleteOptions")));
        }
        self.grace = body["gracePeriodSeconds"].as_i64();
        let preconditions = &body["preconditions"];
        self.uid = preconditions["uid"].as_str().map(str::to_owned);
        self.resource_version = preconditions["resourceVersion"].as_str().map(str::to_owned);
        let dry = body["dryRun"].as_array().into_iter().flatten();
        self.dry |= dry.filter_map(Value::as_str).any(|word| word == "All");
        Ok(())
    }
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
