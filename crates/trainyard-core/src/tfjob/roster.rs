//! Who is there: the replicas asked for, and the pods and services that stand for them.
//!
//! Puts every object of the job into its place, and says of each replica where it stands. Must not
//! decide what happens next.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use trainyard_api::{JobStatus, ReplicaId, ReplicaType, TfJobSpec, names};

use super::{
    Observed,
    end::{Cause, End, WHOSE, end},
    indexes,
    restart::find,
};
use crate::{
    config::Config,
    phase::Phase,
    view::{ContainerState, PodView, Role, ServiceView},
};

/// Everybody who belongs to a job.
#[derive(Debug)]
pub(super) struct Roster<'a> {
    /// The replicas asked for, in order.
    pub slots: Vec<Slot<'a>>,
    /// Pods of replicas that are not asked for (any more).
    pub surplus: Vec<&'a PodView>,
    /// Services of replicas asked for.
    pub services: BTreeMap<ReplicaId, &'a ServiceView>,
    /// Services of replicas that are not asked for.
    pub surplus_services: Vec<&'a ServiceView>,
    /// The TensorBoard pod.
    pub tensorboard: Option<&'a PodView>,
    /// The TensorBoard service.
    pub tensorboard_service: Option<&'a ServiceView>,
}

/// One replica asked for.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    /// Which.
    pub id: ReplicaId,
    /// Its pod.
    pub pod: Option<&'a PodView>,
    /// Where it stands.
    pub standing: Standing,
}

/// Where a replica stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Standing {
    /// It has no pod.
    Missing,
    /// Its pod waits or runs.
    Live,
    /// Its program has ended, and until then somebody else may turn out to have ended it. It is taken for one
    /// that runs.
    Ending(Timestamp),
    /// Its pod is being deleted by somebody.
    Leaving,
    /// It has completed, now or earlier.
    Completed,
    /// Its pod failed, and nothing has been decided about it.
    Failed(Cause),
    /// Its pod's end is recorded; the pod makes way for a successor.
    Replaced,
    /// Its pod belongs to an earlier attempt of the whole job.
    Stale,
}

impl Slot<'_> {
    /// Returns true if its pod runs, as far as is known.
    #[must_use]
    pub(super) fn runs(&self) -> bool {
        self.has_started()
            && self.pod.is_some_and(|pod| pod.unreachable.is_none() && !pod.is_in_crash_loop(WHOSE))
    }

    /// Returns true if its pod has started and not ended.
    #[must_use]
    pub(super) fn has_started(&self) -> bool {
        match self.standing {
            Standing::Live => self.pod.is_some_and(|pod| pod.phase == Phase::Running),
            // What ended may have been an init container, and the program never ran.
            Standing::Ending(_) => self
                .pod
                .and_then(PodView::main_container)
                .is_some_and(|main| !matches!(main.state, ContainerState::Waiting { .. })),
            _ => false,
        }
    }
}

impl<'a> Roster<'a> {
    /// Puts everybody into place.
    #[must_use]
    pub(super) fn new(
        seen: &Observed<'a>,
        spec: &TfJobSpec,
        status: &JobStatus,
        now: Timestamp,
        config: &Config,
    ) -> Self {
        let job = &seen.job.metadata.name;
        let asked = |id: &ReplicaId| id.index < spec.count(id.kind);
        let mut by_id = BTreeMap::new();
        let mut surplus = Vec::new();
        let mut tensorboard = None;
        for pod in seen.pods {
            match pod.role {
                Role::Replica(id) if !is_named(job, id, &pod.name) => {}
                Role::Replica(id) if asked(&id) => {
                    by_id.insert(id, &**pod);
                }
                Role::Replica(_) => surplus.push(&**pod),
                Role::TensorBoard => tensorboard = Some(&**pod),
                Role::Other => {}
            }
        }
        let mut known = BTreeMap::new();
        let mut surplus_services = Vec::new();
        let mut tensorboard_service = None;
        for service in seen.services {
            match service.role {
                Role::Replica(id) if !is_named(job, id, &service.name) => {}
                Role::Replica(id) if asked(&id) => {
                    known.insert(id, &**service);
                }
                Role::Replica(_) => surplus_services.push(&**service),
                Role::TensorBoard => tensorboard_service = Some(&**service),
                Role::Other => {}
            }
        }
        Self {
            slots: slots(spec, status, &by_id, |pod| end(pod, now, config)),
            surplus,
            services: known,
            surplus_services,
            tensorboard,
            tensorboard_service,
        }
    }

    /// The replicas of one type.
    pub(super) fn of(&self, kind: ReplicaType) -> impl Iterator<Item = &Slot<'a>> {
        self.slots.iter().filter(move |slot| slot.id.kind == kind)
    }
}

fn slots<'a>(
    spec: &TfJobSpec,
    status: &JobStatus,
    pods: &BTreeMap<ReplicaId, &'a PodView>,
    judge: impl Fn(&PodView) -> End,
) -> Vec<Slot<'a>> {
    let mut slots = Vec::new();
    for (kind, replicas) in &spec.replicas {
        let completed = completed(status, *kind);
        for index in 0..replicas.replicas {
            let id = ReplicaId { kind: *kind, index };
            let pod = pods.get(&id).copied();
            let standing = standing(pod, id, completed.contains(&index), status, &judge);
            slots.push(Slot { id, pod, standing });
        }
    }
    slots
}

/// The indices of a type that have completed, as recorded.
#[must_use]
pub(super) fn completed(status: &JobStatus, kind: ReplicaType) -> BTreeSet<u32> {
    status
        .replica_statuses
        .get(&kind)
        .map(|counts| indexes::parse(&counts.completed_indexes))
        .unwrap_or_default()
}

fn standing(
    pod: Option<&PodView>,
    id: ReplicaId,
    completed: bool,
    status: &JobStatus,
    judge: impl Fn(&PodView) -> End,
) -> Standing {
    let Some(pod) = pod else {
        return if completed { Standing::Completed } else { Standing::Missing };
    };
    if pod.attempt < status.attempt {
        return Standing::Stale;
    }
    if completed {
        return Standing::Completed;
    }
    let record = find(status, &id.to_string());
    if record.is_some_and(|record| record.replaced && *record.uid == *pod.uid) {
        return Standing::Replaced;
    }
    match judge(pod) {
        End::Live => Standing::Live,
        End::Ending(until) => Standing::Ending(until),
        End::Leaving => Standing::Leaving,
        End::Completed => Standing::Completed,
        End::Failed(cause) => Standing::Failed(cause),
    }
}

/// Whether the object has the name that its labels say it should have.
pub(super) fn is_named(job: &str, id: ReplicaId, name: &str) -> bool {
    *name == names::replica_name(job, id.kind.lower(), id.index)
}
