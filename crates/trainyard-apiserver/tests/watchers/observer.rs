//! One watcher: what it was told, span by span, and whether that is what was written.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, ResourceExt as _};

use crate::journal::{Contents, Journal, Key, Told, contents};

/// Longer than any back-off of the watcher, many times.
const PATIENCE: Duration = Duration::from_hours(2);

/// What a watcher watches, and how.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) namespace: Option<&'static str>,
    pub(crate) colour: Option<&'static str>,
    pub(crate) config: watcher::Config,
    /// How long it takes over each event.
    pub(crate) pace_ms: u64,
}

/// From one beginning to the next.
#[derive(Debug, Default)]
struct Span {
    begun: Contents,
    is_complete: bool,
    told: Vec<Told>,
}

pub(crate) struct Observer {
    scope: Scope,
    spans: Arc<Mutex<Vec<Span>>>,
    task: tokio::task::JoinHandle<()>,
}

pub(crate) fn start(client: kube::Client, scope: Scope) -> Observer {
    let spans = Arc::new(Mutex::new(Vec::new()));
    let api: Api<ConfigMap> = match scope.namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let task = tokio::spawn(follow(api, scope.clone(), Arc::clone(&spans)));
    Observer { scope, spans, task }
}

async fn follow(api: Api<ConfigMap>, scope: Scope, spans: Arc<Mutex<Vec<Span>>>) {
    let mut events = std::pin::pin!(watch(api, scope.config).default_backoff());
    while let Some(event) = events.next().await {
        if scope.pace_ms > 0 {
            tokio::time::sleep(Duration::from_millis(scope.pace_ms)).await;
        }
        // Errors are the connection's; the watcher goes on.
        let Ok(event) = event else { continue };
        note(&mut spans.lock().unwrap(), event);
    }
}

fn note(spans: &mut Vec<Span>, event: Event<ConfigMap>) {
    let told = |map: &ConfigMap, gone: bool| Told { revision: revision(map), key: key(map), gone };
    match event {
        Event::Init => spans.push(Span::default()),
        Event::InitApply(map) => {
            let span = spans.last_mut().unwrap();
            let before = span.begun.insert(key(&map), revision(&map));
            assert!(before.is_none(), "{:?} came twice at the beginning", key(&map));
        }
        Event::InitDone => spans.last_mut().unwrap().is_complete = true,
        Event::Apply(map) => spans.last_mut().unwrap().told.push(told(&map, false)),
        Event::Delete(map) => spans.last_mut().unwrap().told.push(told(&map, true)),
    }
}

fn key(map: &ConfigMap) -> Key {
    (map.namespace().unwrap(), map.name_any())
}

fn revision(map: &ConfigMap) -> u64 {
    map.resource_version().unwrap().parse().unwrap()
}

impl Observer {
    /// Waits until it knows everything, and checks what it was told on the way.
    pub(crate) async fn agree(self, journal: &Journal) {
        let written = journal.told(self.scope.namespace, self.scope.colour);
        let end = contents(&written);
        let knows_all = || {
            let spans = self.spans.lock().unwrap();
            let last = spans.iter().rev().find(|span| span.is_complete);
            last.is_some_and(|span| span.contents() == end)
        };
        let waiting = async {
            while !knows_all() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let done = tokio::time::timeout(PATIENCE, waiting).await;
        let spans = self.spans.lock().unwrap();
        assert!(done.is_ok(), "{:?} never came to {end:?}: {spans:?}", self.scope);
        self.task.abort();
        for span in &*spans {
            if span.is_complete {
                span.check(&written, &self.scope);
            }
        }
    }
}

impl Span {
    fn contents(&self) -> Contents {
        let mut now = self.begun.clone();
        for one in &self.told {
            if one.gone {
                now.remove(&one.key);
            } else {
                now.insert(one.key.clone(), one.revision);
            }
        }
        now
    }

    /// What was told is one unbroken piece of what was written, and it goes on where the beginning ends.
    fn check(&self, written: &[Told], scope: &Scope) {
        let Some(first) = self.told.first() else {
            let mut states = (0..=written.len()).map(|count| contents(&written[..count]));
            assert!(states.any(|state| state == self.begun), "{scope:?} began with {self:?}");
            return;
        };
        let at = written.iter().position(|one| one.revision == first.revision);
        let at = at.unwrap_or_else(|| panic!("{scope:?}: nobody wrote {first:?}"));
        assert_eq!(contents(&written[..at]), self.begun, "{scope:?}: a gap before {first:?}");
        let piece = &written[at..written.len().min(at + self.told.len())];
        assert_eq!(piece, self.told, "{scope:?}");
    }
}
