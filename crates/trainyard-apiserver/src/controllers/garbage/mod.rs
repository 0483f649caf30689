//! Garbage collection: objects whose owners are gone go too; owners that wait for their dependents,
//! or for setting them free, are seen to.
//!
//! Follows the metadata of every kind that discovery names, new ones at once. Must not know any kind
//! but definitions, whose coming and going is when to discover again.

mod absent;
mod attend;
mod graph;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::calls::Calls;
use super::definitions::DEFINITIONS;
use super::events::Recorder;
use super::follow::{News, Source, follow};
use super::queue::Queue;
use super::resources::{Resource, Resources};
use super::view::Bare;
use super::{Context, held};
use absent::Absent;
use graph::{Graph, KindId, Uid};

/// Deletions under way at a time.
const WIDTH: usize = 16;
/// The first look at owners waits no longer for slow lists.
const PATIENCE: Duration = Duration::from_secs(20);
/// When to discover again after a definition has changed: a server may be slow to serve it.
const DISCOVERIES: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
];
/// What a kind must be able to do to have a part in this.
const VERBS: [&str; 4] = ["list", "watch", "get", "delete"];

/// What all parts of the collector share.
struct Collector {
    calls: Calls,
    recorder: Recorder,
    graph: Mutex<Graph>,
    queue: Queue<Uid>,
    /// All kinds ever followed, by their [`KindId`].
    kinds: Mutex<Vec<Resource>>,
    resources: Mutex<Arc<Resources>>,
    absent: Absent,
    listed: watch::Sender<BTreeSet<KindId>>,
}

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let collector = Arc::new(Collector {
        recorder: context.recorder("garbage-collector-controller"),
        calls: context.calls,
        graph: Mutex::default(),
        queue: Queue::new(),
        kinds: Mutex::default(),
        resources: Mutex::default(),
        absent: Absent::default(),
        listed: watch::Sender::default(),
    });
    let mut monitors = Monitors::default();
    while !monitors.discover(&collector).await {
        sleep(DISCOVERIES[2]).await;
    }
    let changed = Notify::new();
    let discover = async {
        loop {
            changed.notified().await;
            for pause in DISCOVERIES {
                // A further change begins the row of looks again.
                if timeout(pause, changed.notified()).await.is_ok() {
                    changed.notify_one();
                    sleep(DISCOVERIES[0]).await;
                    break;
                }
                monitors.discover(&collector).await;
            }
        }
    };
    let source = Source::bare(DEFINITIONS);
    let definitions = follow(&collector.calls, &source, |_: News<Bare>| changed.notify_one());
    let work = async {
        collector.until_listed().await;
        let collector = &collector;
        collector.queue.work(WIDTH, async |uid| collector.attend(&uid).await).await;
    };
    tokio::join!(discover, definitions, work);
}

impl Collector {
    /// Before everything is listed once, many owners look as if they were not there.
    async fn until_listed(&self) {
        let kinds = held(&self.kinds).len();
        let mut listed = self.listed.subscribe();
        let all = listed.wait_for(|listed| listed.len() >= kinds);
        let _ = timeout(PATIENCE, all).await;
    }

    fn hear(&self, kind: KindId, news: News<Bare>) {
        let mut graph = held(&self.graph);
        let look = match news {
            News::All(objects) => {
                let mut look = graph.all(kind, objects.iter().map(|object| &object.metadata));
                // Owners may have come and gone between two watches.
                look.extend(graph.doubtful());
                self.listed.send_modify(|listed| {
                    listed.insert(kind);
                });
                look
            }
            News::There(object) => graph.there(kind, &object.metadata),
            News::Gone(object) => {
                self.absent.add(object.metadata.uid.as_str().into());
                graph.gone(&object.metadata.uid)
            }
        };
        drop(graph);
        self.queue.add_all(look);
    }

    /// A kind is served no more; its objects went with it.
    fn forget(&self, kind: KindId) {
        let mut graph = held(&self.graph);
        let mut look = Vec::new();
        for uid in graph.of_kind(kind) {
            look.extend(graph.gone(&uid));
            self.absent.add(uid);
        }
        drop(graph);
        self.queue.add_all(look);
    }
}

/// The kinds that are followed now, by group and plural.
#[derive(Default)]
struct Monitors {
    running: BTreeMap<(String, String), (KindId, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl Monitors {
    /// Asks what there is and follows that; false when nobody answered.
    async fn discover(&mut self, collector: &Arc<Collector>) -> bool {
        let found = match Resources::discover(&collector.calls).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "kinds cannot be discovered; trying again");
                return false;
            }
        };
        let wanted = found.all.iter().filter(|kind| kind.can(&VERBS) && !kind.is_events());
        let mut there = BTreeSet::new();
        for kind in wanted {
            let key = (kind.group.clone(), kind.plural.clone());
            there.insert(key.clone());
            if !self.running.contains_key(&key) {
                self.follow(collector, key, kind);
            }
        }
        // As long as a group does not answer, nothing is known to have gone.
        if found.unknown.is_empty() {
            let gone: Vec<_> =
                self.running.keys().filter(|key| !there.contains(*key)).cloned().collect();
            for key in gone {
                if let Some((kind, task)) = self.running.remove(&key) {
                    task.abort();
                    collector.forget(kind);
                }
            }
        }
        let changed = {
            let mut known = held(&collector.resources);
            let changed = **known != found;
            *known = Arc::new(found);
            changed
        };
        if changed {
            // An owner of a kind that was unknown may be found now.
            let doubtful = held(&collector.graph).doubtful();
            collector.queue.add_all(doubtful);
        }
        true
    }

    fn follow(&mut self, collector: &Arc<Collector>, key: (String, String), kind: &Resource) {
        let id = {
            let mut kinds = held(&collector.kinds);
            kinds.push(kind.clone());
            KindId::try_from(kinds.len() - 1).unwrap_or(KindId::MAX)
        };
        let source = Source::bare(kind.path("", ""));
        let collector = Arc::clone(collector);
        let task = self.tasks.spawn(async move {
            follow(&collector.calls, &source, |news| collector.hear(id, news)).await;
        });
        self.running.insert(key, (id, task));
    }
}
