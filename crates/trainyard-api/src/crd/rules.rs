//! The rules that the API server evaluates for every TFJob, written in CEL.
//!
//! Owns the expressions and their messages; the schema files say where each one stands. Only
//! functions of Kubernetes 1.30 are used. What an enumeration, a minimum or a type can say is said
//! by the schema and not repeated here. Must not know where a rule is evaluated.

use serde_json::{Value, json};

use crate::limits::PODS_MAX;

/// Most entries that `tfReplicaSpecs` may have: five types in two spellings each, so that a
/// misspelt or doubled type is answered by its own rule. Bounds the cost of all rules below.
pub(super) const MAX_REPLICA_TYPES: u32 = 10;
/// Most containers of one pod; bounds the cost of the container rules.
pub(super) const MAX_CONTAINERS: u32 = 100;
/// Longest name of a container, as Kubernetes has it.
pub(super) const MAX_CONTAINER_NAME: u32 = 63;

/// Rules about the whole object. They run again on every status write, so what cannot be repaired
/// there binds only the write that brings it.
pub(super) fn job() -> Value {
    json!([
        {
            "rule": "has(self.spec)",
            "reason": "FieldValueRequired",
            "fieldPath": ".spec",
            "message": "must be given, with at least one replica type in spec.tfReplicaSpecs",
        },
        {
            "rule": "oldSelf.hasValue() || (size(self.metadata.name) <= 63 \
                && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
            "optionalOldSelf": true,
            "fieldPath": ".metadata.name",
            "message": "should match: a DNS-1035 label",
            "messageExpression": "'\"' + self.metadata.name + '\" should match: a DNS-1035 label \
                must consist of at most 63 lower case alphanumeric characters or \\'-\\', start \
                with an alphabetic character, and end with an alphanumeric character \
                (e.g. \\'my-name\\', or \\'abc-123\\')'",
        },
        {
            "rule": replica_names_fit(),
            "optionalOldSelf": true,
            "fieldPath": ".metadata.name",
            "message": "is too long: <name>-<type>-<index> must fit 63 characters",
            "messageExpression": "'\"' + self.metadata.name + '\" is too long: the name of each \
                replica, ' + self.metadata.name + '-<type>-<index>, must fit 63 characters; \
                shorten the name or lower the number of replicas'",
        },
        {
            "rule": "!has(self.spec) || !has(self.spec.tensorBoard) \
                || size(self.metadata.name) + size('-tensorboard-0') <= 63 \
                || (oldSelf.hasValue() && has(oldSelf.value().spec) \
                && has(oldSelf.value().spec.tensorBoard))",
            "optionalOldSelf": true,
            "fieldPath": ".metadata.name",
            "message": "is too long: <name>-tensorboard-0 must fit 63 characters",
            "messageExpression": "'\"' + self.metadata.name + '\" is too long: the name of the \
                TensorBoard pod, ' + self.metadata.name + '-tensorboard-0, must fit 63 characters; \
                shorten the name or leave spec.tensorBoard out'",
        },
    ])
}

/// A type that an update leaves as it was is not looked at again.
fn replica_names_fit() -> &'static str {
    "!has(self.spec) || !has(self.spec.tfReplicaSpecs) || self.spec.tfReplicaSpecs.all(k, \
        size(self.metadata.name) + size(k) + 2 + size(string( \
            has(self.spec.tfReplicaSpecs[k].replicas) && self.spec.tfReplicaSpecs[k].replicas > 0 \
            ? self.spec.tfReplicaSpecs[k].replicas - 1 : 0)) <= 63 \
        || (oldSelf.hasValue() && has(oldSelf.value().spec) \
            && has(oldSelf.value().spec.tfReplicaSpecs) \
            && k in oldSelf.value().spec.tfReplicaSpecs \
            && (has(self.spec.tfReplicaSpecs[k].replicas) \
                ? self.spec.tfReplicaSpecs[k].replicas : 1) \
            == (has(oldSelf.value().spec.tfReplicaSpecs[k].replicas) \
                ? oldSelf.value().spec.tfReplicaSpecs[k].replicas : 1)))"
}

/// Rules about `spec`.
pub(super) fn spec() -> Value {
    json!([{
        "rule": "has(self.tfReplicaSpecs)",
        "reason": "FieldValueRequired",
        "fieldPath": ".tfReplicaSpecs",
        "message": "must be required: give at least one of Chief, Master, PS, Worker, Evaluator",
    }])
}

