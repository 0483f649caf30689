//! Taints that drive pods away. Like a kubelet, a node looks only at those with effect `NoExecute`.

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};

/// Whether the pod may stay in spite of the Node's taints.
pub(super) fn tolerates(pod: &Pod, node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or(&[]);
    taints
        .filter(|taint| taint.effect == "NoExecute")
        .all(|taint| tolerations.iter().any(|one| covers(one, taint)))
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |given: &Option<String>| given.clone().unwrap_or_default();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => text(&toleration.value) == text(&taint.value),
        _ => false,
    }
}
