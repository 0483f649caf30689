//! `trainyard manifests`: prints everything that installs the operator on a cluster, or what lets a
//! node join one.
//!
//! Owns which objects there are and in which order; the parts say what is in them.

mod deployment;
mod node;
mod rights;

use clap::{ArgAction, Args};
use serde_json::{Value, json};

use crate::{failure::Failure, output, yaml};

/// Name of every object that belongs to the operator.
const NAME: &str = "trainyard-operator";

/// Print everything that installs the operator on a cluster
///
/// Prints the namespace, the TFJob definition, the operator's account with its rights, its
/// Deployment and Service, and roles for the people who use TFJobs.
///
/// `trainyard manifests | kubectl apply -f -` installs or updates; applying twice changes nothing.
///
/// With --node: the account that `trainyard node` uses, with its rights, and nothing else; its
/// namespace must be there.
#[derive(Debug, Args)]
pub(crate) struct Manifests {
    /// Namespace of the operator, `kubeflow` if not given; with --node of the account, `kube-system`
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,
    /// Image of the operator
    #[arg(long, default_value = concat!("trainyard:", env!("CARGO_PKG_VERSION")), value_parser = image)]
    image: String,
    /// Print the custom resource definition too; `false` where somebody else installs it
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set, value_name = "BOOL")]
    crds: bool,
    /// Print what nodes need to join the cluster, instead of the operator
    #[arg(long, conflicts_with_all = ["image", "crds"])]
    node: bool,
}

impl Manifests {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        output::print(&yaml::to_string(&self.objects()))
    }

    /// The objects in an order in which each finds what it needs.
    fn objects(&self) -> Vec<Value> {
        if self.node {
            // A namespace of its own is not among them: whoever removes them again would take all that
            // is in it along.
            return node::objects(self.namespace.as_deref().unwrap_or("kube-system")).into();
        }
        let namespace = self.namespace.as_deref().unwrap_or("kubeflow");
        let mut objects = vec![json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        })];
        if self.crds {
            objects.push(trainyard_api::crd::tfjob_crd());
        }
        objects.push(rights::service_account(namespace));
        objects.push(rights::cluster_role());
        objects.push(rights::cluster_role_binding(namespace));
        objects.push(rights::lease_role(namespace));
        objects.push(rights::lease_role_binding(namespace));
        objects.extend(rights::user_roles());
        objects.push(deployment::service(namespace));
        objects.push(deployment::deployment(namespace, &self.image));
        objects
    }
}

/// Labels of every object of the operator.
fn labels() -> Value {
    labels_of("operator")
}

/// Labels of every object of a part of Trainyard.
fn labels_of(component: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "trainyard",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/version": env!("CARGO_PKG_VERSION"),
    })
}

/// A namespace is a DNS label.
fn namespace(text: &str) -> Result<String, String> {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = (1..=63).contains(&text.len())
        && text.chars().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_label {
        Ok(text.to_owned())
    } else {
        Err("a namespace has at most 63 lower-case letters, digits and inner dashes".to_owned())
    }
}

fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Err("an image is named like `registry/name:tag`".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests;
