//! Sums by hand, and the reference's worked table.

use serde_json::json;

use super::*;

fn asking(resources: &Value) -> Value {
    json!({"spec": {"containers": [{"resources": resources}]}})
}

fn cpu(amount: &str) -> Value {
    json!({"resources": {"requests": {"cpu": amount}}})
}

fn sum(shares: &[(i64, i64, &Value)], members: i64) -> Value {
    let shares = shares.iter().map(|(priority, pods, template)| Share {
        priority: *priority,
        least: 0,
        pods: *pods,
        template,
    });
    json!(min_resources(shares.collect(), members, Keys::Requests))
}

#[test]
fn in_the_order_of_priority() {
    let ps = asking(&json!({"requests": {"cpu": "50m"}}));
    let worker = asking(&json!({"requests": {"cpu": "100m"}}));
    for (members, first, second, expected) in [
        (4, 0, 0, "300m"),
        (3, 0, 0, "200m"),
        (2, 0, 0, "100m"),
        (3, 0, 9, "250m"),
        (2, -1, 0, "200m"),
        (1, 5, 5, "50m"),
    ] {
        let shares = [(first, 2, &ps), (second, 2, &worker)];
        assert_eq!(sum(&shares, members), json!({"cpu": expected}), "{members} {first}");
    }
}

/// Two tasks of two pods each: members, the least of either, which one has the higher priority, and
/// what the processors come to.
#[test]
fn those_that_cannot_be_spared_come_first() {
    let master = asking(&json!({"requests": {"cpu": "50m"}}));
    let worker = asking(&json!({"requests": {"cpu": "100m"}}));
    for (members, first, second, higher, cpu) in [
        (2, 1, 1, "", "150m"),
        (3, 2, 1, "", "200m"),
        (3, 1, 2, "", "250m"),
        (3, 1, 1, "master", "200m"),
        (3, 1, 1, "worker", "250m"),
        (3, 0, 1, "worker", "250m"),
        (4, 1, 1, "worker", "300m"),
        (2, 1, 2, "", "100m"),
        (2, 2, 1, "", "100m"),
        (3, 2, 2, "", "200m"),
    ] {
        let share = |name: &str, least, template| {
            let priority = if higher == name { 100 } else { 1 };
            Share { priority, least, pods: 2, template }
        };
        let shares = vec![share("master", first, &master), share("worker", second, &worker)];
        let pods = members.to_string();
        let wanted = json!({"count/pods": pods, "pods": pods, "cpu": cpu, "requests.cpu": cpu});
        let found = json!(min_resources(shares, members, Keys::Quota));
        assert_eq!(found, wanted, "{members} {first} {second} {higher}");
    }
}

#[test]
fn a_limit_is_a_request_where_there_is_none() {
    let template = asking(&json!({
        "requests": {"cpu": "1"}, "limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1},
    }));
    let expected = json!({"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "3"});
    assert_eq!(sum(&[(0, 3, &template)], 3), expected);
}

#[test]
fn a_quota_counts_devices_bare_and_as_requests() {
    let resources = json!({"limits": {"cpu": 1, "memory": "1000Mi", "nvidia.com/gpu": "1"}});
    let template = asking(&resources);
    let share = Share { priority: 0, least: 1, pods: 1, template: &template };
    let wanted = json!({
        "count/pods": "2", "pods": "2", "cpu": "2", "memory": "2000Mi", "nvidia.com/gpu": "2",
        "requests.cpu": "2", "requests.memory": "2000Mi", "requests.nvidia.com/gpu": "2",
        "limits.cpu": "2", "limits.memory": "2000Mi",
    });
    assert_eq!(json!(min_resources(vec![share, share], 2, Keys::Quota)), wanted);
}

#[test]
fn the_worst_moment_of_a_pod() {
    let mut sidecar = cpu("100m");
    sidecar["restartPolicy"] = "Always".into();
    for (first, expected) in [("3", "3110m"), ("1", "1610m")] {
        let template = json!({"spec": {
            "containers": [cpu("1"), cpu("500m")], "initContainers": [sidecar, cpu(first)],
            "overhead": {"cpu": "10m"},
        }});
        assert_eq!(sum(&[(0, 1, &template)], 1), json!({"cpu": expected}), "{first}");
    }
}

#[test]
fn what_is_said_for_the_whole_pod_counts() {
    let mut spec = cpu("3");
    spec["containers"] = json!([cpu("1")]);
    assert_eq!(sum(&[(0, 2, &json!({"spec": spec}))], 2), json!({"cpu": "6"}));
}

#[test]
fn nothing_asked_is_nothing_written() {
    let odd = asking(&json!({"requests": {"cpu": "many", "memory": 0}}));
    assert_eq!(sum(&[(0, 2, &odd), (0, 2, &Value::Null)], 4), json!({}));
    let huge = asking(&json!({"requests": {"memory": "8Ei"}}));
    assert!(sum(&[(0, i64::from(i32::MAX), &huge)], i64::MAX)["memory"].is_string());
}
