//! The rules about a whole Volcano Job and about what may change in one, written in CEL.
//!
//! Owns the expressions and their messages, which are the reference's. Rules about the whole object
//! run again on every status write, so what cannot be repaired there binds only the write that
//! brings it. Only functions of Kubernetes 1.30 are used. Must not know where a rule is evaluated.

use serde_json::{Value, json};

use crate::limits::PODS_MAX;

const NO_TASK: &str = "No task specified in job spec; give at least one in spec.tasks";

/// More pods of a task are needed than it has.
const SHORT: &str = "has(t.minAvailable) && t.minAvailable > (has(t.replicas) ? t.replicas : 0)";

/// The name of a task, as far as it has one.
const TASK_NAME: &str = "(has(t.name) && size(t.name) > 0 ? t.name : 'default<index>')";

/// The number of the last pod of a task.
const LAST: &str = "string(has(t.replicas) && t.replicas > 0 ? t.replicas - 1 : 0)";

/// Rules about the whole object.
pub(super) fn job() -> Value {
    let no_tasks = "!has(self.spec) || !has(self.spec.tasks)";
    let fits = format!(
        "size(self.metadata.name) + 2 + size({LAST}) \
         + (has(t.name) && size(t.name) > 0 ? size(t.name) : 9) <= 63"
    );
    let same = "oldSelf.spec.tasks.exists(o, \
        (has(o.name) ? o.name : '') == (has(t.name) ? t.name : '') \
        && (has(o.replicas) ? o.replicas : 0) == (has(t.replicas) ? t.replicas : 0))";
    let pod_name = |rule: String, creation: bool| {
        let mut rule = json!({
            "rule": rule,
            "fieldPath": ".metadata.name",
            "message": "create pod with name <job>-<task>-<index> validate failed: must be no more \
                than 63 characters; shorten the name of the job or of the task",
            "messageExpression": format!(
                "'create pod with name %s-%s-%s validate failed: must be no more than 63 \
                 characters; shorten the name of the job or of the task'.format([\
                 self.metadata.name, self.spec.tasks.map(t, !({fits}), {TASK_NAME})[0], \
                 self.spec.tasks.map(t, !({fits}), {LAST})[0]])"
            ),
        });
        if creation {
            rule["optionalOldSelf"] = json!(true);
        }
        rule
    };
    json!([
        {
            "rule": "has(self.spec)",
            "reason": "FieldValueRequired",
            "fieldPath": ".spec",
            "message": NO_TASK,
        },
        {
            "rule": format!(
                "oldSelf.hasValue() || {no_tasks} || !self.spec.tasks.exists(t, {SHORT})"
            ),
            "optionalOldSelf": true,
            "fieldPath": ".spec.tasks",
            "message": "'minAvailable' is greater than 'replicas' in a task;",
            "messageExpression": format!(
                "\"'minAvailable' is greater than 'replicas' in task: %s, job: %s;\".format([\
                 self.spec.tasks.map(t, {SHORT}, {TASK_NAME})[0], self.metadata.name])"
            ),
        },
        pod_name(
            format!("oldSelf.hasValue() || {no_tasks} || self.spec.tasks.all(t, {fits})"),
            true,
        ),
        pod_name(
            format!(
                "{no_tasks} || !has(oldSelf.spec) || !has(oldSelf.spec.tasks) \
                 || self.spec.tasks.all(t, {fits} || {same})"
            ),
            false,
        ),
        {
            "rule": "oldSelf.hasValue() || !has(self.spec) || !has(self.spec.plugins) \
                || !('svc' in self.spec.plugins || 'tensorflow' in self.spec.plugins) \
                || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "optionalOldSelf": true,
            "fieldPath": ".metadata.name",
            "message": "create job validate failed: the plugin svc makes a Service of the job's \
                name, which must be a DNS-1035 label",
            "messageExpression": "'create job with name %s validate failed: the plugin svc makes \
                a Service of that name, and a DNS-1035 label must consist of lower case \
                alphanumeric characters or \\'-\\', start with an alphabetic character, and end \
                with an alphanumeric character'.format([self.metadata.name])",
        },
    ])
}

