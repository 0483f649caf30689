//! The keywords of a structural schema that refuse objects: types, choices, bounds, patterns,
//! required fields and keys of list maps.
//!
//! Owns the reading of those keywords and their messages, which follow the API server's. Must not
//! know jobs; knows only the keywords that our own definition uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Map, Value};

use super::Violation;

/// One node of a schema, read.
#[derive(Debug, Default)]
pub(super) struct Node {
    kind: Kind,
    nullable: bool,
    default: Option<Value>,
    properties: BTreeMap<String, Self>,
    required: Vec<String>,
    additional: Option<Box<Self>>,
    items: Option<Box<Self>>,
    list_keys: Vec<String>,
    choices: Vec<String>,
    minimum: Option<i64>,
    maximum: Option<i64>,
    max_length: Option<u64>,
    max_items: Option<u64>,
    max_properties: Option<u64>,
    pattern: Option<Arc<Regex>>,
    time: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[default]
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
    IntegerOrText,
}

impl Kind {
    fn of(schema: &Value) -> Self {
        if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            return Self::IntegerOrText;
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("array") => Self::Array,
            Some("string") => Self::Text,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            _ => Self::Object,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntegerOrText => "integer,string",
        }
    }

    fn admits(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::Text => value.is_string(),
            Self::Integer => is_whole(value),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::IntegerOrText => value.is_string() || is_whole(value),
        }
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_whole(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Node {
    /// Reads a schema.
    pub(super) fn compile(schema: &Value) -> Self {
        Self::compile_with(schema, &mut BTreeMap::new())
    }

    /// The same few patterns stand at many places; each is compiled once.
    fn compile_with(schema: &Value, patterns: &mut BTreeMap<String, Arc<Regex>>) -> Self {
        let number = |key: &str| schema.get(key).and_then(Value::as_u64);
        let texts = |key: &str| -> Vec<String> {
            let items = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let narrow = format == "int32";
        let pattern = schema.get("pattern").and_then(Value::as_str).and_then(|pattern| {
            if !patterns.contains_key(pattern) {
                patterns.insert(pattern.to_owned(), Arc::new(Regex::new(pattern).ok()?));
            }
            patterns.get(pattern).cloned()
        });
        let child = |schema: &Value, patterns: &mut _| Self::compile_with(schema, patterns);
        Self {
            kind: Kind::of(schema),
            nullable: schema.get("nullable") == Some(&Value::Bool(true)),
            default: schema.get("default").cloned(),
            properties: schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), child(schema, patterns)))
                .collect(),
            required: texts("required"),
            additional: schema
                .get("additionalProperties")
                .map(|schema| Box::new(child(schema, patterns))),
            items: schema.get("items").map(|schema| Box::new(child(schema, patterns))),
            list_keys: texts("x-kubernetes-list-map-keys"),
            choices: texts("enum"),
            minimum: schema
                .get("minimum")
                .and_then(Value::as_i64)
                .or_else(|| narrow.then_some(i64::from(i32::MIN))),
            maximum: schema
                .get("maximum")
                .and_then(Value::as_i64)
                .or_else(|| narrow.then_some(i64::from(i32::MAX))),
            max_length: number("maxLength"),
            max_items: number("maxItems"),
            max_properties: number("maxProperties"),
            pattern,
            time: format == "date-time",
        }
    }

    fn child(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// Does what the API server does before it validates: a null counts as not given unless the
    /// field may be null, and what is not given gets its default.
    pub(super) fn settle(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, field| {
                    !field.is_null() || self.child(name).is_none_or(|child| child.nullable)
                });
                for (name, child) in &self.properties {
                    if let Some(default) = &child.default {
                        fields.entry(name).or_insert_with(|| default.clone());
                    }
                }
                for (name, field) in fields.iter_mut() {
                    if let Some(child) = self.child(name) {
                        child.settle(field);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    for item in items {
                        node.settle(item);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds what the keywords refuse; tells whether rules can no longer be evaluated.
    pub(super) fn check(&self, value: &Value, violations: &mut Vec<Violation>) -> bool {
        let mut walk = Walk { path: String::new(), violations, blocking: false };
        walk.visit(self, value);
        walk.blocking
    }
}

struct Walk<'a> {
    path: String,
    violations: &'a mut Vec<Violation>,
    blocking: bool,
}

impl Walk<'_> {
    fn refuse(&mut self, message: String) {
        self.violations.push(Violation::new(self.path.clone(), message));
    }

    fn block(&mut self, message: String) {
        self.blocking = true;
        self.refuse(message);
    }

    /// Visits a part and comes back to where it was.
    fn descend(&mut self, step: &str, node: &Node, value: &Value) {
        let length = self.path.len();
        self.path.push_str(if length == 0 { step.trim_start_matches('.') } else { step });
        self.visit(node, value);
        self.path.truncate(length);
    }

    fn visit(&mut self, node: &Node, value: &Value) {
        if value.is_null() && node.nullable {
            return;
        }
        if !node.kind.admits(value) {
            self.block(format!(
                "Invalid value: {}: must be of type {}: \"{}\"",
                brief(value),
                node.kind.name(),
                kind_name(value)
            ));
            return;
        }
        match value {
            Value::Object(fields) => self.object(node, fields),
            Value::Array(items) => self.array(node, items),
            Value::String(text) => self.text(node, text),
            Value::Number(_) => self.number(node, value),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn object(&mut self, node: &Node, fields: &Map<String, Value>) {
        for name in &node.required {
            if !fields.contains_key(name) {
                let dot = if self.path.is_empty() { "" } else { "." };
                let path = format!("{}{dot}{name}", self.path);
                self.violations.push(Violation::new(path, "Required value"));
                self.blocking = true;
            }
        }
        if let Some(most) = node.max_properties.filter(|most| fields.len() as u64 > *most) {
            self.block(format!("Too many: {}: must have at most {most} items", fields.len()));
        }
        for (name, field) in fields {
            if let Some(child) = node.properties.get(name) {
                self.descend(&format!(".{name}"), child, field);
            } else if let Some(child) = &node.additional {
                self.descend(&format!("[{name}]"), child, field);
            }
        }
    }

    fn array(&mut self, node: &Node, items: &[Value]) {
        if let Some(most) = node.max_items.filter(|most| items.len() as u64 > *most) {
            self.block(format!("Too many: {}: must have at most {most} items", items.len()));
        }
        let Some(child) = &node.items else { return };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            self.descend(&format!("[{index}]"), child, item);
            if node.list_keys.is_empty() {
                continue;
            }
            let keys: Map<String, Value> = node
                .list_keys
                .iter()
                .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
                .collect();
            let keys = Value::Object(keys).to_string();
            if seen.contains(&keys) {
                let path = format!("{}[{index}]", self.path);
                self.violations.push(Violation::new(path, format!("Duplicate value: {keys}")));
            }
            seen.insert(keys);
        }
    }

    fn text(&mut self, node: &Node, text: &str) {
        if !node.choices.is_empty() && !node.choices.iter().any(|choice| choice == text) {
            let choices: Vec<_> = node.choices.iter().map(|choice| format!("{choice:?}")).collect();
            self.block(format!(
                "Unsupported value: {text:?}: supported values: {}",
                choices.join(", ")
            ));
        }
        if let Some(most) = node.max_length.filter(|most| text.chars().count() as u64 > *most) {
            self.block(format!("Too long: may not be more than {most} bytes"));
        }
        if let Some(pattern) = node.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            self.refuse(format!("Invalid value: {text:?}: should match '{}'", pattern.as_str()));
        }
        if node.time && text.parse::<Timestamp>().is_err() {
            self.refuse(format!("Invalid value: {text:?}: must be of type date-time"));
        }
    }

    fn number(&mut self, node: &Node, value: &Value) {
        // A number beyond 64 bits is above every maximum.
        let number = value.as_i64().unwrap_or(i64::MAX);
        if let Some(least) = node.minimum.filter(|least| number < *least) {
            self.refuse(format!(
                "Invalid value: {value}: should be greater than or equal to {least}"
            ));
        }
        if let Some(most) = node.maximum.filter(|most| number > *most) {
            self.refuse(format!("Invalid value: {value}: should be less than or equal to {most}"));
        }
    }
}

/// A value as an error shows it: containers only by their kind.
fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) | Value::Null => format!("\"{}\"", kind_name(value)),
        other => other.to_string(),
    }
}
