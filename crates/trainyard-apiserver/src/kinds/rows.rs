//! The table of built-in kinds: names, scope, what is served of each.
//!
//! Owns the list. Must not know what any kind's rules say.

use std::sync::Arc;

use super::{
    claims, config, endpoints, events, jobs, namespaces, nodes, pods::Pods, reviews, roles,
    services::Services, small,
};
use crate::{
    crd::definition::DefinitionRules,
    kind::{Columns, Kind, LazySchema, Rules, Verbs, Version},
};

/// One line of the table; what it leaves out follows from the kind's name.
struct Line {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// The kind's name among the embedded definitions.
    definition: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    has_status: bool,
    verbs: Verbs,
    rules: fn() -> Arc<dyn Rules>,
    deprecation: Option<&'static str>,
}

/// What every use of the older kind is told.
const ENDPOINTS: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

/// What a line has until it says otherwise: nothing special.
struct Plain;

impl Rules for Plain {}

/// All built-in kinds.
pub(crate) fn rows() -> Vec<Kind> {
    LINES.iter().map(Line::row).collect()
}

/// Whether there is a built-in kind of that name. All of them are of version `v1`.
pub(crate) fn is_known(group: &str, version: &str, kind: &str) -> bool {
    version == "v1" && LINES.iter().any(|line| (line.group, line.kind) == (group, kind))
}

const fn cluster(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    definition: &'static str,
) -> Line {
    Line {
        group,
        kind,
        plural,
        definition,
        short_names: &[],
        categories: &[],
        namespaced: false,
        has_status: false,
        verbs: Verbs::All,
        rules: || Arc::new(Plain),
        deprecation: None,
    }
}

const fn namespaced(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    definition: &'static str,
) -> Line {
    let mut line = cluster(group, kind, plural, definition);
    line.namespaced = true;
    line
}

impl Line {
    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    const fn within(mut self, categories: &'static [&'static str]) -> Self {
        self.categories = categories;
        self
    }

    const fn with_status(mut self) -> Self {
        self.has_status = true;
        self
    }

    const fn by(mut self, rules: fn() -> Arc<dyn Rules>) -> Self {
        self.rules = rules;
        self
    }

    const fn deprecated(mut self, words: &'static str) -> Self {
        self.deprecation = Some(words);
        self
    }

    const fn asked(mut self) -> Self {
        self.verbs = Verbs::CreateOnly;
        self
    }

    fn row(&self) -> Kind {
        let api_version =
            if self.is_core() { "v1".to_owned() } else { format!("{}/v1", self.group) };
        let storage = if self.is_core() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        };
        Kind {
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: self.short_names.iter().map(ToString::to_string).collect(),
            categories: self.categories.iter().map(ToString::to_string).collect(),
            namespaced: self.namespaced,
            versions: vec![self.version()],
            storage,
            storage_api_version: api_version,
            defined: false,
            verbs: self.verbs,
            rules: (self.rules)(),
        }
    }

    /// Events of the other group are a view of the core's.
    fn is_core(&self) -> bool {
        self.group.is_empty() || self.group == "events.k8s.io"
    }

    fn version(&self) -> Version {
        Version {
            name: "v1".to_owned(),
            schema: LazySchema::built_in(self.definition),
            has_status: self.has_status,
            scale: None,
            deprecation: self.deprecation.map(str::to_owned),
            columns: Columns::BuiltIn,
        }
    }
}