/// Rules about `spec.tfReplicaSpecs`.
pub(super) fn replica_types() -> Value {
    let all = "self.map(k, has(self[k].replicas) ? self[k].replicas : 1).sum()";
    // One that is too large by itself is answered by its own bound.
    let large = format!("self.exists(k, has(self[k].replicas) && self[k].replicas > {PODS_MAX})");
    json!([
        {
            "rule": "size(self) > 0",
            "reason": "FieldValueRequired",
            "message": "must name at least one replica type: \
                Chief, Master, PS, Worker or Evaluator",
        },
        {
            "rule": "self.all(k, k.lowerAscii() in \
                ['chief', 'master', 'ps', 'worker', 'evaluator'])",
            "message": "unknown replica type; use Chief, Master, PS, Worker or Evaluator",
            "messageExpression": "'unknown replica type %s; use Chief, Master, PS, Worker or \
                Evaluator'.format([self.filter(k, !(k.lowerAscii() in \
                ['chief', 'master', 'ps', 'worker', 'evaluator']))])",
        },
        {
            "rule": "self.all(k, self.exists_one(o, o.lowerAscii() == k.lowerAscii()))",
            "message": "the same replica type is given twice in two spellings; keep one",
            "messageExpression": "'the same replica type is given twice: %s; keep one'.format([\
                self.filter(k, !self.exists_one(o, o.lowerAscii() == k.lowerAscii()))])",
        },
        {
            "rule": "!(self.exists(k, k.lowerAscii() == 'chief') \
                && self.exists(k, k.lowerAscii() == 'master'))",
            "reason": "FieldValueForbidden",
            "message": "must not have more than 1 Chief or Master role; \
                both names mean the same, keep one",
        },
        {
            "rule": "self.all(k, !(k.lowerAscii() in ['chief', 'master']) \
                || !has(self[k].replicas) || self[k].replicas <= 1)",
            "message": "a job has one Chief or Master; set its replicas to 1",
            "messageExpression": "'replicas of %s must not be above 1, but is %s; a job has one \
                Chief or Master, use Worker for more'.format([self.filter(k, k.lowerAscii() in \
                ['chief', 'master'] && has(self[k].replicas) && self[k].replicas > 1), \
                self.filter(k, k.lowerAscii() in ['chief', 'master'] && has(self[k].replicas) \
                && self[k].replicas > 1).map(k, string(self[k].replicas))])",
        },
        {
            "rule": format!("{large} || {all} <= {PODS_MAX}"),
            "message": format!("a job has at most {PODS_MAX} replicas of all types together"),
            "messageExpression": format!(
                "'%d replicas in all are too many; a job has at most {PODS_MAX}'.format([{all}])"
            ),
        },
    ])
}

/// Rules about one entry of `spec.tfReplicaSpecs`.
pub(super) fn replica() -> Value {
    json!([
        {
            "rule": "has(self.template) && has(self.template.spec) \
                && has(self.template.spec.containers) && size(self.template.spec.containers) > 0",
            "reason": "FieldValueRequired",
            "fieldPath": ".template.spec.containers",
            "message": "must be specified: give a container with name tensorflow and its image",
        },
        {
            "rule": "!has(self.template) || !has(self.template.spec) \
                || !has(self.template.spec.containers) || size(self.template.spec.containers) == 0 \
                || self.template.spec.containers.exists(c, c.name == 'tensorflow')",
            "reason": "FieldValueRequired",
            "fieldPath": ".template.spec.containers",
            "message": "must have at least one container with name tensorflow",
            "messageExpression": "'must have at least one container with name tensorflow, but \
                has only %s; rename the one that trains'.format([\
                self.template.spec.containers.map(c, c.name)])",
        },
    ])
}

/// Rules about one container of a pod template.
pub(super) fn container() -> Value {
    json!([{
        "rule": "has(self.image) && size(self.image) > 0",
        "reason": "FieldValueRequired",
        "fieldPath": ".image",
        "message": "must be required: name the image to run",
    }])
}

/// Rules about `spec.runPolicy`.
pub(super) fn run_policy() -> Value {
    json!([{
        "rule": "has(self.managedBy) == has(oldSelf.managedBy) \
            && (!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",
        "fieldPath": ".managedBy",
        "message": "field is immutable",
        "messageExpression": "'field is immutable: it ' + (has(oldSelf.managedBy) \
            ? 'is \"' + oldSelf.managedBy + '\"' : 'is not set') \
            + ' and stays so; delete the job and create it anew to change it'",
    }])
}

/// Rules about `spec.runPolicy.schedulingPolicy.queue`.
pub(super) fn queue() -> Value {
    json!([{
        "rule": "self == oldSelf",
        "message": "spec.runPolicy.schedulingPolicy.queue is immutable",
    }])
}

/// Rules about `spec.tensorBoard`.
pub(super) fn tensorboard() -> Value {
    json!([{
        "rule": "has(self.logDir) && size(self.logDir) > 0",
        "reason": "FieldValueRequired",
        "fieldPath": ".logDir",
        "message": "must name the directory that holds the summaries",
    }])
}
