//! What the operator may do beside TFJobs' own needs: make PodGroups, and run Volcano Jobs.
//!
//! Roles of their own, so that whoever does not want them does not give them. Whatever is not used must
//! not be here.

use serde_json::{Value, json};

use super::rights::{READ, USERS, WRITE, rule, user_role};
use super::{NAME, bound, labels};

const BATCH: &str = "batch.volcano.sh";
const BUS: &str = "bus.volcano.sh";
pub(super) const SCHEDULING: &str = "scheduling.volcano.sh";
/// The group of the scheduler plugins' PodGroups.
const PLUGINS: &str = "scheduling.x-k8s.io";
pub(super) const CLASSES: &str = "scheduling.k8s.io";

/// PodGroups for TFJobs that this scheduler is to start.
pub(super) fn gangs(namespace: &str, scheduler: &str) -> [Value; 2] {
    let is_volcanos = ["volcano", "trainyard"].contains(&scheduler.to_lowercase().as_str());
    let group = if is_volcanos { SCHEDULING } else { PLUGINS };
    let rules = json!([
        groups(group),
        // How much a job's group asks for depends on the priority of its pods.
        rule(CLASSES, "priorityclasses", &["list", "watch"]),
    ]);
    bound(&format!("{NAME}-gangs"), (namespace, NAME), &labels(), &rules)
}

/// Made, followed, kept as the job says and taken away at its end.
fn groups(group: &str) -> Value {
    rule(group, "podgroups", &["create", "delete", "get", "list", "patch", "watch"])
}

/// Volcano Jobs.
pub(super) fn jobs(namespace: &str) -> [Value; 2] {
    let rules = json!([
        rule(BATCH, "jobs", &["delete", "list", "watch"]),
        rule(BATCH, "jobs/status", &["patch"]),
        rule(BATCH, "jobs/finalizers", &["update"]),
        // One that is carried out is deleted.
        rule(BUS, "commands", &["delete", "list", "watch"]),
        groups(SCHEDULING),
        rule(CLASSES, "priorityclasses", &["list", "watch"]),
        // What the plugin svc makes; the host lists follow the job's scale.
        rule("", "configmaps", &["create", "delete", "get", "list", "patch", "watch"]),
        rule("networking.k8s.io", "networkpolicies", &["create", "delete", "get", "list", "watch"],),
        rule("", "persistentvolumeclaims", &["create", "get", "list", "watch"]),
    ]);
    bound(&format!("{NAME}-volcano"), (namespace, NAME), &labels(), &rules)
}

/// What people may do with Volcano's kinds. Queues belong to the whole cluster: who edits a namespace
/// only sees them.
pub(super) fn user_roles(with_jobs: bool) -> [Value; 3] {
    USERS.map(|(role, writes)| {
        let verbs: &[&str] = if writes { &WRITE } else { &READ };
        let mut rules = vec![rule(SCHEDULING, "podgroups", verbs)];
        rules.push(rule(SCHEDULING, "queues", &READ));
        if with_jobs {
            rules.push(rule(BATCH, "jobs", verbs));
            rules.push(rule(BATCH, "jobs/status", &["get"]));
            rules.push(rule(BUS, "commands", verbs));
        }
        user_role(&format!("trainyard-volcano-{role}"), role, &rules)
    })
}
