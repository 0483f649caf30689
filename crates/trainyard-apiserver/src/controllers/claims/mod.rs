//! Claims and volumes: claims are bound to static volumes that suit them, or to a directory that is
//! made for them; what becomes of volumes whose claims go; protection of what is in use.
//!
//! Must not know how volumes get into pods. What is decided is in [`choose`] and [`step`].

mod bind;
mod choose;
mod folder;
mod protect;
mod reclaim;
mod step;
mod view;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::error::Error;
use super::events::Recorder;
use super::follow::{News, Source, follow};
use super::queue::{Next, Queue};
use super::view::{HasMeta, Key};
use super::{Context, held};
use view::{Claim, Class, ServedPod, User, Volume};

/// Who makes directories for claims; the provisioner of the class `standard`.
pub(super) const PROVISIONER: &str = "trainyard.dev/directory";

const WIDTH: usize = 4;
/// A claim of a class that nobody knows waits so long for a static volume of that class: people
/// create both with one command, in any order.
const STATIC_GRACE: Duration = Duration::from_secs(2);
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Claim(Key),
    Volume(String),
    /// A pod that has claims of its own.
    Pod(Key),
}

/// What is known of the cluster.
#[derive(Debug, Default)]
struct Known {
    claims: BTreeMap<Key, Claim>,
    volumes: BTreeMap<String, Volume>,
    classes: BTreeMap<String, Class>,
    /// Pods that use claims.
    users: BTreeMap<Key, User>,
    /// Whether claims, volumes, classes and pods have been listed.
    listed: [bool; 4],
    /// What was last said about a claim.
    told: BTreeMap<Key, String>,
    /// Since when a claim waits for a volume of a class that nobody knows.
    waiting: BTreeMap<Key, Instant>,
}

impl Known {
    fn is_complete(&self) -> bool {
        !self.listed.contains(&false)
    }

    /// The pods that use a claim.
    fn users_of(&self, claim: &Key) -> impl Iterator<Item = (&Key, &User)> {
        self.users.iter().filter(|(pod, user)| {
            pod.namespace == claim.namespace && user.claims.contains(&claim.name)
        })
    }
}

struct Controller {
    context: Context,
    recorder: Recorder,
    known: Mutex<Known>,
    queue: Queue<Task>,
}

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let controller = Controller {
        recorder: context.recorder("persistentvolume-controller"),
        context,
        known: Mutex::default(),
        queue: Queue::new(),
    };
    let this = &controller;
    let calls = &controller.context.calls;
    let source = Source::new("/api/v1/persistentvolumeclaims");
    let claims = follow(calls, &source, |news| this.hear_claims(news));
    let source = Source::new("/api/v1/persistentvolumes");
    let volumes = follow(calls, &source, |news| this.hear_volumes(news));
    let source = Source::new(CLASSES);
    let classes = follow(calls, &source, |news| this.hear_classes(news));
    let source = Source::new("/api/v1/pods");
    let pods = follow(calls, &source, |news| this.hear_pods(news));
    let work = controller.queue.work(WIDTH, async |task| this.attend(task).await);
    tokio::join!(claims, volumes, classes, pods, work);
}

impl Controller {
    async fn attend(&self, task: Task) -> Result<Next, Error> {
        if !held(&self.known).is_complete() {
            // Everything is looked at when the last list has come.
            return Ok(Next::Rest);
        }
        match task {
            Task::Claim(key) => self.attend_claim(&key).await,
            Task::Volume(name) => self.attend_volume(&name).await,
            Task::Pod(key) => self.attend_pod(&key).await,
        }
    }

    fn look_at_all(&self, known: &Known) {
        if known.is_complete() {
            self.queue.add_all(known.claims.keys().cloned().map(Task::Claim));
            self.queue.add_all(known.volumes.keys().cloned().map(Task::Volume));
            self.queue.add_all(known.users.keys().cloned().map(Task::Pod));
        }
    }

