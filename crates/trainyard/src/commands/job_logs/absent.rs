//! What is said where a log that was asked for, or every one, is not there.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::Logs;
use super::before::Traces;
use super::find::{Found, replica};
use super::missing::Missing;
use super::{gone, pods};
use crate::cluster::{Cluster, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::{events, one_line};
use crate::run::words::some;

/// Replicas that are named to whoever has named another.
const NAMED: usize = 12;

/// Why there is no run before the present one, where there was one.
const REPLACED: &str =
    "the pod before the present one is gone, and a cluster keeps the logs of deleted pods nowhere";
/// The same in a yard, which keeps them as long as its folder.
const NOT_KEPT: &str = "the pod before the present one is gone, and its log has not been kept";

/// Says of replicas without an earlier run in their present pod what became of the pod before it.
pub(super) async fn replaced(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    is_yard: bool,
    pods: &[Value],
    shown: &BTreeSet<String>,
    missing: &mut Missing,
) {
    let all = all_events(cluster, found).await;
    let job = found.job.as_ref().map(|(_, job)| job);
    let traces = Traces { job, events: &all, now: Timestamp::now() };
    let present = pods.iter().map(|pod| (replica(pod), Some(pod)));
    let absent = job
        .map_or_else(Vec::new, gone::known)
        .into_iter()
        .filter(|name| !pods.iter().any(|pod| replica(pod) == *name));
    for (replica, pod) in present.chain(absent.map(|name| (name, None))) {
        if !logs.wants(&replica) || shown.contains(&replica) {
            continue;
        }
        let facts = traces.of(&replica, pod);
        if facts.is_empty() {
            continue;
        }
        if pod.is_some() {
            missing.add(&replica, if is_yard { NOT_KEPT } else { REPLACED });
        }
        missing.detail(&replica, facts.join("; "));
    }
}

/// The events of the namespace, in their order; none where they may not be read, which is said.
async fn all_events(cluster: &Cluster, found: &Found) -> Vec<Value> {
    let Some(kind) = &found.events else { return Vec::new() };
    let all = cluster.objects(kind, Some(&found.namespace), &Query::default()).await;
    let mut all = all.unwrap_or_else(|error| {
        let words = one_line(&error.to_string());
        output::warn(&format!("events, which tell of earlier pods, cannot be read: {words}"));
        Vec::new()
    });
    events::sort(&mut all);
    all
}

/// Why there is nothing to show.
pub(super) fn nothing(
    logs: &Logs,
    found: &Found,
    pods: &[Value],
    missing: Missing,
    how: Option<&str>,
) -> Result<(), Failure> {
    let name = &found.name;
    if let Some(container) = &logs.container
        && pods.iter().any(|pod| logs.wants(&replica(pod)))
        && !pods.iter().any(|pod| logs.wants(&replica(pod)) && pods::has_container(pod, container))
    {
        let which = if logs.replica.is_empty() { "" } else { " that is meant" };
        return Err(Failure::plain(format!(
            "no pod of {name:?}{which} has a container {container:?}"
        )));
    }
    let job = found.job.as_ref().map(|(_, job)| job);
    let known = job.map_or_else(Vec::new, gone::known);
    let mut all: Vec<String> = pods.iter().map(replica).chain(known).collect();
    if !all.is_empty() && !all.iter().any(|replica| logs.wants(replica)) {
        all.sort_unstable();
        all.dedup();
        let asked = logs.replica.join(",");
        return Err(Failure::plain(format!("{name:?} has no replica {asked:?}"))
            .hint(format!("it has {}", some(&all, NAMED))));
    }
    // Where no pod is left, the status is all there is.
    let state = job.filter(|_| pods.is_empty());
    if let Some(job) = state {
        output::say(&gone::what_is_known(name, job, Timestamp::now()));
    } else if let Some(how) = how {
        output::say(&format!("{name}: {how}\n"));
    }
    if !missing.is_empty() {
        return missing.tell();
    }
    if logs.previous {
        let why = format!(
            "no earlier run of {name:?} is known: no container was restarted in its present pod, and \
             neither the job's status nor events tell of earlier pods"
        );
        return Err(Failure::plain(why).hint("clusters keep events for about an hour"));
    }
    if state.is_some_and(|job| gone::finished(job).is_some()) {
        return Err(Failure::plain(format!(
            "the pods of {name:?} are gone, and their logs with them"
        )));
    }
    output::say(&format!("nothing was printed yet by {name}: it has no pods\n"));
    Ok(())
}
