//! Changes of a job that has ended: that they have been seen, and which of them do nothing.
//!
//! With its end the job records a digest of the fields that have no effect any more, so that whoever comes
//! later can tell such a change from one of the clean-up. Must not act on the change.

use serde_json::{Value, json};
use trainyard_api::JobStatus;

use super::Observed;
use crate::plan::{Event, Plan, Stage, Write};

/// Fields that decide what becomes of a job after its end. Old manifests have them directly under `spec`.
const LASTING: [&str; 2] = ["cleanPodPolicy", "ttlSecondsAfterFinished"];

/// Says of a change of an ended job's specification that it has been seen, and that it does nothing if that
/// is so. Who waits for a condition of the job waits for its generation, too.
pub(super) fn answer(plan: &mut Plan, seen: &Observed<'_>, status: &JobStatus) {
    let meta = &seen.job.metadata;
    if status.observed_generation.is_none_or(|observed| observed >= meta.generation) {
        return;
    }
    let digest = digest(seen.job.spec_value());
    let mut events = Vec::new();
    if digest != status.ended_spec {
        let message = format!(
            "TFJob {}/{} has ended: of what was changed only runPolicy.cleanPodPolicy and \
             runPolicy.ttlSecondsAfterFinished have an effect; to run it again, delete it and \
             create it anew",
            meta.namespace, meta.name
        );
        events.push(Event::warning("TFJobAlreadyFinished", message));
    }
    let patch = json!({"observedGeneration": meta.generation, "endedSpec": digest});
    let writes = vec![Write::PatchStatus { patch, marks: Vec::new() }];
    plan.push(Stage { writes, events });
}

/// What stands for the fields of a specification that have no effect after the end. FNV-1a: the same on
/// every machine and in every release, which those of the standard library are not.
#[must_use]
pub(super) fn digest(mut spec: Value) -> String {
    if let Value::Object(spec) = &mut spec {
        let mut policy = spec.remove("runPolicy").unwrap_or_default();
        if let Value::Object(policy) = &mut policy {
            policy.retain(|field, _| !LASTING.contains(&field.as_str()));
        }
        spec.retain(|field, _| !LASTING.contains(&field.as_str()));
        if policy.as_object().is_some_and(|policy| !policy.is_empty()) {
            spec.insert("runPolicy".to_owned(), policy);
        }
    }
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = spec.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_clean_up_leave_the_digest_as_it_is() {
        let plain = json!({"tfReplicaSpecs": {"Worker": {"replicas": 2}}});
        let wanted = digest(plain.clone());
        for policy in [
            json!({}),
            json!(null),
            json!({"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60}),
        ] {
            let mut spec = plain.clone();
            spec["runPolicy"] = policy;
            assert_eq!(digest(spec.clone()), wanted, "{spec}");
        }
        let mut old = plain.clone();
        old["ttlSecondsAfterFinished"] = json!(5);
        old["cleanPodPolicy"] = json!("None");
        assert_eq!(digest(old), wanted);
        for (pointer, value) in [("replicas", json!(3)), ("cleanPodPolicy", json!("All"))] {
            let mut spec = plain.clone();
            spec["tfReplicaSpecs"]["Worker"][pointer] = value;
            assert_ne!(digest(spec.clone()), wanted, "{spec}");
        }
        let mut spec = plain;
        spec["runPolicy"] = json!({"backoffLimit": 1});
        assert_ne!(digest(spec), wanted);
    }

    /// It is compared with what an earlier release has written.
    #[test]
    fn the_digest_is_the_same_in_every_release() {
        assert_eq!(digest(json!({"a": 1})), "9c3e82dd6fcae8b1");
        assert_eq!(
            digest(json!({"a": 1, "runPolicy": {"cleanPodPolicy": "All"}})),
            "9c3e82dd6fcae8b1"
        );
    }
}
