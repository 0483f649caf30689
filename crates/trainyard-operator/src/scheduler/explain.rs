//! Why a group waits, asked of a cluster once: everything is listed, nothing is followed.
//!
//! Must not write.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use trainyard_sched::{
    Claim, Config, CsiDriver, CsiNode, CsiStorageCapacity, DisruptionBudget, Explanation, GroupKey,
    Namespace, Node, Pod, PodGroup, PodName, PriorityClass, Queue, State, StorageClass, Volume,
    VolumeAttachment,
};

use super::Options;
use super::seen::Told;
use crate::calls::{Call, CallError, Calls, Turn, Verb};
use crate::clock::Clock;
use crate::watch::encoded;
use crate::{Denied, Error, Metrics};

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
    let explained = explain_each(client, options, &[(namespace, group)]).await?;
    let (namespace, name) = (namespace.to_owned(), group.to_owned());
    explained.into_iter().next().ok_or(Error::NoGroup { namespace, name })
}

/// The same of several groups, namespace and name of each, from one look at the cluster. Groups that are
/// not there are left out.
pub async fn explain_each(
    client: kube::Client,
    options: &Options,
    groups: &[(&str, &str)],
) -> Result<Vec<Explanation>, Error> {
    let Snapshot { state, unseen } = snapshot(client, options).await?;
    let now = Clock::start(options.time).now().as_second();
    let explain = |(namespace, name): &(&str, &str)| {
        let own = || ((*namespace).to_owned(), (*name).to_owned());
        let keys = [
            Some({
                let (namespace, name) = own();
                GroupKey::PodGroup { namespace, name }
            }),
            Some({
                let (namespace, name) = own();
                GroupKey::Gang { namespace, name }
            }),
            {
                let (namespace, name) = own();
                state.group_of(&PodName { namespace, name }).cloned()
            },
        ];
        let mut explained = keys.iter().flatten().find_map(|key| state.explain(key, now))?;
        explained.notes.extend(note_of(&unseen));
        Some(explained)
    };
    Ok(groups.iter().filter_map(explain).collect())
}

/// What was listed.
struct Snapshot {
    state: State,
    /// Details that may not be listed.
    unseen: Vec<Denied>,
}

fn note_of(unseen: &[Denied]) -> Option<String> {
    let names: Vec<_> = unseen.iter().map(|denied| denied.resource).collect();
    (!names.is_empty()).then(|| {
        format!(
            "you may not list {}: what is said of volumes, namespaces and pods that give way is without them",
            names.join(", ")
        )
    })
}

/// Lists everything. All that may not be listed is named together, so that the rights can be asked for
/// at once.
async fn snapshot(client: kube::Client, options: &Options) -> Result<Snapshot, Error> {
    let calls = Calls::new(client, Arc::new(Metrics::default()), &crate::Options::default());
    let mut state = State::with(Config { ..options.config() });
    let (mut denied, mut unseen) = (Vec::new(), Vec::new());
    read::<Pod>(&calls, &mut state, &mut denied, Presence::Required).await?;
    read::<Node>(&calls, &mut state, &mut denied, Presence::Required).await?;
    read::<PodGroup>(&calls, &mut state, &mut denied, Presence::Optional).await?;
    read::<Queue>(&calls, &mut state, &mut denied, Presence::Optional).await?;
    read::<PriorityClass>(&calls, &mut state, &mut denied, Presence::Optional).await?;
    read::<Claim>(&calls, &mut state, &mut denied, Presence::Optional).await?;
    read::<Volume>(&calls, &mut state, &mut denied, Presence::Optional).await?;
    read::<StorageClass>(&calls, &mut state, &mut unseen, Presence::Detail).await?;
    read::<CsiNode>(&calls, &mut state, &mut unseen, Presence::Detail).await?;
    read::<CsiDriver>(&calls, &mut state, &mut unseen, Presence::Detail).await?;
    read::<CsiStorageCapacity>(&calls, &mut state, &mut unseen, Presence::Detail).await?;
    read::<VolumeAttachment>(&calls, &mut state, &mut unseen, Presence::Detail).await?;
    read::<DisruptionBudget>(&calls, &mut state, &mut unseen, Presence::Detail).await?;
    read::<Namespace>(&calls, &mut state, &mut unseen, Presence::Detail).await?;
    if denied.is_empty() {
        Ok(Snapshot { state, unseen })
    } else {
        Err(Error::Forbidden { denied })
    }
}

/// Whether a server must serve a kind, and the account must be allowed to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// There is no answer without it.
    Required,
    /// A server may lack it.
    Optional,
    /// Few people may read it, and few clusters need it for an answer; a note says that it was not seen.
    Detail,
}

async fn read<T: Told>(
    calls: &Calls,
    state: &mut State,
    denied: &mut Vec<Denied>,
    presence: Presence,
) -> Result<(), Error> {
    let resource = T::KIND.source().resource;
    match list::<T>(calls, state).await {
        Ok(()) => Ok(()),
        Err(error) if error.code() == 404 && presence != Presence::Required => Ok(()),
        Err(error) if error.code() == 403 => {
            denied.push(Denied { resource, problem: error.to_string() });
            Ok(())
        }
        Err(error) => Err(Error::Unread { resource, problem: error.to_string() }),
    }
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
