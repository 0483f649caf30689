//! One request, one answer: who asks, what for, whether they may, and who knows.
//!
//! Must not know sockets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, header};
use serde_json::Value;
use trainyard_schema::select::fields::Selector;

use super::auth::{Doors, unauthorized};
use super::gate::{Gate, Incoming, Read, too_many};
use super::lobby::Seat;
use super::{binary, impersonate, public, rights, swagger};
use crate::answer::{self, Body};
use crate::api::{Api, DEFINITIONS};
use crate::failure::Failure;
use crate::kind::{Caller, World as _};
use crate::kubelet::{self, Kubelets};
use crate::metrics::Metrics;
use crate::openapi::{self, discovery};
use crate::registry::Table;
use crate::request::accept;
use crate::request::path::{self, ApiPath, Path};
use crate::request::query::Query;
use crate::verbs::{self, Ask, Target};

/// What all connections share.
pub(crate) struct Core {
    pub(crate) api: Arc<Api>,
    pub(crate) gate: Gate,
    pub(crate) doors: Doors,
    pub(crate) kubelets: Kubelets,
    pub(crate) metrics: Metrics,
    /// Names under which the server may be asked for; a page in a browser cannot use another.
    pub(crate) hosts: Vec<String>,
    /// Where the server is, for clients that ask.
    pub(crate) address: String,
    documents: Mutex<Documents>,
}

/// Documents about the kinds, made once for each edition of the table.
#[derive(Default)]
struct Documents {
    edition: u64,
    texts: BTreeMap<(&'static str, &'static str), Bytes>,
}

/// The other end of a connection.
#[derive(Clone)]
pub(crate) enum Peer {
    /// A component in this process.
    Inside(Caller),
    /// A client of the network, with the identity of its certificate, and the place of its connection.
    Network(Option<Caller>, Arc<Seat>),
}

impl Peer {
    /// A request of it was answered.
    pub(super) fn answered(&self) {
        if let Self::Network(_, seat) = self {
            seat.answered();
        }
    }
}

impl Core {
    pub(crate) fn new(
        api: Arc<Api>,
        gate: Gate,
        doors: Doors,
        kubelets: Kubelets,
        hosts: Vec<String>,
        address: String,
    ) -> Self {
        let (metrics, documents) = (Metrics::default(), Mutex::default());
        Self { api, gate, doors, kubelets, metrics, hosts, address, documents }
    }

    /// Answers a request.
    pub(crate) async fn respond<B: Incoming>(
        self: &Arc<Self>,
        request: Request<B>,
        peer: &Peer,
    ) -> Response<Body> {
        let started = tokio::time::Instant::now();
        let (parts, body) = request.into_parts();
        let method = parts.method.clone();
        let (verb, answered) = self.route(parts, body, peer).await;
        let response = answered.unwrap_or_else(|failure| answer::failure(&failure));
        self.metrics.count(verb, &method, response.status().as_u16(), started.elapsed());
        response
    }

    async fn route<B: Incoming>(
        self: &Arc<Self>,
        parts: Parts,
        body: B,
        peer: &Peer,
    ) -> (&'static str, Result<Response<Body>, Failure>) {
        if let Err(failure) = self.check_host(&parts, peer) {
            return ("refused", Err(failure));
        }
        let get = parts.method == Method::GET || parts.method == Method::HEAD;
        if let Some(response) = public::answer(parts.uri.path()).filter(|_| get) {
            return ("public", Ok(response));
        }
        let caller = match self.caller(&parts.headers, peer) {
            Ok(caller) => caller,
            Err(failure) => return ("refused", Err(failure)),
        };
        match path::read(parts.uri.path()) {
            Path::Api(mut path) if !path.resource.is_empty() => {
                let mut query = Query::read(parts.uri.query());
                if path.watching {
                    query.push("watch", "true");
                    if let Some(name) = path.name.take() {
                        query.push("fieldSelector", &format!("metadata.name={name}"));
                    }
                }
                let verb = verb_of(&parts.method, &path, &query);
                (verb, self.objects(parts, body, path, query, caller, verb).await)
            }
            path => ("discovery", self.discovery(&parts, &path)),
        }
    }

    fn check_host(&self, parts: &Parts, peer: &Peer) -> Result<(), Failure> {
        if matches!(peer, Peer::Inside(_)) {
            return Ok(());
        }
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or(parts.uri.host()).unwrap_or_default();
        let name = host
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .map_or_else(|| host.split(':').next().unwrap_or_default(), |(inner, _)| inner);
        if self.hosts.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(Failure::new(
            421,
            "Misdirected",
            format!("this server is not {name:?}: ask for one of {}", self.hosts.join(", ")),
        ))
    }