/// Rules about `spec`.
pub(super) fn spec() -> Value {
    let all = "self.tasks.map(t, has(t.replicas) ? t.replicas : 0).sum()";
    // One that is too large by itself is answered by its own bound.
    let large = format!("self.tasks.exists(t, has(t.replicas) && t.replicas > {PODS_MAX})");
    let enough =
        format!("size(self.tasks) == 0 || !has(self.minAvailable) || self.minAvailable <= {all}");
    let both = "has(v.volumeClaim) && has(v.volumeClaimName) && size(v.volumeClaimName) > 0";
    let updated = "!has(self.tasks) || !has(oldSelf.tasks)";
    json!([
        {
            "rule": "has(self.tasks) && size(self.tasks) > 0",
            "reason": "FieldValueRequired",
            "fieldPath": ".tasks",
            "message": NO_TASK,
        },
        {
            "rule": format!(
                "!has(self.tasks) || size(self.tasks) == 0 || {large} || {all} <= {PODS_MAX}"
            ),
            "fieldPath": ".tasks",
            "message": format!("a job has at most {PODS_MAX} replicas in all its tasks together"),
            "messageExpression": format!(
                "'%d replicas in all tasks are too many; a job has at most {PODS_MAX}'\
                 .format([{all}])"
            ),
        },
        {
            "rule": format!("oldSelf.hasValue() || !has(self.tasks) || {enough}"),
            "optionalOldSelf": true,
            "fieldPath": ".minAvailable",
            "message": "job 'minAvailable' should not be greater than total replicas in tasks;",
        },
        {
            "rule": format!("{updated} || {enough}"),
            "fieldPath": ".minAvailable",
            "message": "job 'minAvailable' must not be greater than total replicas; lower it as \
                well",
        },
        {
            "rule": format!("{updated} || !self.tasks.exists(t, {SHORT})"),
            "fieldPath": ".tasks",
            "message": "'minAvailable' must be <= 'replicas' in each task",
            "messageExpression": format!(
                "\"'minAvailable' must be <= 'replicas' in task: %s; lower it as well\"\
                 .format([self.tasks.map(t, {SHORT}, {TASK_NAME})[0]])"
            ),
        },
        {
            "rule": format!("{updated} || size(self.tasks) == size(oldSelf.tasks)"),
            "fieldPath": ".tasks",
            "message": "job updates may not add or remove tasks; set replicas to 0 instead, or \
                create another job",
        },
        unchanged(),
        {
            // A claim that was made for the job is named beside what it was made from.
            "rule": format!(
                "oldSelf.hasValue() || !has(self.volumes) || !self.volumes.exists(v, {both})"
            ),
            "optionalOldSelf": true,
            "fieldPath": ".volumes",
            "message": "conflict: If you want to use an existing PVC, just specify \
                VolumeClaimName.If you want to create a new PVC, you do not need to specify \
                VolumeClaimName",
        },
    ])
}

/// Fields of a specification that never change.
const FIXED: [&str; 9] = [
    "maxRetry",
    "minSuccess",
    "networkTopology",
    "plugins",
    "policies",
    "queue",
    "runningEstimate",
    "schedulerName",
    "ttlSecondsAfterFinished",
];
/// Fields of a task that never change.
const FIXED_IN_TASKS: [&str; 8] = [
    "dependsOn",
    "maxRetry",
    "name",
    "policies",
    "template.metadata.annotations",
    "template.metadata.labels",
    "template.spec",
    "topologyPolicy",
];

/// The rule that nothing else changes, whose message tells what did.
fn unchanged() -> Value {
    let words = "job updates may not change fields other than `minAvailable`, \
        `tasks[*].replicas under spec` and `PriorityClassName`";
    let spec = FIXED.map(|field| {
        let same = format!(
            "(has(self.{field}) == has(oldSelf.{field}) \
             && (!has(self.{field}) || self.{field} == oldSelf.{field}))"
        );
        (format!("spec.{field}"), same)
    });
    // One after the other, in their order; a list of one or none stands for a field. Templates go in
    // parts: to API servers up to 1.30 a null time in one is not even equal to itself.
    let tasks = FIXED_IN_TASKS.map(|field| {
        let fields = format!("tasks.map(t, {} ? [t.{field}] : [])", given("t", field));
        (format!("spec.tasks[*].{field}"), format!("(self.{fields} == oldSelf.{fields})"))
    });
    let volumes = [("spec.volumes".to_owned(), same_volumes())];
    let all: Vec<_> = spec.into_iter().chain(tasks).chain(volumes).collect();
    let same: Vec<_> = all.iter().map(|(_, same)| same.as_str()).collect();
    let told: Vec<_> = all.iter().map(|(name, same)| format!("{same} ? '' : '{name}'")).collect();
    json!({
        "rule": format!(
            "!has(self.tasks) || !has(oldSelf.tasks) || size(self.tasks) != size(oldSelf.tasks) \
             || self == oldSelf || ({})",
            same.join(" && "),
        ),
        "message": words,
        "messageExpression": format!(
            "'{words}; but these differ: %s'.format([[{}].filter(f, f != '')])",
            told.join(", "),
        ),
    })
}

/// Whether a field is there, and all that it stands in.
fn given(of: &str, field: &str) -> String {
    let ends = field.match_indices('.').map(|(at, _)| at).chain([field.len()]);
    let parts: Vec<_> =
        ends.filter_map(|end| field.get(..end)).map(|part| format!("has({of}.{part})")).collect();
    parts.join(" && ")
}

/// Volumes stay as they are, apart from claims that get a name.
fn same_volumes() -> String {
    let same = "o.mountPath == v.mountPath \
        && (!has(o.volumeClaimName) || size(o.volumeClaimName) == 0 \
            || (has(v.volumeClaimName) && v.volumeClaimName == o.volumeClaimName)) \
        && has(o.volumeClaim) == has(v.volumeClaim) \
        && (!has(o.volumeClaim) || o.volumeClaim == v.volumeClaim)";
    format!(
        "(has(self.volumes) == has(oldSelf.volumes) && (!has(self.volumes) \
         || (size(self.volumes) == size(oldSelf.volumes) && self.volumes.all(v, \
         has(v.mountPath) && oldSelf.volumes.exists(o, has(o.mountPath) && {same})))))"
    )
}
