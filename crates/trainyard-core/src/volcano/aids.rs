//! Deleting what a job has beside its pods: everything but its claims goes with it.
//!
//! Must not know why the job ends, nor how such objects are built.

use crate::{
    aid::Aid,
    child::Child,
    plan::{Delete, Write},
};

use super::Observed;

/// The deletion of an object by its UID.
#[must_use]
pub(super) fn delete(name: &str, uid: &str) -> Delete {
    Delete {
        name: name.to_owned(),
        uid: uid.to_owned(),
        group: "".into(),
        index: 0,
        grace_seconds: None,
    }
}

/// The deletion of an object, unless it is already under way.
#[must_use]
pub(super) fn removal<F>(child: Child, aid: &Aid<F>) -> Option<Write> {
    (!aid.is_leaving).then(|| Write::Delete(child, delete(&aid.name, &aid.uid)))
}

/// Deletions of all objects beside the pods.
#[must_use]
pub(super) fn removals(seen: &Observed<'_>) -> Vec<Write> {
    let maps = seen.config_maps.iter().filter_map(|one| removal(Child::ConfigMap, one));
    let services = seen.services.iter().filter(|one| one.deletion.is_none());
    let services = services.map(|one| Write::Delete(Child::Service, delete(&one.name, &one.uid)));
    let policies = seen.policies.iter().filter_map(|one| removal(Child::NetworkPolicy, one));
    let groups = seen.groups.iter().filter_map(|one| removal(Child::PodGroup, one));
    maps.chain(services).chain(policies).chain(groups).collect()
}
