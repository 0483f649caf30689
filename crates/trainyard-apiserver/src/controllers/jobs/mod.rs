//! Jobs of `batch/v1`: pods are made from their template until enough have succeeded, or too many
//! have failed.
//!
//! Each pass reads the job and its pods from the API server as they are now, so that nothing has to
//! be remembered of what was written before; what is followed only says when to look. Must not know
//! how pods are placed or run. What is decided is in [`decide`] and [`settle`].

mod attend;
mod backoff;
mod decide;
mod indexes;
mod pods;
mod release;
mod settle;
mod surplus;
mod template;
mod view;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use trainyard_schema::select::labels::Selector;

use super::calls::object;
use super::events::{About, Recorder, Weight};
use super::follow::{News, Source, follow};
use super::queue::Queue;
use super::view::{Bare, HasMeta, Key, Meta};
use super::{Context, held};
use backoff::Backoff;
use view::{Job, controller};

const WIDTH: usize = 8;
const BATCH: &str = "/apis/batch/v1";
/// News about pods come in crowds; one look serves them all.
const CROWD: Duration = Duration::from_millis(200);

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Job(Key),
    /// A pod that nobody counts.
    Pod(Key),
}

/// A job, as far as its pods need it.
#[derive(Debug)]
struct Owning {
    uid: String,
    selector: Selector,
    finished: bool,
    /// The number of its spec's version.
    generation: u64,
}

/// What is known of the cluster.
#[derive(Debug, Default)]
struct Known {
    jobs: BTreeMap<Key, Owning>,
    pods: BTreeMap<Key, Meta>,
    /// The failures of jobs that go on, by UID.
    failures: BTreeMap<String, Backoff>,
    /// Whether jobs and pods have been listed.
    listed: [bool; 2],
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
        recorder: context.recorder("job-controller"),
        context,
        known: Mutex::default(),
        queue: Queue::new(),
    };
    let this = &controller;
    let calls = &controller.context.calls;
    let source = Source::new(format!("{BATCH}/jobs"));
    let jobs = follow(calls, &source, |news| this.hear_jobs(news));
    let source = Source::bare("/api/v1/pods");
    let pods = follow(calls, &source, |news| this.hear_pods(news));
    let work = controller.queue.work(WIDTH, async |task: Task| match task {
        Task::Job(key) => this.attend_job(&key).await,
        Task::Pod(key) => this.attend_stray(&key).await,
    });
    tokio::join!(jobs, pods, work);
}

/// The path of a job.
fn job_path(key: &Key) -> String {
    object(BATCH, &key.namespace, "jobs", &key.name)
}

fn about(job: &Meta) -> About {
    About {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        namespace: job.namespace.clone(),
        name: job.name.clone(),
        uid: job.uid.clone(),
    }
}

fn selector(of: &Value) -> Selector {
    Selector::from_label_selector(of).unwrap_or_else(|_| Selector::nothing())
}

fn selects(selector: &Selector, pod: &Meta) -> bool {
    let labels: Vec<(Box<str>, Box<str>)> = pod
        .labels
        .iter()
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect();
    selector.matches(&labels)
}

impl Known {
    fn pods_of<'a>(&'a self, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a Meta)> {
        in_namespace(&self.pods, namespace)
    }

    /// The jobs that a pod may matter to.
    fn jobs_of(&self, pod: &Meta) -> Vec<Key> {
        match controller(pod) {
            Some(owner) if owner.kind == "Job" => {
                let key = Key { namespace: pod.namespace.clone(), name: owner.name.clone() };
                let known = self.jobs.get(&key).is_some_and(|job| job.uid == owner.uid);
                if known { vec![key] } else { Vec::new() }
            }
            Some(_) => Vec::new(),
            None => in_namespace(&self.jobs, &pod.namespace)
                .filter(|(_, job)| selects(&job.selector, pod))
                .map(|(key, _)| key.clone())
                .collect(),
        }
    }

    /// Whether no job counts a pod that waits for it.
    fn is_stray(&self, pod: &Meta) -> bool {
        if !pod.has_finalizer(view::TRACKING) {
            return false;
        }
        let Some(owner) = controller(pod) else { return true };
        let key = Key { namespace: pod.namespace.clone(), name: owner.name.clone() };
        let counts = |job: &Owning| job.uid == owner.uid && !job.finished;
        owner.kind == "Job" && !self.jobs.get(&key).is_some_and(counts)
    }
}