    fn caller(&self, headers: &HeaderMap, peer: &Peer) -> Result<Caller, Failure> {
        let caller = match peer {
            Peer::Inside(caller) => caller.clone(),
            Peer::Network(certificate, seat) => {
                let caller = self.doors.identify(&self.api, certificate.as_ref(), headers)?;
                let caller = caller.ok_or_else(unauthorized)?;
                if !seat.welcome() {
                    return Err(too_many());
                }
                caller
            }
        };
        impersonate::in_whose_name(self.api.as_ref(), caller, headers)
    }

    async fn objects<B: Incoming>(
        self: &Arc<Self>,
        parts: Parts,
        body: B,
        path: ApiPath,
        query: Query,
        caller: Caller,
        verb: &'static str,
    ) -> Result<Response<Body>, Failure> {
        if path.group == kubelet::METRICS_GROUP {
            let act = rights::Act {
                verb,
                group: kubelet::METRICS_GROUP,
                resource: path.resource.clone(),
                namespace: path.namespace.as_deref().unwrap_or_default(),
                name: path.name.as_deref().unwrap_or_default(),
                on_node: "",
            };
            rights::check(self.api.as_ref(), &caller, &act)?;
            return self.kubelets.metrics(&self.api, &path, &query).await;
        }
        let rest = path.rest.clone();
        if !path.group.is_empty() && !self.has_group(&path.group) {
            return Ok(nowhere());
        }
        let table = self.api.registry.table();
        let mut own = table.rows().into_iter().filter(|kind| kind.group == path.group);
        let is_defined = own.all(|kind| kind.defined);
        let target = match Target::find(&table, path) {
            // What no definition names is no path at all.
            Err(_) if is_defined => return Ok(nowhere()),
            found => found?,
        };
        let resource = match &target.subresource {
            Some(subresource) => format!("{}/{subresource}", target.kind.plural),
            None => target.kind.plural.clone(),
        };
        let chosen = Chosen::of(verb, &query);
        let act = rights::Act {
            verb,
            group: &target.kind.group,
            resource,
            namespace: &target.namespace,
            name: target.name.as_deref().unwrap_or(&chosen.name),
            on_node: &chosen.node,
        };
        rights::check(self.api.as_ref(), &caller, &act)?;
        let is_long = query.flag("watch") || kubelet::serves(&target);
        let place = self.gate.enter(is_long)?;
        let accept = text(&parts.headers, &header::ACCEPT).map(str::to_owned);
        if kubelet::serves(&target) {
            let request = Request::from_parts(parts, body);
            let response =
                self.kubelets.pass_on(&self.api, &target, &query, &rest, request).await?;
            return Ok(response.map(|body| body.holding(place)));
        }
        let method = parts.method.clone();
        let content_type = text(&parts.headers, &header::CONTENT_TYPE).unwrap_or_default();
        let content_type = content_type.split(';').next().unwrap_or_default().trim().to_owned();
        let form = verbs::form(accept.as_deref())?;
        let options = verbs::options_of(&method);
        let mut ask = Ask { target, query, caller, form, content_type, options };
        let read =
            if method == Method::GET { Read::default() } else { self.gate.body(body).await? };
        let mut bytes = read.bytes.clone();
        if binary::is_read(&ask.target, &method, &ask.content_type) {
            bytes = binary::as_json(&ask.target, &method, &bytes)?;
            "application/json".clone_into(&mut ask.content_type);
        }
        let response = verbs::perform(&self.api, &method, &ask, &bytes).await?;
        drop(read);
        let stays = is_long || response.body().is_large();
        Ok(if stays { response.map(|body| body.holding(place)) } else { response })
    }

    fn discovery(&self, parts: &Parts, path: &Path) -> Result<Response<Body>, Failure> {
        let place = self.gate.enter(false)?;
        let response = self.about_kinds(parts, path)?;
        let is_large = response.body().is_large();
        Ok(if is_large { response.map(|body| body.holding(place)) } else { response })
    }

