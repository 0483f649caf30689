//! The definitions that a yard has from its start: TFJob's and Volcano's.
//!
//! Owns which, and that they are made side by side: the time that this takes is part of every start.

use futures::future::try_join_all;
use kube::Client;
use serde_json::Value;
use trainyard_api::volcano::crd;

use super::operator_pod::{api, put};
use crate::failure::Failure;

/// Makes all definitions what this version of the program has. PodGroups and Queues are always there,
/// since TFJobs are scheduled by them; the kinds of Volcano Jobs only where they are wanted.
pub(super) async fn define(client: &Client, volcano_jobs: bool) -> Result<(), Failure> {
    let definitions = api(client, "apiextensions.k8s.io", "CustomResourceDefinition", None);
    try_join_all(wanted(volcano_jobs).into_iter().map(|definition| {
        let definitions = definitions.clone();
        async move {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            put(&definitions, definition).await.map_err(|error| {
                Failure::other(format!("installing the definition {name}"), &error)
            })
        }
    }))
    .await
    .map(drop)
}

fn wanted(volcano_jobs: bool) -> Vec<Value> {
    let mut all = vec![trainyard_api::tfjob_crd(), crd::pod_group_crd(), crd::queue_crd()];
    if volcano_jobs {
        all.extend([crd::job_crd(), crd::command_crd()]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yard_for_tfjobs_has_the_kinds_that_they_are_scheduled_by() {
        let names = |volcano_jobs: bool| -> Vec<String> {
            let all = wanted(volcano_jobs).into_iter();
            all.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let few = [
            "tfjobs.kubeflow.org",
            "podgroups.scheduling.volcano.sh",
            "queues.scheduling.volcano.sh",
        ];
        assert_eq!(names(false), few);
        assert_eq!(names(true)[..3], few);
        assert_eq!(names(true)[3..], ["jobs.batch.volcano.sh", "commands.bus.volcano.sh"]);
    }
}
