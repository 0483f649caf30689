//! Structural schemas: what an object may look like, read once from its `OpenAPI` form and shared.
//!
//! Owns the order in which a schema is put to use; each use has its own file. Must not know any
//! kind, only the keywords.

mod check;
mod correlate;
mod defaults;
mod formats;
mod lists;
mod metadata;
mod node;
mod numbers;
mod pattern;
mod problems;
mod prune;
mod read;
mod rules;

use std::sync::Arc;

use serde_json::Value;

use self::node::Node;
pub use self::rules::RuleReport;
use crate::FieldError;

/// A schema, read once. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Schema {
    root: Arc<Node>,
    /// Whether it came by a definition of a custom resource.
    custom: bool,
    /// Whether it describes a whole object, whose type and metadata it need not name.
    resource: bool,
}

impl Schema {
    /// Reads the `openAPIV3Schema` of a custom resource. Fails where a keyword's value has the wrong
    /// form; whether the schema is structural is for the check of the whole definition to say.
    pub fn parse(schema: &Value) -> Result<Self, Vec<FieldError>> {
        let node = read::custom(schema)?;
        Ok(Self { root: Arc::new(node), custom: true, resource: true })
    }

    /// Reads the schema of a part of a custom resource.
    pub fn parse_part(schema: &Value) -> Result<Self, Vec<FieldError>> {
        Ok(Self { resource: false, ..Self::parse(schema)? })
    }

    /// The schema that accepts and keeps everything.
    #[must_use]
    pub fn open() -> Self {
        Self { root: Arc::new(Node::open()), custom: true, resource: true }
    }

    /// What is said of the object itself.
    fn node(&self) -> &Node {
        &self.root
    }

    /// Removes the fields that the schema does not name, and tells which these were, as
    /// `spec.list[0].bar`, sorted.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = prune::prune(self.node(), object, self.resource);
        unknown.sort_unstable();
        unknown
    }

    /// The fields that [`Self::prune`] would remove.
    #[must_use]
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        self.prune(&mut object.clone())
    }

    /// Fills in the schema's defaults; a null that may not be one counts as left out.
    pub fn default(&self, object: &mut Value) {
        if self.custom {
            defaults::drop_nulls(self.node(), object);
            defaults::fill(self.node(), object);
        }
    }

    /// What is wrong with an object, rules apart. With `old` given it is an update: what was wrong
    /// before and is unchanged is let pass.
    #[must_use]
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = self.validate_values(object, old);
        errors.extend(self.validate_lists(object, old));
        errors
    }

    /// What [`Self::validate`] says of values, for those who check more between them and the lists.
    #[must_use]
    pub fn validate_values(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        if !self.custom {
            return Vec::new();
        }
        check::check(self.node(), "", object, old).into_errors().collect()
    }

    /// As [`Self::validate_values`] for a write of `/status`: only that part is checked.
    #[must_use]
    pub fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        match (self.node().property("status"), object.get("status")) {
            (Some(node), Some(status)) if self.custom => {
                let found = check::check(node, "", status, old.get("status"));
                found.into_errors().map(below_status).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The resources that stand inside an object (`x-kubernetes-embedded-resource`), with their
    /// paths: their type and metadata are for the server to check.
    #[must_use]
    pub fn embedded<'a>(&self, object: &'a Value) -> Vec<(String, &'a Value)> {
        let mut found = Vec::new();
        if self.custom {
            metadata::embedded(self.node(), "", object, &mut found);
        }
        found
    }

    /// What stands twice in a list; nothing if it was so before.
    #[must_use]
    pub fn validate_lists(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        if !self.custom {
            return Vec::new();
        }
        let errors = lists::check(self.node(), "", object);
        let was = |old| !lists::check(self.node(), "", old).is_empty();
        if !errors.is_empty() && old.is_some_and(was) { Vec::new() } else { errors }
    }

    /// What the rules (`x-kubernetes-validations`) say against an object. To be asked only when
    /// [`Self::validate`] has found nothing.
    #[must_use]
    pub fn rules(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        if self.custom { rules::check(self.place(), object, old, true) } else { Vec::new() }
    }

    /// As [`Self::rules`], but what was wrong before is told again.
    #[must_use]
    pub fn rules_anew(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        rules::check(self.place(), object, old, false)
    }

    /// What can be told of the rules without an object.
    #[must_use]
    pub fn rule_reports(&self) -> Vec<RuleReport> {
        rules::reports(self.place())
    }

    /// A `fieldPath` of a rule in the form that errors have, if it leads somewhere.
    pub fn field_path(&self, path: &str) -> Result<String, String> {
        rules::field_path(path, self.place())
    }

    fn place(&self) -> rules::Place<'_> {
        rules::Place { node: self.node(), resource: self.resource }
    }

    /// Whether there is any rule.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.node().has(node::Marks::GOVERNED)
    }

    /// Asks the rules after everything else has been checked and adds what they say. When an object
    /// is wrong in a way that rules rely on, that is said instead.
    pub fn conclude(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        if !self.custom || !self.has_rules() {
            return;
        }
        if errors.iter().any(|error| error.fault.blocks_rules()) {
            let unasked = "some validation rules were not checked because the object was invalid; \
                correct the existing errors to complete validation";
            errors.push(FieldError::invalid("", Value::Null, unasked));
        } else {
            errors.extend(self.rules(object, old));
        }
    }
}

/// What is wrong with a regular expression in Go's syntax.
#[must_use]
pub fn pattern_fault(pattern: &str) -> Option<String> {
    pattern::compile(pattern).err().map(Into::into)
}

/// Whether the API server knows a format for values of a type; others are as if not written.
#[must_use]
pub fn is_format(kind: &str, format: &str) -> bool {
    let node = Node { kind: node::Type::of(kind), ..Node::default() };
    formats::is_supported(&node, format)
}

/// The texts of errors of a status name fields from there on; their paths begin at the object.
fn below_status(mut error: FieldError) -> FieldError {
    let dot = if error.path.is_empty() { "" } else { "." };
    error.path = format!("status{dot}{}", error.path);
    error
}

#[cfg(test)]
mod tests;
