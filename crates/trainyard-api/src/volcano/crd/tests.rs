//! What the definitions promise, apart from their rules.

use super::*;
use crate::volcano::{
    Action, JobPhase, JobState, PhaseRecord, PodRecord, PolicyEvent, TaskCount, TimerRecord,
    VolcanoStatus,
};

/// `kubectl apply` keeps the whole definition in an annotation of at most 262,144 bytes.
#[test]
fn plain_kubectl_apply_can_take_every_definition() {
    for crd in all() {
        let size = crd.to_string().len();
        assert!(size < 150_000, "{}: {size} bytes", crd["metadata"]["name"]);
    }
}

#[test]
fn the_definitions_are_known_as_ours_and_by_the_usual_names() {
    let names = all().map(|crd| crd["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    assert_eq!(
        names,
        [
            "jobs.batch.volcano.sh",
            "commands.bus.volcano.sh",
            "podgroups.scheduling.volcano.sh",
            "queues.scheduling.volcano.sh",
        ]
    );
    for crd in all() {
        assert_eq!(crd["metadata"]["labels"][LABEL_MANAGED_BY], MANAGED_BY);
        assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 1);
    }
    assert_eq!(job_crd()["spec"]["names"]["shortNames"], json!(["vcjob", "vj"]));
    assert_eq!(queue_crd()["spec"]["scope"], "Cluster");
}

#[test]
fn jobs_and_queues_have_a_status_of_their_own() {
    let has = |crd: Value| crd["spec"]["versions"][0]["subresources"]["status"].is_object();
    assert!(has(job_crd()) && has(queue_crd()));
    assert!(!has(pod_group_crd()) && !has(command_crd()));
}

#[test]
fn the_default_table_is_the_one_people_know() {
    let columns = job_columns();
    let plain: Vec<_> = columns
        .as_array()
        .unwrap()
        .iter()
        .filter(|column| column.get("priority").is_none())
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(plain, ["STATUS", "minAvailable", "RUNNINGS", "AGE"]);
}

/// `kubectl explain` has something to say about every field, apart from those of pods.
#[test]
fn every_field_of_ours_is_described() {
    fn check(path: &str, node: &Value) {
        let foreign = ["template", "volumeClaim", "labelSelector"];
        for (name, child) in node.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let path = format!("{path}.{name}");
            let told = child["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(told || path.contains(".metadata"), "{path}");
            if !foreign.contains(&name.as_str()) {
                check(&path, child);
            }
        }
        for child in ["items", "additionalProperties"] {
            if let Some(child) = node.get(child) {
                check(&format!("{path}[]"), child);
            }
        }
    }
    for kind in kinds::KINDS {
        check(kind.name, &schema(kind));
    }
}

fn written_status() -> VolcanoStatus {
    let now = "2026-01-01T00:00:00Z".parse().ok();
    let one = || std::iter::once(("Running".to_owned(), 1)).collect();
    let text = || "a".to_owned();
    VolcanoStatus {
        state: JobState {
            phase: Some(JobPhase::Running),
            reason: text(),
            message: text(),
            last_transition_time: now,
        },
        min_available: 1,
        task_status_count: std::iter::once((text(), TaskCount { phase: one() })).collect(),
        pending: 1,
        running: 1,
        succeeded: 1,
        failed: 1,
        terminating: 1,
        unknown: 1,
        version: 1,
        retry_count: 1,
        running_duration: Some("1m0s".to_owned()),
        controlled_resources: std::iter::once((text(), text())).collect(),
        conditions: vec![PhaseRecord { status: JobPhase::Pending, last_transition_time: now }],
        pods: std::iter::once((text(), PodRecord { uid: text(), phase: text() })).collect(),
        timers: vec![TimerRecord {
            action: Action::RestartJob,
            event: PolicyEvent::PodPending,
            pod: text(),
            uid: text(),
            task: text(),
            due: now.unwrap_or_default(),
        }],
        acted_on: std::iter::once(text()).collect(),
        retired_group: text(),
        last_command: text(),
    }
}

/// What is written can be stored: nothing is dropped, nothing refused.
#[test]
fn the_schema_takes_every_field_of_the_status() {
    let mut object = crate::volcano::cases::tensorflow_job();
    object["status"] = serde_json::to_value(written_status()).unwrap();
    let schema = crate::volcano::schema(&kinds::JOB).unwrap();
    assert_eq!(schema.unknown_fields(&object), Vec::<String>::new());
    assert_eq!(schema.validate(&object, None), Vec::new());
}

#[test]
fn defaults_are_filled_in() {
    let schema = |kind| crate::volcano::schema(kind).unwrap();
    let mut job = json!({"spec": {"tasks": [], "networkTopology": {}}});
    schema(&kinds::JOB).default(&mut job);
    assert_eq!(job["spec"]["queue"], "default");
    assert_eq!(job["spec"]["maxRetry"], 3);
    assert_eq!(job["spec"]["networkTopology"]["mode"], "hard");
    let mut queue = json!({});
    schema(&kinds::QUEUE).default(&mut queue);
    assert_eq!(queue["spec"], json!({"weight": 1, "reclaimable": true}));
    let mut group = json!({"spec": {}});
    schema(&kinds::POD_GROUP).default(&mut group);
    assert_eq!(group["spec"], json!({"queue": "default"}));
}
