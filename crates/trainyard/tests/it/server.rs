//! A server of few words that answers what real ones were seen to answer, for tests of the command.
//!
//! An answer may change when something else has been asked for. A watch ends at once, as where a server
//! cuts it short. The log of the run before has a path of its own: it ends with `?previous`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::process::{Ended, run};

/// How often each path has been asked for.
#[derive(Default)]
pub(crate) struct Asked(BTreeMap<String, usize>);

impl Asked {
    pub(crate) fn times(&self, path: &str) -> usize {
        self.0.get(path).copied().unwrap_or_default()
    }
}

/// From when on an answer is given.
type When = fn(&Asked) -> bool;

/// A path and what it is answered with.
pub(crate) struct Route {
    path: &'static str,
    /// The last whose time has come counts.
    answers: Vec<(When, u16, Value)>,
}

impl Route {
    pub(crate) fn new(path: &'static str, code: u16, body: Value) -> Self {
        Self { path, answers: vec![(|_| true, code, body)] }
    }

    /// Another answer from some time on.
    pub(crate) fn then(mut self, when: When, code: u16, body: Value) -> Self {
        self.answers.push((when, code, body));
        self
    }
}

/// A server, for as long as the test.
pub(crate) struct Server {
    folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn with(routes: Vec<Route>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut all = discovery();
        all.extend(routes);
        let (routes, asked) = (Arc::new(all), Arc::<Mutex<Asked>>::default());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (routes, asked) = (Arc::clone(&routes), Arc::clone(&asked));
                std::thread::spawn(move || answer(stream, &routes, &asked));
            }
        });
        let folder = tempfile::tempdir().expect("a folder");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context":
                {"cluster": "c", "user": "u", "namespace": "team"}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), config.to_string()).expect("a file");
        Self { folder }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        let file = self.folder.path().join("kubeconfig");
        run(&[args, &["--kubeconfig", file.to_str().expect("the path is text")]].concat())
    }
}

/// Answers one request after another on a connection.
fn answer(stream: TcpStream, routes: &[Route], asked: &Mutex<Asked>) {
    let mut writer = stream.try_clone().expect("a second handle");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
        for header in lines.by_ref() {
            if header.is_empty() {
                break;
            }
        }
        let (code, body) = say(&target, routes, &mut asked.lock().expect("nobody has panicked"));
        let head = format!("HTTP/1.1 {code} x\r\ncontent-length: {}\r\n\r\n", body.len());
        if writer.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn say(target: &str, routes: &[Route], asked: &mut Asked) -> (u16, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if query.contains("watch=true") {
        return (200, String::new());
    }
    let path =
        &if query.contains("previous=true") { format!("{path}?previous") } else { path.into() };
    *asked.0.entry(path.to_owned()).or_default() += 1;
    let mut own = routes.iter().filter(|route| route.path == *path);
    let answers = own.next().map_or(&[][..], |route| &route.answers);
    match answers.iter().rfind(|(when, ..)| when(asked)) {
        // A log is text, everything else JSON.
        Some((_, code, body)) => {
            (*code, body.as_str().map_or_else(|| body.to_string(), str::to_owned))
        }
        None => (404, refusal(404, "the server could not find the requested resource").to_string()),
    }
}

fn discovery() -> Vec<Route> {
    let resources = |all: &[(&str, &str, &str)]| -> Value {
        let one = |(plural, kind, scope): &(&str, &str, &str)| {
            json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope,
                "singularResource": kind.to_lowercase(), "verbs": ["get", "list"]})
        };
        all.iter().map(one).collect()
    };
    let group = |name: &str, version: &str, all: &[(&str, &str, &str)]| {
        json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": name},
            "versions": [{"version": version, "resources": resources(all)}]}]})
    };
    let core = [
        ("pods", "Pod", "Namespaced"),
        ("events", "Event", "Namespaced"),
        ("nodes", "Node", "Cluster"),
    ];
    vec![
        Route::new("/api", 200, group("", "v1", &core)),
        Route::new("/apis", 200, group("kubeflow.org", "v1", &[("tfjobs", "TFJob", "Namespaced")])),
    ]
}

/// A refusal as servers write it.
pub(crate) fn refusal(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
        "reason": "x", "code": code})
}
