//! Whether jobs of a kind are ours to run, by the definition of the kind.
//!
//! A definition that Trainyard installed carries its label. Where another system brought the
//! definition, that system runs the jobs: two would fight over each. Must not know a kind.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;
use trainyard_api::Meta;

use crate::{
    backoff::Backoff,
    calls::{Call, Turn, Verb},
    ground::Ground,
    kind::JobKind,
    options::VolcanoJobs,
};

const RESOURCE: &str = "customresourcedefinitions";
const LABEL: &str = "app.kubernetes.io/managed-by";
const US: &str = "trainyard";
const RETRY_MIN: Duration = Duration::from_secs(1);
/// How long until it is looked at again; definitions are installed rarely.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Waits until jobs of a kind are ours to run; whether they are before the operator stops.
pub(crate) async fn is_ours<K: JobKind>(ground: &Ground) -> bool {
    match ground.options.volcano_jobs {
        VolcanoJobs::Never => false,
        VolcanoJobs::Always => true,
        VolcanoJobs::Auto => tokio::select! {
            () = ground.stop.cancelled() => false,
            () = until_ours::<K>(ground) => true,
        },
    }
}

/// What is known of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Ours,
    Others,
    Nothing,
    /// It could not be read.
    Unknown(String),
}

async fn until_ours<K: JobKind>(ground: &Ground) {
    let definition = K::DEFINITION;
    let mut backoff = Backoff::new(RETRY_MIN, LOOK_AGAIN);
    let mut told = None;
    loop {
        let found = look::<K>(ground).await;
        if told.as_ref() != Some(&found) {
            match &found {
                Found::Ours => {
                    tracing::info!(definition, "the definition is ours: its jobs are run");
                }
                Found::Others => {
                    tracing::info!(
                        definition,
                        "the definition was not installed by Trainyard: {}",
                        K::LEFT
                    );
                }
                Found::Nothing => tracing::info!(definition, "there is no such definition yet"),
                Found::Unknown(error) => {
                    tracing::warn!(definition, error, "the definition cannot be read: {}", K::LEFT);
                }
            }
        }
        if found == Found::Ours {
            return;
        }
        let pause = match found {
            Found::Unknown(_) => backoff.failed(),
            _ => LOOK_AGAIN,
        };
        told = Some(found);
        sleep(pause).await;
    }
}

async fn look<K: JobKind>(ground: &Ground) -> Found {
    #[derive(Deserialize)]
    struct Definition {
        metadata: Meta,
    }
    let call = Call {
        verb: Verb::Get,
        resource: RESOURCE,
        path: format!("/apis/apiextensions.k8s.io/v1/{RESOURCE}/{}", K::DEFINITION),
        body: Vec::new(),
        turn: Turn::Free,
    };
    let answer = match ground.calls.send(call).await {
        Ok(answer) => answer,
        Err(error) if error.code() == 404 => return Found::Nothing,
        Err(error) => return Found::Unknown(error.to_string()),
    };
    match serde_json::from_slice::<Definition>(&answer) {
        Ok(found) if found.metadata.labels.get(LABEL).is_some_and(|by| by == US) => Found::Ours,
        Ok(_) => Found::Others,
        Err(error) => Found::Unknown(error.to_string()),
    }
}
