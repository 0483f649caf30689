//! What random histories are made of: jobs of all sorts, and what may happen to them.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::tfjob::world::{World, replica};

#[derive(Debug, Clone)]
pub(super) enum Step {
    Settle,
    /// The operator stops after so many writes of a plan.
    Crash(usize),
    StartAll,
    Start(usize),
    Exit(usize, i64),
    /// The program ends; the kubelet publishes the final phase with a later step, if at all.
    Terminate(usize, i64),
    PublishEnd(usize),
    Evict(usize),
    Delete(usize),
    /// The control plane loses the pod's node, or finds it again.
    Node(usize, bool),
    /// The pod's node is lost, and only the node says so.
    Silence(usize),
    /// All such nodes are back.
    FindNodes,
    Vanish(usize),
    InPlace(usize, i64),
    FinishDeletions,
    Scale(usize, u32),
    Suspend(bool),
    Pass(i64),
    /// The gang scheduler puts the group into this phase.
    Group(&'static str),
    /// Somebody deletes the group.
    DropGroup,
}

#[derive(Debug, Clone)]
pub(super) struct Setup {
    replicas: Vec<(&'static str, u32, &'static str)>,
    clean: &'static str,
    limit: Option<i64>,
    deadline: Option<i64>,
    ttl: Option<i64>,
    all_workers: bool,
    dynamic: bool,
    whole_job: bool,
    /// The gang scheduler, and the minimum that the job gives it.
    gang: (&'static str, Option<u32>),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let code = prop::sample::select(vec![0, 0, 1, 2, 128, 130, 137, 139, 143, 255]);
    let phases = vec!["Inqueue", "Inqueue", "Running", "Unknown", "Pending", ""];
    let group = prop::sample::select(phases).prop_map(Step::Group);
    prop_oneof![
        6 => Just(Step::Settle),
        3 => (0..6usize).prop_map(Step::Crash),
        4 => Just(Step::StartAll),
        2 => any::<usize>().prop_map(Step::Start),
        3 => (any::<usize>(), code.clone()).prop_map(|(pod, code)| Step::Exit(pod, code)),
        2 => (any::<usize>(), code).prop_map(|(pod, code)| Step::Terminate(pod, code)),
        1 => any::<usize>().prop_map(Step::PublishEnd),
        1 => any::<usize>().prop_map(Step::Evict),
        1 => any::<usize>().prop_map(Step::Delete),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(pod, is_lost)| Step::Node(pod, is_lost)),
        1 => any::<usize>().prop_map(Step::Silence),
        1 => Just(Step::FindNodes),
        1 => any::<usize>().prop_map(Step::Vanish),
        1 => (any::<usize>(), 1..3i64).prop_map(|(pod, count)| Step::InPlace(pod, count)),
        2 => Just(Step::FinishDeletions),
        1 => (any::<usize>(), 0..4u32).prop_map(|(kind, count)| Step::Scale(kind, count)),
        1 => any::<bool>().prop_map(Step::Suspend),
        2 => prop::sample::select(vec![500, 1_000, 12_000, 400_000]).prop_map(Step::Pass),
        3 => group,
        1 => Just(Step::DropGroup),
    ]
}

pub(super) fn setup() -> impl Strategy<Value = Setup> {
    let policy = || prop::sample::select(vec!["Always", "OnFailure", "Never", "ExitCode"]);
    let kinds = (
        prop::option::of(policy()),
        prop::option::of((1..3u32, policy())),
        prop::option::of((1..4u32, policy())),
        prop::option::of(policy()),
    )
        .prop_map(|(chief, ps, worker, evaluator)| {
            let mut replicas = Vec::new();
            replicas.extend(chief.map(|policy| ("Chief", 1, policy)));
            replicas.extend(ps.map(|(count, policy)| ("PS", count, policy)));
            replicas.extend(worker.map(|(count, policy)| ("Worker", count, policy)));
            replicas.extend(evaluator.map(|policy| ("Evaluator", 1, policy)));
            if replicas.is_empty() {
                replicas.push(("Worker", 2, "OnFailure"));
            }
            replicas
        });
    let clean = prop::sample::select(vec!["Running", "All", "None"]);
    let limits = (
        prop::option::of(0..4i64),
        prop::option::weighted(0.2, 1..1000i64),
        prop::option::weighted(0.2, 0..100i64),
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let gang = (
        prop::sample::select(vec!["", "", "", "volcano", "trainyard", "plugins"]),
        prop::option::of(1..5u32),
    );
    (kinds, clean, limits, flags, gang).prop_map(
        |(replicas, clean, (limit, deadline, ttl), flags, gang)| Setup {
            replicas,
            clean,
            limit,
            deadline,
            ttl,
            all_workers: flags.0,
            dynamic: flags.1,
            whole_job: flags.2,
            gang,
        },
    )
}

impl Setup {
    pub(super) fn world(&self) -> World {
        let specs: serde_json::Map<String, Value> = self
            .replicas
            .iter()
            .map(|(kind, count, policy)| ((*kind).to_owned(), replica(*count, policy)))
            .collect();
        let mut w =
            World::new(json!({"tfReplicaSpecs": specs})).policy("cleanPodPolicy", self.clean);
        for (key, value) in [
            ("backoffLimit", self.limit),
            ("activeDeadlineSeconds", self.deadline),
            ("ttlSecondsAfterFinished", self.ttl),
        ] {
            if let Some(value) = value {
                w = w.policy(key, value);
            }
        }
        if self.all_workers {
            w.spec["successPolicy"] = "AllWorkers".into();
        }
        w.spec["enableDynamicWorker"] = self.dynamic.into();
        if self.whole_job {
            w = w.policy("restartScope", "Job");
        }
        let (scheduler, least) = self.gang;
        if let Some(least) = least {
            w = w.policy("schedulingPolicy", json!({"minAvailable": least}));
        }
        w.gang(scheduler)
    }
}
