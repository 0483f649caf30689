//! Which subresources each kind has, with what is spoken there and what may be done.
//!
//! Owns that list for the documents. Must not know how they are served.

use crate::kind::{Kind, Version};

/// One subresource.
pub(crate) struct Subresource {
    /// `status`.
    pub(crate) name: &'static str,
    /// The kind of what is read and written there.
    pub(crate) kind: String,
    /// Its group and version, where they are not the owner's.
    pub(crate) group_version: Option<(&'static str, &'static str)>,
    /// What may be done.
    pub(crate) verbs: &'static [&'static str],
}

const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];
const CONNECT: &[&str] = &["create", "get"];

/// The subresources of a kind, in the order of the documents.
pub(crate) fn of(kind: &Kind, version: &Version) -> Vec<Subresource> {
    let mut parts = Vec::new();
    if kind.group.is_empty() {
        parts.extend(core(&kind.plural));
    }
    if version.has_status {
        parts.push(own(kind, "status"));
    }
    if version.scale.is_some() {
        parts.push(Subresource {
            name: "scale",
            kind: "Scale".to_owned(),
            group_version: Some(("autoscaling", "v1")),
            verbs: READ_AND_WRITE,
        });
    }
    if !kind.defined {
        parts.sort_by_key(|part| part.name);
    }
    parts
}

fn own(kind: &Kind, name: &'static str) -> Subresource {
    Subresource { name, kind: kind.kind.clone(), group_version: None, verbs: READ_AND_WRITE }
}

fn core(plural: &str) -> Vec<Subresource> {
    let part = |name, kind: &str, verbs| Subresource {
        name,
        kind: kind.to_owned(),
        group_version: None,
        verbs,
    };
    match plural {
        "namespaces" => vec![part("finalize", "Namespace", &["update"])],
        "pods" => vec![
            part("attach", "PodAttachOptions", CONNECT),
            part("binding", "Binding", &["create"]),
            part("ephemeralcontainers", "Pod", READ_AND_WRITE),
            Subresource {
                name: "eviction",
                kind: "Eviction".to_owned(),
                group_version: Some(("policy", "v1")),
                verbs: &["create"],
            },
            part("exec", "PodExecOptions", CONNECT),
            part("log", "Pod", &["get"]),
            part("portforward", "PodPortForwardOptions", CONNECT),
        ],
        "serviceaccounts" => vec![Subresource {
            name: "token",
            kind: "TokenRequest".to_owned(),
            group_version: Some(("authentication.k8s.io", "v1")),
            verbs: &["create"],
        }],
        _ => Vec::new(),
    }
}
