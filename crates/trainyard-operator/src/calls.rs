//! One request to the API server and its answer.
//!
//! Every request of the operator goes through here: it is counted, limited, timed out, and its
//! refusal turned into an error that says what kind it is. Answers stay bytes; whoever asked reads
//! from them what it needs. Must not retry anything and must not know jobs.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::watch;

use crate::{Metrics, Options, limit::Limit};

const USER_AGENT: &str = concat!("trainyard-operator/", env!("CARGO_PKG_VERSION"));
/// Larger than a usual page of a list by far; of large objects smaller pages are asked for.
const ANSWER_MAX: usize = 64 << 20;
/// The error is told in a sentence; nobody needs more of it.
const REFUSAL_MAX: usize = 1 << 20;

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    /// A patch that merges the items of lists by their keys, as a strategic merge does.
    PatchItems,
    Delete,
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch | Self::PatchItems => "patch",
            Self::Delete => "delete",
        }
    }

    const fn method(self) -> http::Method {
        match self {
            Self::Get | Self::List | Self::Watch => http::Method::GET,
            Self::Create => http::Method::POST,
            Self::Update => http::Method::PUT,
            Self::Patch | Self::PatchItems => http::Method::PATCH,
            Self::Delete => http::Method::DELETE,
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Patch => "application/merge-patch+json",
            Self::PatchItems => "application/strategic-merge-patch+json",
            _ => "application/json",
        }
    }
}

/// Whose turn a request takes when requests are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Like everybody.
    Usual,
    /// After everybody.
    Spare,
    /// At once.
    Free,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) verb: Verb,
    /// As counted: plural name, and subresource after a slash.
    pub(crate) resource: &'static str,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    pub(crate) turn: Turn,
}

/// Why a request was not answered as hoped.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("the API server cannot be reached: {0}")]
    Connection(String),
    #[error("{0}")]
    Refused(Box<Refusal>),
    #[error("the answer cannot be read: {0}")]
    Answer(String),
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

/// What the API server said when it refused.
#[derive(Debug, Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    /// One word: `AlreadyExists`, `Conflict`, `NotFound` …
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Name of the object that it is about; empty when the path itself is not served.
    pub(crate) name: String,
    pub(crate) retry_after: Option<Duration>,
}

impl CallError {
    /// One word for logs and metric labels.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Connection(_) => "connection",
            Self::Answer(_) => "answer",
            Self::TooLarge(_) => "too_large",
            Self::Refused(refusal) => match refusal.code {
                401 => "unauthorized",
                403 => "forbidden",
                404 => "not_found",
                409 => "conflict",
                410 => "expired",
                422 => "invalid",
                429 => "throttled",
                500.. => "server",
                _ => "refused",
            },
        }
    }

    /// Code of a refusal; 0 when there was no answer.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Refused(refusal) => refusal.code,
            _ => 0,
        }
    }

    /// Whether the request may have been carried out all the same.
    pub(crate) fn in_doubt(&self) -> bool {
        !matches!(self.code(), 400..=499)
    }

    /// The refusal, if that is what it was.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// How long the API server asked us to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(|refusal| refusal.retry_after)
    }

    fn code_class(&self) -> &'static str {
        match (self, self.code()) {
            (_, 409) => "409",
            (_, 429) => "429",
            (_, 500..) => "5xx",
            (Self::Refused(_), _) => "4xx",
            _ => "none",
        }
    }
}

/// The way to the API server.
#[derive(Clone)]
pub(crate) struct Calls {
    client: kube::Client,
    metrics: Arc<Metrics>,
    limit: Option<Arc<Limit>>,
    timeout: Duration,
    /// How many requests were never answered.
    unanswered: Arc<watch::Sender<u64>>,
}

impl Calls {
    pub(crate) fn new(client: kube::Client, metrics: Arc<Metrics>, options: &Options) -> Self {
        Self {
            client,
            metrics,
            limit: Limit::new(options.qps, options.burst).map(Arc::new),
            timeout: options.request_timeout,
            unanswered: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Tells of requests that are never answered: connections opened before may be dead too, and
    /// a watch on one of them would not notice for minutes.
    pub(crate) fn unanswered(&self) -> watch::Receiver<u64> {
        self.unanswered.subscribe()
    }

    /// The same way with less patience.
    pub(crate) fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: timeout.min(self.timeout), ..self.clone() }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, call: Call) -> Result<Bytes, CallError> {
        let (verb, resource) = (call.verb, call.resource);
        self.wait_for_turn(call.turn).await;
        let exchange = async {
            let response = self.exchange(call).await?;
            read(response.into_body(), ANSWER_MAX).await
        };
        let answer = tokio::time::timeout(self.timeout, exchange)
            .await
            .unwrap_or(Err(CallError::Timeout(self.timeout)));
        self.count(verb, resource, answer.as_ref().err());
        if matches!(answer, Err(CallError::Timeout(_))) {
            self.unanswered.send_modify(|count| *count += 1);
        }
        answer
    }

