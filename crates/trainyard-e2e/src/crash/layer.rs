//! A layer under the operator's client that counts its writes and springs a trap at one of them.
//!
//! Events are not counted: they are best effort and their number may differ. Must not know jobs.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// What happens at the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The operator crashes before it is sent.
    Before,
    /// It is carried out; the operator crashes before it hears of it.
    After,
    /// It is carried out; the operator gets an error instead of the answer, and goes on.
    DoubtDone,
    /// It is lost; the operator gets the same error, and goes on.
    DoubtLost,
    /// The server is too busy or has trouble of its own, says so, and does nothing.
    Refused,
}

impl Mode {
    pub(super) const ALL: [Self; 5] =
        [Self::Before, Self::After, Self::DoubtDone, Self::DoubtLost, Self::Refused];
}

/// A mode at the n-th write, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) mode: Mode,
}

/// One operator's trap.
pub(super) struct Trap {
    fault: Option<Fault>,
    writes: AtomicUsize,
    sprung: AtomicBool,
    dead: CancellationToken,
}

impl Trap {
    /// A trap that only counts.
    pub(super) fn open() -> Self {
        Self {
            fault: None,
            writes: AtomicUsize::new(0),
            sprung: AtomicBool::new(false),
            dead: CancellationToken::new(),
        }
    }

    pub(super) fn new(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::open() }
    }

    /// Writes so far.
    pub(super) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// Whether the write has come.
    pub(super) fn is_sprung(&self) -> bool {
        self.sprung.load(Ordering::SeqCst)
    }

    /// Waits for the crash.
    pub(super) async fn crashed(&self) {
        self.dead.cancelled().await;
    }

    /// The fault of this request, if it is the one.
    fn springs_at(&self, request: &Request<Body>) -> Option<Mode> {
        if request.method() == Method::GET || request.uri().path().contains("/events") {
            return None;
        }
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = self.fault.filter(|fault| fault.at == number)?;
        self.sprung.store(true, Ordering::SeqCst);
        Some(fault.mode)
    }
}

/// A client like `inner` that runs into the trap.
pub(super) fn client(inner: Client, trap: Arc<Trap>) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let service = tower::service_fn(move |request| {
        let (inner, trap) = (inner.clone(), Arc::clone(&trap));
        async move { pass(inner, trap, request).await }
    });
    Client::new(service, namespace)
}

async fn pass(
    inner: Client,
    trap: Arc<Trap>,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    if trap.dead.is_cancelled() {
        return pending().await;
    }
    let Some(mode) = trap.springs_at(&request) else {
        return Ok(inner.send(request).await?);
    };
    let lost = "connection reset by the test; nobody knows what became of the request";
    match mode {
        Mode::Before => {
            trap.dead.cancel();
            pending().await
        }
        Mode::After => {
            // The answer does not matter: the write has been carried out or refused.
            let _ = inner.send(request).await;
            trap.dead.cancel();
            pending().await
        }
        Mode::DoubtDone => {
            let _ = inner.send(request).await;
            Err(lost.into())
        }
        Mode::DoubtLost => Err(lost.into()),
        Mode::Refused => refusal(trap.writes()),
    }
}

/// One of the answers with which a server asks to be tried again.
fn refusal(number: usize) -> Result<Response<Body>, BoxError> {
    let (code, reason) = match number % 3 {
        0 => (500, "InternalError"),
        1 => (429, "TooManyRequests"),
        _ => (503, "ServiceUnavailable"),
    };
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": "refused by the test", "reason": reason, "code": code,
    });
    let body = Body::from(status.to_string().into_bytes());
    let answer = Response::builder().status(code).header("content-type", "application/json");
    Ok(answer.body(body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, path: &str) -> Request<Body> {
        Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
    }

    #[test]
    fn reads_and_events_are_not_counted() {
        let trap = Trap::new(Fault { at: 2, mode: Mode::Before });
        let pods = "/api/v1/namespaces/a/pods";
        assert_eq!(trap.springs_at(&request(Method::POST, pods)), None);
        assert_eq!(trap.springs_at(&request(Method::GET, pods)), None);
        let events = "/api/v1/namespaces/a/events";
        assert_eq!(trap.springs_at(&request(Method::POST, events)), None);
        assert!(!trap.is_sprung());
        assert_eq!(trap.springs_at(&request(Method::PATCH, pods)), Some(Mode::Before));
        assert_eq!(trap.springs_at(&request(Method::POST, pods)), None);
        assert!(trap.is_sprung());
        assert_eq!(trap.writes(), 3);
    }
}
