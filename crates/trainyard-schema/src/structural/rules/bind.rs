//! Values as rules see them: declared fields and entries of maps, nothing else.
//!
//! Owns the conversion. Must not know which rule asks, only the words in it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use kube_cel::cel::{self, objects::Key};
use serde_json::{Map, Value};

use super::{
    super::{
        metadata,
        node::{Additional, Marks, Node, Type},
    },
    Place, budget, functions,
    names::escaped,
};

/// What of a value is bound.
pub(super) struct Wanted<'a> {
    /// Fields with these names; evaluation copies what it selects from, so fewer is quicker.
    pub(super) words: &'a HashSet<Box<str>>,
    /// All fields: the rule compares or hands on whole objects.
    pub(super) whole: bool,
}

/// The value, and how many values it holds.
pub(super) fn bound(place: Place<'_>, value: &Value, wanted: &Wanted<'_>) -> (cel::Value, u64) {
    let mut binder = Binder { wanted, count: 0 };
    let value = binder.value(Some(place.node), place.resource, value);
    (value, binder.count)
}

struct Binder<'a> {
    wanted: &'a Wanted<'a>,
    count: u64,
}

impl Binder<'_> {
    fn value(&mut self, node: Option<&Node>, resource: bool, value: &Value) -> cel::Value {
        self.count += 1;
        match value {
            Value::Null => cel::Value::Null,
            Value::Bool(flag) => cel::Value::Bool(*flag),
            Value::Number(number) => {
                let as_float = || cel::Value::Float(number.as_f64().unwrap_or(f64::NAN));
                match (node.and_then(|node| node.kind), number.as_i64()) {
                    (Some(Type::Number), _) | (_, None) => as_float(),
                    (_, Some(whole)) => cel::Value::Int(whole),
                }
            }
            Value::String(text) => {
                self.count += budget::of_text(text.len()) - 1;
                text_value(node, text)
            }
            Value::Array(items) => {
                let element = node.and_then(Node::items);
                let items = items.iter().map(|item| self.child(element, item));
                cel::Value::List(Arc::new(items.collect()))
            }
            Value::Object(fields) => self.object(node, resource, fields),
        }
    }

    fn child(&mut self, node: Option<&Node>, value: &Value) -> cel::Value {
        self.value(node, node.is_some_and(|node| node.has(Marks::EMBEDDED)), value)
    }

    fn object(
        &mut self,
        node: Option<&Node>,
        resource: bool,
        fields: &Map<String, Value>,
    ) -> cel::Value {
        let mut entries = HashMap::new();
        for (name, field) in fields {
            let Some((key, child)) = self.entry(node, resource, name) else { continue };
            let value = self.child(child, field);
            entries.insert(Key::String(Arc::new(key)), value);
        }
        cel::Value::Map(entries.into())
    }

    /// Under which name a field is bound, and what it is; nothing when rules cannot see it.
    fn entry<'n>(
        &self,
        node: Option<&'n Node>,
        resource: bool,
        name: &str,
    ) -> Option<(String, Option<&'n Node>)> {
        let node = node?;
        let known = node.property(name).or_else(|| {
            let head = resource && super::super::prune::RESOURCE_FIELDS.contains(&name);
            head.then(|| if name == "metadata" { metadata::visible() } else { metadata::text() })
        });
        match (known, node.additional()) {
            (Some(child), _) => {
                let key = escaped(name)?;
                (self.wanted.whole || self.wanted.words.contains(key.as_str()))
                    .then_some((key, Some(child)))
            }
            (None, Additional::Of(child)) if node.properties.is_empty() => {
                Some((name.to_owned(), Some(child)))
            }
            _ => None,
        }
    }
}

fn text_value(node: Option<&Node>, text: &str) -> cel::Value {
    let plain = || cel::Value::String(Arc::new(text.to_owned()));
    let format = node.and_then(Node::more).map_or("", |more| &*more.format);
    let function = match format {
        "date-time" | "datetime" => "timestamp(text)",
        "date" => "timestamp(text + 'T00:00:00Z')",
        "duration" => "duration(text)",
        "byte" => "base64.decode(text)",
        _ => return plain(),
    };
    functions::converted(function, text).unwrap_or_else(plain)
}
