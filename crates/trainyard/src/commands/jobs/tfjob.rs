//! What is changed of a TFJob. Pure.

use serde_json::{Value, json};

use super::{Act, Change};
use crate::present::{items, text};

fn finished(job: &Value) -> Option<&str> {
    items(job, &["status", "conditions"])
        .filter(|condition| condition["status"] == "True")
        .map(|condition| text(condition, &["type"]))
        .find(|kind| ["Succeeded", "Failed"].contains(kind))
}

pub(super) fn suspended(job: &Value, wanted: bool) -> Result<Change, String> {
    if let Some(how) = finished(job) {
        return Err(format!("the job has {} already", how.to_lowercase()));
    }
    let now = job["spec"]["runPolicy"]["suspend"] == true;
    let said = match (wanted, now == wanted) {
        (true, true) => "is suspended already",
        (true, false) => "suspended",
        (false, true) => "is not suspended",
        (false, false) => "resumed",
    };
    let act = if now == wanted {
        Act::Nothing
    } else {
        Act::Merge(json!({"spec": {"runPolicy": {"suspend": wanted}}}))
    };
    Ok(Change { act, said: said.into() })
}

pub(super) fn scaled(job: &Value, replica_type: &str, replicas: u32) -> Result<Change, String> {
    if let Some(how) = finished(job) {
        return Err(format!("the job has {} already", how.to_lowercase()));
    }
    let types: Vec<&String> = job["spec"]["tfReplicaSpecs"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
        .collect();
    let Some(key) = types.iter().find(|key| key.eq_ignore_ascii_case(replica_type)) else {
        let there: Vec<&str> = types.iter().map(|key| key.as_str()).collect();
        return Err(format!(
            "the job has no replicas of type {replica_type}: it has {}",
            there.join(", ")
        ));
    };
    let now = job["spec"]["tfReplicaSpecs"][key.as_str()]["replicas"].as_u64().unwrap_or(1);
    if now == u64::from(replicas) {
        return Ok(Change { act: Act::Nothing, said: "has that many already".into() });
    }
    let patch = json!({"spec": {"tfReplicaSpecs": {key.as_str(): {"replicas": replicas}}}});
    Ok(Change { act: Act::Merge(patch), said: "scaled".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Value {
        json!({"spec": {"tfReplicaSpecs": {"WORKER": {"replicas": 2}, "PS": {}}}})
    }

    #[test]
    fn suspension_is_one_field() {
        let change = suspended(&job(), true).unwrap();
        assert_eq!(change.act, Act::Merge(json!({"spec": {"runPolicy": {"suspend": true}}})));
        assert_eq!(change.said, "suspended");
        let change = suspended(&job(), false).unwrap();
        assert_eq!((change.act, change.said.as_ref()), (Act::Nothing, "is not suspended"));
    }

    #[test]
    fn the_spelling_of_types_is_the_manifests() {
        let change = scaled(&job(), "Worker", 5).unwrap();
        let patch = json!({"spec": {"tfReplicaSpecs": {"WORKER": {"replicas": 5}}}});
        assert_eq!(change.act, Act::Merge(patch));
        let same = scaled(&job(), "ps", 1).unwrap();
        assert_eq!(same.act, Act::Nothing, "one is the default");
        let problem = scaled(&job(), "Chief", 1).err().unwrap();
        assert_eq!(problem, "the job has no replicas of type Chief: it has PS, WORKER");
    }

    #[test]
    fn what_is_over_stays_as_it_is() {
        let mut job = job();
        job["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
        assert_eq!(suspended(&job, true).err().unwrap(), "the job has succeeded already");
        assert!(scaled(&job, "Worker", 1).is_err());
    }
}
