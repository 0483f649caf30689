//! Requests: paths, queries, bodies, and what the server warns of.
//!
//! Must not know what the objects mean.

use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;

use super::{Cluster, Error, Kind, Lines};
use crate::output;

const JSON: &str = "application/json";
/// What kubectl asks for when it prints for people.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,\
    application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
/// Objects per page of a list.
const PAGE: &str = "500";

/// What stands after the question mark.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// With one more parameter.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// The same where there is a value.
    #[must_use]
    pub(crate) fn maybe(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.0 {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            text.push_str(&escaped(value));
        }
        text
    }
}

/// Whether a write is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DryRun {
    /// It is.
    No,
    /// The server goes through it and keeps nothing.
    Server,
}

impl DryRun {
    pub(crate) fn query(self) -> Query {
        match self {
            Self::No => Query::default(),
            Self::Server => Query::default().with("dryRun", "All"),
        }
    }
}

/// A text as it may stand in a query or as a part of a path.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                out.push(char::from(byte));
            }
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

impl Kind {
    /// The path of the collection, in a namespace or in all of them.
    fn collection(&self, namespace: Option<&str>) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{}", escaped(namespace), self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// The path of one object. A name that would lead elsewhere is refused: without one, it would be
    /// the path of all objects.
    fn object(&self, namespace: &str, name: &str) -> Result<String, Error> {
        check("an object", name)?;
        if self.namespaced {
            check("a namespace", namespace)?;
        }
        Ok(format!("{}/{}", self.collection(Some(namespace)), escaped(name)))
    }
}

/// What may be a part of a path.
fn check(what: &'static str, name: &str) -> Result<(), Error> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']) {
        return Err(Error::Name { what, name: name.to_owned() });
    }
    Ok(())
}

impl Cluster {
    async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Response<Body>, Error> {
        self.send_by(&self.client, method, path, accept, body).await
    }

    async fn send_by(
        &self,
        client: &Client,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Response<Body>, Error> {
        let mut request =
            Request::builder().method(method).uri(path).header(header::ACCEPT, accept);
        let body = match body {
            Some((content, body)) => {
                request = request.header(header::CONTENT_TYPE, content);
                Body::from(body)
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(|error| Error::Answer {
            server: self.server.clone(),
            why: format!("{path:?} is no path: {error}"),
        })?;
        let sent = client.send(request).await;
        let answer = sent.map_err(|error| Error::sending(&self.server, &error))?;
        self.tell_warnings(&answer);
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status();
        let text = self.collect(answer).await?;
        let status = serde_json::from_slice::<Status>(&text).unwrap_or_else(|_| {
            let said = String::from_utf8_lossy(&text).trim().to_owned();
            Status::failure(&said, code.canonical_reason().unwrap_or_default())
        });
        let status = if status.code == 0 { status.with_code(code.as_u16()) } else { status };
        Err(Error::Refused(status.boxed()))
    }

    async fn collect(&self, answer: Response<Body>) -> Result<Vec<u8>, Error> {
        let body = answer
            .into_body()
            .collect()
            .await
            .map_err(|_| Error::Broken { server: self.server.clone() })?;
        Ok(body.to_bytes().to_vec())
    }

    fn tell_warnings(&self, answer: &Response<Body>) {
        for value in answer.headers().get_all(header::WARNING) {
            let Some(text) = value.to_str().ok().and_then(warning) else { continue };
            if self.warned.borrow_mut().insert(text.clone()) {
                output::warn(&text);
            }
        }
    }

    async fn json(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Value, Error> {
        let answer = self.send(method, path, accept, body).await?;
        let text = self.collect(answer).await?;
        serde_json::from_slice(&text)
            .map_err(|error| Error::Answer { server: self.server.clone(), why: error.to_string() })
    }

    /// Any document of the server.
    pub(super) async fn document(&self, path: &str, accept: &str) -> Result<Value, Error> {
        self.json(Method::GET, path, accept, None).await
    }

    /// One object, or a table of it.
    pub(crate) async fn get(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        table: Option<&Query>,
    ) -> Result<Value, Error> {
        let path = kind.object(namespace, name)?;
        match table {
            Some(query) => self.document(&(path + &query.text()), TABLE).await,
            None => self.document(&path, JSON).await,
        }
    }

    /// All objects of a kind, page by page; or tables of them. Each page is one element.
    pub(crate) async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        query: &Query,
        as_table: bool,
    ) -> Result<Vec<Value>, Error> {
        let accept = if as_table { TABLE } else { JSON };
        let mut pages = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let query = query.clone().with("limit", PAGE).maybe("continue", next.take());
            let path = kind.collection(namespace) + &query.text();
            let page = match self.document(&path, accept).await {
                // The list has changed so long ago that its rest is gone: from the start, whole.
                Err(error) if error.code() == 410 && !pages.is_empty() => {
                    pages.clear();
                    continue;
                }
                answer => answer?,
            };
            next = page["metadata"]["continue"]
                .as_str()
                .filter(|token| !token.is_empty())
                .map(str::to_owned);
            pages.push(page);
            if next.is_none() {
                return Ok(pages);
            }
        }
    }

    /// The objects of a kind as one list, each told what it is.
    pub(crate) async fn objects(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        query: &Query,
    ) -> Result<Vec<Value>, Error> {
        let mut objects = Vec::new();
        for mut page in self.list(kind, namespace, query, false).await? {
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                objects.extend(items);
            }
        }
        for object in &mut objects {
            if object.is_object() {
                object["apiVersion"] = kind.api_version().into();
                object["kind"] = kind.kind.clone().into();
            }
        }
        Ok(objects)
    }

    /// The changes of a collection from a revision on, as lines of JSON.
    pub(crate) async fn watch(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        query: &Query,
        as_table: bool,
    ) -> Result<Lines, Error> {
        let accept = if as_table { TABLE } else { JSON };
        let query = query.clone().with("watch", "true").with("allowWatchBookmarks", "true");
        let path = kind.collection(namespace) + &query.text();
        let answer = self.send(Method::GET, &path, accept, None).await?;
        Ok(Lines::new(answer.into_body().into_data_stream(), &self.server))
    }

    /// The log of a container, line by line. Whatever is not read yet of it, and of however many others,
    /// keeps nothing else away.
    pub(crate) async fn log(
        &self,
        pods: &Kind,
        namespace: &str,
        pod: &str,
        query: &Query,
    ) -> Result<Lines, Error> {
        let path = pods.object(namespace, pod)? + "/log" + &query.text();
        let answer = self.send_by(self.each(), Method::GET, &path, "*/*", None).await?;
        Ok(Lines::new(answer.into_body().into_data_stream(), &self.server))
    }

    /// Makes a new object.
    pub(crate) async fn create(
        &self,
        kind: &Kind,
        namespace: &str,
        object: &Value,
        query: &Query,
    ) -> Result<Value, Error> {
        if kind.namespaced {
            check("a namespace", namespace)?;
        }
        let path = kind.collection(Some(namespace)) + &query.text();
        self.json(Method::POST, &path, JSON, Some((JSON, object.to_string().into_bytes()))).await
    }

    /// Changes an object, or a part of it that has its own address (`/scale`).
    pub(crate) async fn patch(
        &self,
        kind: &Kind,
        (namespace, name, part): (&str, &str, &str),
        content: &str,
        change: &Value,
        query: &Query,
    ) -> Result<Value, Error> {
        let path = kind.object(namespace, name)? + part + &query.text();
        let body = Some((content, change.to_string().into_bytes()));
        self.json(Method::PATCH, &path, JSON, body).await
    }

    /// Asks for the end of an object.
    pub(crate) async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &Value,
    ) -> Result<Value, Error> {
        let path = kind.object(namespace, name)?;
        let body = Some((JSON, options.to_string().into_bytes()));
        self.json(Method::DELETE, &path, JSON, body).await
    }
}