fn in_namespace<'a, T>(
    all: &'a BTreeMap<Key, T>,
    namespace: &str,
) -> impl Iterator<Item = (&'a Key, &'a T)> {
    let from = Key { namespace: namespace.to_owned(), name: String::new() };
    let namespace = namespace.to_owned();
    all.range(from..).take_while(move |(key, _)| key.namespace == namespace)
}

impl Controller {
    async fn tell(&self, job: &Meta, weight: Weight, reason: &str, message: &str) {
        self.recorder.record(&about(job), weight, reason, message).await;
    }

    fn hear_jobs(&self, news: News<Job>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                known.jobs.clear();
                for job in &all {
                    known.jobs.insert(job.meta().key(), Owning::of(job));
                    self.queue.add(Task::Job(job.meta().key()));
                }
                known.listed[0] = true;
                self.look_for_strays(&known, None);
            }
            News::There(job) => {
                let key = job.meta().key();
                let now = Owning::of(&job);
                let before = known.jobs.get(&key);
                let is_news =
                    before.is_none_or(|old| old.uid != now.uid || old.generation != now.generation);
                let finished = now.finished;
                known.jobs.insert(key.clone(), now);
                // What a pass of our own wrote needs no hurry.
                let after = if is_news { Duration::ZERO } else { CROWD };
                self.queue.add_after(Task::Job(key.clone()), after);
                if finished {
                    self.look_for_strays(&known, Some(&key.namespace));
                }
            }
            News::Gone(job) => {
                known.jobs.remove(&job.meta().key());
                known.failures.remove(&job.meta().uid);
                self.look_for_strays(&known, Some(&job.meta().namespace));
            }
        }
    }

    /// Looks at the pods that nobody counts, of one namespace or of all.
    fn look_for_strays(&self, known: &Known, namespace: Option<&str>) {
        let stray = |pod: &Meta| {
            namespace.is_none_or(|namespace| pod.namespace == namespace) && known.is_stray(pod)
        };
        if !known.listed.contains(&false) {
            let strays = known.pods.iter().filter(|(_, pod)| stray(pod));
            self.queue.add_all(strays.map(|(key, _)| Task::Pod(key.clone())));
        }
    }

    fn hear_pods(&self, news: News<Bare>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                known.pods = all.into_iter().map(|one| (one.meta().key(), one.metadata)).collect();
                known.listed[1] = true;
                self.queue.add_all(known.jobs.keys().cloned().map(Task::Job));
                self.look_for_strays(&known, None);
            }
            News::There(pod) => {
                let (key, meta) = (pod.meta().key(), pod.metadata);
                let mut jobs = known.jobs_of(&meta);
                // One that has left a job is that job's matter too.
                jobs.extend(known.pods.get(&key).into_iter().flat_map(|old| known.jobs_of(old)));
                if known.listed[0] && known.is_stray(&meta) {
                    self.queue.add(Task::Pod(key.clone()));
                }
                known.pods.insert(key, meta);
                self.look_at(jobs);
            }
            News::Gone(pod) => {
                let jobs = known.jobs_of(pod.meta());
                known.pods.remove(&pod.meta().key());
                self.look_at(jobs);
            }
        }
    }

    fn look_at(&self, jobs: Vec<Key>) {
        for key in jobs {
            self.queue.add_after(Task::Job(key), CROWD);
        }
    }
}

impl Owning {
    fn of(job: &Job) -> Self {
        Self {
            uid: job.metadata.uid.clone(),
            selector: selector(&job.spec.selector),
            finished: job.is_finished(),
            generation: job.metadata.generation,
        }
    }
}
