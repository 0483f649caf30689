//! Metrics and probes over HTTP.
//!
//! Must not know anything of jobs.

use std::{io, sync::Arc};

use axum::{Router, extract::State, http::StatusCode, http::header, routing::get};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{Health, Metrics};

/// The format of [`Metrics::encode`].
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/metrics`, `/healthz` and `/readyz` until `stop` is cancelled.
///
/// To serve metrics and probes at two addresses, call it twice.
pub async fn http(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = router(metrics, health);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn router(metrics: Arc<Metrics>, health: Arc<Health>) -> Router {
    let encoded = |State(metrics): State<Arc<Metrics>>| async move {
        ([(header::CONTENT_TYPE, METRICS_TYPE)], metrics.encode())
    };
    let live =
        |State(health): State<Arc<Health>>| async move { answer(health.is_live(), "ok", "ended") };
    let ready = |State(health): State<Arc<Health>>| async move {
        let mut text = if health.is_acting() { "ok".to_owned() } else { "ok, waiting".to_owned() };
        for warning in health.warnings() {
            text.push_str("\nwarning: ");
            text.push_str(&warning);
        }
        answer(health.is_ready(), &text, "not everything has been read from the API server yet")
    };
    let probes =
        Router::new().route("/healthz", get(live)).route("/readyz", get(ready)).with_state(health);
    Router::new().route("/metrics", get(encoded)).with_state(metrics).merge(probes)
}

fn answer(good: bool, yes: &str, no: &str) -> (StatusCode, String) {
    if good {
        (StatusCode::OK, format!("{yes}\n"))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{no}\n"))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn ask(router: &Router, path: &str) -> (u16, String) {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn probes_follow_the_operators_state() {
        let health = Arc::new(Health::default());
        let router = router(Arc::default(), Arc::clone(&health));
        assert_eq!(ask(&router, "/healthz").await.0, 200);
        assert_eq!(ask(&router, "/readyz").await.0, 503);
        health.set_synced();
        assert_eq!(ask(&router, "/readyz").await, (200, "ok, waiting\n".to_owned()));
        health.set_acting();
        health.warn("look here".to_owned());
        assert_eq!(ask(&router, "/readyz").await, (200, "ok\nwarning: look here\n".to_owned()));
        health.set_ended();
        assert_eq!(ask(&router, "/healthz").await.0, 503);
        assert_eq!(ask(&router, "/readyz").await.0, 503);
    }

    #[tokio::test]
    async fn metrics_are_served_over_a_socket_until_stopped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(http(listener, Arc::default(), Arc::default(), stop.clone()));
        let text = tokio::task::spawn_blocking(move || {
            use std::io::{Read, Write};
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
        .await
        .unwrap();
        assert!(text.contains("trainyard_queue_depth 0"), "{text}");
        stop.cancel();
        server.await.unwrap().unwrap();
    }
}
