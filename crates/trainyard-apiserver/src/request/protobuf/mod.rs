//! Objects in the binary form that the real clients prefer for built-in kinds: an envelope that says
//! what is in it, and a message.
//!
//! Owns turning them into the JSON they stand for, in bounded time and space. Must not know verbs.

mod message;
mod wire;

use serde_json::{Value, json};

use self::message::{Reading, message_of, text};
use self::wire::Fields;
use crate::openapi::types::{self, Node};

/// How clients call it.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// What deletions may have as a body.
const OPTIONS: &str = "DeleteOptions";

/// What every envelope starts with.
const PREFIX: &[u8] = b"k8s\0";

/// Why bytes are no object; in the words of the reference where it has some.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("empty data")]
    NoData,
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    #[error("empty body")]
    NoBody,
    #[error("unexpected EOF")]
    End,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    Length,
    #[error("proto: {message}: wiretype end group for non-group")]
    EndOfNoGroup { message: String },
    #[error("proto: {message}: illegal tag {number} (wire type {wire})")]
    Tag { message: String, number: i32, wire: u8 },
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType { wire: u8, field: String },
    #[error("the message is nested deeper than {0} levels")]
    Depth(usize),
    #[error("the message holds more than {0} values")]
    Many(usize),
    #[error("{0}")]
    Json(serde_json::Error),
    #[error("a number is not finite")]
    NotFinite,
    #[error("year outside of range [0,9999]")]
    Year,
    #[error(
        "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )]
    Unknown { kind: String, version: String },
    #[error("converting (v1.{kind}) to ({wanted}): unknown conversion")]
    Other { kind: String, wanted: String },
    /// What reading by the type has against a value.
    #[error("{0}")]
    Value(String),
}

impl ProtobufError {
    /// A stable name of the variant, for logs and metrics.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::NoData | Self::NoBody => "empty",
            Self::Prefix => "prefix",
            Self::End
            | Self::Overflow
            | Self::Length
            | Self::EndOfNoGroup { .. }
            | Self::Tag { .. }
            | Self::WireType { .. } => "wire",
            Self::Depth(_) | Self::Many(_) => "bounds",
            Self::Json(_) | Self::NotFinite | Self::Year | Self::Value(_) => "value",
            Self::Unknown { .. } | Self::Other { .. } => "unknown",
        }
    }

    /// Names the message in which bytes are broken, where that is not known yet.
    fn within(mut self, name: &str) -> Self {
        if let Self::EndOfNoGroup { message } | Self::Tag { message, .. } = &mut self
            && message.is_empty()
        {
            name.clone_into(message);
        }
        self
    }
}

/// An envelope: what is in it, and the message.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'b> {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    message: &'b [u8],
}

impl<'b> Envelope<'b> {
    /// Opens an envelope.
    pub(crate) fn open(bytes: &'b [u8]) -> Result<Self, ProtobufError> {
        if bytes.is_empty() {
            return Err(ProtobufError::NoData);
        }
        let inside = bytes.strip_prefix(PREFIX).ok_or(ProtobufError::Prefix)?;
        if inside.is_empty() {
            return Err(ProtobufError::NoBody);
        }
        let mut envelope = Self::default();
        let mut fields = Fields::of(inside);
        while let Some((number, piece)) = fields.next()? {
            match number {
                1 => envelope.take_type(message_of("typeMeta", &piece)?)?,
                2 => envelope.message = message_of("raw", &piece)?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn take_type(&mut self, bytes: &[u8]) -> Result<(), ProtobufError> {
        let mut fields = Fields::of(bytes);
        while let Some((number, piece)) = fields.next()? {
            match number {
                1 => self.api_version = text(message_of("apiVersion", &piece)?),
                2 => self.kind = text(message_of("kind", &piece)?),
                _ => {}
            }
        }
        Ok(())
    }

    /// What is not said is what is expected.
    pub(crate) fn or_expected(&mut self, api_version: &str, kind: &str) {
        if self.kind.is_empty() {
            kind.clone_into(&mut self.kind);
        }
        if self.api_version.is_empty() {
            api_version.clone_into(&mut self.api_version);
        }
    }

    /// Refuses an object of another kind than the expected one.
    pub(crate) fn must_be(&self, api_version: &str, kind: &str) -> Result<(), ProtobufError> {
        if self.kind == kind {
            return Ok(());
        }
        let wanted = type_name(api_version, kind).unwrap_or_default();
        let is_known = self.named().is_some() && kind != OPTIONS;
        Err(if is_known {
            ProtobufError::Other { kind: self.kind.clone(), wanted }
        } else {
            self.unknown()
        })
    }

    fn unknown(&self) -> ProtobufError {
        ProtobufError::Unknown { kind: self.kind.clone(), version: self.api_version.clone() }
    }

    /// The type and its name.
    fn named(&self) -> Option<(String, &'static Node)> {
        let name = type_name(&self.api_version, &self.kind)?;
        let node = types::TABLE.named(&name)?;
        Some((name, node))
    }

    /// The object as a client would have written it in JSON.
    pub(crate) fn object(&self) -> Result<Value, ProtobufError> {
        let (name, node) = self.named().ok_or_else(|| self.unknown())?;
        let mut object = Reading::new().object(node, self.message)?;
        types::read_type(&name, &mut object).map_err(ProtobufError::Value)?;
        object["apiVersion"] = json!(self.api_version);
        object["kind"] = json!(self.kind);
        Ok(object)
    }
}

/// `rbac.Role` for `rbac.authorization.k8s.io/v1`, `Role`.
fn type_name(api_version: &str, kind: &str) -> Option<String> {
    // Every group has these, and they are the same everywhere.
    if kind == OPTIONS {
        return Some("meta.DeleteOptions".to_owned());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let package = group.split('.').next().unwrap_or_default();
    // Evictions are still sent in the version before; it is the same.
    let is_known = version == "v1" || (version == "v1beta1" && kind == "Eviction");
    is_known.then(|| format!("{package}.{kind}"))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
