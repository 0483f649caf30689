//! Logs of containers.

use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, BodyStream, Empty, Limited};

use super::Kubelets;
use super::reach::{container, node_of};
use crate::answer::{Body, Pieces};
use crate::api::Api;
use crate::failure::{About, Failure};
use crate::request::query::Query;
use crate::verbs::Target;

/// The words of a refusal that are passed on.
const WORDS: usize = 16 * 1024;

/// What is asked of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Goes on with what is still to come.
    pub follow: bool,
    /// Each line with its time.
    pub timestamps: bool,
    /// Only so many last lines.
    pub tail: Option<usize>,
    /// Only what is younger than that many seconds.
    pub since_seconds: Option<u64>,
}

/// Pods that live in this process and have no node: their logs.
pub trait Residents: Send + Sync {
    /// The log of such a pod; `None` when it is none.
    fn log(
        &self,
        namespace: &str,
        pod: &str,
        options: &LogOptions,
    ) -> Option<Pin<Box<dyn Stream<Item = Bytes> + Send>>>;
}

impl Kubelets {
    /// The log of a container.
    pub(super) async fn log(
        &self,
        api: &Api,
        target: &Target,
        query: &Query,
    ) -> Result<Response<Body>, Failure> {
        let name = target.name.as_deref().unwrap_or_default();
        if let Some(stream) = self.resident(target, name, query)? {
            return Ok(text(Body::Pieces(stream)));
        }
        let pod = api.store.get("pods", &target.namespace, name);
        let pod = pod.ok_or_else(|| Failure::not_found(About::new("", "pods", name)))?.value();
        let container = container(&pod, query.text("container"))?;
        let Ok(node) = node_of(&pod, name) else {
            // As the real server: a pod that waits for a node has an empty log.
            return Ok(text(Body::empty()));
        };
        let address = Self::node(api, &node)?;
        let uri = format!(
            "/containerLogs/{}/{name}/{container}?{}",
            target.namespace,
            parameters(query)?
        );
        let request = Request::get(uri).body(Empty::new()).map_err(Failure::internal)?;
        let response = self.ask(&address, request).await?;
        let code = response.status().as_u16();
        if code != 200 {
            let words = Limited::new(response.into_body(), WORDS).collect().await;
            let words = words.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            return Err(refusal(code, &String::from_utf8_lossy(&words)));
        }
        let pieces = BodyStream::new(response.into_body())
            .filter_map(async |frame| frame.ok().and_then(|frame| frame.into_data().ok()));
        Ok(text(Body::pieces(pieces)))
    }

    fn resident(
        &self,
        target: &Target,
        name: &str,
        query: &Query,
    ) -> Result<Option<Pieces>, Failure> {
        let Some(residents) = &self.residents else { return Ok(None) };
        let count = |name: &str| -> Result<Option<usize>, Failure> {
            Ok(query.number(name)?.and_then(|number| usize::try_from(number).ok()))
        };
        let options = LogOptions {
            follow: query.flag("follow"),
            timestamps: query.flag("timestamps"),
            tail: count("tailLines")?,
            since_seconds: count("sinceSeconds")?.map(|seconds| seconds as u64),
        };
        Ok(residents.log(&target.namespace, name, &options))
    }
}

/// A node's refusal as the API server tells it.
fn refusal(code: u16, words: &str) -> Failure {
    let words = words.trim();
    match code {
        400 => Failure::bad_request(words),
        404 => Failure::new(404, "NotFound", words),
        _ => Failure::internal(words),
    }
}

/// The parameters in the words that a kubelet reads.
fn parameters(query: &Query) -> Result<String, Failure> {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for flag in ["follow", "previous", "timestamps"] {
        if query.flag(flag) {
            out.append_pair(flag, "true");
        }
    }
    for number in ["sinceSeconds", "tailLines", "limitBytes"] {
        if let Some(value) = query.number(number)? {
            out.append_pair(number, &value.to_string());
        }
    }
    for word in ["sinceTime", "stream"] {
        if let Some(value) = query.text(word) {
            out.append_pair(word, value);
        }
    }
    Ok(out.finish())
}

fn text(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let media = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}
