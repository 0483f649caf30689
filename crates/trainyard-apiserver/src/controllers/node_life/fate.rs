//! What becomes of a pod, given how its node stands. Pure.

use std::time::Duration;

use super::decide::{NO_EXECUTE, OUT_OF_SERVICE};
use super::view::{Pod, Taint, Toleration};

/// How a pod's node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing<'a> {
    /// There is none of that name, for so long.
    Missing(Duration),
    /// It is there. `ready` is what its condition says; `None` when it is unknown.
    There { taints: &'a [Taint], ready: Option<bool> },
}

/// What becomes of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing, until something changes.
    Stays,
    /// It is evicted that long after the taints were first seen.
    Evicted(Duration),
    /// Its object is removed now; nobody else will do it.
    Removed(Why),
    /// It is looked at again then.
    Later(Duration),
}

/// Why a pod's object is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It was deleted before it came to a node.
    NeverPlaced,
    /// Its node does not exist.
    NodeMissing,
    /// Its node was declared dead.
    OutOfService,
    /// Its node is lost, and its time is over.
    NodeLost,
}

/// How long things are waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) missing_node: Duration,
    pub(super) lost_pod: Duration,
}

/// Decides. `overdue` is how long ago a pod that is being deleted should have ended; `left` how long
/// it still has.
pub(super) fn fate(
    pod: &Pod,
    node: Standing<'_>,
    overdue: Duration,
    left: Duration,
    patience: Patience,
) -> Fate {
    let terminating = pod.deadline.is_some();
    if pod.node.is_empty() {
        return if terminating { Fate::Removed(Why::NeverPlaced) } else { Fate::Stays };
    }
    let (taints, ready) = match node {
        Standing::Missing(since) if since >= patience.missing_node => {
            return Fate::Removed(Why::NodeMissing);
        }
        Standing::Missing(since) => {
            return Fate::Later(patience.missing_node.saturating_sub(since));
        }
        Standing::There { taints, ready } => (taints, ready),
    };
    if !terminating {
        return sentence(&pod.tolerations, taints).map_or(Fate::Stays, Fate::Evicted);
    }
    if ready != Some(true) && taints.iter().any(|taint| taint.key == OUT_OF_SERVICE) {
        return Fate::Removed(Why::OutOfService);
    }
    if ready.is_some() {
        return Fate::Stays;
    }
    if overdue >= patience.lost_pod {
        Fate::Removed(Why::NodeLost)
    } else {
        Fate::Later(left + patience.lost_pod.saturating_sub(overdue))
    }
}

/// How long a pod may stay on a node with these taints; `None` means for ever.
fn sentence(tolerations: &[Toleration], taints: &[Taint]) -> Option<Duration> {
    let mut shortest = None;
    for taint in taints.iter().filter(|taint| taint.effect == NO_EXECUTE) {
        let mut tolerated = tolerations.iter().filter(|toleration| tolerates(toleration, taint));
        // The first that fits counts, as in Kubernetes.
        let Some(toleration) = tolerated.next() else { return Some(Duration::ZERO) };
        if let Some(seconds) = toleration.seconds {
            let stay = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            shortest = Some(shortest.map_or(stay, |shortest: Duration| shortest.min(stay)));
        }
    }
    shortest
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    let value = match &*toleration.operator {
        "" | "Equal" => !toleration.key.is_empty() && toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    };
    effect && key && value
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PATIENCE: Patience =
        Patience { missing_node: Duration::from_secs(40), lost_pod: Duration::from_mins(1) };

    fn taint(key: &str) -> Taint {
        Taint { key: key.to_owned(), effect: NO_EXECUTE.to_owned(), ..Taint::default() }
    }

    fn tolerating(key: &str, seconds: Option<i64>) -> Toleration {
        Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            seconds,
            ..Toleration::default()
        }
    }

    fn pod(tolerations: Vec<Toleration>) -> Pod {
        Pod { node: "n1".to_owned(), tolerations, ..Pod::default() }
    }

    fn decide(pod: &Pod, node: Standing<'_>) -> Fate {
        fate(pod, node, Duration::ZERO, Duration::ZERO, PATIENCE)
    }

    #[test]
    fn tolerations_say_how_long_a_pod_stays() {
        let taints = [taint("a"), taint("b")];
        let node = Standing::There { taints: &taints, ready: None };
        assert_eq!(decide(&pod(vec![]), node), Fate::Evicted(Duration::ZERO));
        let some = pod(vec![tolerating("a", Some(300))]);
        assert_eq!(decide(&some, node), Fate::Evicted(Duration::ZERO));
        let both = pod(vec![tolerating("a", Some(300)), tolerating("b", Some(20))]);
        assert_eq!(decide(&both, node), Fate::Evicted(SECOND * 20));
        let ever = pod(vec![tolerating("a", None), tolerating("b", None)]);
        assert_eq!(decide(&ever, node), Fate::Stays);
        assert_eq!(decide(&pod(vec![tolerating("", None)]), node), Fate::Stays);
        let negative = pod(vec![tolerating("", Some(-5))]);
        assert_eq!(decide(&negative, node), Fate::Evicted(Duration::ZERO));
        let free = Standing::There { taints: &[], ready: Some(true) };
        assert_eq!(decide(&pod(vec![]), free), Fate::Stays);
    }

    #[test]
    fn equal_needs_the_same_value() {
        let mut equal = tolerating("a", None);
        equal.operator = String::new();
        assert!(tolerates(&equal, &taint("a")));
        equal.value = "x".to_owned();
        assert!(!tolerates(&equal, &taint("a")));
        equal.key = String::new();
        equal.value = String::new();
        assert!(!tolerates(&equal, &taint("a")));
    }

    #[test]
    fn pods_of_missing_nodes_are_removed_after_a_while() {
        let pod = pod(vec![]);
        assert_eq!(decide(&pod, Standing::Missing(SECOND)), Fate::Later(SECOND * 39));
        let gone = Fate::Removed(Why::NodeMissing);
        assert_eq!(decide(&pod, Standing::Missing(SECOND * 40)), gone);
    }

    #[test]
    fn a_pod_that_was_deleted_before_it_came_to_a_node_goes() {
        let mut pod = Pod::default();
        assert_eq!(decide(&pod, Standing::Missing(SECOND)), Fate::Stays);
        pod.deadline = Some("x".to_owned());
        assert_eq!(decide(&pod, Standing::Missing(SECOND)), Fate::Removed(Why::NeverPlaced));
    }

    #[test]
    fn a_terminating_pod_is_its_kubelets_matter_unless_the_node_is_lost() {
        let mut pod = pod(vec![]);
        pod.deadline = Some("x".to_owned());
        let taints = [taint("a")];
        let alive = Standing::There { taints: &taints, ready: Some(false) };
        assert_eq!(decide(&pod, alive), Fate::Stays);
        let lost = Standing::There { taints: &taints, ready: None };
        assert_eq!(
            fate(&pod, lost, Duration::ZERO, SECOND * 5, PATIENCE),
            Fate::Later(SECOND * 65)
        );
        let after = fate(&pod, lost, SECOND * 61, Duration::ZERO, PATIENCE);
        assert_eq!(after, Fate::Removed(Why::NodeLost));
        let dead = [taint(OUT_OF_SERVICE)];
        let dead = Standing::There { taints: &dead, ready: Some(false) };
        assert_eq!(decide(&pod, dead), Fate::Removed(Why::OutOfService));
    }
}
