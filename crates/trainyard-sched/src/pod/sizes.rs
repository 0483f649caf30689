//! How much of a pod the scheduler goes through for every node and every other pod, and the most that it does.
//!
//! A pod with more waits and is told so; if somebody else has placed it, it has no say in where others go.

use super::read::Spec;

/// Most terms of pod affinity and anti-affinity and topology spread constraints together.
const PEERS_MAX: usize = 100;
/// Most conditions on labels: keys and values, of nodes and of pods.
const CONDITIONS_MAX: usize = 10_000;
/// Most tolerations.
const TOLERATIONS_MAX: usize = 1_000;
/// Most claims.
const CLAIMS_MAX: usize = 256;
/// Most ports of all containers.
const PORTS_MAX: usize = 1_000;
/// Most resources of all containers, each counted for every container that asks for it.
const RESOURCES_MAX: usize = 1_000;

/// Returns what there is too much of, if there is.
pub(super) fn excess(spec: &Spec) -> Option<&'static str> {
    let bounds = [
        (
            spec.peers(),
            PEERS_MAX,
            "more than 100 terms of pod affinity, anti-affinity and topology spread",
        ),
        (spec.conditions(), CONDITIONS_MAX, "more than 10000 conditions on labels"),
        (spec.tolerations(), TOLERATIONS_MAX, "more than 1000 tolerations"),
        (spec.claims(), CLAIMS_MAX, "more than 256 claims"),
        (spec.ports(), PORTS_MAX, "more than 1000 ports"),
        (spec.resources(), RESOURCES_MAX, "more than 1000 requests of resources"),
    ];
    bounds.into_iter().find(|(count, most, _)| count > most).map(|(_, _, words)| words)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use crate::Pod;

    fn pod(spec: &Value) -> Pod {
        from_value(json!({"spec": spec})).unwrap()
    }

    fn many(count: usize, one: impl Fn(usize) -> Value) -> Value {
        (0..count).map(one).collect()
    }

    /// Before there were bounds all of it was gone through for every node and every other pod.
    #[test]
    fn a_pod_with_too_much_waits_and_one_with_as_much_as_may_be_does_not() {
        let term = |n: usize| json!({"topologyKey": format!("zone-{n}"), "labelSelector": {}});
        let away = |count: usize| {
            json!({"affinity": {"podAntiAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": many(count, term)}}})
        };
        let names = |count: usize| {
            let values = many(count, |n| json!(format!("node-{n}")));
            let expression = json!({"key": "host", "operator": "In", "values": values});
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}})
        };
        let tolerations =
            |count: usize| json!({"tolerations": many(count, |n| json!({"key": n.to_string()}))});
        let claims = |count: usize| {
            let claim = |n: usize| json!({"name": n.to_string(), "persistentVolumeClaim": {"claimName": n.to_string()}});
            json!({"volumes": many(count, claim)})
        };
        let ports = |count: usize| json!({"containers": [{"ports": many(count, |n| json!({"containerPort": n, "hostPort": n}))}]});
        let resources = |count: usize| {
            let requests: serde_json::Map<String, Value> =
                (0..count).map(|n| (format!("example.com/r{n}"), json!("1"))).collect();
            json!({"containers": [{"resources": {"requests": requests}}]})
        };
        for (what, most, spec) in [
            ("100 terms", 100, &away as &dyn Fn(usize) -> Value),
            ("10000 conditions", 9_999, &names),
            ("1000 tolerations", 1_000, &tolerations),
            ("256 claims", 256, &claims),
            ("1000 ports", 1_000, &ports),
            ("1000 requests", 1_000, &resources),
        ] {
            assert_eq!(pod(&spec(most)).beyond, None, "{what}");
            let told = pod(&spec(most + 1)).beyond;
            assert!(told.is_some_and(|told| told.contains(what)), "{what}: {told:?}");
        }
        assert_eq!(pod(&away(100)).peers.away.len(), 100);
        assert_eq!(pod(&away(101)).peers.away.len(), 0);
    }
}
