//! For tests: an API server in memory that keeps versions, watches, selectors and preconditions as
//! the real one does.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::channel::mpsc;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::fake::{Asked, Fake, Reply};

/// What goes wrong with a request.
pub(crate) enum Fault {
    /// It is not carried out; this is the answer.
    Before(Reply),
    /// It is carried out; this is the answer.
    After(Reply),
}

type Faults = Box<dyn FnMut(&Asked) -> Option<Fault> + Send>;

/// Whoever watches: what, which of it, and where they listen.
struct Watcher {
    resource: String,
    selector: String,
    sender: mpsc::UnboundedSender<String>,
}

#[derive(Default)]
struct Store {
    version: u64,
    uids: u64,
    /// By resource, then `namespace/name`.
    objects: BTreeMap<(String, String), Value>,
    history: Vec<(u64, String, Value)>,
    watchers: Vec<Watcher>,
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

    /// A user makes a toy.
    pub(crate) fn submit(&self, name: &str, spec: &Value) {
        self.submit_to("toys", name, spec);
    }

    /// A user makes a job; its identity.
    pub(crate) fn submit_to(&self, resource: &str, name: &str, spec: &Value) -> String {
        self.make(resource, json!({"metadata": {"name": name, "generation": 1}, "spec": spec}))
    }

    /// Somebody makes a pod.
    pub(crate) fn make_pod(&self, pod: Value) {
        self.make("pods", pod);
    }

    /// Somebody makes an object; its identity.
    pub(crate) fn make(&self, resource: &str, object: Value) -> String {
        let made = self.0.lock().unwrap().create(resource, "default", object);
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// Somebody makes an object outside all namespaces.
    pub(crate) fn make_for_all(&self, resource: &str, object: Value) {
        self.0.lock().unwrap().create(resource, "", object);
    }

    /// Somebody changes an object.
    pub(crate) fn change(&self, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.0.lock().unwrap().update(resource, &format!("default/{name}"), change);
    }

    /// The same outside all namespaces.
    pub(crate) fn change_for_all(
        &self,
        resource: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        self.0.lock().unwrap().update(resource, &format!("/{name}"), change);
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

    /// An object outside all namespaces.
    pub(crate) fn get_for_all(&self, resource: &str, name: &str) -> Option<Value> {
        let key = (resource.to_owned(), format!("/{name}"));
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
            ("GET", None) => self.list(resource, &selector(&asked.query)),
            ("POST", None) => {
                let name = asked.body["metadata"]["name"].as_str().unwrap().to_owned();
                let key = (resource.to_owned(), format!("{namespace}/{name}"));
                if self.objects.contains_key(&key) {
                    return Reply::refuse(409, "AlreadyExists", &name);
                }
                Reply::Json(201, self.create(resource, namespace, asked.body.clone()))
            }
            ("POST", Some(name)) if rest.last() == Some(&"binding") => {
                let node = asked.body["target"]["name"].clone();
                if !self.objects.contains_key(&(resource.to_owned(), key.clone())) {
                    return Reply::refuse(404, "NotFound", name);
                }
                let bound = self.update(resource, &key, |pod| pod["spec"]["nodeName"] = node);
                Reply::Json(201, bound)
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
                if resource != "pods" || found["status"]["phase"] != "Running" {
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
                let differs = |field: &str| {
                    let wanted = &body["metadata"][field];
                    !wanted.is_null() && *wanted != found["metadata"][field]
                };
                if differs("uid") {
                    return Reply::refuse(409, "Conflict", "UID in precondition");
                }
                if differs("resourceVersion") {
                    return Reply::refuse(409, "Conflict", "changed");
                }
                Reply::Json(200, self.update(resource, key, |object| merge(object, body.clone())))
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
        self.watchers.retain(|watcher| {
            watcher.resource != resource
                || !is_selected(&watcher.selector, &object)
                || watcher.sender.unbounded_send(event.to_string()).is_ok()
        });
        object
    }

    fn list(&self, resource: &str, selector: &str) -> Reply {
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|((kind, _), object)| kind == resource && is_selected(selector, object))
            .map(|(_, object)| object)
            .collect();
        let meta = json!({"resourceVersion": self.version.to_string()});
        Reply::Json(200, json!({"metadata": meta, "items": items}))
    }

    fn watch(&mut self, resource: &str, query: &str) -> Reply {
        let from = query.split("resourceVersion=").nth(1).unwrap().split('&').next().unwrap();
        let from: u64 = from.parse().unwrap();
        let (sender, receiver) = mpsc::unbounded();
        let selector = selector(query);
        for (version, kind, event) in &self.history {
            if *version > from && kind == resource && is_selected(&selector, &event["object"]) {
                sender.unbounded_send(event.to_string()).unwrap();
            }
        }
        self.watchers.push(Watcher { resource: resource.to_owned(), selector, sender });
        Reply::Live(receiver)
    }
}

/// The label selector of a query.
fn selector(query: &str) -> String {
    let encoded = query.split('&').find_map(|part| part.strip_prefix("labelSelector="));
    encoded.unwrap_or_default().replace("%3D", "=").replace("%2F", "/")
}

fn is_selected(selector: &str, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    match selector.split_once('=') {
        None => selector.is_empty() || !labels[selector].is_null(),
        Some((label, value)) => labels[label] == value,
    }
}

/// A JSON merge patch.
pub(crate) fn merge(object: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *object = patch;
        return;
    };
    for (field, value) in fields {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(&field);
        } else {
            merge(&mut object[field], value);
        }
    }
}
