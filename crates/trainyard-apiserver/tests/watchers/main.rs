//! kube's own `watcher` against a model: whatever is written at the same time, however often its
//! connection is cut and its history forgotten, it sees every version once and in order, or begins anew.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test: whatever is not as it should be ends it"
)]

mod broken;
mod journal;
mod observer;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::runtime::watcher;
use proptest::prelude::*;
use tokio::sync::RwLock;
use trainyard_apiserver::{Server, Settings};

use journal::Journal;
use observer::Scope;

const NAMESPACES: [&str; 2] = ["default", "kube-system"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const COLOURS: [&str; 2] = ["red", "blue"];
const WRITERS: usize = 3;

/// What a writer does next.
#[derive(Debug, Clone)]
enum Deed {
    Put {
        namespace: usize,
        name: usize,
        colour: usize,
    },
    Delete {
        namespace: usize,
        name: usize,
    },
    /// Lets the others go on, in milliseconds.
    Rest(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    let (namespace, name) = (0..NAMESPACES.len(), 0..NAMES.len());
    prop_oneof![
        8 => (namespace.clone(), name.clone(), 0..COLOURS.len())
            .prop_map(|(namespace, name, colour)| Deed::Put { namespace, name, colour }),
        3 => (namespace, name).prop_map(|(namespace, name)| Deed::Delete { namespace, name }),
        2 => (1..40_u64).prop_map(Deed::Rest),
    ]
}

/// How the watchers look.
fn scopes() -> Vec<Scope> {
    let streaming = watcher::InitialListStrategy::StreamingList;
    let config = watcher::Config::default;
    let with_strategy = |strategy| watcher::Config { initial_list_strategy: strategy, ..config() };
    vec![
        Scope { namespace: None, colour: None, config: config().page_size(2), pace_ms: 0 },
        Scope { namespace: None, colour: None, config: config().page_size(1), pace_ms: 7 },
        Scope { namespace: Some("default"), colour: None, config: config(), pace_ms: 1 },
        Scope {
            namespace: None,
            colour: Some("red"),
            config: with_strategy(streaming.clone()).labels("colour=red"),
            pace_ms: 0,
        },
        Scope {
            namespace: Some("default"),
            colour: Some("blue"),
            config: config().labels("colour=blue").timeout(2),
            pace_ms: 11,
        },
        Scope { namespace: None, colour: None, config: with_strategy(streaming), pace_ms: 3 },
    ]
}

/// Carries out what one writer is to do, and writes down what was acknowledged.
async fn write(client: kube::Client, deeds: Vec<Deed>, journal: Arc<RwLock<Journal>>) {
    for deed in deeds {
        match deed {
            Deed::Rest(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Deed::Put { namespace, name, colour } => {
                let (namespace, name) = (NAMESPACES[namespace], NAMES[name]);
                let map = ConfigMap {
                    metadata: ObjectMeta {
                        name: Some(name.to_owned()),
                        labels: Some([("colour".to_owned(), COLOURS[colour].to_owned())].into()),
                        ..ObjectMeta::default()
                    },
                    // Every version is another one.
                    data: Some([("n".to_owned(), journal::serial().to_string())].into()),
                    ..ConfigMap::default()
                };
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
                // Others write at the same time; only whoever deletes wants to be alone.
                let journal = journal.read().await;
                let written = match api.create(&PostParams::default(), &map).await {
                    Err(kube::Error::Api(status)) if status.code == 409 => {
                        api.replace(name, &PostParams::default(), &map).await
                    }
                    created => created,
                };
                let written = written.unwrap();
                let revision = written.metadata.resource_version.unwrap().parse().unwrap();
                journal.put(revision, namespace, name, COLOURS[colour]);
            }
            Deed::Delete { namespace, name } => {
                let (namespace, name) = (NAMESPACES[namespace], NAMES[name]);
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
                let journal = journal.write().await;
                if api.delete(name, &DeleteParams::default()).await.is_ok() {
                    let listed = api.list(&ListParams::default().limit(1)).await.unwrap();
                    let revision = listed.metadata.resource_version.unwrap().parse().unwrap();
                    journal.delete(revision, namespace, name);
                }
            }
        }
    }
}

async fn play(deeds: Vec<Vec<Deed>>, history: usize, seed: u64) {
    let settings = Settings { history, ..Settings::default() };
    let server = Server::open(settings).unwrap();
    let client = server.client("admin");
    for namespace in NAMESPACES {
        let body = serde_json::json!({"metadata": {"name": namespace}});
        let request = http::Request::post("/api/v1/namespaces").body(body.to_string().into_bytes());
        // Some are there from the start.
        drop(client.request_text(request.unwrap()).await);
    }
    let journal = Arc::new(RwLock::new(Journal::default()));
    let observers: Vec<_> = scopes()
        .into_iter()
        .enumerate()
        .map(|(number, scope)| {
            let seed = seed.wrapping_add(number as u64 * 7919);
            let client = broken::client(server.client("observer"), seed);
            observer::start(client, scope)
        })
        .collect();
    let writers = deeds
        .into_iter()
        .map(|deeds| tokio::spawn(write(client.clone(), deeds, Arc::clone(&journal))));
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let journal = journal.read().await;
    for observer in observers {
        observer.agree(&journal).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn a_watcher_sees_every_version_once_and_in_order_or_begins_anew(
        deeds in prop::collection::vec(prop::collection::vec(deed(), 1..40), WRITERS),
        history in prop_oneof![Just(4_usize), Just(20), Just(10_000)],
        seed in any::<u64>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(play(deeds, history, seed));
    }
}
