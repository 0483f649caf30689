//! What is wrong with a field of an object, in the words of the API server.
//!
//! Owns the kinds of faults, their texts and the reason each has as a cause of a refusal. Must not
//! know any particular field.

use std::fmt;

use serde_json::Value;

use crate::golang;

/// The kind of a fault; each has its own opening words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Must be there and is not.
    Required,
    /// Is there and must not be so.
    Invalid,
    /// Is none of the values that are allowed.
    NotSupported,
    /// Is there twice.
    Duplicate,
    /// May not be set or changed.
    Forbidden,
    /// Is longer than allowed.
    TooLong,
    /// Has more elements than allowed.
    TooMany,
    /// Is of another type.
    TypeInvalid,
    /// Names something that is not there.
    NotFound,
    /// The check itself failed.
    Internal,
}

impl Fault {
    /// The words before the value.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }

    /// Whether rules cannot be asked of an object with such a fault: they rely on its form.
    #[must_use]
    pub const fn blocks_rules(self) -> bool {
        matches!(
            self,
            Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::TypeInvalid
        )
    }

    /// The reason of the cause in a refusal's details.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }
}

/// One fault of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What kind of fault.
    pub fault: Fault,
    /// The field, as `spec.containers[0].name` or `metadata.labels[key]`; empty for the object.
    pub path: String,
    /// The value, for kinds of faults that show it.
    pub value: Option<Value>,
    /// What is allowed or what to do.
    pub detail: String,
}

impl FieldError {
    /// A fault that shows the value.
    pub fn new(
        fault: Fault,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { fault, path: path.into(), value: Some(value.into()), detail: detail.into() }
    }

    /// An invalid value.
    pub fn invalid(
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(Fault::Invalid, path, value, detail)
    }

    /// A missing value.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { fault: Fault::Required, path: path.into(), value: None, detail: detail.into() }
    }

    /// Something that may not be set or changed.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { fault: Fault::Forbidden, path: path.into(), value: None, detail: detail.into() }
    }

    /// A value that stands twice.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Fault::Duplicate, path, value, "")
    }

    /// A name of something that is not there.
    pub fn not_found(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Fault::NotFound, path, value, "")
    }

    /// A value that is none of the allowed ones.
    pub fn not_supported(
        path: impl Into<String>,
        value: impl Into<Value>,
        allowed: &[&str],
    ) -> Self {
        let allowed: Vec<_> = allowed.iter().map(|word| golang::quote(word)).collect();
        let detail = if allowed.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", allowed.join(", "))
        };
        Self::new(Fault::NotSupported, path, value, detail)
    }

    /// A text longer than allowed.
    pub fn too_long(path: impl Into<String>, most: usize) -> Self {
        let noun = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {noun}");
        Self { fault: Fault::TooLong, path: path.into(), value: None, detail }
    }

    /// More elements than allowed.
    pub fn too_many(path: impl Into<String>, count: usize, most: usize) -> Self {
        let noun = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {noun}");
        Self::new(Fault::TooMany, path, count, detail)
    }

    /// The text without the path, as it stands in a cause.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = self.fault.words().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(&shown(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// A value as Go prints it: texts quoted, numbers plainly, everything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => golang::quote(text),
        Value::Number(number) => golang::number(number),
        other => golang::json(other),
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "<nil>" } else { &self.path };
        write!(f, "{path}: {}", self.body())
    }
}

impl std::error::Error for FieldError {}
