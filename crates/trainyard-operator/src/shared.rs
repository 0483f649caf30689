//! What the watches and the passes share: the cache, the queue, and notes about each job.
//!
//! Owns how news becomes work. Must not know requests or plans.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;
use trainyard_core::{
    Aid, Event, Mark, NodeView, PodView,
    aid::{ClassFacts, CommandFacts, Presence},
};

use crate::{
    Metrics,
    cache::{Cache, Change, Object, Store},
    kind::{JobKind, Seen},
    metrics::JobCount,
    nodes::LostNodes,
    queue::Queue,
    schedule::{Cause, Uid},
    watch::News,
};

/// What is remembered of a job between passes, beside the cache. Losing it loses nothing but a
/// little time.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Since when changed counts have been held back.
    pub(crate) counts_pending_since: Option<Timestamp>,
    /// Turns whose record may or may not have been written, and the version it was written over.
    pub(crate) in_doubt: Option<(u64, Vec<Mark>)>,
    /// What was told as lasting trouble with the last pass.
    pub(crate) noticed: Vec<Event>,
    /// A generation from which objects could not be created, and what the API server said.
    pub(crate) refused: Option<(i64, String)>,
    /// Why an object could not be created when that was last tried.
    pub(crate) create_failure: Option<String>,
    /// The last of pods that have gone and had been restarted in place, until that is recorded.
    pub(crate) departed: Vec<Arc<PodView>>,
    /// Passes in a row that wrote something.
    pub(crate) busy: u32,
    /// Of these in addition those that left something for the next one to create.
    pub(crate) batches: u32,
}

/// The store of one kind of object.
pub(crate) type Pick<J, T> = fn(&mut Cache<J>) -> &mut Store<T>;

/// The cache, the queue and the notes.
pub(crate) struct Shared<K: JobKind> {
    cache: Mutex<Cache<K::Job>>,
    notes: Mutex<BTreeMap<Uid, Notes>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) metrics: Arc<Metrics>,
    acting: AtomicBool,
}

impl<K: JobKind> Shared<K> {
    pub(crate) fn new(queue: Arc<Queue>, metrics: Arc<Metrics>) -> Self {
        Self {
            cache: Mutex::default(),
            notes: Mutex::default(),
            queue,
            metrics,
            acting: AtomicBool::new(false),
        }
    }

