//! The types of the built-in kinds, as the real server's language has them: which fields there are,
//! what is left out when empty, how lists merge. By them objects are read and strategic patches merged.
//!
//! Owns that form. Must not know what the fields mean.

mod read;
mod scalar;
mod table;

use serde_json::Value;
use trainyard_schema::patch::Shape;

use self::{read::Reader, table::Strategy};
pub(crate) use table::{Field, Form, Node, TABLE};

/// Brings an object of a built-in kind into its canonical form: unknown fields go (and are told),
/// empty ones too, those that are always written come. Fails in the words of the real decoder.
pub(crate) fn read(definition: &str, object: &mut Value) -> Result<Vec<String>, String> {
    read_type(&short(definition), object)
}

/// The same for any of the types, as `meta.ObjectMeta` or `core.Binding`.
pub(crate) fn read_type(name: &str, object: &mut Value) -> Result<Vec<String>, String> {
    match TABLE.named(name) {
        Some(node) => Reader::default().object(node, object),
        None => Ok(Vec::new()),
    }
}

/// The same for the metadata of an object whose other fields have a schema.
pub(crate) fn read_metadata(object: &mut Value) -> Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let unknown = read_type("meta.ObjectMeta", metadata)?;
    Ok(unknown.into_iter().map(|path| format!("metadata.{path}")).collect())
}

/// The type of a built-in kind, for strategic merges.
pub(crate) fn shape(definition: &str) -> Option<&'static Node> {
    TABLE.named(&short(definition))
}

/// `core.Pod` for `io.k8s.api.core.v1.Pod`.
fn short(definition: &str) -> String {
    let mut words = definition.rsplit('.');
    let (name, _version, group) = (words.next(), words.next(), words.next());
    format!("{}.{}", group.unwrap_or_default(), name.unwrap_or_default())
}

impl Shape for Node {
    fn field(&self, name: &str) -> Option<&Self> {
        match self.form {
            Form::Struct(ref fields) => {
                let field = fields.iter().find(|field| field.name == name)?;
                Some(TABLE.node(field.node))
            }
            Form::Map(value) => Some(TABLE.node(value)),
            _ => None,
        }
    }

    fn element(&self) -> Option<&Self> {
        match self.form {
            Form::List(element) => Some(TABLE.node(element)),
            _ => None,
        }
    }

    fn is_merged(&self) -> bool {
        matches!(self.strategy, Strategy::Merge | Strategy::MergeRetainKeys)
    }

    fn retains_keys(&self) -> bool {
        matches!(self.strategy, Strategy::RetainKeys | Strategy::MergeRetainKeys)
    }

    fn merge_key(&self) -> Option<&str> {
        Some(self.merge_key).filter(|key| !key.is_empty())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
