//! A refusal as Kubernetes says it: a `Status` with code, reason, message and details.
//!
//! Owns the texts and codes that do not depend on a kind. Must not know verbs or transport.

use serde_json::{Value, json};
use trainyard_schema::FieldError;

/// What the details of a refusal are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct About {
    /// The API group; empty for the core.
    pub(crate) group: String,
    /// The resource (`pods`) or, for invalid objects, the kind (`Pod`).
    pub(crate) kind: String,
    /// The object's name.
    pub(crate) name: String,
}

impl About {
    pub(crate) fn new(group: &str, kind: &str, name: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// `pods` or `tfjobs.kubeflow.org`.
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }
}

/// One cause among several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// Nobody reads more faults of one object.
const MOST_TOLD: usize = 1_000;

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) about: Option<Box<About>>,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after: Option<u32>,
}

impl Failure {
    /// A refusal without details.
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            about: None,
            causes: Vec::new(),
            retry_after: None,
        }
    }

    /// The reason, which is also the label in metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.reason
    }

    fn about(mut self, about: About) -> Self {
        self.about = Some(Box::new(about));
        self
    }

    pub(crate) fn not_found(about: About) -> Self {
        let message = format!("{} {:?} not found", about.qualified(), about.name);
        Self::new(404, "NotFound", message).about(about)
    }

    /// No such path at all.
    pub(crate) fn no_such_path() -> Self {
        let mut failure =
            Self::new(404, "NotFound", "the server could not find the requested resource");
        failure.about = Some(Box::new(About::default()));
        failure
    }

    pub(crate) fn already_exists(about: About) -> Self {
        let message = format!("{} {:?} already exists", about.qualified(), about.name);
        Self::new(409, "AlreadyExists", message).about(about)
    }

    pub(crate) fn conflict(about: About, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            about.qualified(),
            about.name
        );
        Self::new(409, "Conflict", message).about(about)
    }

    /// The object was written by someone else in between.
    pub(crate) fn stale(about: About) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(about, why)
    }

    pub(crate) fn forbidden(about: About, why: &str) -> Self {
        let message = format!("{} {:?} is forbidden: {why}", about.qualified(), about.name);
        Self::new(403, "Forbidden", message).about(about)
    }

    /// An object whose fields are wrong; `about.kind` is the kind, as `Pod`.
    pub(crate) fn invalid(about: About, errors: &[FieldError]) -> Self {
        let more = errors.len().saturating_sub(MOST_TOLD);
        let errors = errors.get(..MOST_TOLD).unwrap_or(errors);
        // What is said twice is told once; the causes keep both.
        let mut texts: Vec<String> = Vec::new();
        for text in errors.iter().map(ToString::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        if more > 0 {
            texts.push(format!("and {more} more"));
        }
        let told = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {:?} is invalid: {told}", about.qualified(), about.name);
        let mut failure = Self::new(422, "Invalid", message).about(about);
        failure.causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.fault.reason(),
                message: error.body(),
                field: if error.path.is_empty() { "<nil>".to_owned() } else { error.path.clone() },
            })
            .collect();
        failure
    }

    /// A method that is not for this path.
    pub(crate) fn not_allowed() -> Self {
        let words = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", words).about(About::default())
    }

    /// A fault for which the real server has no reason.
    pub(crate) fn unreasoned(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let mut failure =
            Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        failure.about = Some(Box::new(About::default()));
        failure.causes =
            vec![Cause { reason: "", message: message.to_string(), field: String::new() }];
        failure
    }

    /// The revision asked for is no longer there.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The `Status` object.
    #[must_use]
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    fn details(&self) -> Option<Value> {
        let about = self.about.as_ref()?;
        let mut details = serde_json::Map::new();
        for (key, value) in [("name", &about.name), ("group", &about.group), ("kind", &about.kind)]
        {
            if !value.is_empty() {
                details.insert(key.to_owned(), json!(value));
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::value).collect();
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Some(Value::Object(details))
    }
}

impl Cause {
    fn value(&self) -> Value {
        let mut cause = serde_json::Map::new();
        for (key, value) in
            [("reason", self.reason), ("message", &self.message), ("field", &self.field)]
        {
            if !value.is_empty() {
                cause.insert(key.to_owned(), json!(value));
            }
        }
        Value::Object(cause)
    }
}
