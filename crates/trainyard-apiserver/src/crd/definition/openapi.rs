//! The schema of a version: which keywords it may use and how they go together.
//!
//! Owns the walk through all of a schema. Whether it is structural, and its defaults and rules, have
//! their own files.

use serde_json::Value;
use trainyard_schema::FieldError;

use super::{
    defaults, go_text, lists_of,
    parts::{below, is_given, is_zero, list, members, schema, text},
    rules::{self, RuleBook},
    structural,
};

/// How deep schemas may be nested.
pub(super) const DEPTH_MAX: usize = 200;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The keywords that a root may have beside a status that is written apart.
const ROOT_KEYWORDS: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// What is wrong with a schema.
pub(super) fn check(written: &Value, has_status: bool, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status {
        errors.extend(root_fault(written, path));
    }
    if written["nullable"] == true {
        let words = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(below(path, "nullable"), words));
    }
    let mut book = RuleBook::default();
    if !structural::is_unreadable(written, 0) {
        let mut wrong = structural::check(written, path);
        if wrong.is_empty() {
            wrong = defaults::check(written, path);
        }
        if wrong.is_empty() {
            book = RuleBook::read(written);
        }
        errors.extend(wrong);
    }
    let mut walk = Walk { book, ..Walk::default() };
    walk.visit(written, &Place::root(path), 0);
    errors.extend(walk.errors);
    errors.extend(walk.rule_errors);
    errors
}

/// A status that is written apart is checked by `properties[status]` alone.
fn root_fault(written: &Value, path: &str) -> Option<FieldError> {
    for (name, keyword) in go_text::keywords() {
        let value = written.get(keyword).unwrap_or(&Value::Null);
        if is_zero(value) {
            continue;
        }
        if name == "Type" {
            if value != "object" {
                let words = "only \"object\" is allowed as the type at the root of the schema if \
                    the status subresource is enabled";
                return Some(FieldError::invalid(below(path, "type"), value.clone(), words));
            }
        } else if !ROOT_KEYWORDS.contains(&name) {
            let words = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource \
                 is enabled",
                ROOT_KEYWORDS.join(" ")
            );
            return Some(go_text::refused(path.to_owned(), &go_text::schema(written), &words));
        }
    }
    None
}

/// Where a schema stands, and what is forbidden there.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) path: String,
    /// The same from the root on; nothing where rules are not looked at.
    pub(super) steps: Option<String>,
    is_root: bool,
    inside_metadata: bool,
    no_defaults: Option<String>,
    /// Above here, old and new cannot be matched.
    pub(super) unmatched: Option<String>,
}

impl Place {
    fn root(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            steps: Some(String::new()),
            is_root: true,
            inside_metadata: false,
            no_defaults: None,
            unmatched: None,
        }
    }

    fn below(&self, step: &str) -> Self {
        let steps = self.steps.as_deref().map(|steps| {
            if steps.is_empty() { step.to_owned() } else { format!("{steps}.{step}") }
        });
        Self { path: below(&self.path, step), steps, is_root: false, ..self.clone() }
    }

    /// Inside an alternative there are no rules.
    fn aside(&self, step: &str) -> Self {
        Self { steps: None, ..self.below(step) }
    }
}

#[derive(Default)]
struct Walk {
    book: RuleBook,
    errors: Vec<FieldError>,
    rule_errors: Vec<FieldError>,
}

impl Walk {
    fn visit(&mut self, written: &Value, place: &Place, depth: usize) {
        let before = self.errors.len();
        if depth > DEPTH_MAX {
            let words = format!("schemas may not be nested more than {DEPTH_MAX} levels deep");
            self.errors.push(FieldError::forbidden(place.path.as_str(), words));
            return;
        }
        self.keywords(written, place);
        if written["uniqueItems"] == true {
            let words =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(FieldError::forbidden(below(&place.path, "uniqueItems"), words));
        }
        self.fields(written, place, depth);
        if let Some(child) = schema(written, "not") {
            self.visit(child, &place.aside("not"), depth + 1);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            for (index, child) in list(&written[keyword]).iter().enumerate() {
                self.visit(child, &place.aside(&format!("{keyword}[{index}]")), depth + 1);
            }
        }
        if let Some(child) = schema(written, "items") {
            let mut inner = place.below("items");
            if written["x-kubernetes-list-type"] != "map" {
                inner.unmatched.get_or_insert_with(|| place.path.clone());
            }
            self.visit(child, &inner, depth + 1);
        }
        if written["x-kubernetes-preserve-unknown-fields"] == false {
            let path = below(&place.path, "x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(path, false, "must be true or undefined"));
        }
        self.errors.extend(lists_of::check(written, &place.path));
        self.errors.extend(rules::form_faults(written, &place.path));
        if self.errors.len() == before {
            self.rule_errors.extend(self.book.faults(written, place));
        }
    }

    /// Keywords that may not be used at all, or not here.
    fn keywords(&mut self, written: &Value, place: &Place) {
        let path = &place.path;
        let kind = text(&written["type"]);
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(below(path, "type"), kind, &TYPES));
        }
        let mut forbid = |keyword: &str, words: String| {
            self.errors.push(FieldError::forbidden(below(path, keyword), words));
        };
        if let Some(reason) = place.no_defaults.as_ref().filter(|_| is_given(written, "default")) {
            forbid("default", format!("must not be set {reason}"));
        }
        if !text(&written["id"]).is_empty() {
            forbid("id", "id is not supported".to_owned());
        }
        if is_given(written, "additionalItems") {
            forbid("additionalItems", "additionalItems is not supported".to_owned());
        }
        for keyword in ["patternProperties", "definitions"] {
            if members(&written[keyword]).next().is_some() {
                forbid(keyword, format!("{keyword} is not supported"));
            }
        }
        for keyword in ["dependencies", "$ref"] {
            if is_given(written, keyword) {
                forbid(keyword, format!("{keyword} is not supported"));
            }
        }
        if kind == "null" {
            let words = "type cannot be set to null, use nullable as an alternative";
            forbid("type", words.to_owned());
        }
        if written["items"].is_array() {
            forbid("items", "items must be a schema object and not an array".to_owned());
        }
        if place.inside_metadata && written["x-kubernetes-embedded-resource"] == true {
            let words = "must not be used inside of resource meta";
            forbid("x-kubernetes-embedded-resource", words.to_owned());
        }
    }

    fn fields(&mut self, written: &Value, place: &Place, depth: usize) {
        let named = members(&written["properties"]).next().is_some();
        let additional = &written["additionalProperties"];
        if named && (additional.is_object() || *additional == false) {
            let words = "additionalProperties and properties are mutual exclusive";
            let path = below(&place.path, "additionalProperties");
            self.errors.push(FieldError::forbidden(path, words));
        }
        if additional.is_object() {
            let mut inner = place.below("additionalProperties");
            if place.inside_metadata {
                let reason = "inside additionalProperties applying to object metadata";
                inner.no_defaults = Some(reason.to_owned());
            }
            self.visit(additional, &inner, depth + 1);
        }
        let is_head = place.is_root || written["x-kubernetes-embedded-resource"] == true;
        for (name, child) in members(&written["properties"]) {
            let mut inner = place.below(&format!("properties[{name}]"));
            if is_head && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                inner.inside_metadata = true;
                if place.is_root {
                    inner.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.visit(child, &inner, depth + 1);
        }
    }
}
