//! The schema of `status`: what [`crate::status`] writes, and what the reference operator left.
//!
//! Must not validate more than types: a status that cannot be written helps nobody.

use serde_json::{Value, json};

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "format": "int32", "description": description})
}

/// The schema of a job's status.
pub(super) fn status() -> Value {
    json!({
        "type": "object",
        "description": "What the operator has observed. Written by the operator only.",
        "properties": {
            "attempt": {
                "type": "integer",
                "format": "int64",
                "description": "Attempt of the whole job; grows with runPolicy.restartScope Job.",
            },
            "completionTime": time("When the job succeeded or failed."),
            "conditions": conditions(),
            "endedSpec": text("Digest of what has no effect any more in the specification of a job that has ended."),
            "failure": failure(),
            "lastReconcileTime": time("Left as the reference operator wrote it."),
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "Generation of the specification that this status answers.",
            },
            "replicaRecords": replica_records(),
            "replicaStatuses": replica_statuses(),
            "restarts": {
                "type": "integer",
                "format": "int64",
                "description": "Restarts that count towards runPolicy.backoffLimit, over the life of the job.",
            },
            "runningTime": time("When all replicas first ran."),
            "startTime": time("When the operator first acted on the job, or when it was last resumed."),
            "unavailableReplicas": unavailable_replicas(),
        },
    })
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "description": "Conditions in the order of their last change: Created, Running, \
            Restarting, ReplicaFailure, Succeeded, Suspended, Failed.",
        "items": {
            "type": "object",
            "required": ["status", "type"],
            "properties": {
                "lastTransitionTime": time("When the status of the condition last changed."),
                "lastUpdateTime": time("When the condition was last written."),
                "message": text("A sentence for people."),
                "reason": text("One word for programs."),
                "status": text("True, False or Unknown."),
                "type": text("What the condition is about."),
            },
        },
    })
}

fn replica_statuses() -> Value {
    json!({
        "type": "object",
        "description": "Counts of pods by replica type.",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "active": count("Pods that run."),
                "completedIndexes": text("Indexes that have succeeded, as 0-3,5; they are never run again."),
                "failed": count("Pods that ended with an error and are still there."),
                "labelSelector": {
                    "type": "object",
                    "description": "Left as the reference operator wrote it.",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {
                        "matchExpressions": {
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": {
                                "type": "object",
                                "required": ["key", "operator"],
                                "properties": {
                                    "key": {"type": "string"},
                                    "operator": {"type": "string"},
                                    "values": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "atomic",
                                        "items": {"type": "string"},
                                    },
                                },
                            },
                        },
                        "matchLabels": {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                        },
                    },
                },
                "running": count("Left as older operators wrote it."),
                "startedIndexes": text("Indexes that have started at least once, as 0-3,5."),
                "selector": text("Label selector of the type's pods, for autoscalers."),
                "succeeded": count("Replicas that have completed."),
            },
        },
    })
}

fn replica_records() -> Value {
    json!({
        "type": "array",
        "description": "Replicas that were restarted, and what is known of it.",
        "items": {
            "type": "object",
            "properties": {
                "disruptions": count("Ends that were nobody's fault (eviction, preemption, node loss); not counted."),
                "inPlace": count("Container restarts of the pod that are already counted."),
                "lastRestartTime": time("When the replica was last restarted by a new pod."),
                "replaced": {
                    "type": "boolean",
                    "description": "The end of that pod has been dealt with; its successor follows.",
                },
                "replica": text("The replica, as worker-0."),
                "restarts": count("Restarts that count, in place and by a new pod."),
                "streak": count("New pods since the last long run; decides how long the next one waits."),
                "uid": text("The pod that was last examined."),
            },
        },
    })
}