    /// Claims that wait for a volume.
    fn look_at_waiting(&self, known: &Known) {
        let waiting = known.claims.iter().filter(|(_, claim)| !claim.is_bound());
        self.queue.add_all(waiting.map(|(key, _)| Task::Claim(key.clone())));
    }

    fn hear_claims(&self, news: News<Claim>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                known.claims = all.into_iter().map(|one| (one.meta().key(), one)).collect();
                known.listed[0] = true;
                let Known { claims, told, waiting, .. } = &mut *known;
                told.retain(|key, _| claims.contains_key(key));
                waiting.retain(|key, _| claims.contains_key(key));
                self.look_at_all(&known);
            }
            News::There(one) => {
                let key = one.meta().key();
                self.look_at_volume(&one);
                known.claims.insert(key.clone(), one);
                self.queue.add(Task::Claim(key));
            }
            News::Gone(one) => {
                let key = one.meta().key();
                known.claims.remove(&key);
                known.told.remove(&key);
                known.waiting.remove(&key);
                self.look_at_volume(&one);
            }
        }
    }

    fn look_at_volume(&self, claim: &Claim) {
        if !claim.spec.volume_name.is_empty() {
            self.queue.add(Task::Volume(claim.spec.volume_name.clone()));
        }
    }

    fn hear_volumes(&self, news: News<Volume>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                let all = all.into_iter().map(|one| (one.meta().name.clone(), one));
                known.volumes = all.collect();
                known.listed[1] = true;
                self.look_at_all(&known);
            }
            News::There(one) => {
                let name = one.meta().name.clone();
                let free = one.spec.claim_ref.is_none();
                let claim = one.spec.claim_ref.as_ref().map(view::ClaimRef::key);
                known.volumes.insert(name.clone(), one);
                self.queue.add(Task::Volume(name));
                self.queue.add_all(claim.map(Task::Claim));
                if free {
                    self.look_at_waiting(&known);
                }
            }
            News::Gone(one) => {
                known.volumes.remove(&one.meta().name);
                if let Some(to) = &one.spec.claim_ref {
                    self.queue.add(Task::Claim(to.key()));
                }
            }
        }
    }

    fn hear_classes(&self, news: News<Class>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                known.classes = all.into_iter().map(|one| (one.meta().name.clone(), one)).collect();
                known.listed[2] = true;
                self.look_at_all(&known);
            }
            News::There(one) => {
                known.classes.insert(one.meta().name.clone(), one);
                self.look_at_waiting(&known);
            }
            News::Gone(one) => {
                known.classes.remove(&one.meta().name);
            }
        }
    }

    fn hear_pods(&self, news: News<ServedPod>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                let users =
                    all.into_iter().filter_map(|one| Some((one.meta().key(), User::of(one)?)));
                known.users = users.collect();
                known.listed[3] = true;
                self.look_at_all(&known);
            }
            News::There(one) => {
                let key = one.meta().key();
                let new = User::of(one);
                self.user_changed(&mut known, key, new);
            }
            News::Gone(one) => {
                let key = one.meta().key();
                self.user_changed(&mut known, key, None);
            }
        }
    }

    fn user_changed(&self, known: &mut Known, key: Key, new: Option<User>) {
        if known.users.get(&key) == new.as_ref() {
            return;
        }
        let old = known.users.remove(&key);
        for claim in old.iter().chain(&new).flat_map(|user| &user.claims) {
            let claim = Key { namespace: key.namespace.clone(), name: claim.clone() };
            // Only who waits for a user, or for the last one to go, cares.
            let cares = |claim: &Claim| !claim.is_bound() || claim.metadata.is_deleting();
            if known.claims.get(&claim).is_some_and(cares) {
                self.queue.add(Task::Claim(claim));
            }
        }
        if let Some(new) = new {
            if !new.own.is_empty() && !new.going {
                self.queue.add(Task::Pod(key.clone()));
            }
            known.users.insert(key, new);
        }
    }
}
