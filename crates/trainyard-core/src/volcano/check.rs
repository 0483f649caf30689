//! What makes a job one that can never run, beyond what reading its specification shows.
//!
//! Must not know the cluster.

use trainyard_api::{Meta, names, volcano::JobSpec};

use super::objects::pod_name;

/// Why the job cannot be run, if it cannot: field, value, and what to do. What its specification
/// alone tells is for the API to judge, by the rules of its definition; the job may have come by
/// another definition, or before there were rules.
#[must_use]
pub(super) fn problem(meta: &Meta, spec: &JobSpec) -> Option<String> {
    let told = spec.check().err().map(|error| error.to_string());
    told.or_else(|| name_problem(meta, spec))
}

fn name_problem(meta: &Meta, spec: &JobSpec) -> Option<String> {
    let longest = spec
        .tasks
        .iter()
        .map(|task| pod_name(&meta.name, &task.name, task.replicas.saturating_sub(1)))
        .max_by_key(String::len)?;
    (longest.len() > names::LABEL_MAX).then(|| {
        format!(
            "metadata.name: {:?} is too long: pod {longest:?} would have {} characters, {} are \
             allowed in a host name; shorten the name of the job or of its task by {}",
            meta.name,
            longest.len(),
            names::LABEL_MAX,
            longest.len() - names::LABEL_MAX
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainyard_api::volcano::{Kind, VolcanoJob, cases::validation_cases, kinds};

    use super::*;

    fn told(value: Value) -> String {
        let meta = Meta { name: "j".into(), ..Meta::default() };
        problem(&meta, &JobSpec::parse(value).unwrap()).unwrap_or_default()
    }

    fn task(name: &str) -> Value {
        json!({"name": name, "replicas": 1, "template": {}})
    }

    #[test]
    fn what_can_never_run_is_told_with_its_field_and_what_to_do() {
        assert_eq!(told(json!({"tasks": [task("a"), task("b")]})), "");
        let policy = |event: &str| json!({"event": event, "action": "AbortJob"});
        let volume = |path: &str| json!({"mountPath": path, "volumeClaimName": "data"});
        let more = |key: &str, value: Value| json!({"tasks": [task("a")], key: value});
        let many = json!({"name": "a", "replicas": 1, "minAvailable": 2});
        for (spec, path, words) in [
            (json!({"tasks": [task("a"), task("a")]}), "spec.tasks[1].name", "give each task"),
            (json!({"minAvailable": 1, "tasks": [many]}), "spec.tasks[0].minAvailable", "to 1"),
            (json!({"minAvailable": 2, "tasks": [task("a")]}), "spec.minAvailable", "above 1"),
            (json!({"tasks": [task(&"a".repeat(62))]}), "metadata.name", "shorten the name"),
            (more("volumes", json!([{"mountPath": "/v"}])), "spec.volumes[0]", "name a claim"),
            (more("volumes", json!([volume("/v"), volume("/v")])), "spec.volumes[1]", "its own"),
            (more("plugins", json!({"ssh": []})), "spec.plugins[ssh]", "there are env, svc"),
            (
                more("policies", json!([policy("*"), policy("PodFailed")])),
                "spec.policies[1]",
                "valid events are",
            ),
            (
                more("policies", json!([policy("*"), policy("*")])),
                "spec.policies[1]",
                "duplicate event *",
            ),
        ] {
            let told = told(spec);
            assert!(told.starts_with(&format!("{path}: ")) && told.contains(words), "{told}");
        }
    }

    /// No job that the definition takes fails afterwards.
    #[test]
    fn what_the_definition_takes_can_be_run() {
        let is_job = |object: &Value| Kind::of(object) == Some(&kinds::JOB);
        let taken = validation_cases().into_iter().filter(|case| case.refused.is_none());
        for case in taken.filter(|case| is_job(&case.object)) {
            let job: VolcanoJob = serde_json::from_value(case.object).unwrap();
            assert_eq!(problem(&job.metadata, &job.spec().unwrap()), None, "{}", case.name);
        }
    }
}