const LINES: &[Line] = &[
    namespaced("", "ConfigMap", "configmaps", "io.k8s.api.core.v1.ConfigMap")
        .short(&["cm"])
        .by(|| Arc::new(config::ConfigMaps)),
    namespaced("", "Endpoints", "endpoints", "io.k8s.api.core.v1.Endpoints")
        .short(&["ep"])
        .by(|| Arc::new(endpoints::Endpoints))
        .deprecated(ENDPOINTS),
    namespaced("", "Event", "events", "io.k8s.api.core.v1.Event")
        .short(&["ev"])
        .by(|| Arc::new(events::CoreEvents)),
    namespaced("", "LimitRange", "limitranges", "io.k8s.api.core.v1.LimitRange")
        .short(&["limits"])
        .by(|| Arc::new(small::Limits)),
    cluster("", "Namespace", "namespaces", "io.k8s.api.core.v1.Namespace")
        .short(&["ns"])
        .with_status()
        .by(|| Arc::new(namespaces::Namespaces)),
    cluster("", "Node", "nodes", "io.k8s.api.core.v1.Node")
        .short(&["no"])
        .with_status()
        .by(|| Arc::new(nodes::Nodes)),
    namespaced(
        "",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "io.k8s.api.core.v1.PersistentVolumeClaim",
    )
    .short(&["pvc"])
    .with_status()
    .by(|| Arc::new(claims::Claims)),
    cluster("", "PersistentVolume", "persistentvolumes", "io.k8s.api.core.v1.PersistentVolume")
        .short(&["pv"])
        .with_status()
        .by(|| Arc::new(claims::Volumes)),
    namespaced("", "Pod", "pods", "io.k8s.api.core.v1.Pod")
        .short(&["po"])
        .within(&["all"])
        .with_status()
        .by(|| Arc::new(Pods)),
    namespaced("", "ResourceQuota", "resourcequotas", "io.k8s.api.core.v1.ResourceQuota")
        .short(&["quota"])
        .with_status()
        .by(|| Arc::new(small::Quotas)),
    namespaced("", "Secret", "secrets", "io.k8s.api.core.v1.Secret")
        .by(|| Arc::new(config::Secrets)),
    namespaced("", "ServiceAccount", "serviceaccounts", "io.k8s.api.core.v1.ServiceAccount")
        .short(&["sa"])
        .by(|| Arc::new(small::Accounts)),
    namespaced("", "Service", "services", "io.k8s.api.core.v1.Service")
        .short(&["svc"])
        .within(&["all"])
        .with_status()
        .by(|| Arc::new(Services)),
    namespaced("events.k8s.io", "Event", "events", "io.k8s.api.events.v1.Event")
        .short(&["ev"])
        .by(|| Arc::new(events::NewEvents)),
    cluster(
        "authentication.k8s.io",
        "SelfSubjectReview",
        "selfsubjectreviews",
        "io.k8s.api.authentication.v1.SelfSubjectReview",
    )
    .asked()
    .by(|| Arc::new(reviews::Myself)),
    cluster(
        "authentication.k8s.io",
        "TokenReview",
        "tokenreviews",
        "io.k8s.api.authentication.v1.TokenReview",
    )
    .asked()
    .by(|| Arc::new(reviews::Tokens)),
    namespaced(
        "authorization.k8s.io",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    )
    .asked()
    .by(|| Arc::new(reviews::Access)),
    cluster(
        "authorization.k8s.io",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    )
    .asked()
    .by(|| Arc::new(reviews::Access)),
    cluster(
        "authorization.k8s.io",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    )
    .asked()
    .by(|| Arc::new(reviews::AllRules)),
    cluster(
        "authorization.k8s.io",
        "SubjectAccessReview",
        "subjectaccessreviews",
        "io.k8s.api.authorization.v1.SubjectAccessReview",
    )
    .asked()
    .by(|| Arc::new(reviews::Access)),
    namespaced("batch", "Job", "jobs", "io.k8s.api.batch.v1.Job")
        .within(&["all"])
        .with_status()
        .by(|| Arc::new(jobs::Jobs)),
    namespaced(
        "networking.k8s.io",
        "NetworkPolicy",
        "networkpolicies",
        "io.k8s.api.networking.v1.NetworkPolicy",
    )
    .short(&["netpol"])
    .by(|| Arc::new(small::Policies)),
    namespaced(
        "policy",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "io.k8s.api.policy.v1.PodDisruptionBudget",
    )
    .short(&["pdb"])
    .with_status()
    .by(|| Arc::new(small::Budgets)),
    cluster(
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "io.k8s.api.rbac.v1.ClusterRoleBinding",
    )
    .by(|| Arc::new(roles::Bindings { namespaced: false })),
    cluster(
        "rbac.authorization.k8s.io",
        "ClusterRole",
        "clusterroles",
        "io.k8s.api.rbac.v1.ClusterRole",
    )
    .by(|| Arc::new(roles::Roles { namespaced: false })),
    namespaced(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        "rolebindings",
        "io.k8s.api.rbac.v1.RoleBinding",
    )
    .by(|| Arc::new(roles::Bindings { namespaced: true })),
    namespaced("rbac.authorization.k8s.io", "Role", "roles", "io.k8s.api.rbac.v1.Role")
        .by(|| Arc::new(roles::Roles { namespaced: true })),
    cluster(
        "storage.k8s.io",
        "StorageClass",
        "storageclasses",
        "io.k8s.api.storage.v1.StorageClass",
    )
    .short(&["sc"])
    .by(|| Arc::new(claims::Classes)),
    cluster(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    )
    .short(&["crd", "crds"])
    .within(&["api-extensions"])
    .with_status()
    .by(|| Arc::new(DefinitionRules)),
    cluster(
        "scheduling.k8s.io",
        "PriorityClass",
        "priorityclasses",
        "io.k8s.api.scheduling.v1.PriorityClass",
    )
    .short(&["pc"])
    .by(|| Arc::new(small::Priorities)),
    namespaced("coordination.k8s.io", "Lease", "leases", "io.k8s.api.coordination.v1.Lease")
        .by(|| Arc::new(small::Leases)),
    cluster("node.k8s.io", "RuntimeClass", "runtimeclasses", "io.k8s.api.node.v1.RuntimeClass")
        .by(|| Arc::new(small::Runtimes)),
    namespaced(
        "discovery.k8s.io",
        "EndpointSlice",
        "endpointslices",
        "io.k8s.api.discovery.v1.EndpointSlice",
    )
    .by(|| Arc::new(endpoints::Slices)),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_path_is_there_once() {
        let rows = rows();
        let paths: HashSet<_> =
            rows.iter().map(|row| (row.group.clone(), row.plural.clone())).collect();
        assert_eq!(paths.len(), rows.len());
    }

    #[test]
    fn both_groups_of_events_are_stored_as_one() {
        let rows = rows();
        let events: Vec<_> = rows.iter().filter(|row| row.kind == "Event").collect();
        assert_eq!(events.len(), 2);
        for row in events {
            assert_eq!((row.storage.as_str(), row.storage_api_version.as_str()), ("events", "v1"));
        }
    }
}
