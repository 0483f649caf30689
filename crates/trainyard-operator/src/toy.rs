//! For tests: an API server in memory that keeps versions, watches and preconditions as the real
//! one does, and a small kind of job with a planner of a few lines.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::channel::mpsc;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_api::Meta;
use trainyard_core::{Config, Create, Delete, Event, Mark, Phase, Plan, Stage, Write};

use crate::{
    cache::Object,
    fake::{Asked, Fake, Reply},
    kind::{JobKind, Seen},
};

/// Jobs that want some pods and are done when all of them have succeeded.
#[derive(Debug)]
pub(crate) struct Toys;

#[derive(Debug, Deserialize)]
pub(crate) struct Toy {
    metadata: Meta,
    spec: ToySpec,
    #[serde(default)]
    status: ToyStatus,
}

#[derive(Debug, Deserialize)]
struct ToySpec {
    pods: u32,
    deadline: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
struct ToyStatus {
    #[serde(default)]
    phase: String,
}

impl Object for Toy {
    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn version(&self) -> u64 {
        self.metadata.version()
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, _: &Self) -> bool {
        false
    }
}

fn status(phase: &str, mark: Mark) -> Write {
    Write::PatchStatus { patch: json!({"phase": phase}), marks: vec![mark] }
}

impl JobKind for Toys {
    type Job = Toy;

    const API_VERSION: &'static str = "toys.dev/v1";
    const KIND: &'static str = "Toy";
    const RESOURCE: &'static str = "toys";
    const STATUS: &'static str = "toys/status";
    const LABEL: (&'static str, &'static str) = ("by", "toys");
    const EVENT_SOURCE: &'static str = "toymaker";
    const FRAMEWORK: &'static str = "toy";
    const REMEDY: &'static str = "install toys";

    fn meta(job: &Toy) -> &Meta {
        &job.metadata
    }

    fn is_finished(job: &Toy) -> bool {
        job.status.phase == "Done"
    }

    fn plan(seen: &Seen<Toy>, now: Timestamp, _: &Config) -> Plan {
        let mut plan = Plan::default();
        let (job, meta) = (&seen.job, &seen.job.metadata);
        if Self::is_finished(job) {
            return plan;
        }
        if job.status.phase.is_empty() {
            let writes = vec![status("Created", Mark::Created)];
            plan.push(Stage { writes, events: vec![Event::normal("Created", "Toy is created.")] });
        }
        let end = |plan: &mut Plan, mark| {
            let event = Event::normal("Done", "Toy is done.").terminal();
            plan.push(Stage { writes: vec![status("Done", mark)], events: vec![event] });
        };
        if let (Some(deadline), Some(created)) = (job.spec.deadline, meta.creation_timestamp) {
            let due = trainyard_api::time::after_seconds(created, deadline);
            if now >= due {
                end(&mut plan, Mark::Failed);
                return plan;
            }
            plan.look_again(due);
        }
        let succeeded = seen.pods.iter().filter(|pod| pod.phase == Phase::Succeeded).count();
        if job.spec.pods > 0 && succeeded >= job.spec.pods as usize {
            end(&mut plan, Mark::Succeeded);
            return plan;
        }
        let failed = seen.pods.iter().filter(|pod| pod.phase == Phase::Failed);
        let deletions = failed.filter(|pod| pod.deletion.is_none()).map(|pod| {
            Write::DeletePod(Delete {
                name: pod.name.to_string(),
                uid: pod.uid.to_string(),
                group: "toy",
                index: 0,
                grace_seconds: None,
            })
        });
        plan.push(Stage { writes: deletions.collect(), events: vec![] });
        let missing = (0..job.spec.pods).filter_map(|index| {
            let name = format!("{}-{index}", meta.name);
            let is_there = seen.pods.iter().any(|pod| *pod.name == name);
            (!is_there).then(|| {
                Write::CreatePod(Create { body: pod(&name, &meta.uid), name, group: "toy", index })
            })
        });
        plan.push(Stage { writes: missing.collect(), events: vec![] });
        plan
    }
}

pub(crate) fn pod(name: &str, owner: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"by": "toys"}, "ownerReferences": [
        {"apiVersion": "toys.dev/v1", "kind": "Toy", "name": "t", "uid": owner, "controller": true},
    ]}})
}

