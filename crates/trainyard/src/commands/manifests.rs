//! `trainyard manifests`: prints everything that installs the operator on a cluster, or what lets a
//! node join one.
//!
//! Owns which objects there are and in which order; the parts say what is in them.

mod deployment;
mod node;
mod rights;
mod scheduler;
mod volcano;

use clap::{ArgAction, Args};
use serde_json::{Value, json};
use trainyard_api::volcano::crd;

use crate::{failure::Failure, output, yaml};

/// Name of every object that belongs to the operator.
const NAME: &str = "trainyard-operator";

/// Print everything that installs the operator on a cluster
///
/// Prints the namespace, the TFJob definition, the operator's account with its rights, its
/// Deployment and Service, roles for the people who use TFJobs, and one for those who may ask
/// `trainyard explain` about everything.
///
/// `trainyard manifests | kubectl apply -f -` installs or updates; applying twice changes nothing.
///
/// Volcano's kinds and the gang scheduler come along only when they are asked for.
///
/// With --node: the account that `trainyard node` uses, with its rights, and nothing else; its
/// namespace must be there. That account reads the Secrets of all namespaces: where nodes can have
/// certificates as kubelets have them, --node-group prints the little that those need.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
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
    /// Volcano Jobs too: their definitions, and the operator's rights to run them. Not where Volcano
    /// itself is installed
    #[arg(long)]
    volcano: bool,
    /// The gang scheduler too, which then starts the pods of TFJobs all together or not at all
    #[arg(long)]
    scheduler: bool,
    /// Who schedules the pods of TFJobs as gangs, as the operator's flag of that name has it; with
    /// --scheduler trainyard if not given
    #[arg(long, value_name = "NAME")]
    gang_scheduler_name: Option<String>,
    /// Print what nodes need to join the cluster, instead of the operator
    #[arg(long, conflicts_with_all = ["image", "crds", "volcano", "scheduler", "gang_scheduler_name"])]
    node: bool,
    /// Print what nodes with certificates of their own need beside what the cluster gives its kubelets,
    /// instead of the operator
    #[arg(long, conflicts_with_all =
        ["namespace", "image", "crds", "volcano", "scheduler", "gang_scheduler_name", "node"])]
    node_group: bool,
}

impl Manifests {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        output::print(&yaml::to_string(&self.objects()))
    }

    /// The objects in an order in which each finds what it needs.
    fn objects(&self) -> Vec<Value> {
        if self.node_group {
            return node::of_group().into();
        }
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
            objects.extend(self.definitions());
        }
        objects.extend(self.operator(namespace));
        if self.scheduler {
            objects.extend(scheduler::objects(namespace, &self.image));
        }
        objects
    }

    /// The kinds that there are; without Volcano Jobs only those that pods are scheduled by.
    fn definitions(&self) -> Vec<Value> {
        let mut all = vec![trainyard_api::crd::tfjob_crd()];
        if self.volcano {
            all.extend([crd::job_crd(), crd::command_crd()]);
        }
        if self.volcano || self.scheduler {
            all.extend([crd::pod_group_crd(), crd::queue_crd()]);
        }
        all
    }

    fn operator(&self, namespace: &str) -> Vec<Value> {
        let gang = self.gang_scheduler_name.as_deref();
        let gang = gang.or_else(|| self.scheduler.then_some("trainyard"));
        let mut objects = vec![rights::service_account(namespace)];
        objects.push(rights::cluster_role());
        objects.push(rights::cluster_role_binding(namespace));
        let mut args = vec!["operator".to_owned(), "--leader-elect".to_owned()];
        if let Some(name) = gang {
            objects.extend(volcano::gangs(namespace, name));
            args.push(format!("--gang-scheduler-name={name}"));
        }
        if self.volcano {
            objects.extend(volcano::jobs(namespace));
        }
        args.push(format!("--volcano-jobs={}", if self.volcano { "always" } else { "never" }));
        objects.push(rights::lease_role(namespace));
        objects.push(rights::lease_role_binding(namespace));
        objects.extend(rights::user_roles());
        objects.push(rights::explain_role(self.volcano || gang.is_some()));
        if self.volcano || self.scheduler {
            objects.extend(volcano::user_roles(self.volcano));
        }
        objects.push(deployment::service(namespace, &deployment::OPERATOR));
        objects.push(deployment::deployment(namespace, &self.image, &deployment::OPERATOR, &args));
        objects
    }
}

/// Labels of every object of the operator.
fn labels() -> Value {
    labels_of("operator")
}

/// A role in every namespace, and what gives it to an account of that name or another.
fn bound(name: &str, account: (&str, &str), labels: &Value, rules: &Value) -> [Value; 2] {
    let (namespace, account) = account;
    [
        json!({
            "apiVersion": rights::RBAC_V1, "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels}, "rules": rules,
        }),
        json!({
            "apiVersion": rights::RBAC_V1, "kind": "ClusterRoleBinding",
            "metadata": {"name": name, "labels": labels},
            "roleRef": {"apiGroup": rights::RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }),
    ]
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
