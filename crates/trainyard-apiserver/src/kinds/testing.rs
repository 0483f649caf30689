//! A world of a few objects, for tests of rules.

use serde_json::Value;

use super::json::text;
use crate::kind::World;

#[derive(Default)]
pub(crate) struct Few(Vec<(&'static str, Value)>);

impl Few {
    pub(crate) fn of(objects: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self(objects.into_iter().collect())
    }

    pub(crate) fn put(&mut self, storage: &'static str, object: Value) {
        self.0.push((storage, object));
    }
}

impl World for Few {
    fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        let wanted = |object: &&Value| {
            let metadata = &object["metadata"];
            text(metadata, "namespace") == namespace && text(metadata, "name") == name
        };
        self.0
            .iter()
            .filter(|(of, _)| *of == storage)
            .map(|(_, object)| object)
            .find(wanted)
            .cloned()
    }

    fn list(&self, storage: &str, namespace: Option<&str>) -> Vec<Value> {
        let wanted = |object: &&Value| {
            namespace.is_none_or(|namespace| text(&object["metadata"], "namespace") == namespace)
        };
        self.0
            .iter()
            .filter(|(of, _)| *of == storage)
            .map(|(_, object)| object)
            .filter(wanted)
            .cloned()
            .collect()
    }

    fn now(&self) -> String {
        "2026-11-16T05:40:00Z".to_owned()
    }
}
