//! Which object of the server a manifest is about.

use std::time::Duration;

use serde_json::Value;

use super::super::files::Manifest;
use crate::cluster::{Cluster, Kind, Kinds};
use crate::failure::Failure;
use crate::present::{items, text};

/// How long a kind may take to be served after its definition was applied.
const DEFINED: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(100);

/// A manifest and the object that it is about.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) place: String,
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) object: Value,
    /// The kind is not served yet: its definition is in another manifest.
    is_to_be_defined: bool,
}

impl Target {
    pub(super) fn name(&self) -> &str {
        text(&self.object, &["metadata", "name"])
    }
}

/// All of them, in the order in which they are written.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) targets: Vec<Target>,
    /// Namespaces that are made on the way.
    namespaces: Vec<String>,
}

impl Plan {
    /// Finds the kind and the namespace of each manifest, or says all that is wrong.
    pub(super) fn make(
        cluster: &Cluster,
        kinds: &Kinds,
        manifests: Vec<Manifest>,
        explicit: Option<&str>,
    ) -> Result<Self, Failure> {
        let defined: Vec<Kind> =
            manifests.iter().flat_map(|manifest| definitions(&manifest.object)).collect();
        let namespaces = manifests
            .iter()
            .filter(|manifest| manifest.object["kind"] == "Namespace")
            .map(|manifest| text(&manifest.object, &["metadata", "name"]).to_owned())
            .collect();
        let mut problems = Vec::new();
        let mut targets = Vec::new();
        for manifest in manifests {
            match target(cluster, kinds, &defined, manifest, explicit) {
                Ok(target) => targets.push(target),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(Self { targets, namespaces })
        } else {
            Err(Failure::invalid(problems).hint("nothing was sent"))
        }
    }

    /// Whether the server can say something about an object before the others are there.
    pub(super) fn can_be_tried(&self, target: &Target) -> bool {
        !target.is_to_be_defined && !self.namespaces.contains(&target.namespace)
    }

    /// Waits until the server knows the kind of a manifest.
    pub(super) async fn resolve(
        &mut self,
        cluster: &Cluster,
        number: usize,
    ) -> Result<(), Failure> {
        let target = &mut self.targets[number];
        if !target.is_to_be_defined {
            return Ok(());
        }
        let served = async {
            let api_version = target.kind.api_version();
            loop {
                let kinds = Kinds::of(cluster).await?;
                if let Some(kind) = kinds.exact(&api_version, &target.kind.kind) {
                    return Ok::<Kind, Failure>(kind.clone());
                }
                tokio::time::sleep(POLL).await;
            }
        };
        target.kind = tokio::time::timeout(DEFINED, served).await.map_err(|_| {
            let kind = &target.kind.kind;
            Failure::plain(format!("{}: the server does not serve {kind} yet", target.place))
                .hint("apply the same again")
        })??;
        target.is_to_be_defined = false;
        Ok(())
    }
}

fn target(
    cluster: &Cluster,
    kinds: &Kinds,
    defined: &[Kind],
    Manifest { place, mut object }: Manifest,
    explicit: Option<&str>,
) -> Result<Target, String> {
    let (api_version, kind) = (text(&object, &["apiVersion"]), text(&object, &["kind"]));
    let served = kinds.exact(api_version, kind);
    let to_be = || defined.iter().find(|one| one.kind == kind && one.api_version() == api_version);
    let found = served.or_else(to_be).cloned().ok_or_else(|| {
        let mut problem = format!("{place}: the server does not know {kind} of {api_version}");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if kind == trainyard_api::names::KIND && group == trainyard_api::names::GROUP {
            let installed = kinds.find(trainyard_api::names::CRD_NAME).is_some();
            problem += if installed {
                ": rewrite the manifest with `trainyard convert`"
            } else {
                ": install its definition with `trainyard crd | trainyard apply -f -`"
            };
        }
        problem
    })?;
    if text(&object, &["metadata", "name"]).is_empty() {
        return Err(format!(
            "{place}: metadata.generateName cannot be applied: give the object a name"
        ));
    }
    let mut namespace = String::new();
    if found.namespaced {
        let written = text(&object, &["metadata", "namespace"]);
        if let Some(explicit) = explicit.filter(|one| !written.is_empty() && *one != written) {
            return Err(format!(
                "{place}: the namespace {written:?} of the object is not the {explicit:?} of --namespace"
            ));
        }
        namespace = if written.is_empty() { cluster.namespace.clone() } else { written.to_owned() };
        object["metadata"]["namespace"] = namespace.clone().into();
    }
    Ok(Target { place, is_to_be_defined: served.is_none(), kind: found, namespace, object })
}

/// The kinds that an object defines.
fn definitions(object: &Value) -> Vec<Kind> {
    if object["kind"] != "CustomResourceDefinition" {
        return Vec::new();
    }
    let spec = &object["spec"];
    items(spec, &["versions"])
        .map(|version| Kind {
            group: text(spec, &["group"]).to_owned(),
            version: text(version, &["name"]).to_owned(),
            kind: text(spec, &["names", "kind"]).to_owned(),
            plural: text(spec, &["names", "plural"]).to_owned(),
            namespaced: spec["scope"] == "Namespaced",
            ..Kind::default()
        })
        .collect()
}

/// Whether a kind is one of the server's own, whose lists it can merge.
pub(super) fn is_built_in(kind: &Kind) -> bool {
    !kind.group.contains('.') || kind.group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_bring_kinds() {
        let crd = json!({"kind": "CustomResourceDefinition", "spec": {
            "group": "x.org", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1"}, {"name": "v2"}],
        }});
        let kinds = definitions(&crd);
        assert_eq!(kinds.len(), 2);
        assert_eq!(kinds[1].api_version(), "x.org/v2");
        assert!(kinds[0].namespaced);
        assert!(definitions(&json!({"kind": "Pod"})).is_empty());
    }

    #[test]
    fn built_in_by_group() {
        let kind = |group: &str| Kind::example(group, "v1", "X", "xs", true);
        assert!(is_built_in(&kind("")) && is_built_in(&kind("batch")));
        assert!(is_built_in(&kind("networking.k8s.io")));
        assert!(!is_built_in(&kind("kubeflow.org")));
    }
}
