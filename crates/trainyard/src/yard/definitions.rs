//! The definitions that a yard has from its start: TFJob's and Volcano's.
//!
//! Owns which, and that this is a matter of moments, since it is part of every start: they are kept
//! beside this file as they are built by `trainyard_api`, and stored without being checked. Tests see
//! to it that they are what is built, and that the server would accept them.

use kube::Api;
use kube::api::{DynamicObject, PostParams};
use serde_json::Value;
use trainyard_apiserver::Server;

use super::operator_pod::api;
use crate::failure::Failure;

const TFJOBS: &str = include_str!("definitions/tfjobs.json");
const POD_GROUPS: &str = include_str!("definitions/podgroups.json");
const QUEUES: &str = include_str!("definitions/queues.json");
const JOBS: &str = include_str!("definitions/jobs.json");
const COMMANDS: &str = include_str!("definitions/commands.json");

/// Makes all definitions what this version of the program has. PodGroups and Queues are always there,
/// since TFJobs are scheduled by them; the kinds of Volcano Jobs only where they are wanted.
pub(super) async fn define(server: &Server, volcano_jobs: bool) -> Result<(), Failure> {
    let definitions: Result<Vec<Value>, _> =
        wanted(volcano_jobs).iter().map(|text| serde_json::from_str(text)).collect();
    let definitions =
        definitions.map_err(|error| Failure::other("reading the definitions", &error))?;
    let failed = |error| Failure::other("installing the definitions", &error);
    let others = server.bring(definitions).await.map_err(failed)?;
    let api = api(&server.client("trainyard"), "apiextensions.k8s.io", DEFINITION, None);
    for definition in &others {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        change(&api, name, &definition["spec"])
            .await
            .map_err(|error| Failure::other(format!("changing the definition {name}"), &error))?;
    }
    Ok(())
}

/// Makes the specification of a definition this one, whole: what an older version of the program had in
/// it and this one has not goes.
async fn change(api: &Api<DynamicObject>, name: &str, spec: &Value) -> Result<(), kube::Error> {
    let mut definition = api.get(name).await?;
    definition.data["spec"] = spec.clone();
    api.replace(name, &PostParams::default(), &definition).await.map(drop)
}

const DEFINITION: &str = "CustomResourceDefinition";

fn wanted(volcano_jobs: bool) -> &'static [&'static str] {
    const ALL: [&str; 5] = [TFJOBS, POD_GROUPS, QUEUES, JOBS, COMMANDS];
    if volcano_jobs { &ALL } else { ALL.split_at(3).0 }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kube::api::{ApiResource, ListParams};
    use kube::core::GroupVersionKind;
    use trainyard_api::volcano::crd;
    use trainyard_apiserver::Settings;

    use super::*;

    /// Files beside this one, and what they are to hold. With `TRAINYARD_WRITE_DEFINITIONS` set they are
    /// written.
    #[test]
    fn the_files_hold_what_is_built() {
        for (file, text, built) in [
            ("tfjobs", TFJOBS, trainyard_api::tfjob_crd()),
            ("podgroups", POD_GROUPS, crd::pod_group_crd()),
            ("queues", QUEUES, crd::queue_crd()),
            ("jobs", JOBS, crd::job_crd()),
            ("commands", COMMANDS, crd::command_crd()),
        ] {
            let file = format!("{file}.json");
            if std::env::var_os("TRAINYARD_WRITE_DEFINITIONS").is_some() {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/yard/definitions");
                std::fs::write(folder.join(&file), format!("{built}\n")).unwrap();
            } else {
                let kept: Value = serde_json::from_str(text).unwrap();
                let how = "TRAINYARD_WRITE_DEFINITIONS=1 cargo test -p trainyard definitions";
                assert!(kept == built, "{file} is not what is built any more: `{how}`");
            }
        }
    }

    fn names(texts: &[&str]) -> Vec<String> {
        let read = |text: &&str| -> Value { serde_json::from_str(text).unwrap() };
        texts.iter().map(|text| read(text)["metadata"]["name"].as_str().unwrap().into()).collect()
    }

    #[test]
    fn a_yard_for_tfjobs_has_the_kinds_that_they_are_scheduled_by() {
        let few = [
            "tfjobs.kubeflow.org",
            "podgroups.scheduling.volcano.sh",
            "queues.scheduling.volcano.sh",
        ];
        assert_eq!(names(wanted(false)), few);
        assert_eq!(names(wanted(true))[..3], few);
        assert_eq!(names(wanted(true))[3..], ["jobs.batch.volcano.sh", "commands.bus.volcano.sh"]);
    }

    /// All definitions of a server, without what no two servers have in common.
    async fn stored(server: &Server) -> Vec<Value> {
        let api = api(&server.client("trainyard"), "apiextensions.k8s.io", DEFINITION, None);
        let list = api.list(&ListParams::default()).await.unwrap();
        let mut all: Vec<Value> =
            list.items.iter().map(|object| serde_json::to_value(object).unwrap()).collect();
        for object in &mut all {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.retain(|key, _| ["name", "generation"].contains(&key.as_str()));
            for condition in object["status"]["conditions"].as_array_mut().unwrap() {
                condition.as_object_mut().unwrap().remove("lastTransitionTime").unwrap();
            }
        }
        all
    }

    #[tokio::test]
    async fn what_is_brought_is_what_the_server_would_have_accepted() {
        let brought = Server::open(Settings::default()).unwrap();
        define(&brought, true).await.unwrap();
        let checked = Server::open(Settings::default()).unwrap();
        let definitions = api(&checked.client("x"), "apiextensions.k8s.io", DEFINITION, None);
        for text in wanted(true) {
            let object = serde_json::from_str(text).unwrap();
            definitions.create(&PostParams::default(), &object).await.unwrap();
        }
        assert_eq!(stored(&brought).await.len(), 5);
        assert_eq!(stored(&brought).await, stored(&checked).await);
        // Served at once.
        let queue = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "Queue");
        let queue = ApiResource::from_gvk(&queue);
        let queues: Api<DynamicObject> = Api::all_with(brought.client("x"), &queue);
        assert!(queues.list(&ListParams::default()).await.unwrap().items.is_empty());
    }

    #[tokio::test]
    async fn one_that_says_something_else_is_changed_by_the_ordinary_way() {
        let server = Server::open(Settings::default()).unwrap();
        let mut old: Value = serde_json::from_str(TFJOBS).unwrap();
        old["spec"]["names"]["shortNames"] = serde_json::json!(["tf"]);
        assert_eq!(server.bring(vec![old]).await.unwrap(), [Value::Null; 0]);
        define(&server, false).await.unwrap();
        let after = stored(&server).await;
        let tfjobs = after.iter().find(|one| one["metadata"]["name"] == "tfjobs.kubeflow.org");
        assert_eq!(tfjobs.unwrap()["metadata"]["generation"], 2);
        assert_eq!(after.len(), 3);
        define(&server, false).await.unwrap();
        assert_eq!(stored(&server).await, after, "nothing is written twice");
    }
}
