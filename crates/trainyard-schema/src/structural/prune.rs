//! Fields that a schema does not name: to find them and to remove them.
//!
//! Owns the walk for both. What is inside `metadata` of a custom resource is for [`super::metadata`]
//! to say.

use serde_json::{Map, Value};

use super::{
    metadata,
    node::{Additional, Marks, Node},
};

/// The fields that every resource has.
pub(super) const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes what the schema does not name, and tells what it was.
pub(super) fn prune(node: &Node, object: &mut Value, resource: bool) -> Vec<String> {
    let mut walk = Walk { path: String::new(), found: Vec::new() };
    walk.visit(Some(node), object, Mode { resource, kept: false });
    walk.found
}

/// What is known of a value from above.
#[derive(Clone, Copy, Default)]
struct Mode {
    /// It is a resource: it has metadata.
    resource: bool,
    /// Unknown fields are kept, whatever its node says.
    kept: bool,
}

struct Walk {
    path: String,
    found: Vec<String>,
}

impl Walk {
    fn step(&mut self, name: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        then(self);
        self.path.truncate(length);
    }

    fn visit(&mut self, node: Option<&Node>, value: &mut Value, mode: Mode) {
        match value {
            Value::Object(fields) => self.object(node, fields, mode),
            Value::Array(items) => {
                let kept = mode.kept || node.is_some_and(Node::preserves);
                let element = node.and_then(Node::items);
                if kept && element.is_none() {
                    return;
                }
                let length = self.path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push('[');
                    self.path.push_str(&index.to_string());
                    self.path.push(']');
                    self.visit(element, item, Mode { resource: false, kept });
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, node: Option<&Node>, fields: &mut Map<String, Value>, mode: Mode) {
        let Some(node) = node else {
            for name in fields.keys() {
                self.note(name);
            }
            fields.clear();
            return;
        };
        let resource = mode.resource || node.has(Marks::EMBEDDED);
        let kept = mode.kept || node.preserves();
        fields.retain(|name, field| {
            if resource && RESOURCE_FIELDS.contains(&name.as_str()) {
                if name == "metadata" {
                    self.step(name, |walk| walk.metadata(field));
                }
                return true;
            }
            let child = match (node.property(name), node.additional()) {
                (Some(child), _) => Some(child),
                (None, Additional::Of(child)) => Some(&**child),
                (None, Additional::Allowed(_)) => None,
                (None, Additional::Unsaid) if kept => return true,
                (None, Additional::Unsaid) => {
                    if !self.path.is_empty() || !RESOURCE_FIELDS.contains(&name.as_str()) {
                        self.note(name);
                    }
                    return false;
                }
            };
            self.step(name, |walk| walk.visit(child, field, Mode::default()));
            true
        });
    }

    fn metadata(&mut self, metadata: &mut Value) {
        self.visit(Some(metadata::shape()), metadata, Mode::default());
    }

    fn note(&mut self, name: &str) {
        self.step(name, |walk| walk.found.push(walk.path.clone()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::structural::Schema;

    fn pruned(
        schema: &serde_json::Value,
        mut object: serde_json::Value,
    ) -> (serde_json::Value, Vec<String>) {
        let schema = Schema::parse(schema).unwrap();
        let unknown = schema.unknown_fields(&object);
        schema.prune(&mut object);
        (object, unknown)
    }

    #[test]
    fn only_named_fields_stay() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"y": {}}}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                     "properties": {"closed": {"type": "object", "properties": {"z": {}}}}},
        }}}});
        let object = json!({
            "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "nonsense": 1, "labels": {"a": "b"}},
            "other": 1,
            "spec": {
                "a": "1", "b": 2,
                "list": [{"x": 1, "w": 2}],
                "map": {"k": {"y": 1, "w": 2}},
                "open": {"any": {"thing": 1}, "closed": {"z": 1, "w": 2}},
            },
        });
        let (object, unknown) = pruned(&schema, object);
        assert_eq!(
            object,
            json!({
                "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}},
                "spec": {
                    "a": "1",
                    "list": [{"x": 1}],
                    "map": {"k": {"y": 1}},
                    "open": {"any": {"thing": 1}, "closed": {"z": 1}},
                },
            })
        );
        assert_eq!(
            unknown,
            [
                "metadata.nonsense",
                "other",
                "spec.b",
                "spec.list[0].w",
                "spec.map.k.w",
                "spec.open.closed.w"
            ]
        );
    }

    #[test]
    fn an_embedded_resource_keeps_its_head() {
        let schema = json!({"type": "object", "properties": {"template": {
            "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}},
        }}});
        let object = json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "x": 1}, "y": 1}});
        let (object, unknown) = pruned(&schema, object);
        assert_eq!(
            object,
            json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}})
        );
        assert_eq!(unknown, ["template.metadata.x", "template.y"]);
    }

    #[test]
    fn a_list_of_anything_is_kept_only_where_said() {
        let schema = json!({"type": "object", "properties": {
            "kept": {"type": "array", "x-kubernetes-preserve-unknown-fields": true},
            "emptied": {"type": "array"},
        }});
        let object = json!({"kept": [{"a": 1}], "emptied": [{"a": 1}]});
        let (object, unknown) = pruned(&schema, object);
        assert_eq!(object, json!({"kept": [{"a": 1}], "emptied": [{}]}));
        assert_eq!(unknown, ["emptied[0].a"]);
    }
}
