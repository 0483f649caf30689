//! The rules about the tasks, plugins and volumes of a Volcano Job, written in CEL.
//!
//! Owns the expressions and their messages, which are the reference's as far as it has one; the
//! schema says where each one stands. Only functions of Kubernetes 1.30 are used. What spans a job's
//! name or its earlier state stands in [`super::job_rules`].

use serde_json::{Value, json};

use super::fields::SUBDOMAIN;

/// Most plugins that a job may name: more than there are, so that each is answered by its own rule.
pub(super) const MAX_PLUGINS: u32 = 20;
/// Longest path where a volume is mounted.
pub(super) const MAX_MOUNT_PATH: u32 = 1024;

/// Up to so many tasks the rules go through dependencies, task by task; where a job is read, they are
/// looked at in any case.
const MAX_COMPARED: u32 = 32;

/// What is said of dependencies that lead nowhere or in circles.
pub(super) const NO_DAG: &str =
    "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);";

/// Rules about `spec.tasks`.
pub(super) fn tasks() -> Value {
    let twice = "has(t.name) && size(t.name) > 0 \
        && !self.exists_one(o, has(o.name) && o.name == t.name)";
    // Tasks without a name are called default0 and so on: those are looked up where they are read.
    let lost = "has(t.dependsOn) && has(t.dependsOn.name) && t.dependsOn.name.exists(n, \
        !n.startsWith('default') && !(n in names))";
    let names = "[self.map(o, has(o.name) ? o.name : '')]";
    let waits = |one: &str, other: &str| {
        format!(
            "has({one}.dependsOn) && has({one}.dependsOn.name) && has({other}.name) \
             && {other}.name in {one}.dependsOn.name"
        )
    };
    let circle = format!("self.exists(o, {} && {})", waits("t", "o"), waits("o", "t"));
    json!([
        {
            "rule": format!("!self.exists(t, {twice})"),
            "message": "duplicated task name;",
            "messageExpression": format!(
                "'duplicated task name %s; give each task a name of its own'\
                 .format([self.map(t, {twice}, t.name)[0]])"
            ),
        },
        {
            "rule": format!(
                "size(self) > {MAX_COMPARED} || {names}.all(names, !self.exists(t, {lost}))"
            ),
            "message": format!("{NO_DAG} dependsOn names a task that is not there"),
            "messageExpression": format!(
                "\"{NO_DAG} there is no task %s\".format([{names}.map(names, \
                 self.map(t, {lost}, t.dependsOn.name.filter(n, !(n in names))))[0][0]])"
            ),
        },
        {
            "rule": format!("size(self) > {MAX_COMPARED} || !self.exists(t, {circle})"),
            "message": format!("{NO_DAG} two tasks wait for each other, or one for itself"),
            "messageExpression": format!(
                "\"{NO_DAG} these wait for each other or for themselves: %s\"\
                 .format([self.map(t, {circle}, t.name)])"
            ),
        },
    ])
}

/// Rules about one task.
pub(super) fn task() -> Value {
    json!([
        {
            "rule": "has(self.template) && has(self.template.spec) \
                && has(self.template.spec.containers) && size(self.template.spec.containers) > 0",
            "reason": "FieldValueRequired",
            "fieldPath": ".template.spec.containers",
            "message": "must be specified: give a container with its name and image",
        },
        {
            "rule": "!has(self.partitionPolicy)",
            "reason": "FieldValueForbidden",
            "fieldPath": ".partitionPolicy",
            "message": "is not supported yet; leave it out and split the task into several",
        },
    ])
}

/// Rules about `spec.plugins`.
pub(super) fn plugins() -> Value {
    use crate::volcano::plugins::{POSTPONED, SUPPORTED};
    let literals = |words: &[&str]| format!("['{}']", words.join("', '"));
    let (supported, postponed) = (literals(&SUPPORTED), literals(&POSTPONED));
    let unknown = format!("!(k in {supported}) && !(k in {postponed})");
    json!([
        {
            "rule": format!("!self.exists(k, {unknown})"),
            "message": "unable to find job plugin;",
            "messageExpression": format!(
                "'unable to find job plugin: %s; there are {}'\
                 .format([self.filter(k, {unknown})[0]])",
                SUPPORTED.join(", "),
            ),
        },
        {
            "rule": format!("!self.exists(k, k in {postponed})"),
            "reason": "FieldValueForbidden",
            "message": "this plugin is not supported yet",
            "messageExpression": format!(
                "'plugin %s is not supported yet; there are {}'\
                 .format([self.filter(k, k in {postponed})[0]])",
                SUPPORTED.join(", "),
            ),
        },
    ])
}

/// Rules about `spec.volumes`.
pub(super) fn volumes() -> Value {
    let twice = "has(v.mountPath) \
        && !self.exists_one(o, has(o.mountPath) && o.mountPath == v.mountPath)";
    json!([{
        "rule": format!("!self.exists(v, {twice})"),
        "message": "duplicated mountPath;",
        "messageExpression": format!(
            "'duplicated mountPath: %s;'.format([self.map(v, {twice}, v.mountPath)[0]])"
        ),
    }])
}

/// Rules about one volume.
pub(super) fn volume() -> Value {
    let named = "has(self.volumeClaimName) && size(self.volumeClaimName) > 0";
    json!([
        {
            "rule": "has(self.mountPath) && size(self.mountPath) > 0",
            "reason": "FieldValueRequired",
            "fieldPath": ".mountPath",
            "message": "mountPath is required; name the directory in the containers",
        },
        {
            "rule": "!has(self.mountPath) || !self.mountPath.contains(':')",
            "fieldPath": ".mountPath",
            "message": "must not contain ':'",
        },
        {
            "rule": format!("has(self.volumeClaim) || ({named})"),
            "message": "either VolumeClaim or VolumeClaimName must be specified;",
        },
        {
            "rule": format!("!({named}) || self.volumeClaimName.matches('{SUBDOMAIN}')"),
            "fieldPath": ".volumeClaimName",
            "message": "invalid VolumeClaimName",
            "messageExpression": "'invalid VolumeClaimName %s : it must consist of lower case \
                alphanumeric characters, \\'-\\' or \\'.\\', and must start and end with an \
                alphanumeric character'.format([self.volumeClaimName])",
        },
    ])
}
