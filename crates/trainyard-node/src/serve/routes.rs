//! Which path means what.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Router, http};
use futures::StreamExt;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pods::{LogAsk, Pods, Refused};
use super::{exec, forward, log_query, metrics};
use crate::logs::{self, LogError};

/// Logs that are read at once.
const LOGS: usize = 128;

/// Programs that run through the API at once.
const EXECS: usize = 64;

/// Clients that forward ports through the API at once.
const FORWARDS: usize = 64;

/// What requests share.
pub(super) struct Node<P> {
    pub(super) pods: Arc<P>,
    pub(super) logs: Arc<Semaphore>,
    pub(super) execs: Arc<Semaphore>,
    pub(super) forwards: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
    /// What outlives its request.
    pub(super) tasks: TaskTracker,
}

impl<P> Node<P> {
    pub(super) fn new(pods: Arc<P>, stop: CancellationToken, tasks: TaskTracker) -> Self {
        Self {
            pods,
            logs: Arc::new(Semaphore::new(LOGS)),
            execs: Arc::new(Semaphore::new(EXECS)),
            forwards: Arc::new(Semaphore::new(FORWARDS)),
            stop,
            tasks,
        }
    }
}

pub(super) fn router<P: Pods>(node: Arc<Node<P>>) -> Router {
    let run = get(exec::by_name).post(exec::by_name);
    let run_by_uid = get(exec::by_uid).post(exec::by_uid);
    let attach = || async { absent("attach", "kubectl logs -f shows what a container prints") };
    let forward = get(forward::by_name).post(forward::by_name);
    let forward_by_uid = get(forward::by_uid).post(forward::by_uid);
    let command = || async { absent("run", "use exec") };
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/pods", get(pods))
        .route("/pods/", get(pods))
        .route("/stats/summary", get(summary).post(summary))
        .route("/metrics/resource", get(resource_metrics))
        .route("/containerLogs/{namespace}/{pod}/{container}", get(container_logs))
        .route("/exec/{namespace}/{pod}/{container}", run)
        .route("/exec/{namespace}/{pod}/{uid}/{container}", run_by_uid)
        .route("/attach/{*rest}", any(attach))
        .route("/portForward/{namespace}/{pod}", forward)
        .route("/portForward/{namespace}/{pod}/{uid}", forward_by_uid)
        .route("/run/{*rest}", any(command))
        .fallback(async || (StatusCode::NOT_FOUND, "this node's API has no such path"))
        .with_state(node)
}

fn absent(what: &str, instead: &str) -> (StatusCode, String) {
    (StatusCode::NOT_IMPLEMENTED, format!("{what} is not available on a trainyard node; {instead}"))
}

fn refusal(refused: &Refused) -> Response {
    let status = match refused {
        Refused::NotFound(_) => StatusCode::NOT_FOUND,
        Refused::BadRequest(_) => StatusCode::BAD_REQUEST,
        Refused::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, refused.to_string()).into_response()
}

async fn container_logs<P: Pods>(
    State(node): State<Arc<Node<P>>>,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = match log_query::parse(query.as_deref().unwrap_or_default(), Timestamp::now()) {
        Ok(query) => query,
        Err(problem) => return (StatusCode::UNPROCESSABLE_ENTITY, problem).into_response(),
    };
    let Ok(slot) = Arc::clone(&node.logs).try_acquire_owned() else {
        let busy = "too many logs are read from this node at once; try again later";
        return (StatusCode::TOO_MANY_REQUESTS, busy).into_response();
    };
    let ask = LogAsk { namespace, pod, container, previous: query.previous };
    let source = match node.pods.log(ask).await {
        Ok(source) => source,
        Err(refused) => return refusal(&refused),
    };
    let pieces = match logs::read(source, query).await {
        Ok(pieces) => pieces,
        Err(error) => {
            let status = match error {
                LogError::Missing { .. } => StatusCode::NOT_FOUND,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            return (status, error.to_string()).into_response();
        }
    };
    let pieces = pieces.map(move |piece| {
        // Given back when the client has read all or has gone.
        let _held = &slot;
        piece.inspect_err(|error| tracing::warn!(%error, kind = error.kind(), "reading a log"))
    });
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from_stream(pieces)).into_response()
}

async fn pods<P: Pods>(State(node): State<Arc<Node<P>>>) -> Response {
    let items = node.pods.pods().await;
    json_answer(&json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}))
}

async fn summary<P: Pods>(State(node): State<Arc<Node<P>>>) -> Response {
    match node.pods.summary().await {
        Ok(summary) => json_answer(&summary),
        Err(refused) => refusal(&refused),
    }
}

async fn resource_metrics<P: Pods>(State(node): State<Arc<Node<P>>>) -> Response {
    let summary = node.pods.summary().await.inspect_err(|error| {
        tracing::warn!(%error, kind = error.kind(), "measuring what pods use");
    });
    ([(CONTENT_TYPE, metrics::MEDIA_TYPE)], metrics::text(summary.as_ref().ok())).into_response()
}

fn json_answer(value: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let kind = http::HeaderValue::from_static("application/json");
            ([(CONTENT_TYPE, kind)], bytes).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
