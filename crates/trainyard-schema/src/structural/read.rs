//! Reading schemas: from the `OpenAPI` form in JSON to nodes.
//!
//! Owns which keywords there are and what form their values have, for custom resources and for the
//! named schemas of a document. Must not judge whether a schema is structural.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    formats,
    node::{Additional, Link, ListType, Marks, More, Named, Node, Type},
    pattern::Pattern,
    rules::Rule,
};
use crate::FieldError;

/// How deep schemas may be nested; deeper than the text of a request can be.
const DEPTH_MAX: usize = 200;

/// How references to named schemas begin.
const REFERENCE: &str = "#/components/schemas/";

/// Reads the schema of a custom resource.
pub(super) fn custom(schema: &Value) -> Result<Node, Vec<FieldError>> {
    let mut reader = Reader::default();
    let node = reader.node(schema, 0);
    if reader.errors.is_empty() { Ok(node) } else { Err(reader.errors) }
}

/// Reads a named schema and all it refers to, as far as they are not known already.
pub(super) fn named(
    known: &mut HashMap<String, Arc<Named>>,
    document: &Map<String, Value>,
    name: &str,
) -> Result<Arc<Named>, Vec<FieldError>> {
    let mut reader =
        Reader { document: Some(Document { known, unread: VecDeque::new() }), ..Reader::default() };
    let root = reader.reference(name);
    while let Some(next) = reader.next_unread() {
        match document.get(&*next.name) {
            Some(schema) => {
                name.clone_into(&mut reader.path);
                let node = reader.node(schema, 0);
                next.fill(node);
            }
            None => reader.errors.push(FieldError::not_found("$ref", &*next.name)),
        }
    }
    if reader.errors.is_empty() { Ok(root) } else { Err(reader.errors) }
}

struct Document<'a> {
    known: &'a mut HashMap<String, Arc<Named>>,
    unread: VecDeque<Arc<Named>>,
}

#[derive(Default)]
struct Reader<'a> {
    document: Option<Document<'a>>,
    patterns: HashMap<String, Arc<Pattern>>,
    path: String,
    errors: Vec<FieldError>,
}

impl Reader<'_> {
    fn next_unread(&mut self) -> Option<Arc<Named>> {
        self.document.as_mut()?.unread.pop_front()
    }

    fn reference(&mut self, name: &str) -> Arc<Named> {
        let fresh = || Arc::new(Named::unread(name));
        let Some(document) = &mut self.document else { return fresh() };
        let unread = &mut document.unread;
        let named = document.known.entry(name.to_owned()).or_insert_with(|| {
            let named = fresh();
            unread.push_back(Arc::clone(&named));
            named
        });
        Arc::clone(named)
    }

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

    fn link(&mut self, step: &str, schema: &Value, depth: usize) -> Link {
        match self.named_only(schema) {
            Some(named) => Link::Named(named),
            None => Link::Own(Box::new(self.below(step, schema, depth))),
        }
    }

    /// The named schema that this one is, when it says nothing beside that matters here.
    fn named_only(&mut self, schema: &Value) -> Option<Arc<Named>> {
        self.document.as_ref()?;
        let plain = schema.get("x-kubernetes-patch-strategy").is_none();
        let name = reference_of(schema).filter(|_| plain)?;
        Some(self.reference(name))
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
        if self.document.is_some()
            && let Some(name) = reference_of(schema)
        {
            node.base = Some(Link::Named(self.reference(name)));
        }
        self.structure(&mut node, keywords, depth);
        self.marks(&mut node, keywords);
        let more = self.more(&node, keywords, depth);
        node.more = more.is_said().then(|| Box::new(more));
        if self.document.is_some() {
            let silent = node.properties.is_empty()
                && matches!(node.additional, Additional::Unsaid)
                && node.items.is_none()
                && node.base.is_none();
            node.marks.set(Marks::PRESERVES, silent);
        }
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
                            (name.as_str().into(), self.link(&step, schema, depth))
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
                node.additional = Additional::Of(self.link("additionalProperties", schema, depth));
            }
        }
        match keywords.get("items") {
            None | Some(Value::Null) => {}
            Some(schema @ Value::Object(_)) => node.items = Some(self.link("items", schema, depth)),
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
        let strategy = self.text(keywords, "x-kubernetes-patch-strategy").unwrap_or_default();
        for word in strategy.split(',') {
            node.marks.set(Marks::MERGED, word == "merge");
            node.marks.set(Marks::RETAINS_KEYS, word == "retainKeys");
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
            merge_key: self.text(keywords, "x-kubernetes-patch-merge-key").map(Into::into),
            list_keys: self.texts(keywords, "x-kubernetes-list-map-keys"),
            ..More::default()
        };
        let format = self.text(keywords, "format").unwrap_or_default();
        if formats::is_supported(node, &format) {
            more.format = format.into();
        }
        if self.document.is_some() {
            // What built-in kinds may hold is checked by code.
            return more;
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

/// The name of the schema that this one refers to, directly or as the only part of `allOf`.
fn reference_of(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref");
    let only = || match schema.get("allOf")?.as_array()?.as_slice() {
        [one] => one.get("$ref"),
        _ => None,
    };
    direct.or_else(only)?.as_str()?.strip_prefix(REFERENCE)
}

/// Notes at a node what is to be found below it, so that walks can stay away.
fn summarise(node: &mut Node) {
    let own = |link: &Link| match link {
        Link::Own(node) => node.marks,
        Link::Named(_) => Marks::default(),
    };
    let mut below = Marks::default();
    for (_, link) in &node.properties {
        below.add(own(link));
    }
    if let Additional::Of(link) = &node.additional {
        below.add(own(link));
    }
    if let Some(link) = &node.items {
        below.add(own(link));
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
