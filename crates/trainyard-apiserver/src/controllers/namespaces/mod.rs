//! The end of namespaces: everything inside goes, pods first; then the namespace itself.
//!
//! Must not know any kind but pods: what there is, discovery tells.

mod conditions;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use super::calls::{METADATA_LIST, Propagation, core, delete_options};
use super::error::{Error, unless_missing};
use super::follow::{News, Source, follow};
use super::queue::{Next, Queue};
use super::resources::{Resource, Resources};
use super::view::{Bare, Meta, null_is_empty};
use conditions::Found;

const WIDTH: usize = 4;
const PAGE: u32 = 500;
/// The finalizer that a namespace has from its beginning, in its spec.
const OURS: &str = "kubernetes";

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let queue = Queue::new();
    let seen = |namespace: &Bare| {
        if namespace.metadata.is_deleting() {
            queue.add(namespace.metadata.name.clone());
        }
    };
    let source = Source::bare("/api/v1/namespaces");
    let namespaces = follow(&context.calls, &source, |news: News<Bare>| match news {
        News::All(all) => all.iter().for_each(seen),
        News::There(one) => seen(&one),
        News::Gone(_) => {}
    });
    let context = &context;
    let work = queue.work(WIDTH, async |name: String| context.end_namespace(&name).await);
    tokio::join!(namespaces, work);
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Left {
    metadata: LeftMeta,
    #[serde(deserialize_with = "null_is_empty")]
    items: Vec<Bare>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeftMeta {
    remaining_item_count: usize,
}

impl Left {
    fn count(&self) -> usize {
        self.items.len() + self.metadata.remaining_item_count
    }
}

impl Context {
    async fn end_namespace(&self, name: &str) -> Result<Next, Error> {
        let path = core("", "namespaces", name);
        let Some(namespace) = self.calls.find::<Value>(&path).await? else {
            return Ok(Next::Rest);
        };
        let going = namespace["metadata"]["deletionTimestamp"].is_string();
        if !going || !finalizers(&namespace).contains(&OURS) {
            return Ok(Next::Rest);
        }
        let found = self.empty(name).await;
        self.tell(&path, &namespace, &found).await?;
        if !found.is_empty() {
            return Ok(Next::Again);
        }
        // The status may have been written since.
        let Some(mut fresh) = self.calls.find::<Value>(&path).await? else {
            return Ok(Next::Rest);
        };
        if let Some(list) = fresh.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
            list.retain(|finalizer| finalizer != OURS);
        }
        unless_missing(self.calls.replace(&format!("{path}/finalize"), &fresh).await)?;
        Ok(Next::Rest)
    }

    /// Deletes everything inside and tells what is left.
    async fn empty(&self, namespace: &str) -> Found {
        let mut found = Found::default();
        let resources = match Resources::discover(&self.calls).await {
            Ok(resources) => resources,
            Err(error) => {
                found.discovery = Some(error.to_string());
                return found;
            }
        };
        if !resources.unknown.is_empty() {
            let (count, groups) = (resources.unknown.len(), resources.unknown.join(", "));
            let message = "unable to retrieve the complete list of server APIs";
            found.discovery = Some(format!(
                "Discovery failed for some groups, {count} failing: {message}: {groups}"
            ));
        }
        let inside = |kind: &&Resource| kind.namespaced && kind.can(&["list", "delete"]);
        let is_pods = |kind: &Resource| kind.group.is_empty() && kind.plural == "pods";
        let kinds: Vec<&Resource> = resources.all.iter().filter(inside).collect();
        // Whatever pods need must outlast them.
        for kind in kinds.iter().filter(|kind| is_pods(kind)) {
            self.empty_kind(kind, namespace, &mut found).await;
        }
        if !found.left.is_empty() {
            return found;
        }
        for kind in kinds.iter().filter(|kind| !is_pods(kind)) {
            self.empty_kind(kind, namespace, &mut found).await;
        }
        found
    }

    async fn empty_kind(&self, kind: &Resource, namespace: &str, found: &mut Found) {
        match self.delete_all(kind, namespace).await {
            Ok(left) if left.items.is_empty() => {}
            Ok(left) => {
                found.left.insert(format!("{}.{}", kind.plural, kind.group), left.count());
                for finalizer in left.items.iter().flat_map(|item| &item.metadata.finalizers) {
                    *found.finalizers.entry(finalizer.clone()).or_default() += 1;
                }
            }
            // The kind has gone since it was discovered, or cannot be listed after all.
            Err(error) if matches!(error.code(), 404 | 405) => {}
            Err(error) => found.failures.push(error.to_string()),
        }
    }

    /// Deletes all objects of a kind and answers what is left.
    async fn delete_all(&self, kind: &Resource, namespace: &str) -> Result<Left, Error> {
        let path = kind.path(namespace, "");
        let list = format!("{path}?limit={PAGE}");
        let there: Left = self.calls.read(&list, METADATA_LIST).await?;
        // What is being deleted needs no second word.
        let alive = |meta: &Meta| !meta.is_deleting();
        if there.count() == there.items.len()
            && !there.items.iter().any(|item| alive(&item.metadata))
        {
            return Ok(there);
        }
        let options = delete_options(Propagation::Background, None);
        if kind.can(&["deletecollection"]) {
            self.calls.delete(&path, &options).await?;
        } else {
            for item in &there.items {
                let one = kind.path(namespace, &item.metadata.name);
                unless_missing(self.calls.delete(&one, &options).await)?;
            }
        }
        self.calls.read(&list, METADATA_LIST).await
    }

    /// Writes the conditions, where they have changed.
    async fn tell(&self, path: &str, namespace: &Value, found: &Found) -> Result<(), Error> {
        let status = &namespace["status"];
        let old = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        // A namespace that was empty from the start needs no story.
        if found.is_empty() && old.is_empty() && status["phase"] == "Terminating" {
            return Ok(());
        }
        let Some(list) = found.written_over(old, self.clock.now()) else { return Ok(()) };
        let edit = json!({
            "metadata": {"uid": namespace["metadata"]["uid"]},
            "status": {"phase": "Terminating", "conditions": list},
        });
        unless_missing(self.calls.merge(&format!("{path}/status"), &edit).await).map(|_| ())
    }
}

fn finalizers(namespace: &Value) -> Vec<&str> {
    let list = namespace["spec"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_finalizers_of_the_spec_count() {
        let namespace = json!({"spec": {"finalizers": ["kubernetes", "mine"]},
            "metadata": {"finalizers": ["other"]}});
        assert_eq!(finalizers(&namespace), ["kubernetes", "mine"]);
        assert!(finalizers(&json!({})).is_empty());
    }

    #[test]
    fn what_is_not_on_the_page_is_counted() {
        let left: Left = serde_json::from_value(json!({
            "metadata": {"remainingItemCount": 3}, "items": [{"metadata": {"name": "a"}}],
        }))
        .unwrap();
        assert_eq!(left.count(), 4);
    }
}