/// The text of a warning header: `299 - "text"`.
fn warning(value: &str) -> Option<String> {
    let rest = value.strip_prefix("299 ")?;
    let (_, quoted) = rest.split_once('"')?;
    let mut text = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.extend(letters.next()),
            '"' => return Some(text),
            other => text.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let query = Query::default()
            .with("labelSelector", "a in (b,c)")
            .maybe("continue", None::<String>)
            .with("x", "ü&=");
        assert_eq!(query.text(), "?labelSelector=a%20in%20%28b%2Cc%29&x=%C3%BC%26%3D");
        assert_eq!(Query::default().text(), "");
    }

    #[test]
    fn warnings_are_unwrapped() {
        assert_eq!(
            warning("299 - \"unknown field \\\"spec.x\\\"\"").as_deref(),
            Some("unknown field \"spec.x\"")
        );
        assert_eq!(warning("110 - \"stale\""), None);
        assert_eq!(warning("299 - \"no end"), None);
    }

    #[test]
    fn paths_by_scope_and_group() {
        let pods = Kind::example("", "v1", "Pod", "pods", true);
        assert_eq!(pods.collection(Some("a")), "/api/v1/namespaces/a/pods");
        assert_eq!(pods.collection(None), "/api/v1/pods");
        assert_eq!(pods.object("a", "x y").unwrap(), "/api/v1/namespaces/a/pods/x%20y");
        let nodes = Kind::example("", "v1", "Node", "nodes", false);
        assert_eq!(nodes.object("", "n").unwrap(), "/api/v1/nodes/n");
        let jobs = Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true);
        assert_eq!(jobs.object("a", "n").unwrap(), "/apis/kubeflow.org/v1/namespaces/a/tfjobs/n");
    }

    #[test]
    fn an_object_is_never_all_of_them() {
        let pods = Kind::example("", "v1", "Pod", "pods", true);
        for (namespace, name) in
            [("a", ""), ("a", "."), ("a", ".."), ("a", "x/y"), ("", "x"), ("..", "x")]
        {
            let error = pods.object(namespace, name).unwrap_err();
            assert!(error.to_string().contains("cannot be the name of"), "{error}");
        }
    }
}
