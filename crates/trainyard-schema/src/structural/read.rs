//! Reading schemas: from the `OpenAPI` form in JSON to nodes.
//!
//! Owns which keywords there are and what form their values have. Must not judge whether a schema is
//! structural.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use super::{
    formats,
    node::{Additional, ListType, Marks, More, Node, Type},
    pattern::Pattern,
    rules::Rule,
};
use crate::FieldError;

/// How deep schemas may be nested; deeper than the text of a request can be.
const DEPTH_MAX: usize = 200;

/// Reads the schema of a custom resource.
pub(super) fn custom(schema: &Value) -> Result<Node, Vec<FieldError>> {
    let mut reader = Reader::default();
    let node = reader.node(schema, 0);
    if reader.errors.is_empty() { Ok(node) } else { Err(reader.errors) }
}

#[derive(Default)]
struct Reader {
    patterns: HashMap<String, Arc<Pattern>>,
    path: String,
    errors: Vec<FieldError>,
}

impl Reader {
    fn wrong(&mut self, keyword: &str, value: &Value, form: &str) {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{keyword}", self.path);
        let shown =
            if value.is_object() || value.is_array() { Value::from("") } else { value.clone() };
        self.errors.push(FieldError::invalid(path, shown, format!("must be {form}")));
    }

    /// Reads what stands below, remembering where for errors.
    fn below(&mut self, step: &str, schema: &Value, depth: usize) -> Node {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(step);
        let node = self.node(schema, depth + 1);
        self.path.truncate(length);
        node
    }

    fn node(&mut self, schema: &Value, depth: usize) -> Node {
        let Some(keywords) = schema.as_object() else {
            self.wrong("", schema, "an object");
            return Node::open();
        };
        if depth > DEPTH_MAX {
            self.errors.push(FieldError::forbidden(
                self.path.clone(),
                format!("schemas may not be nested more than {DEPTH_MAX} levels deep"),
            ));
            return Node::open();
        }
        let mut node = Node::default();
        self.structure(&mut node, keywords, depth);
        self.marks(&mut node, keywords);
        let more = self.more(&node, keywords, depth);
        node.more = more.is_said().then(|| Box::new(more));
        summarise(&mut node);
        node
    }

