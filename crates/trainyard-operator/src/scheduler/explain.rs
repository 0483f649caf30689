//! Why a group waits, asked of a cluster once: everything is listed, nothing is followed.
//!
//! Must not write.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use trainyard_sched::{
    Claim, Config, CsiDriver, CsiNode, CsiStorageCapacity, DisruptionBudget, Explanation, GroupKey,
    Node, Pod, PodGroup, PodName, PriorityClass, Queue, State, StorageClass, Volume,
    VolumeAttachment,
};

use super::Options;
use super::seen::Told;
use crate::calls::{Call, CallError, Calls, Turn, Verb};
use crate::clock::Clock;
use crate::watch::encoded;
use crate::{Error, Metrics};

/// Objects of one answer.
const PAGE: usize = 500;

/// Why a group waits: by the name of its PodGroup, of the gang that its pods name, or of one of its
/// pods.
pub async fn explain(
    client: kube::Client,
    options: &Options,
    namespace: &str,
    group: &str,
) -> Result<Explanation, Error> {
    let state = snapshot(client, options).await?;
    let now = Clock::start(options.time).now().as_second();
    let (namespace, name) = (namespace.to_owned(), group.to_owned());
    let own = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
    let keys = [
        Some(GroupKey::PodGroup { namespace: namespace.clone(), name: name.clone() }),
        Some(GroupKey::Gang { namespace: namespace.clone(), name: name.clone() }),
        {
            let (namespace, name) = own(&namespace, &name);
            state.group_of(&PodName { namespace, name }).cloned()
        },
    ];
    let explained = keys.iter().flatten().find_map(|key| state.explain(key, now));
    explained.ok_or(Error::NoGroup { namespace, name })
}

/// The groups with members that wait on a cluster, each explained.
pub async fn explain_all(
    client: kube::Client,
    options: &Options,
) -> Result<Vec<Explanation>, Error> {
    let state = snapshot(client, options).await?;
    let now = Clock::start(options.time).now().as_second();
    Ok(state.waiting().filter_map(|key| state.explain(key, now)).collect())
}

async fn snapshot(client: kube::Client, options: &Options) -> Result<State, Error> {
    let calls = Calls::new(client, Arc::new(Metrics::default()), &crate::Options::default());
    let mut state = State::with(Config { ..options.config() });
    read::<Pod>(&calls, &mut state).await?;
    read::<Node>(&calls, &mut state).await?;
    read_if_there::<PodGroup>(&calls, &mut state).await?;
    read_if_there::<Queue>(&calls, &mut state).await?;
    read_if_there::<PriorityClass>(&calls, &mut state).await?;
    read_if_there::<Claim>(&calls, &mut state).await?;
    read_if_there::<Volume>(&calls, &mut state).await?;
    read_if_allowed::<StorageClass>(&calls, &mut state).await?;
    read_if_allowed::<CsiNode>(&calls, &mut state).await?;
    read_if_allowed::<CsiDriver>(&calls, &mut state).await?;
    read_if_allowed::<CsiStorageCapacity>(&calls, &mut state).await?;
    read_if_allowed::<VolumeAttachment>(&calls, &mut state).await?;
    read_if_allowed::<DisruptionBudget>(&calls, &mut state).await?;
    Ok(state)
}

/// What few people may read, and few clusters need for an answer.
async fn read_if_allowed<T: Told>(calls: &Calls, state: &mut State) -> Result<(), Error> {
    match list::<T>(calls, state).await {
        Err(error) if matches!(error.code(), 403 | 404) => Ok(()),
        other => other.map_err(|error| unread::<T>(&error)),
    }
}

async fn read_if_there<T: Told>(calls: &Calls, state: &mut State) -> Result<(), Error> {
    match list::<T>(calls, state).await {
        Err(error) if error.code() == 404 => Ok(()),
        other => other.map_err(|error| unread::<T>(&error)),
    }
}

async fn read<T: Told>(calls: &Calls, state: &mut State) -> Result<(), Error> {
    list::<T>(calls, state).await.map_err(|error| unread::<T>(&error))
}

fn unread<T: Told>(error: &CallError) -> Error {
    Error::Unread { resource: T::KIND.source().resource, problem: error.to_string() }
}

/// Tells the state of all objects of a kind. One that cannot be read harms no other.
async fn list<T: Told>(calls: &Calls, state: &mut State) -> Result<(), CallError> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(default)]
        metadata: PageMeta,
        #[serde(borrow, default)]
        items: Vec<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct PageMeta {
        r#continue: String,
    }
    let source = T::KIND.source();
    let mut next = String::new();
    loop {
        let mut path = format!("{}?limit={PAGE}", source.path);
        if !next.is_empty() {
            path.push_str("&continue=");
            path.push_str(&encoded(&next));
        }
        let (body, turn) = (Vec::new(), Turn::Free);
        let call = Call { verb: Verb::List, resource: source.resource, path, body, turn };
        let answer = calls.send(call).await?;
        let page: Page<'_> = serde_json::from_slice(&answer)
            .map_err(|error| CallError::Answer(error.to_string()))?;
        for item in page.items {
            if let Ok(object) = serde_json::from_str::<T>(item.get()) {
                state.apply(object.there());
            }
        }
        if page.metadata.r#continue.is_empty() {
            return Ok(());
        }
        next = page.metadata.r#continue;
    }
}