/// What goes wrong with a request.
pub(crate) enum Fault {
    /// It is not carried out; this is the answer.
    Before(Reply),
    /// It is carried out; this is the answer.
    After(Reply),
}

type Faults = Box<dyn FnMut(&Asked) -> Option<Fault> + Send>;

#[derive(Default)]
struct Store {
    version: u64,
    uids: u64,
    /// By resource, then `namespace/name`.
    objects: BTreeMap<(String, String), Value>,
    history: Vec<(u64, String, Value)>,
    watchers: Vec<(String, mpsc::UnboundedSender<String>)>,
    faults: Option<Faults>,
}

/// The server.
#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Mutex<Store>>);

impl Server {
    pub(crate) fn fake(&self) -> Fake {
        let server = self.clone();
        Fake::new(move |asked| server.answer(asked))
    }

    /// From now on this goes wrong.
    pub(crate) fn faults(&self, faults: impl FnMut(&Asked) -> Option<Fault> + Send + 'static) {
        self.0.lock().unwrap().faults = Some(Box::new(faults));
    }

    /// A user makes a job.
    pub(crate) fn submit(&self, name: &str, spec: &Value) {
        let mut store = self.0.lock().unwrap();
        let object = json!({"metadata": {"name": name, "generation": 1}, "spec": spec});
        store.create("toys", "default", object);
    }

    /// Somebody makes a pod.
    pub(crate) fn make_pod(&self, pod: Value) {
        self.0.lock().unwrap().create("pods", "default", pod);
    }

    /// Somebody changes an object.
    pub(crate) fn change(&self, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.0.lock().unwrap().update(resource, &format!("default/{name}"), change);
    }

    pub(crate) fn pod_phase(&self, name: &str, phase: &str) {
        self.change("pods", name, |pod| pod["status"]["phase"] = json!(phase));
    }

    /// Somebody deletes an object.
    pub(crate) fn delete(&self, resource: &str, name: &str) {
        self.0.lock().unwrap().remove(resource, &format!("default/{name}"));
    }

    pub(crate) fn get(&self, resource: &str, name: &str) -> Option<Value> {
        let key = (resource.to_owned(), format!("default/{name}"));
        self.0.lock().unwrap().objects.get(&key).cloned()
    }

    pub(crate) fn names(&self, resource: &str) -> Vec<String> {
        let store = self.0.lock().unwrap();
        let of_resource = store.objects.iter().filter(|((kind, _), _)| kind == resource);
        of_resource.map(|((_, name), _)| name.trim_start_matches("default/").to_owned()).collect()
    }

    /// Messages of all events, in the order they were made.
    pub(crate) fn events(&self) -> Vec<String> {
        let store = self.0.lock().unwrap();
        let made = store
            .history
            .iter()
            .filter(|(_, resource, event)| resource == "events" && event["type"] == "ADDED");
        made.map(|(.., event)| event["object"]["message"].as_str().unwrap().to_owned()).collect()
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let mut store = self.0.lock().unwrap();
        let mut faults = store.faults.take();
        let fault = faults.as_mut().and_then(|faults| faults(asked));
        store.faults = faults;
        match fault {
            Some(Fault::Before(reply)) => reply,
            Some(Fault::After(reply)) => {
                store.serve(asked);
                reply
            }
            None => store.serve(asked),
        }
    }
}

impl Store {
    fn serve(&mut self, asked: &Asked) -> Reply {
        let parts: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
        let rest = if parts[0] == "api" { &parts[2..] } else { &parts[3..] };
        let (namespace, resource, name) = match rest {
            ["namespaces", namespace, resource, rest @ ..] => (*namespace, *resource, rest.first()),
            [resource, rest @ ..] => ("", *resource, rest.first()),
            [] => return Reply::refuse(404, "NotFound", ""),
        };
        let key = format!("{namespace}/{}", name.unwrap_or(&""));
        match (asked.method.as_str(), name) {
            ("GET", None) if asked.is_watch() => self.watch(resource, &asked.query),
            ("GET", None) => self.list(resource),
            ("POST", None) => {
                let name = asked.body["metadata"]["name"].as_str().unwrap().to_owned();
                let key = (resource.to_owned(), format!("{namespace}/{name}"));
                if self.objects.contains_key(&key) {
                    return Reply::refuse(409, "AlreadyExists", &name);
                }
                Reply::Json(201, self.create(resource, namespace, asked.body.clone()))
            }
            (method, Some(name)) => {
                let Some(found) = self.objects.get(&(resource.to_owned(), key.clone())) else {
                    return Reply::refuse(404, "NotFound", name);
                };
                let found = found.clone();
                self.serve_one(method, resource, &key, &asked.body, found)
            }
            _ => Reply::refuse(405, "MethodNotAllowed", ""),
        }
    }

