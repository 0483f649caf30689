//! One object of every kind that people look at with kubectl, and what kubectl shows of it.
//!
//! What is said here holds for any API server. Must not know which verbs there are.

use serde_json::{Value, json};

/// A kind and an object of it.
#[derive(Clone, Copy)]
pub(super) struct Specimen {
    /// As in manifests.
    pub(super) kind: &'static str,
    /// As `kubectl api-resources` names it.
    pub(super) resource: &'static str,
    /// The short name if it has one, else the singular: the head of its column.
    pub(super) short: &'static str,
    /// Group and version.
    pub(super) version: &'static str,
    /// Whether its objects live in namespaces.
    pub(super) namespaced: bool,
    /// Heads of the columns of `kubectl get`; those with a star are shown by `-o wide` alone.
    pub(super) columns: &'static str,
    /// A field that `kubectl explain` knows, and its type.
    pub(super) field: (&'static str, &'static str),
    /// What `kubectl describe` shows of it.
    pub(super) described: &'static [&'static str],
    /// What stands beside the metadata.
    pub(super) body: fn() -> Value,
}

impl Specimen {
    /// The kind as kubectl prints it before a name: `tfjob.kubeflow.org`.
    pub(super) fn printed(&self) -> String {
        let singular = self.kind.to_lowercase();
        match self.version.split_once('/') {
            Some((group, _)) => format!("{singular}.{group}"),
            None => singular,
        }
    }

    /// A manifest. Kinds without namespaces have names that nobody else takes.
    pub(super) fn manifest(&self, name: &str, namespace: &str, step: &str) -> Value {
        let mut object = (self.body)();
        object["apiVersion"] = json!(self.version);
        object["kind"] = json!(self.kind);
        object["metadata"] = json!({
            "name": self.name(name),
            "labels": {"matrix": self.short, "step": step},
        });
        if self.namespaced {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if self.kind == "Event" {
            object["involvedObject"]["namespace"] = json!(namespace);
        }
        object
    }

    /// The name of an object.
    pub(super) fn name(&self, name: &str) -> String {
        match self.kind {
            // Its name is that of what it defines.
            "CustomResourceDefinition" => "wagons.example.com".to_owned(),
            _ if self.namespaced => name.to_owned(),
            _ => format!("matrix-{name}"),
        }
    }

    /// Heads of the table of `kubectl get`, by single blanks.
    pub(super) fn heads(&self) -> String {
        let heads: Vec<&str> =
            self.columns.split(", ").filter(|head| !head.ends_with('*')).collect();
        heads.join(" ")
    }

    /// The same of `kubectl get -o wide`.
    pub(super) fn wide_heads(&self) -> String {
        self.columns.replace('*', "").replace(", ", " ")
    }
}

/// All of them, jobs first.
pub(super) fn all() -> Vec<Specimen> {
    [super::work::KINDS, super::storage::KINDS, super::cluster::KINDS].concat()
}
