//! What is decided, case by case, and that the order in which things are learnt does not matter.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use crate::{Decision, Delta, PodName, State};

fn node(name: &str, cpu: &str) -> Delta {
    let value = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    });
    Delta::Node(Box::new(from_value(value).unwrap()))
}

fn pod_value(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "uid": name, "annotations": {}},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"resources": {"requests": {"cpu": cpu}}}],
        },
    })
}

fn delta(value: Value) -> Delta {
    Delta::Pod(Box::new(from_value(value).unwrap()))
}

fn member(name: &str, cpu: &str, gang: &str, size: usize) -> Value {
    let mut value = pod_value(name, cpu);
    value["metadata"]["annotations"] =
        json!({"trainyard.dev/gang": gang, "trainyard.dev/gang-size": size.to_string()});
    value
}

fn state(deltas: impl IntoIterator<Item = Delta>) -> State {
    let mut state = State::new(["default-scheduler".to_owned()]);
    deltas.into_iter().for_each(|delta| state.apply(delta));
    state
}

fn bindings(decisions: &[Decision]) -> Vec<(String, String)> {
    let bound = decisions.iter().filter_map(|decision| match decision {
        Decision::Bind { pod, node, .. } => Some((pod.name.clone(), node.clone())),
        _ => None,
    });
    bound.collect()
}

fn message(decisions: &[Decision], name: &str) -> String {
    let found = decisions.iter().find_map(|decision| match decision {
        Decision::Wait { pod, message, .. } if pod.name == name => Some(message.to_string()),
        _ => None,
    });
    found.unwrap_or_default()
}

#[test]
fn a_pod_that_fits_is_bound_once() {
    let mut state = state([node("a", "2"), delta(pod_value("p", "1"))]);
    assert_eq!(bindings(&state.decide(0)), [("p".to_owned(), "a".to_owned())]);
    assert_eq!(state.decide(0), []);
}

#[test]
fn a_pod_that_does_not_fit_is_told_why() {
    let mut state = state([node("a", "2"), node("b", "1"), delta(pod_value("p", "3"))]);
    let decisions = state.decide(0);
    assert_eq!(message(&decisions, "p"), "0/2 nodes are available: 2 Insufficient cpu.");
    let mut none = self::state([delta(pod_value("p", "3"))]);
    assert_eq!(message(&none.decide(0), "p"), "no nodes available to schedule pods");
}

#[test]
fn a_gang_goes_as_a_whole_or_not_at_all() {
    let members = |count: usize| (0..count).map(|i| delta(member(&format!("p{i}"), "1", "g", 3)));
    let mut two = state(std::iter::once(node("a", "4")).chain(members(2)));
    assert_eq!(message(&two.decide(0), "p0"), "waiting for 1 more of the 3 pods of \"g\"");
    let mut tight = state(std::iter::once(node("a", "2")).chain(members(3)));
    let decisions = tight.decide(0);
    assert_eq!(bindings(&decisions), []);
    let text = message(&decisions, "p2");
    assert!(text.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{text}");
    assert!(text.contains("all together"), "{text}");
    tight.apply(node("b", "1"));
    assert_eq!(bindings(&tight.decide(0)).len(), 3);
}

#[test]
fn two_gangs_never_hold_half_each() {
    let gang = |name: &'static str| {
        (0..2).map(move |i| delta(member(&format!("{name}{i}"), "1", name, 2)))
    };
    let mut state = state([node("a", "3")].into_iter().chain(gang("x")).chain(gang("y")));
    let decisions = state.decide(0);
    assert_eq!(bindings(&decisions).len(), 2);
    assert_eq!(decisions.len(), 4);
}