    fn structure(&mut self, node: &mut Node, keywords: &Map<String, Value>, depth: usize) {
        if let Some(properties) = keywords.get("properties") {
            match properties {
                Value::Object(fields) => {
                    let mut links: Vec<_> = fields
                        .iter()
                        .map(|(name, schema)| {
                            let step = format!("properties[{name}]");
                            (name.as_str().into(), Box::new(self.below(&step, schema, depth)))
                        })
                        .collect();
                    links.sort_unstable_by(|(one, _), (other, _): &(Box<str>, _)| one.cmp(other));
                    node.properties = links.into();
                }
                Value::Null => {}
                other => self.wrong("properties", other, "an object"),
            }
        }
        match keywords.get("additionalProperties") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(allowed)) => node.additional = Additional::Allowed(*allowed),
            Some(schema) => {
                node.additional =
                    Additional::Of(Box::new(self.below("additionalProperties", schema, depth)));
            }
        }
        match keywords.get("items") {
            None | Some(Value::Null) => {}
            Some(schema @ Value::Object(_)) => {
                node.items = Some(Box::new(self.below("items", schema, depth)));
            }
            Some(other) => self.wrong("items", other, "a schema object and not an array"),
        }
    }

    fn marks(&mut self, node: &mut Node, keywords: &Map<String, Value>) {
        let kind = self.text(keywords, "type").unwrap_or_default();
        if !kind.is_empty() {
            node.kind = Type::of(&kind);
            if node.kind.is_none() {
                let known = "one of array, boolean, integer, number, object, string";
                self.wrong("type", &Value::from(kind), known);
            }
        }
        for (keyword, mark) in [
            ("nullable", Marks::NULLABLE),
            ("uniqueItems", Marks::UNIQUE),
            ("exclusiveMinimum", Marks::ABOVE_MINIMUM),
            ("exclusiveMaximum", Marks::BELOW_MAXIMUM),
            ("x-kubernetes-int-or-string", Marks::INT_OR_STRING),
            ("x-kubernetes-preserve-unknown-fields", Marks::PRESERVES),
            ("x-kubernetes-embedded-resource", Marks::EMBEDDED),
        ] {
            match keywords.get(keyword) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(on)) => node.marks.set(mark, *on),
                Some(other) => self.wrong(keyword, other, "true or false"),
            }
        }
        node.list_type = match self.text(keywords, "x-kubernetes-list-type").as_deref() {
            Some("map") => ListType::Map,
            Some("set") => ListType::Set,
            _ => ListType::Atomic,
        };
        let map_type = self.text(keywords, "x-kubernetes-map-type");
        node.marks.set(Marks::ATOMIC_MAP, map_type.as_deref() == Some("atomic"));
    }

    fn more(&mut self, node: &Node, keywords: &Map<String, Value>, depth: usize) -> More {
        let mut more = More {
            list_keys: self.texts(keywords, "x-kubernetes-list-map-keys"),
            ..More::default()
        };
        let format = self.text(keywords, "format").unwrap_or_default();
        if formats::is_supported(node, &format) {
            more.format = format.into();
        }
        more.default = keywords.get("default").filter(|value| !value.is_null()).cloned();
        more.required = self.texts(keywords, "required");
        match keywords.get("enum") {
            None | Some(Value::Null) => {}
            Some(Value::Array(choices)) => more.choices.clone_from(choices),
            Some(other) => self.wrong("enum", other, "an array"),
        }
        for (keyword, bound) in [
            ("minimum", &mut more.minimum),
            ("maximum", &mut more.maximum),
            ("multipleOf", &mut more.multiple_of),
        ] {
            *bound = self.number(keywords, keyword);
        }
        for (keyword, bound) in [
            ("minLength", &mut more.min_length),
            ("maxLength", &mut more.max_length),
            ("minItems", &mut more.min_items),
            ("maxItems", &mut more.max_items),
            ("minProperties", &mut more.min_properties),
            ("maxProperties", &mut more.max_properties),
        ] {
            *bound = self.whole(keywords, keyword);
        }
        more.pattern = self.pattern(keywords);
        for (keyword, clauses) in
            [("allOf", &mut more.all_of), ("anyOf", &mut more.any_of), ("oneOf", &mut more.one_of)]
        {
            *clauses = self.clauses(keywords, keyword, depth);
        }
        more.not = keywords
            .get("not")
            .filter(|schema| !schema.is_null())
            .map(|schema| self.below("not", schema, depth));
        more.rules = self.rules(keywords);
        more
    }

    fn pattern(&mut self, keywords: &Map<String, Value>) -> Option<Arc<Pattern>> {
        let text = self.text(keywords, "pattern").filter(|text| !text.is_empty())?;
        // The same few patterns stand at many places.
        let pattern = Arc::new(Pattern::new(&text));
        Some(Arc::clone(self.patterns.entry(text).or_insert(pattern)))
    }

    fn clauses(&mut self, keywords: &Map<String, Value>, keyword: &str, depth: usize) -> Vec<Node> {
        match keywords.get(keyword) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(schemas)) => schemas
                .iter()
                .enumerate()
                .map(|(index, schema)| self.below(&format!("{keyword}[{index}]"), schema, depth))
                .collect(),
            Some(other) => {
                self.wrong(keyword, other, "an array");
                Vec::new()
            }
        }
    }

    fn rules(&mut self, keywords: &Map<String, Value>) -> Vec<Rule> {
        match keywords.get("x-kubernetes-validations") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(rules)) => rules.iter().map(Rule::of).collect(),
            Some(other) => {
                self.wrong("x-kubernetes-validations", other, "an array");
                Vec::new()
            }
        }
    }

    fn text(&mut self, keywords: &Map<String, Value>, keyword: &str) -> Option<String> {
        match keywords.get(keyword)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => {
                self.wrong(keyword, other, "a string");
                None
            }
        }
    }

    fn texts(&mut self, keywords: &Map<String, Value>, keyword: &str) -> Vec<Box<str>> {
        let items = match keywords.get(keyword) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong(keyword, other, "an array of strings");
                return Vec::new();
            }
        };
        items.iter().filter_map(Value::as_str).map(Into::into).collect()
    }

    fn number(&mut self, keywords: &Map<String, Value>, keyword: &str) -> Option<f64> {
        let value = keywords.get(keyword).filter(|value| !value.is_null())?;
        let number = value.as_f64();
        if number.is_none() {
            self.wrong(keyword, value, "a number");
        }
        number
    }

    fn whole(&mut self, keywords: &Map<String, Value>, keyword: &str) -> Option<i64> {
        let value = keywords.get(keyword).filter(|value| !value.is_null())?;
        let number = value.as_i64();
        if number.is_none() {
            self.wrong(keyword, value, "an integer");
        }
        number
    }
}

/// Notes at a node what is to be found below it, so that walks can stay away.
fn summarise(node: &mut Node) {
    let mut below = Marks::default();
    for (_, property) in &node.properties {
        below.add(property.marks);
    }
    if let Additional::Of(other) = &node.additional {
        below.add(other.marks);
    }
    if let Some(element) = &node.items {
        below.add(element.marks);
    }
    let (ruled, defaulted) =
        node.more().map_or((false, false), |more| (!more.rules.is_empty(), more.default.is_some()));
    let listed = node.list_type != ListType::Atomic;
    let embedded = node.has(Marks::EMBEDDED);
    for (mark, here) in [
        (Marks::GOVERNED, ruled),
        (Marks::HAS_DEFAULTS, defaulted),
        (Marks::HAS_LISTS, listed),
        (Marks::HAS_EMBEDDED, embedded),
    ] {
        node.marks.set(mark, here || below.has(mark));
    }
}