    /// Which kinds there are, and what they look like.
    fn about_kinds(&self, parts: &Parts, path: &Path) -> Result<Response<Body>, Failure> {
        let any_method = matches!(path, Path::CoreVersions | Path::Groups);
        if parts.method != Method::GET && !any_method {
            return Err(Failure::not_allowed());
        }
        let group = match path {
            Path::Group(group) => Some(group),
            Path::Api(path) => Some(&path.group).filter(|group| !group.is_empty()),
            _ => None,
        };
        if group.is_some_and(|group| !self.has_group(group)) {
            return Ok(nowhere());
        }
        let table = self.api.registry.table();
        let kinds = table.rows();
        let accept = text(&parts.headers, &header::ACCEPT);
        let aggregated = accept::aggregated_discovery(accept);
        let value = match (path, aggregated) {
            (Path::CoreVersions, Some(version)) => {
                let make = || discovered(discovery::aggregated_core(&kinds), version);
                return Ok(discovery_answer(self.kept(&table, ("core", version), make), version));
            }
            (Path::Groups, Some(version)) => {
                let make = || discovered(discovery::aggregated_groups(&kinds), version);
                return Ok(discovery_answer(self.kept(&table, ("groups", version), make), version));
            }
            (Path::CoreVersions, None) => Some(discovery::core_versions(&self.address)),
            (Path::Groups, None) => Some(discovery::groups(&kinds)),
            (Path::Group(group), _) => discovery::group(&kinds, group),
            (Path::Api(path), _) => discovery::resources(&kinds, &path.group, &path.version),
            (Path::Other(path), _) if *path == "/openapi/v2" => {
                return Ok(swagger::description(accept.unwrap_or_default()));
            }
            (Path::Other(path), _) => return Ok(self.document(path, &table)),
        };
        value.map(|value| answer::value(200, &value)).ok_or_else(Failure::no_such_path)
    }

    /// A document about the kinds of this edition, made if it is not there.
    fn kept(
        &self,
        table: &Table,
        name: (&'static str, &'static str),
        make: impl FnOnce() -> String,
    ) -> Bytes {
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if documents.edition != table.edition {
            *documents = Documents { edition: table.edition, texts: BTreeMap::new() };
        }
        documents.texts.entry(name).or_insert_with(|| make().into()).clone()
    }

    fn has_group(&self, group: &str) -> bool {
        let table = self.api.registry.table();
        group == kubelet::METRICS_GROUP || table.rows().iter().any(|kind| kind.group == group)
    }

    fn document(&self, path: &str, table: &Table) -> Response<Body> {
        let kinds = table.rows();
        let definitions = || self.api.list(DEFINITIONS, None);
        match path {
            "/" => answer::value(200, &paths()),
            "/metrics" => public::plain(self.metrics.text()),
            "/openapi/v3" => {
                let make = || openapi::index(&kinds, &definitions()).to_string();
                let mut response = answer::text(200, self.kept(table, ("openapi", "v3"), make));
                let media = header::HeaderValue::from_static("text/plain; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, media);
                response
            }
            other => {
                let document = other.strip_prefix("/openapi/v3/").and_then(|path| {
                    let words: Vec<&str> = path.split('/').collect();
                    match words.as_slice() {
                        ["api", version] => openapi::document("", version, &kinds, &[]),
                        ["apis", group, version] => {
                            openapi::document(group, version, &kinds, &definitions())
                        }
                        _ => None,
                    }
                });
                match document {
                    Some(text) => answer::text(200, text),
                    None if other.starts_with("/openapi/v3/") => no_document(),
                    None => nowhere(),
                }
            }
        }
    }
}

fn paths() -> Value {
    serde_json::json!({"paths": [
        "/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz",
        "/version",
    ]})
}

/// A group without a document.
fn no_document() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

/// A group that nobody has ever heard of.
fn nowhere() -> Response<Body> {
    let mut response = public::plain("404 page not found\n".to_owned());
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Aggregated discovery says in its type what it is.
fn discovered(mut value: Value, version: &str) -> String {
    value["apiVersion"] = format!("apidiscovery.k8s.io/{version}").into();
    value.to_string()
}

fn discovery_answer(text: Bytes, version: &str) -> Response<Body> {
    let mut response = answer::text(200, text);
    let media =
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    if let Ok(media) = header::HeaderValue::try_from(media) {
        response.headers_mut().insert(header::CONTENT_TYPE, media);
    }
    response
}

/// To which one object, or to which node's pods, a list or a watch keeps.
#[derive(Default)]
struct Chosen {
    name: String,
    node: String,
}

impl Chosen {
    fn of(verb: &str, query: &Query) -> Self {
        if !matches!(verb, "list" | "watch") {
            return Self::default();
        }
        let selector = query.text("fieldSelector").map(Selector::parse);
        let Some(Ok(selector)) = selector else { return Self::default() };
        let exact = |field: &str| selector.exact(field).unwrap_or_default().to_owned();
        Self { name: exact("metadata.name"), node: exact("spec.nodeName") }
    }
}

/// What roles call a request. An object with a name is got, whatever else is said.
fn verb_of(method: &Method, path: &ApiPath, query: &Query) -> &'static str {
    match (method, path.name.is_some()) {
        (&Method::GET, true) => "get",
        (&Method::GET, false) if query.flag("watch") => "watch",
        (&Method::GET, false) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => "other",
    }
}
