//! The end of definitions: a definition that is deleted waits until all objects of its kind are gone.
//! They are deleted here, then the definition is let go.
//!
//! A kube-apiserver does the same by itself; both together do no harm. Must not know what the objects
//! are.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;

use super::Context;
use super::calls::{METADATA_LIST, Propagation, delete_options, object};
use super::error::{Error, unless_missing};
use super::follow::{News, Source, follow};
use super::queue::{Next, Queue};
use super::view::{Bare, HasMeta, Meta, null_is_empty};

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
const WIDTH: usize = 2;
const PAGE: u32 = 500;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Definition {
    metadata: Meta,
    spec: Spec,
}

impl HasMeta for Definition {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Spec {
    group: String,
    names: Names,
    #[serde(deserialize_with = "null_is_empty")]
    versions: Vec<Version>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Names {
    plural: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Version {
    name: String,
    served: bool,
}

impl Definition {
    /// Where its kind is served.
    fn prefix(&self) -> Option<String> {
        let version = self.spec.versions.iter().find(|version| version.served)?;
        Some(format!("/apis/{}/{}", self.spec.group, version.name))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Left {
    #[serde(deserialize_with = "null_is_empty")]
    items: Vec<Bare>,
}

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let queue = Queue::new();
    let seen = |definition: &Bare| {
        let meta = &definition.metadata;
        if meta.is_deleting() && meta.has_finalizer(CLEANUP) {
            queue.add(meta.name.clone());
        }
    };
    let source = Source::bare(DEFINITIONS);
    let definitions = follow(&context.calls, &source, |news: News<Bare>| match news {
        News::All(all) => all.iter().for_each(seen),
        News::There(one) => seen(&one),
        News::Gone(_) => {}
    });
    let context = &context;
    let work = queue.work(WIDTH, async |name: String| context.end_definition(&name).await);
    tokio::join!(definitions, work);
}

impl Context {
    async fn end_definition(&self, name: &str) -> Result<Next, Error> {
        let path = format!("{DEFINITIONS}/{name}");
        let Some(definition) = self.calls.find::<Definition>(&path).await? else {
            return Ok(Next::Rest);
        };
        let meta = definition.meta();
        if !meta.is_deleting() || !meta.has_finalizer(CLEANUP) {
            return Ok(Next::Rest);
        }
        if let Some(prefix) = definition.prefix()
            && !self.remove_objects(&prefix, &definition.spec.names.plural).await?
        {
            return Ok(Next::Again);
        }
        let left: Vec<&String> = meta.finalizers.iter().filter(|name| *name != CLEANUP).collect();
        let edit = json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left,
        }});
        unless_missing(self.calls.merge(&path, &edit).await)?;
        Ok(Next::Rest)
    }

    /// Deletes the objects of a kind; true when none is left.
    async fn remove_objects(&self, prefix: &str, plural: &str) -> Result<bool, Error> {
        let list = format!("{}?limit={PAGE}", object(prefix, "", plural, ""));
        let read = async || -> Result<Left, Error> {
            let read = self.calls.read(&list, METADATA_LIST).await;
            // A kind that is served no more has no objects.
            Ok(unless_missing(read)?.unwrap_or_default())
        };
        let there = read().await?;
        let namespaces: BTreeSet<&str> = there
            .items
            .iter()
            .filter(|item| !item.metadata.is_deleting())
            .map(|item| &*item.metadata.namespace)
            .collect();
        if there.items.is_empty() {
            return Ok(true);
        }
        let options = delete_options(Propagation::Background, None);
        for namespace in namespaces {
            let path = object(prefix, namespace, plural, "");
            unless_missing(self.calls.delete(&path, &options).await)?;
        }
        Ok(read().await?.items.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_asked_for_in_a_version_that_is_served() {
        let definition: Definition = serde_json::from_value(json!({
            "spec": {"group": "kubeflow.org", "names": {"plural": "tfjobs"}, "versions": [
                {"name": "v1beta1", "served": false}, {"name": "v1", "served": true}]},
        }))
        .unwrap();
        assert_eq!(definition.prefix().as_deref(), Some("/apis/kubeflow.org/v1"));
        assert_eq!(Definition::default().prefix(), None);
    }
}
