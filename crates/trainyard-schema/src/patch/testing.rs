//! What the tests of patches share: a shape, and random values.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Shape;

/// A shape for tests.
#[derive(Debug, Clone, Default)]
pub(super) struct Type {
    fields: BTreeMap<String, Self>,
    element: Option<Box<Self>>,
    merge_key: Option<String>,
    merged: bool,
    retains: bool,
}

impl Type {
    pub(super) fn object(fields: &[(&str, Self)]) -> Self {
        let fields = fields.iter().map(|(name, field)| ((*name).to_owned(), field.clone()));
        Self { fields: fields.collect(), ..Self::default() }
    }

    pub(super) fn scalar() -> Self {
        Self::default()
    }

    /// A list that is replaced.
    pub(super) fn list(element: Self) -> Self {
        Self { element: Some(Box::new(element)), ..Self::default() }
    }

    /// A list of scalars that is added to.
    pub(super) fn set() -> Self {
        Self { merged: true, ..Self::list(Self::scalar()) }
    }

    /// A list of objects that is merged by a key.
    pub(super) fn map(merge_key: &str, element: Self) -> Self {
        let merge_key = Some(merge_key.to_owned());
        Self { merged: true, merge_key, ..Self::list(element) }
    }

    pub(super) fn retaining(self) -> Self {
        Self { retains: true, ..self }
    }

    /// The shape that random objects of [`typed`] have.
    pub(super) fn sample() -> Self {
        let inner = Self::object(&[
            ("name", Self::scalar()),
            ("value", Self::scalar()),
            ("args", Self::list(Self::scalar())),
            ("tags", Self::set()),
        ]);
        let item = Self::object(&[
            ("name", Self::scalar()),
            ("value", Self::scalar()),
            ("inner", Self::map("name", inner)),
        ]);
        Self::object(&[
            ("items", Self::map("name", item.clone())),
            ("plain", Self::list(item.clone())),
            ("tags", Self::set()),
            ("nested", item.retaining()),
            ("labels", Self::object(&[])),
        ])
    }
}

impl Shape for Type {
    fn field(&self, name: &str) -> Option<&Self> {
        self.fields.get(name)
    }
    fn element(&self) -> Option<&Self> {
        self.element.as_deref()
    }
    fn is_merged(&self) -> bool {
        self.merged
    }
    fn retains_keys(&self) -> bool {
        self.retains
    }
    fn merge_key(&self) -> Option<&str> {
        self.merge_key.as_deref()
    }
}

/// Any value, objects mostly, with few names so that they meet.
pub(super) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4i64).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            object(inner),
        ]
    })
}

/// Any object.
pub(super) fn any_object() -> impl Strategy<Value = Value> {
    object(any_value())
}

fn object(member: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", member, 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// A random object of the shape [`Type::sample`].
pub(super) fn typed() -> impl Strategy<Value = Value> {
    let tags = || {
        let set = prop::collection::btree_set(0..5u8, 1..4).prop_shuffle_items();
        prop::option::of(set)
    };
    let inner = (tags(), 0..3u8).prop_map(|(tags, value)| {
        let mut inner = Map::new();
        put(&mut inner, "tags", tags);
        put(&mut inner, "value", (value > 0).then(|| json!(value)));
        put(&mut inner, "args", (value > 1).then(|| json!(["x", "y"])));
        inner
    });
    let item = (keyed(inner), 0..3u8)
        .prop_map(|(inner, value)| {
            let mut item = Map::new();
            put(&mut item, "inner", (!inner.is_empty()).then(|| inner.into()));
            put(&mut item, "value", (value > 0).then(|| json!(value)));
            item
        })
        .boxed();
    (keyed(item.clone()), tags(), prop::option::of(item), 0..3u8).prop_map(
        |(items, tags, nested, label)| {
            let mut object = Map::new();
            put(&mut object, "items", (!items.is_empty()).then(|| items.into()));
            put(&mut object, "tags", tags);
            put(&mut object, "nested", nested.map(Value::Object));
            put(&mut object, "labels", (label > 0).then(|| json!({"l": label.to_string()})));
            Value::Object(object)
        },
    )
}

fn put(object: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
}

/// A list of objects with different names.
fn keyed(item: impl Strategy<Value = Map<String, Value>>) -> impl Strategy<Value = Vec<Value>> {
    let named = (prop::sample::subsequence(vec!["p", "q", "r", "s"], 0..=4), any::<bool>());
    (named, prop::collection::vec(item, 4)).prop_map(|((names, reversed), items)| {
        let mut list: Vec<Value> = names
            .into_iter()
            .zip(items)
            .map(|(name, mut item)| {
                item.insert("name".to_owned(), name.into());
                Value::Object(item)
            })
            .collect();
        if reversed {
            list.reverse();
        }
        list
    })
}

trait ShuffledList {
    fn prop_shuffle_items(self) -> impl Strategy<Value = Value>;
}

impl<T: Strategy<Value = std::collections::BTreeSet<u8>>> ShuffledList for T {
    fn prop_shuffle_items(self) -> impl Strategy<Value = Value> {
        self.prop_map(|set| set.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
            .prop_map(|list| list.into_iter().map(Value::from).collect())
    }
}