    fn serve_one(
        &mut self,
        method: &str,
        resource: &str,
        key: &str,
        body: &Value,
        found: Value,
    ) -> Reply {
        match method {
            "GET" => Reply::Json(200, found),
            "DELETE" => {
                if body["preconditions"]["uid"] != found["metadata"]["uid"] {
                    return Reply::refuse(409, "Conflict", "UID in precondition");
                }
                if found["status"]["phase"] != "Running" {
                    return Reply::Json(200, self.remove(resource, key));
                }
                let ending = json!("2030-01-01T00:00:00Z");
                Reply::Json(
                    200,
                    self.update(resource, key, |object| {
                        object["metadata"]["deletionTimestamp"] = ending;
                        object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
                    }),
                )
            }
            "PUT" => {
                if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"] {
                    return Reply::refuse(409, "Conflict", "changed");
                }
                Reply::Json(200, self.update(resource, key, |object| *object = body.clone()))
            }
            "PATCH" => {
                let wanted = &body["metadata"]["resourceVersion"];
                if !wanted.is_null() && *wanted != found["metadata"]["resourceVersion"] {
                    return Reply::refuse(409, "Conflict", "changed");
                }
                let status = body["status"].as_object().cloned().unwrap_or_default();
                Reply::Json(
                    200,
                    self.update(resource, key, |object| {
                        for (field, value) in status {
                            object["status"][field] = value;
                        }
                    }),
                )
            }
            _ => Reply::refuse(405, "MethodNotAllowed", ""),
        }
    }

    fn create(&mut self, resource: &str, namespace: &str, mut object: Value) -> Value {
        self.uids += 1;
        let meta = &mut object["metadata"];
        meta["uid"] = json!(format!("uid-{}", self.uids));
        meta["namespace"] = json!(namespace);
        meta["creationTimestamp"] = json!(Timestamp::now().to_string());
        let key = format!("{namespace}/{}", meta["name"].as_str().unwrap());
        self.store(resource, &key, object, "ADDED")
    }

    fn update(&mut self, resource: &str, key: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut object = self.objects[&(resource.to_owned(), key.to_owned())].clone();
        change(&mut object);
        self.store(resource, key, object, "MODIFIED")
    }

    fn remove(&mut self, resource: &str, key: &str) -> Value {
        let object = self.objects[&(resource.to_owned(), key.to_owned())].clone();
        let object = self.store(resource, key, object, "DELETED");
        self.objects.remove(&(resource.to_owned(), key.to_owned()));
        object
    }

    fn store(&mut self, resource: &str, key: &str, mut object: Value, event: &str) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert((resource.to_owned(), key.to_owned()), object.clone());
        let event = json!({"type": event, "object": object});
        self.history.push((self.version, resource.to_owned(), event.clone()));
        self.watchers.retain(|(watched, sender)| {
            watched != resource || sender.unbounded_send(event.to_string()).is_ok()
        });
        object
    }

    fn list(&self, resource: &str) -> Reply {
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|((kind, _), _)| kind == resource)
            .map(|(_, object)| object)
            .collect();
        let meta = json!({"resourceVersion": self.version.to_string()});
        Reply::Json(200, json!({"metadata": meta, "items": items}))
    }

    fn watch(&mut self, resource: &str, query: &str) -> Reply {
        let from = query.split("resourceVersion=").nth(1).unwrap().split('&').next().unwrap();
        let from: u64 = from.parse().unwrap();
        let (sender, receiver) = mpsc::unbounded();
        for (version, kind, event) in &self.history {
            if *version > from && kind == resource {
                sender.unbounded_send(event.to_string()).unwrap();
            }
        }
        self.watchers.push((resource.to_owned(), sender));
        Reply::Live(receiver)
    }
}

/// Lets the operator work for a while.
pub(crate) async fn pass_time(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
