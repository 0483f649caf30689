//! What a path names, looked up in the table of kinds.
//!
//! Must not know what will be done with it.

use std::sync::Arc;

use crate::failure::{About, Failure};
use crate::kind::{Kind, Verbs, Version};
use crate::registry::Table;
use crate::request::path::ApiPath;

/// A kind's objects or one of them.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    /// The version's place in the row.
    pub(crate) version: usize,
    /// Empty for kinds outside namespaces, and for all namespaces.
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Target {
    /// Looks a path up. Refused when nothing is served there.
    pub(crate) fn find(table: &Table, path: ApiPath) -> Result<Self, Failure> {
        let kind = table.find(&path.group, &path.resource).cloned();
        let kind = kind.ok_or_else(Failure::no_such_path)?;
        let version = kind.versions.iter().position(|version| version.name == path.version);
        let version = version.ok_or_else(Failure::no_such_path)?;
        let in_namespace = path.namespace.is_some();
        if in_namespace && !kind.namespaced {
            return Err(Failure::no_such_path());
        }
        // One object of a kind in namespaces is only found in one.
        if kind.namespaced && !in_namespace && path.name.is_some() {
            return Err(Failure::no_such_path());
        }
        let target = Self {
            kind,
            version,
            namespace: path.namespace.unwrap_or_default(),
            name: path.name,
            subresource: path.subresource,
        };
        // A defined kind answers for what it might have had.
        if target.serves_subresource() || target.kind.defined {
            Ok(target)
        } else {
            Err(Failure::no_such_path())
        }
    }

    /// Whether what stands behind the name is served.
    pub(crate) fn serves_subresource(&self) -> bool {
        let Some(subresource) = self.subresource.as_deref() else { return true };
        let Some(version) = self.version() else { return false };
        match (subresource, self.kind.storage.as_str()) {
            ("status", _) => version.has_status,
            ("scale", _) => version.scale.is_some(),
            ("binding" | "eviction" | "log" | "exec" | "attach" | "portforward", "pods")
            | ("token", "serviceaccounts")
            | ("finalize", "namespaces")
            | ("proxy", "nodes" | "pods") => self.kind.verbs == Verbs::All,
            _ => false,
        }
    }

    /// The version.
    pub(crate) fn version(&self) -> Option<&Version> {
        self.kind.versions.get(self.version)
    }

    /// Of what a refusal speaks: the resource.
    pub(crate) fn about(&self, name: &str) -> About {
        About::new(&self.kind.group, &self.kind.plural, name)
    }

    /// Of what a refusal of an invalid object speaks: the kind, in the group that stores it (an event
    /// of either group is one of the core).
    pub(crate) fn about_kind(&self, name: &str) -> About {
        let group = self.kind.storage_api_version.rsplit_once('/').map_or("", |(group, _)| group);
        About::new(group, &self.kind.kind, name)
    }

    /// `v1` or `kubeflow.org/v1`.
    pub(crate) fn api_version(&self) -> String {
        self.kind.api_version(self.version().map_or("v1", |version| &version.name))
    }
}
