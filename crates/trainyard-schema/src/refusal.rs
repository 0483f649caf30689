//! The reasons that a kubelet writes into the status of a pod which it does not let in, because whoever
//! chose the node knew less of it than its kubelet.
//!
//! A scheduler spares such a node, and a job's operator holds such an end against no program: both read
//! this one list. Reasons of pods that no node would let in (`PodOSNotSupported`, `SysctlForbidden` …) are
//! not in it. Must not know what follows.

/// Reasons of refusals that are the node's. `OutOf…`, of any resource, is one more.
pub const REASONS: [&str; 13] = [
    "InvalidNodeInfo",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "NodeResourcesFit",
    "NodeShutdown",
    "NodeUnschedulable",
    "TaintToleration",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
    "UnexpectedPredicateFailureType",
    "UnknownReason",
    "VolumeAttachmentLimitExceeded",
];

/// Of any resource: `OutOfcpu`, `OutOfpods`, `OutOfnvidia.com/gpu`.
const OF_RESOURCES: &str = "OutOf";

/// A kubelet refuses pods with the reason of an eviction while its node is short of something; only these
/// words tell that from the end of a pod that ran.
const SHORT: (&str, &str) = ("Evicted", "The node had condition: ");

/// Returns true if a kubelet that gives this reason and these words to a pod that failed has not let it in,
/// for a reason of its node's.
#[must_use]
pub fn is_of_node(reason: &str, message: &str) -> bool {
    reason.starts_with(OF_RESOURCES)
        || REASONS.contains(&reason)
        || (reason == SHORT.0 && message.contains(SHORT.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_node_is_what_is_listed_and_any_resource_that_is_short() {
        for reason in REASONS {
            assert!(is_of_node(reason, ""), "{reason}");
        }
        for resource in ["cpu", "pods", "ephemeral-storage", "nvidia.com/gpu"] {
            assert!(is_of_node(&format!("OutOf{resource}"), ""), "{resource}");
        }
    }

    #[test]
    fn an_eviction_is_a_refusal_in_the_words_of_one_only() {
        let refused = "Pod was rejected: The node had condition: [MemoryPressure]. ";
        assert!(is_of_node("Evicted", refused));
        assert!(!is_of_node("Evicted", "The node was low on resource: memory. "));
        assert!(!is_of_node("Error", refused));
    }

    #[test]
    fn what_no_node_would_let_in_is_no_refusal_of_this_one() {
        for reason in ["", "PodOSNotSupported", "SysctlForbidden", "DeadlineExceeded", "Terminated"]
        {
            assert!(!is_of_node(reason, ""), "{reason}");
        }
    }
}
