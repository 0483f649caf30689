//! One of the two servers: sends the requests of a story and makes the answers comparable.
//!
//! Must not know that there is another server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::plain::Plain;
use super::story::Step;

/// How long an answer may take, watches included.
const PATIENCE: Duration = Duration::from_secs(30);

/// Short names of media types.
const MEDIA: [(&str, &str); 12] = [
    ("json", "application/json-patch+json"),
    ("merge", "application/merge-patch+json"),
    ("strategic", "application/strategic-merge-patch+json"),
    ("apply", "application/apply-patch+yaml"),
    ("object", "application/json"),
    ("table", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
    ("table-only", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("table-beta", "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"),
    ("partial", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"),
    (
        "partial-list",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
    ),
    (
        "discovery",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    ),
    ("protobuf", "application/vnd.kubernetes.protobuf"),
];

/// A server, with what the story has kept of its answers.
pub(super) struct Side {
    client: Client,
    namespace: String,
    kept: BTreeMap<String, Value>,
    plain: Plain,
}

impl Side {
    /// A server for a story in this namespace; `text` is all that the story asks.
    pub(super) fn new(client: Client, namespace: &str, text: &'static str) -> Self {
        let plain = Plain::new(text);
        Self { client, namespace: namespace.to_owned(), kept: BTreeMap::new(), plain }
    }

    /// Sends a request; the answer without what differs from run to run.
    pub(super) async fn perform(&mut self, step: &Step, each: &str) -> Result<Value> {
        let started = Instant::now();
        let mut answer = loop {
            let answer = self.send(step, each).await?;
            let Some(until) = &step.until else { break answer };
            if answer.pointer(&until.at) == Some(&until.is) {
                break answer;
            }
            if started.elapsed() > PATIENCE {
                bail!("{} is not {} within {PATIENCE:?}: {answer:#}", until.at, until.is);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        if let Some(name) = &step.keep {
            self.kept.insert(name.clone(), answer["body"].clone());
        }
        self.plain.clean(&mut answer);
        Ok(answer)
    }

    async fn send(&self, step: &Step, each: &str) -> Result<Value> {
        let (method, path) = step.send.split_once(' ').context("write `METHOD path`")?;
        let path = self.fill(path, each)?;
        let uri = if path.starts_with('/') {
            path
        } else {
            format!("/api/v1/namespaces/{}/{path}", self.namespace)
        };
        let body = match (&step.text, &step.body) {
            (Some(text), _) => self.fill(text, each)?,
            (None, Some(body)) => self.fill(&body.to_string(), each)?,
            (None, None) => String::new(),
        };
        let mut request = Request::builder().method(method).uri(&uri);
        let content = step.media.as_deref().map(media);
        if let Some(content) = content.or((!body.is_empty()).then_some("application/json")) {
            request = request.header(header::CONTENT_TYPE, content);
        }
        let accept = step.accept.as_deref().map_or("application/json", media);
        request = request.header(header::ACCEPT, accept);
        if let Some(user) = &step.user {
            request = request.header("Impersonate-User", self.fill(user, each)?);
        }
        for group in &step.groups {
            request = request.header("Impersonate-Group", group);
        }
        let request = request.body(Body::from(body.into_bytes()))?;
        let answered = tokio::time::timeout(PATIENCE, async {
            let response = self.client.send(request).await?;
            let (head, body) = response.into_parts();
            anyhow::Ok((head, body.collect().await?.to_bytes()))
        });
        let (head, bytes) = answered.await.context("no answer in time")??;
        Ok(told(head.status.as_u16(), &head.headers, &bytes, uri.contains("watch=")))
    }

    /// Puts in what `${…}` stands for: the namespace, one of several, a part of a kept answer.
    fn fill(&self, text: &str, each: &str) -> Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = after.split_once('}').context("`${` without an end")?;
            out.push_str(before);
            match (name, name.split_once(':')) {
                ("ns", _) => out.push_str(&self.namespace),
                ("each", _) => out.push_str(each),
                (_, Some((kept, pointer))) => {
                    let found = self.kept.get(kept).and_then(|value| value.pointer(pointer));
                    match found.with_context(|| format!("there is no ${{{name}}}"))? {
                        Value::String(text) => out.push_str(text),
                        other => out.push_str(&other.to_string()),
                    }
                }
                _ => bail!("nobody knows ${{{name}}}"),
            }
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }
}

fn media(name: &str) -> &str {
    MEDIA.iter().find(|(short, _)| *short == name).map_or(name, |(_, media)| media)
}

/// An answer as one value.
fn told(code: u16, headers: &HeaderMap, bytes: &[u8], is_watch: bool) -> Value {
    let text = |name: header::HeaderName| {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into()).collect::<Vec<Value>>()
    };
    let values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let values: Result<Vec<Value>, _> = values.collect();
    let body = match values {
        Ok(events) if is_watch && code == 200 => Value::Array(events),
        Ok(mut one) if one.len() == 1 => one.remove(0),
        _ => String::from_utf8_lossy(bytes).into(),
    };
    json!({
        "code": code, "body": body, "type": text(header::CONTENT_TYPE),
        "warnings": text(header::WARNING), "retry": text(header::RETRY_AFTER),
    })
}
