//! Deleting one object: by UID, once, and without waiting for a node that is gone.
//!
//! Must not know job kinds, nor decide which objects are to go.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use trainyard_api::names;

use crate::{
    child::Child,
    config::Config,
    plan::{Delete, Plan, Write},
    view::{PodView, Role, ServiceView},
};

/// The deletion of a pod, unless it is already under way. A pod that should have been gone long
/// ago sits on a node that is lost: it is then deleted without waiting for the kubelet.
#[must_use]
pub(crate) fn pod_removal(
    pod: &PodView,
    now: Timestamp,
    config: &Config,
    plan: &mut Plan,
) -> Option<Write> {
    let grace_seconds = match pod.deletion {
        None => None,
        Some(deletion) => {
            let lost_at = lost_at(deletion.due, config)?;
            if now < lost_at {
                plan.look_again(lost_at);
                return None;
            }
            Some(0)
        }
    };
    let (group, index) = match &pod.task {
        Some(task) => (task.name.to_string().into(), task.index),
        None => place(pod.role),
    };
    Some(Write::Delete(
        Child::Pod,
        Delete {
            name: pod.name.to_string(),
            uid: pod.uid.to_string(),
            group,
            index,
            grace_seconds,
        },
    ))
}

/// The deletion of a service, unless it is already under way.
#[must_use]
pub(crate) fn service_removal(service: &ServiceView) -> Option<Write> {
    if service.deletion.is_some() {
        return None;
    }
    let (group, index) = place(service.role);
    Some(Write::Delete(
        Child::Service,
        Delete {
            name: service.name.to_string(),
            uid: service.uid.to_string(),
            group,
            index,
            grace_seconds: None,
        },
    ))
}

fn lost_at(due: Timestamp, config: &Config) -> Option<Timestamp> {
    (config.lost_pod_ms > 0)
        .then(|| due.checked_add(SignedDuration::from_millis(config.lost_pod_ms)).ok())
        .flatten()
}

fn place(role: Role) -> (Cow<'static, str>, u32) {
    match role {
        Role::Replica(id) => (id.kind.lower().into(), id.index),
        Role::TensorBoard => (names::TENSORBOARD.into(), 0),
        Role::Other => ("other".into(), 0),
    }
}