    /// From now on this operator acts.
    pub(crate) fn act(&self) {
        self.acting.store(true, Ordering::Relaxed);
        self.metrics.leader(true);
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache<K::Job>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the notes about a job.
    pub(crate) fn note<R>(&self, uid: &Uid, with: impl FnOnce(&mut Notes) -> R) -> R {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        with(notes.entry(Uid::clone(uid)).or_default())
    }

    /// Drops the notes about a job that has gone during its pass.
    pub(crate) fn tidy_notes(&self, uid: &Uid) {
        if self.cache().jobs.get(uid).is_none() {
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        }
    }

    /// A job, if there is one of that identity.
    pub(crate) fn job(&self, uid: &str) -> Option<Arc<K::Job>> {
        self.cache().jobs.get(uid).map(Arc::clone)
    }

    /// Everything that is known of a job; nothing if there is no such job.
    pub(crate) fn see(&self, uid: &Uid) -> Option<Seen<K::Job>> {
        let (counts_pending_since, refused, create_failure, departed) = {
            let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            let notes = notes.get(uid);
            (
                notes.and_then(|notes| notes.counts_pending_since),
                notes.and_then(|notes| notes.refused.clone()),
                notes.and_then(|notes| notes.create_failure.clone()),
                notes.map(|notes| notes.departed.clone()).unwrap_or_default(),
            )
        };
        let cache = self.cache();
        let job = Arc::clone(cache.jobs.get(uid)?);
        let generation = K::meta(&job).generation;
        let namespace = &K::meta(&job).namespace;
        let claims = cache.claims.all().filter(|claim| *claim.namespace == **namespace);
        let claims = claims.map(Arc::clone).collect();
        Some(Seen {
            job,
            refused: refused.filter(|(of, _)| *of == generation).map(|(_, text)| text),
            create_failure,
            pods: cache.nodes.judge(cache.pods.owned_by(uid)),
            services: cache.services.owned_by(uid).to_vec(),
            config_maps: cache.config_maps.owned_by(uid).to_vec(),
            policies: cache.policies.owned_by(uid).to_vec(),
            claims,
            groups: cache.groups.owned_by(uid).to_vec(),
            commands: cache.commands.owned_by(uid).to_vec(),
            classes: cache.classes.all().map(Arc::clone).collect(),
            counts_pending_since,
            departed,
        })
    }

    /// So many of the departed are recorded, the first of them.
    pub(crate) fn recorded(&self, uid: &Uid, departed: usize) {
        if departed > 0 {
            self.note(uid, |notes| {
                notes.departed.drain(..departed.min(notes.departed.len()));
            });
        }
    }

    /// News about jobs.
    pub(crate) fn hear_jobs(&self, news: News<K::Job>) {
        for Change { before, after } in self.hear(K::RESOURCE, |cache| &mut cache.jobs, news) {
            match (before, after) {
                (_, Some(job)) => {
                    self.queue.wake(job.uid(), Cause::Job(K::meta(&job).generation));
                }
                (Some(job), None) => self.gone(&job),
                (None, None) => {}
            }
        }
    }

    /// News about objects that belong to jobs.
    pub(crate) fn hear_children<T: Object>(
        &self,
        resource: &'static str,
        store: Pick<K::Job, T>,
        news: News<T>,
    ) {
        let changes = self.hear(resource, store, news);
        self.wake_owners(&changes);
    }

    /// News about pods. What one that has gone shows at last is kept until a pass has recorded it.
    pub(crate) fn hear_pods(&self, news: News<PodView>) {
        let changes = self.hear("pods", |cache| &mut cache.pods, news);
        let gone = changes.iter().filter(|change| change.after.is_none());
        for pod in gone.filter_map(|change| change.before.as_ref()) {
            // Whoever does not act records nothing; nor does anybody of a job that has ended.
            let is_counted = pod.restarts() > 0 && self.acting.load(Ordering::Relaxed);
            let job = pod.owner().filter(|_| is_counted).and_then(|owner| self.job(owner));
            if let Some(job) = job.filter(|job| !K::is_finished(job)) {
                self.note(&job.uid().into(), |notes| notes.departed.push(Arc::clone(pod)));
            }
        }
        self.wake_owners(&changes);
    }

    /// News about Commands. What is asked of a finished job has to be looked at as well.
    pub(crate) fn hear_commands(&self, news: News<Aid<CommandFacts>>) {
        let changes = self.hear("commands", |cache| &mut cache.commands, news);
        for command in changes.iter().filter_map(|change| change.after.as_ref()) {
            if let Some(job) = command.owner().and_then(|uid| self.job(uid)) {
                self.queue.wake(job.uid(), Cause::Job(K::meta(&job).generation));
            }
        }
        self.wake_owners(&changes);
    }

    /// News about priority classes. They belong to nobody and may matter to every job.
    pub(crate) fn hear_classes(&self, news: News<Aid<ClassFacts>>) {
        if self.hear("priorityclasses", |cache| &mut cache.classes, news).is_empty() {
            return;
        }
        let jobs: Vec<_> = self.cache().jobs.all().map(Arc::clone).collect();
        for job in jobs {
            self.queue.wake(job.uid(), Cause::Child);
        }
    }

    /// News about claims. One that belongs to nobody may be named by any job of its namespace.
    pub(crate) fn hear_claims(&self, news: News<Aid<Presence>>) {
        let changes = self.hear("persistentvolumeclaims", |cache| &mut cache.claims, news);
        self.wake_owners(&changes);
        let come = changes.iter().filter(|change| change.before.is_none());
        let come = come.filter_map(|change| change.after.as_ref());
        let namespaces: BTreeSet<&str> = come.map(|claim| &*claim.namespace).collect();
        if namespaces.is_empty() {
            return;
        }
        let jobs: Vec<_> = self.cache().jobs.all().map(Arc::clone).collect();
        for job in jobs.iter().filter(|job| namespaces.contains(&*K::meta(job).namespace)) {
            self.queue.wake(job.uid(), Cause::Child);
        }
    }

    /// News about nodes. A pod does not always show that its node is lost.
    pub(crate) fn hear_nodes(&self, news: News<NodeView>) {
        self.change_nodes(|nodes, has_pods| nodes.hear(news, has_pods));
    }

    /// Nothing can be learnt about nodes.
    pub(crate) fn no_nodes(&self) {
        self.change_nodes(|nodes, _| nodes.forget());
    }

    fn change_nodes(
        &self,
        change: impl FnOnce(&mut LostNodes, &dyn Fn(&str) -> bool) -> BTreeSet<Box<str>>,
    ) {
        let mut cache = self.cache();
        let Cache { pods, nodes, .. } = &mut *cache;
        let number = |nodes: &LostNodes| i64::try_from(nodes.len()).unwrap_or(i64::MAX);
        let before = number(nodes);
        let changed = change(nodes, &|name| pods.all().any(|pod| *pod.node == *name));
        let growth = number(nodes) - before;
        let owners: BTreeSet<Box<str>> = if changed.is_empty() {
            BTreeSet::new()
        } else {
            let moved = pods.all().filter(|pod| changed.contains(&pod.node));
            moved.filter_map(|pod| pod.owner.clone()).collect()
        };
        drop(cache);
        self.metrics.cached("nodes", growth);
        for owner in &owners {
            self.queue.wake(owner, Cause::Child);
        }
    }

    fn hear<T: Object>(
        &self,
        resource: &'static str,
        store: Pick<K::Job, T>,
        news: News<T>,
    ) -> Vec<Change<T>> {
        let mut cache = self.cache();
        let store = store(&mut cache);
        let changes = match news {
            News::All { objects, unreadable, version } => {
                store.relist(objects, &unreadable, version)
            }
            News::There(object) => store.see(object).into_iter().collect(),
            News::Gone { uid, version, last } => {
                store.see_gone(&uid, version, last).into_iter().collect()
            }
        };
        let growth = store.growth();
        drop(cache);
        self.metrics.cached(resource, growth);
        changes
    }

    /// An answer said that the job does not exist any more.
    pub(crate) fn own_job_gone(&self, uid: &str) {
        let gone = self.cache().jobs.own_gone(uid);
        if let Some(job) = gone {
            self.gone(&job);
        }
    }

    fn gone(&self, job: &K::Job) {
        self.queue.forget(job.uid());
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).remove(job.uid());
        if self.acting.load(Ordering::Relaxed) {
            let meta = K::meta(job);
            self.metrics.job(JobCount::Deleted, &meta.namespace, K::FRAMEWORK);
            if let Some(queue) = K::queue(job) {
                self.metrics.forget_end(&meta.namespace, &meta.name, &queue);
            }
            let (namespace, name) = (&meta.namespace, &meta.name);
            tracing::info!(job = %format_args!("{namespace}/{name}"), uid = meta.uid, "job deleted");
        }
    }

    fn wake_owners<T: Object>(&self, changes: &[Change<T>]) {
        for change in changes {
            let before = change.before.as_ref().and_then(|object| object.owner());
            let after = change.after.as_ref().and_then(|object| object.owner());
            if let Some(owner) = after {
                self.queue.wake(owner, Cause::Child);
            }
            if let Some(owner) = before.filter(|owner| Some(*owner) != after) {
                self.queue.wake(owner, Cause::Child);
            }
        }
    }
}
