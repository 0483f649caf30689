//! How much one plan creates: as many objects as a bound on their number and on their size allows. The next
//! pass goes on with the rest, so a large job costs the memory of one batch and not of all its objects.
//!
//! Must not know what is created.

use serde_json::{Map, Value};

use crate::plan::Create;

/// Most objects of one batch.
const OBJECTS_MAX: usize = 500;
/// Most bytes that the objects of one batch may take in memory; the last one may go beyond.
const BYTES_MAX: usize = 4 << 20;
/// What a small map takes in memory, and each eleven entries more.
const NODE_BYTES: usize = 640;

/// What a plan creates so far.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    objects: usize,
    bytes: usize,
}

impl Batch {
    /// Returns true if nothing more is to be created by this plan.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        self.objects >= OBJECTS_MAX || self.bytes >= BYTES_MAX
    }

    /// Counts an object.
    #[must_use]
    pub(crate) fn add(&mut self, create: Create) -> Create {
        self.objects += 1;
        self.bytes += bytes(&create.body);
        create
    }
}

/// Returns about how many bytes a value takes in memory.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + bytes(item)).sum(),
        Value::Object(map) => map.len().div_ceil(11) * NODE_BYTES + entries(map),
    }
}

fn entries(map: &Map<String, Value>) -> usize {
    map.iter().map(|(key, value)| key.len() + bytes(value)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(body: Value) -> Create {
        Create { name: "o".into(), group: "".into(), index: 0, body }
    }

    fn fitting(body: &Value) -> usize {
        let mut batch = Batch::default();
        while !batch.is_full() {
            let _ = batch.add(object(body.clone()));
        }
        batch.objects
    }

    #[test]
    fn small_objects_are_counted_and_large_ones_weighed() {
        assert_eq!(fitting(&json!({"kind": "Pod"})), OBJECTS_MAX);
        assert_eq!(fitting(&json!({"env": "x".repeat(1 << 20)})), 4);
        assert_eq!(fitting(&json!("x".repeat(8 << 20))), 1, "one goes in any case");
        let tiny: Vec<Value> = (0..1_000).map(|_| json!({"a": 1})).collect();
        assert_eq!(fitting(&json!(tiny)), 7, "a thousand small maps take 672 kB");
    }
}