    /// Sends a request whose answer does not end.
    pub(crate) async fn open(&self, call: Call) -> Result<Body, CallError> {
        let (verb, resource) = (call.verb, call.resource);
        let answer = tokio::time::timeout(self.timeout, self.exchange(call))
            .await
            .unwrap_or(Err(CallError::Timeout(self.timeout)));
        self.count(verb, resource, answer.as_ref().err());
        answer.map(Response::into_body)
    }

    async fn wait_for_turn(&self, turn: Turn) {
        match (&self.limit, turn) {
            (Some(limit), Turn::Usual) => limit.turn().await,
            (Some(limit), Turn::Spare) => limit.spare_turn().await,
            (None, _) | (_, Turn::Free) => {}
        }
    }

    async fn exchange(&self, call: Call) -> Result<Response<Body>, CallError> {
        let mut request = Request::builder()
            .method(call.verb.method())
            .uri(call.path)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::ACCEPT, "application/json");
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.verb.content_type());
        }
        let request = request
            .body(Body::from(call.body))
            .map_err(|error| CallError::Connection(error.to_string()))?;
        let response = self.client.send(request).await.map_err(|error| connection(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.trim().parse().ok())
            .map(Duration::from_secs);
        let body = read(response.into_body(), REFUSAL_MAX).await.unwrap_or_default();
        Err(CallError::Refused(Box::new(refusal(status, retry_after, &body))))
    }

    fn count(&self, verb: Verb, resource: &'static str, error: Option<&CallError>) {
        let code = error.map_or("2xx", CallError::code_class);
        self.metrics.called(verb.as_str(), resource, code);
    }
}

async fn read(body: Body, limit: usize) -> Result<Bytes, CallError> {
    let whole = Limited::new(body, limit).collect().await;
    whole.map(http_body_util::Collected::to_bytes).map_err(|error| {
        match error.downcast_ref::<LengthLimitError>() {
            Some(_) => CallError::TooLarge(limit),
            None => CallError::Connection(chain(&*error)),
        }
    })
}

fn connection(error: &kube::Error) -> CallError {
    CallError::Connection(chain(error))
}

/// An error with its causes; each of them once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

fn refusal(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Refusal {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        reason: String,
        message: String,
        details: Option<Details>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Details {
        name: String,
        retry_after_seconds: u64,
    }
    let code = status.as_u16();
    let Ok(told) = serde_json::from_slice::<Status>(body) else {
        let text = String::from_utf8_lossy(body);
        let text: String = text.trim().chars().take(300).collect();
        let message = format!("HTTP {code}: {text}");
        return Refusal { code, reason: String::new(), message, name: String::new(), retry_after };
    };
    let details = told.details.unwrap_or_default();
    let told_after = Some(details.retry_after_seconds).filter(|seconds| *seconds > 0);
    let message =
        if told.message.is_empty() { format!("HTTP {code} {}", told.reason) } else { told.message };
    Refusal {
        code,
        reason: told.reason,
        message,
        name: details.name,
        retry_after: retry_after.or(told_after.map(Duration::from_secs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_object_says_what_was_refused() {
        let body = br#"{"kind":"Status","code":409,"reason":"AlreadyExists",
            "message":"pods \"a\" already exists","details":{"name":"a","kind":"pods"}}"#;
        let refusal = refusal(StatusCode::CONFLICT, None, body);
        assert_eq!(refusal.reason, "AlreadyExists");
        assert_eq!(refusal.name, "a");
        let error = CallError::Refused(Box::new(refusal));
        assert_eq!(error.kind(), "conflict");
        assert!(!error.in_doubt());
    }

    #[test]
    fn an_answer_that_is_no_status_is_quoted() {
        let refusal = refusal(StatusCode::BAD_GATEWAY, None, b"<html>upstream is away</html>\n");
        assert_eq!(refusal.message, "HTTP 502: <html>upstream is away</html>");
        let error = CallError::Refused(Box::new(refusal));
        assert_eq!(error.kind(), "server");
        assert!(error.in_doubt());
    }

    #[test]
    fn the_wait_is_read_from_header_or_body() {
        let second = Some(Duration::from_secs(1));
        let body = br#"{"message":"later","details":{"retryAfterSeconds":7}}"#;
        assert_eq!(refusal(StatusCode::TOO_MANY_REQUESTS, second, body).retry_after, second);
        assert_eq!(
            refusal(StatusCode::TOO_MANY_REQUESTS, None, body).retry_after,
            Some(Duration::from_secs(7))
        );
    }
}
