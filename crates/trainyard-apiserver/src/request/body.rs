//! The body of a request: JSON with every member that stands twice found out.
//!
//! Owns reading text into values within bounds. Must not know kinds.

use std::cell::{Cell, RefCell};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// A value, and the paths of members that stood twice.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) duplicates: Vec<String>,
}

/// More are not told.
const MOST_TOLD: usize = 16;

/// No body holds more values. What is made of an object in memory is much larger than its text when
/// that consists of little else than brackets.
pub(crate) const MOST_VALUES: usize = 1 << 17;

/// Reads the JSON of a request. The last of several members of one name counts, as everywhere.
pub(crate) fn json(bytes: &[u8]) -> Result<Read, Failure> {
    let left = Cell::new(MOST_VALUES);
    read_within(bytes, &left).map_err(|error| match left.get() {
        0 => too_many_values(),
        _ => Failure::bad_request(format!("the body is not valid JSON: {error}")),
    })
}

/// The same for a text that is known to be within bounds.
pub(crate) fn read(bytes: &[u8]) -> Result<Read, serde_json::Error> {
    read_within(bytes, &Cell::new(usize::MAX))
}

fn read_within(bytes: &[u8], left: &Cell<usize>) -> Result<Read, serde_json::Error> {
    let found = RefCell::new(Vec::new());
    let seed = Place { step: &Step::Top, found: &found, left };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value))?;
    Ok(Read { value, duplicates: found.into_inner() })
}

/// Refuses a value, made of others, that holds too many.
pub(crate) fn check_values(value: &Value) -> Result<(), Failure> {
    if count(value) > MOST_VALUES { Err(too_many_values()) } else { Ok(()) }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

fn too_many_values() -> Failure {
    let why = format!("the object holds more than {MOST_VALUES} values: divide it into several");
    Failure::new(413, "RequestEntityTooLarge", why)
}

/// Where a value stands; only written out when there is something to tell.
enum Step<'p> {
    Top,
    Key(&'p Self, &'p str),
    Index(&'p Self, usize),
}

impl Step<'_> {
    fn path(&self) -> String {
        match self {
            Self::Top => String::new(),
            Self::Key(Step::Top, key) => (*key).to_owned(),
            Self::Key(parent, key) => format!("{}.{key}", parent.path()),
            Self::Index(parent, index) => format!("{}[{index}]", parent.path()),
        }
    }
}

#[derive(Clone, Copy)]
struct Place<'f> {
    step: &'f Step<'f>,
    found: &'f RefCell<Vec<String>>,
    /// How many more values there may be.
    left: &'f Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(serde::de::Error::custom("too many values"));
        };
        self.left.set(left);
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let step = Step::Index(self.step, list.len());
            match seq.next_element_seed(Place { step: &step, ..self })? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let step = Step::Key(self.step, &key);
            if object.contains_key(&key) {
                let mut found = self.found.borrow_mut();
                let path = step.path();
                if found.len() < MOST_TOLD && !found.contains(&path) {
                    found.push(path);
                }
            }
            let value = map.next_value_seed(Place { step: &step, ..self })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_found_where_they_stand() {
        let read = json(br#"{"a":{"b":[{"c":1,"c":2}]},"a":{"d":null}}"#).unwrap();
        assert_eq!(read.value, json!({"a": {"d": null}}));
        assert_eq!(read.duplicates, ["a.b[0].c", "a"]);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "{", "{} x", "[1,", "\u{1}"] {
            assert_eq!(json(text.as_bytes()).unwrap_err().code, 400, "{text:?}");
        }
        let many = format!("[{}1]", "1,".repeat(MOST_VALUES));
        assert_eq!(json(many.as_bytes()).unwrap_err().code, 413);
        assert!(read(many.as_bytes()).is_ok());
        let deep = "[".repeat(100_000);
        assert_eq!(json(deep.as_bytes()).unwrap_err().code, 400);
    }
}
