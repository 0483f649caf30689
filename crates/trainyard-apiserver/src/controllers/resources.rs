//! Which kinds the API server serves, learnt by discovery.
//!
//! Owns reading the discovery documents. Must not know what is done with the kinds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::calls::{Calls, object};
use super::error::Error;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// One kind of objects, in the version that the API server prefers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    verbs: BTreeSet<String>,
}

impl Resource {
    /// Whether all of these can be done with it.
    pub(super) fn can(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.contains(*verb))
    }

    /// `v1` or `apps/v1`.
    pub(super) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The path of an object; of a collection when there is no name.
    pub(super) fn path(&self, namespace: &str, name: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        object(&format!("{root}/{}", self.api_version()), namespace, &self.plural, name)
    }

    /// Events have no owners and go by themselves.
    pub(super) fn is_events(&self) -> bool {
        self.plural == "events" && matches!(&*self.group, "" | "events.k8s.io")
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// All kinds of an API server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resources {
    /// Each kind once, in its preferred version.
    pub(super) all: Vec<Resource>,
    /// By `apiVersion` and `kind`, in every served version.
    by_kind: BTreeMap<(String, String), Resource>,
    /// Groups whose kinds could not be learnt.
    pub(super) unknown: Vec<String>,
}

impl Resources {
    /// Asks the API server.
    pub(super) async fn discover(calls: &Calls) -> Result<Self, Error> {
        let core: Groups = calls.read("/api", AGGREGATED).await?;
        let others: Groups = calls.read("/apis", AGGREGATED).await?;
        if core.items.is_empty() {
            // To take this for an answer would be to take everything for gone.
            let source = serde::de::Error::custom("it holds no groups in the aggregated form");
            return Err(Error::Answer { what: "GET /api".to_owned(), source });
        }
        Ok(Self::read(core.items.into_iter().chain(others.items)))
    }

    fn read(groups: impl Iterator<Item = Group>) -> Self {
        let mut found = Self::default();
        let mut seen = BTreeSet::new();
        for group in groups {
            let name = group.metadata.name;
            for version in group.versions {
                if version.freshness == "Stale" {
                    found.unknown.push(api_version(&name, &version.version));
                }
                for served in version.resources {
                    let resource = Resource {
                        group: name.clone(),
                        version: version.version.clone(),
                        plural: served.resource,
                        kind: served.response_kind.kind,
                        namespaced: served.scope == "Namespaced",
                        verbs: served.verbs.into_iter().collect(),
                    };
                    let kind = (resource.api_version(), resource.kind.clone());
                    found.by_kind.entry(kind).or_insert_with(|| resource.clone());
                    if seen.insert((resource.group.clone(), resource.plural.clone())) {
                        found.all.push(resource);
                    }
                }
            }
        }
        found
    }

    /// The kind that an owner reference names.
    pub(super) fn named(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.by_kind.get(&(api_version.to_owned(), kind.to_owned()))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Group {
    metadata: GroupMeta,
    versions: Vec<GroupVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupMeta {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupVersion {
    version: String,
    freshness: String,
    resources: Vec<Served>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Served {
    resource: String,
    response_kind: ServedKind,
    scope: String,
    verbs: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServedKind {
    kind: String,
}

#[cfg(test)]
pub(super) fn of(document: serde_json::Value) -> Resources {
    let groups: Groups = serde_json::from_value(document).unwrap_or_default();
    Resources::read(groups.items.into_iter())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_version_is_the_preferred_one_and_all_are_known() {
        let served = |kind: &str| {
            json!({"resource": "tfjobs", "responseKind": {"kind": kind}, "scope": "Namespaced",
                "verbs": ["list", "watch", "delete"]})
        };
        let found = of(json!({"items": [{"metadata": {"name": "kubeflow.org"}, "versions": [
            {"version": "v1", "freshness": "Current", "resources": [served("TFJob")]},
            {"version": "v1beta1", "freshness": "Stale", "resources": [served("TFJob")]},
        ]}]}));
        assert_eq!(found.all.len(), 1);
        assert_eq!(found.all[0].api_version(), "kubeflow.org/v1");
        assert_eq!(found.named("kubeflow.org/v1beta1", "TFJob").unwrap().version, "v1beta1");
        assert!(found.named("v1", "TFJob").is_none());
        assert_eq!(found.unknown, ["kubeflow.org/v1beta1"]);
        assert!(found.all[0].can(&["list", "watch"]) && !found.all[0].can(&["deletecollection"]));
        let path = "/apis/kubeflow.org/v1/namespaces/a/tfjobs/b";
        assert_eq!(found.all[0].path("a", "b"), path);
    }
}