#[test]
fn priority_goes_before_age() {
    let mut old = pod_value("old", "1");
    old["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut young = pod_value("young", "1");
    young["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    let both = [node("a", "1"), delta(old.clone()), delta(young.clone())];
    assert_eq!(bindings(&state(both).decide(0))[0].0, "old");
    young["spec"]["priority"] = json!(10);
    let both = [node("a", "1"), delta(old), delta(young)];
    assert_eq!(bindings(&state(both).decide(0))[0].0, "young");
}

#[test]
fn a_lone_successor_joins_its_gang() {
    let mut bound = member("p0", "1", "g", 2);
    bound["spec"]["nodeName"] = json!("a");
    let mut state = state([node("a", "2"), delta(bound), delta(member("p1", "1", "g", 2))]);
    assert_eq!(bindings(&state.decide(0)), [("p1".to_owned(), "a".to_owned())]);
}

#[test]
fn ended_pods_free_their_node_and_others_schedulers_pods_count() {
    let mut other = pod_value("other", "2");
    other["spec"]["nodeName"] = json!("a");
    other["spec"]["schedulerName"] = json!("elsewhere");
    let mut state = state([node("a", "2"), delta(other.clone()), delta(pod_value("p", "1"))]);
    assert_eq!(bindings(&state.decide(0)), []);
    other["status"] = json!({"phase": "Succeeded"});
    state.apply(delta(other));
    assert_eq!(bindings(&state.decide(0)).len(), 1);
}

#[test]
fn what_cannot_be_honoured_is_refused_and_not_ignored() {
    let mut value = pod_value("p", "1");
    value["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "one"}]);
    let mut state = state([node("a", "2"), delta(value)]);
    let said = "spec.resourceClaims cannot be honoured by this scheduler: remove it from the pod";
    assert_eq!(message(&state.decide(0), "p"), said);
}

#[test]
fn cordons_taints_ports_and_selectors_are_reasons() {
    let bare = |name: &str, spec: Value| {
        let value = json!({"metadata": {"name": name}, "spec": spec,
            "status": {"allocatable": {"cpu": "4", "pods": "1"}}});
        Delta::Node(Box::new(from_value(value).unwrap()))
    };
    let mut holder = pod_value("holder", "1");
    holder["spec"]["nodeName"] = json!("full");
    let mut wants = pod_value("p", "1");
    wants["spec"]["nodeSelector"] = json!({});
    let mut state = state([
        bare("cordoned", json!({"unschedulable": true})),
        bare("tainted", json!({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})),
        bare("full", json!({})),
        delta(holder),
        delta(wants),
    ]);
    assert_eq!(
        message(&state.decide(0), "p"),
        "0/3 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint(s) {k: v}, 1 node(s) were unschedulable."
    );
}

proptest! {
    /// Learning step by step leads to the same as learning the end alone.
    #[test]
    fn incremental_equals_rebuilt(
        steps in prop::collection::vec((0usize..6, 1u32..4, 0usize..3, any::<bool>()), 1..40),
    ) {
        let mut state = state([node("a", "3"), node("b", "2")]);
        let mut last = BTreeMap::new();
        for (which, cpu, gang, is_there) in steps {
            let name = format!("p{which}");
            if is_there {
                let value = match gang {
                    0 => pod_value(&name, &cpu.to_string()),
                    size => member(&name, &cpu.to_string(), &format!("g{}", which % 2), size),
                };
                state.apply(delta(value.clone()));
                last.insert(name, value);
            } else {
                state.apply(Delta::PodGone(PodName { namespace: "n".into(), name: name.clone() }));
                last.remove(&name);
            }
        }
        let nodes = [node("a", "3"), node("b", "2")];
        let mut rebuilt = self::state(nodes.into_iter().chain(last.into_values().map(delta)));
        prop_assert_eq!(state.decide(0), rebuilt.decide(0));
    }

    /// No node is ever given more than it has, and gangs stay whole.
    #[test]
    fn nothing_is_overbooked(
        pods in prop::collection::vec((1u32..4, 0usize..3), 1..24),
        sizes in prop::collection::vec(1u32..8, 1..4),
    ) {
        let nodes = sizes.iter().enumerate().map(|(i, cpu)| node(&format!("n{i}"), &cpu.to_string()));
        let made = pods.iter().enumerate().map(|(i, (cpu, gang))| {
            let name = format!("p{i}");
            delta(match gang {
                0 => pod_value(&name, &cpu.to_string()),
                gang => member(&name, &cpu.to_string(), &format!("g{gang}"), 3),
            })
        });
        let decisions = state(nodes.chain(made)).decide(0);
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        for (pod, node) in bindings(&decisions) {
            let index: usize = pod[1..].parse().unwrap();
            *used.entry(node).or_default() += pods[index].0;
        }
        for (node, cpu) in used {
            let index: usize = node[1..].parse().unwrap();
            prop_assert!(cpu <= sizes[index]);
        }
        for gang in 1..3 {
            let bound = bindings(&decisions)
                .iter()
                .filter(|(pod, _)| pods[pod[1..].parse::<usize>().unwrap()].1 == gang)
                .count();
            prop_assert!(bound == 0 || bound >= 3, "{bound} of 3");
        }
    }
}
