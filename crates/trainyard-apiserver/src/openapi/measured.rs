//! What is only measured: the use of nodes and pods (`metrics.k8s.io`). These kinds are told in
//! discovery like others but never stored.
//!
//! Owns their names. Must not know where the numbers come from.

use std::sync::{Arc, LazyLock};

use crate::kind::{Columns, Kind, LazySchema, Rules, Verbs, Version};

pub(super) const GROUP: &str = "metrics.k8s.io";

static KINDS: LazyLock<[Arc<Kind>; 2]> = LazyLock::new(|| {
    [row("NodeMetrics", "nodes", false), row("PodMetrics", "pods", true)].map(Arc::new)
});

/// Nothing is ever written.
struct Measured;

impl Rules for Measured {}

/// All kinds, these included.
pub(super) fn with(kinds: &[Arc<Kind>]) -> Vec<Arc<Kind>> {
    kinds.iter().chain(KINDS.iter()).cloned().collect()
}

/// Whether a kind is one of these.
pub(super) fn is(kind: &Kind) -> bool {
    kind.group == GROUP
}

fn row(kind: &str, plural: &str, namespaced: bool) -> Kind {
    let version = Version {
        name: "v1beta1".to_owned(),
        schema: LazySchema::built_in(""),
        has_status: false,
        scale: None,
        deprecation: None,
        columns: Columns::BuiltIn,
    };
    Kind {
        group: GROUP.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        versions: vec![version],
        storage: format!("{plural}.{GROUP}"),
        storage_api_version: format!("{GROUP}/v1beta1"),
        defined: false,
        verbs: Verbs::All,
        rules: Arc::new(Measured),
    }
}