fn unavailable_replicas() -> Value {
    json!({
        "type": "array",
        "description": "Replicas that do not run now although they have started, or whose node cannot be reached; the first few of them.",
        "items": {
            "type": "object",
            "properties": {
                "message": text("Why, for people."),
                "reason": text("Why, in one word: NodeUnreachable, Deleted, CrashLoopBackOff, who of the cluster has deleted its \
                    pod (DeletionByTaintManager, EvictionByEvictionAPI, PreemptionByScheduler and the like), or how its program \
                    ended (Error, OOMKilled, Evicted, and Failed where nothing more is known)."),
                "replica": text("The replica, as worker-0."),
                "since": time("Since when it does not run, as far as is known."),
            },
        },
    })
}

fn failure() -> Value {
    json!({
        "type": "object",
        "description": "Why the job failed.",
        "properties": {
            "container": text("The container that ended."),
            "exitCode": count("Its exit code."),
            "kind": text("What ended the job: ReplicaFailed, BackoffLimitExceeded, DeadlineExceeded, StartTimeout or InvalidSpec."),
            "message": text("Last words: the termination message, or the last lines of the log."),
            "pod": text("The pod that failed."),
            "reason": text("One word from the kubelet: Error, OOMKilled, Evicted."),
            "signal": text("The signal that ended the container, by name."),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;
    use crate::{
        replica::ReplicaType,
        status::{
            Condition, ConditionType, Failure, FailureKind, JobStatus, ReplicaRecord,
            ReplicaStatus, UnavailableReplica,
        },
    };

    fn full_status() -> JobStatus {
        let now = Some(Timestamp::UNIX_EPOCH);
        let text = || "x".to_owned();
        JobStatus {
            conditions: vec![Condition {
                kind: ConditionType::Created,
                status: text(),
                reason: text(),
                message: text(),
                last_update_time: now,
                last_transition_time: now,
            }],
            replica_statuses: BTreeMap::from([(
                ReplicaType::Worker,
                ReplicaStatus {
                    active: 1,
                    succeeded: 1,
                    failed: 1,
                    completed_indexes: text(),
                    started_indexes: text(),
                    selector: text(),
                },
            )]),
            start_time: now,
            running_time: now,
            completion_time: now,
            last_reconcile_time: now,
            observed_generation: Some(1),
            restarts: 1,
            attempt: 1,
            replica_records: vec![ReplicaRecord {
                replica: text(),
                uid: text(),
                in_place: 1,
                replaced: true,
                restarts: 1,
                disruptions: 1,
                streak: 1,
                last_restart_time: now,
            }],
            ended_spec: text(),
            unavailable_replicas: vec![UnavailableReplica {
                replica: text(),
                since: Timestamp::UNIX_EPOCH,
                reason: text(),
                message: text(),
            }],
            failure: Some(Failure {
                kind: FailureKind::StartTimeout,
                pod: text(),
                container: text(),
                exit_code: Some(1),
                signal: text(),
                reason: text(),
                message: text(),
            }),
        }
    }

    /// A field that the schema does not declare would be dropped by the API server in silence.
    #[test]
    fn every_field_that_is_written_is_declared() {
        fn check(path: &str, schema: &Value, value: &Value) {
            match value {
                Value::Object(fields) => {
                    for (name, field) in fields {
                        let declared = schema
                            .pointer(&format!("/properties/{name}"))
                            .or_else(|| schema.get("additionalProperties"));
                        let child = format!("{path}.{name}");
                        check(&child, declared.unwrap_or_else(|| panic!("{child}")), field);
                    }
                }
                Value::Array(items) => {
                    for item in items {
                        check(path, &schema["items"], item);
                    }
                }
                Value::Number(_) => assert_eq!(schema["type"], "integer", "{path}"),
                Value::Bool(_) => assert_eq!(schema["type"], "boolean", "{path}"),
                _ => assert_eq!(schema["type"], "string", "{path}"),
            }
        }
        let value = serde_json::to_value(full_status()).unwrap();
        check("status", &status(), &value);
    }
}
