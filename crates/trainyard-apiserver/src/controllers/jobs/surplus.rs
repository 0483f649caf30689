//! Which of a job's active pods go when there are too many. Pure.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::view::{Job, Pod};

/// At least `least` pods, those first that have got the least far; of an indexed job also those
/// whose index is not one, and all but one of each index.
pub(super) fn surplus<'a>(job: &Job, active: &[&'a Pod], least: usize) -> Vec<&'a Pod> {
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    if job.is_indexed() {
        let completions = job.spec.completions.unwrap_or(0);
        let mut by_index: BTreeMap<u32, Vec<&Pod>> = BTreeMap::new();
        for pod in active {
            match pod.index().filter(|index| *index < completions) {
                Some(index) => by_index.entry(index).or_default().push(pod),
                None => gone.push(*pod),
            }
        }
        for mut pods in by_index.into_values() {
            pods.sort_by(|a, b| sooner(a, b));
            left.extend(pods.pop());
            gone.append(&mut pods);
        }
    } else {
        left = active.to_vec();
    }
    if gone.len() < least {
        left.sort_by(|a, b| sooner(a, b));
        gone.extend(left.into_iter().take(least - gone.len()));
    }
    gone
}

/// Which of two pods goes first.
fn sooner(a: &Pod, b: &Pod) -> Ordering {
    let by_place = |pod: &Pod| {
        let phase = match &*pod.status.phase {
            "Unknown" => 1,
            "Running" => 2,
            _ => 0,
        };
        (!pod.spec.node_name.is_empty(), phase, pod.is_ready())
    };
    let by_restarts = |pod: &Pod| Reverse(pod.most_restarts());
    // A time that nobody knows counts as the latest.
    let latest = |time: Option<Timestamp>| Reverse(time.unwrap_or(Timestamp::MAX));
    let since = |pod: &Pod| pod.is_ready().then(|| latest(pod.ready_since()));
    by_place(a)
        .cmp(&by_place(b))
        .then_with(|| since(a).cmp(&since(b)))
        .then_with(|| by_restarts(a).cmp(&by_restarts(b)))
        .then_with(|| latest(a.created()).cmp(&latest(b.created())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, more: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T12:00:00Z"},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running"},
        });
        for (pointer, value) in more.as_object().unwrap() {
            *pod.pointer_mut(pointer).unwrap() = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    fn job(spec: &Value) -> Job {
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    fn names(pods: &[&Pod]) -> Vec<String> {
        pods.iter().map(|pod| pod.metadata.name.clone()).collect()
    }

    #[test]
    fn those_that_have_got_the_least_far_go_first() {
        let ready = |time: &str| {
            let one = json!([{"type": "Ready", "status": "True", "lastTransitionTime": time}]);
            json!({"/status": {"phase": "Running", "conditions": one}})
        };
        let pods = [
            pod("ready-long", &ready("2026-01-01T12:00:05Z")),
            pod("ready-new", &ready("2026-01-01T12:00:09Z")),
            pod("runs", &json!({})),
            pod("younger", &json!({"/metadata/creationTimestamp": "2026-01-01T12:00:30Z"})),
            pod(
                "restarted",
                &json!({"/status": {"phase": "Running", "containerStatuses": [
                {"name": "a", "restartCount": 2}]}}),
            ),
            pod("waits", &json!({"/status/phase": "Pending"})),
            pod("placeless", &json!({"/spec/nodeName": ""})),
        ];
        let all: Vec<&Pod> = pods.iter().collect();
        let order = surplus(&job(&json!({})), &all, 7);
        let wanted =
            ["placeless", "waits", "restarted", "younger", "runs", "ready-new", "ready-long"];
        assert_eq!(names(&order), wanted);
        assert_eq!(surplus(&job(&json!({})), &all, 0), [] as [&Pod; 0]);
    }

    #[test]
    fn an_index_has_one_pod() {
        let at = |name: &str, index: &str, phase: &str| {
            let meta = json!({"name": name, "annotations": {
                "batch.kubernetes.io/job-completion-index": index}});
            pod(name, &json!({"/metadata": meta, "/status/phase": phase}))
        };
        let pods = [
            at("first", "0", "Running"),
            at("again", "0", "Pending"),
            at("only", "1", "Pending"),
            at("beyond", "7", "Running"),
            at("odd", "x", "Running"),
        ];
        let all: Vec<&Pod> = pods.iter().collect();
        let indexed = job(&json!({"completionMode": "Indexed", "completions": 3}));
        assert_eq!(names(&surplus(&indexed, &all, 0)), ["beyond", "odd", "again"]);
        assert_eq!(names(&surplus(&indexed, &all, 4)), ["beyond", "odd", "again", "only"]);
    }
}
