//! One node of a schema: what its keywords say, read.
//!
//! Owns the form in memory, which is small because a server holds thousands of them: what few nodes
//! have is kept apart. Must not know how it is read or put to use.

use std::sync::Arc;

use serde_json::Value;

use super::{pattern::Pattern, rules::Rule};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// How a list's elements are told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ListType {
    #[default]
    Atomic,
    Set,
    Map,
}

/// What a node says by yes or no.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    pub(super) const NULLABLE: Self = Self(1);
    pub(super) const INT_OR_STRING: Self = Self(1 << 1);
    pub(super) const PRESERVES: Self = Self(1 << 2);
    pub(super) const EMBEDDED: Self = Self(1 << 3);
    pub(super) const UNIQUE: Self = Self(1 << 6);
    pub(super) const ABOVE_MINIMUM: Self = Self(1 << 7);
    pub(super) const BELOW_MAXIMUM: Self = Self(1 << 8);
    /// A rule stands here or below.
    pub(super) const GOVERNED: Self = Self(1 << 9);
    /// A default stands below.
    pub(super) const HAS_DEFAULTS: Self = Self(1 << 10);
    /// A list type stands here or below.
    pub(super) const HAS_LISTS: Self = Self(1 << 11);
    /// An embedded resource stands here or below.
    pub(super) const HAS_EMBEDDED: Self = Self(1 << 12);
    /// An atomic map (`x-kubernetes-map-type`).
    pub(super) const ATOMIC_MAP: Self = Self(1 << 13);

    pub(super) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    /// Adds all that another has.
    pub(super) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) const fn set(&mut self, mark: Self, on: bool) {
        if on {
            self.0 |= mark.0;
        }
    }
}

/// What is said of fields that have no node of their own.
#[derive(Debug, Default)]
pub(super) enum Additional {
    /// Nothing.
    #[default]
    Unsaid,
    /// `true` or `false`.
    Allowed(bool),
    /// They are of this type.
    Of(Box<Node>),
}

/// A node, and all below it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(super) kind: Option<Type>,
    pub(super) list_type: ListType,
    pub(super) marks: Marks,
    /// Sorted by name.
    pub(super) properties: Box<[(Box<str>, Box<Self>)]>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Self>>,
    pub(super) more: Option<Box<More>>,
}

/// What few nodes have.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) default: Option<Value>,
    pub(super) choices: Vec<Value>,
    pub(super) format: Box<str>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<i64>,
    pub(super) max_length: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) pattern: Option<Arc<Pattern>>,
    pub(super) required: Vec<Box<str>>,
    pub(super) list_keys: Vec<Box<str>>,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Node>,
    pub(super) rules: Vec<Rule>,
}

impl More {
    /// Whether it says anything.
    pub(super) fn is_said(&self) -> bool {
        let bounds = [self.minimum, self.maximum, self.multiple_of];
        let counts = [
            self.min_length,
            self.max_length,
            self.min_items,
            self.max_items,
            self.min_properties,
            self.max_properties,
        ];
        let clauses = [&self.all_of, &self.any_of, &self.one_of];
        self.default.is_some()
            || !self.choices.is_empty()
            || !self.format.is_empty()
            || bounds.iter().any(Option::is_some)
            || counts.iter().any(Option::is_some)
            || self.pattern.is_some()
            || !self.required.is_empty()
            || !self.list_keys.is_empty()
            || clauses.iter().any(|clauses| !clauses.is_empty())
            || self.not.is_some()
            || !self.rules.is_empty()
    }
}

impl Node {
    /// Says nothing and keeps everything.
    pub(super) fn open() -> Self {
        Self { marks: Marks::PRESERVES, ..Self::default() }
    }

    pub(super) fn has(&self, mark: Marks) -> bool {
        self.marks.has(mark)
    }

    /// Whether fields that are not named are kept.
    pub(super) fn preserves(&self) -> bool {
        self.has(Marks::PRESERVES)
    }

    /// The node of a field that is named.
    pub(super) fn property(&self, name: &str) -> Option<&Self> {
        let found = self.properties.binary_search_by(|(known, _)| (**known).cmp(name));
        self.properties.get(found.ok()?).map(|(_, node)| &**node)
    }

    /// What is said of fields that are not named.
    pub(super) fn additional(&self) -> &Additional {
        &self.additional
    }

    /// The node of elements.
    pub(super) fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// The node of a field, named or not.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.property(name).or_else(|| match self.additional() {
            Additional::Of(link) => Some(link),
            Additional::Unsaid | Additional::Allowed(_) => None,
        })
    }

    pub(super) fn more(&self) -> Option<&More> {
        self.more.as_deref()
    }

    /// The default, if there is one that is not null.
    pub(super) fn default_value(&self) -> Option<&Value> {
        self.more()?.default.as_ref()
    }
}
