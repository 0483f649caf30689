//! Clients inside the process: they ask what those of the network ask, with an identity of their own and
//! without a connection in between.
//!
//! Must not know what is asked.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::respond::{Core, Peer};
use crate::answer::{self, Body};
use crate::failure::Failure;
use crate::kind::Caller;

/// A client in this process that is `caller` to the server. After `stop` it gets no more answers, and
/// those that go on end.
pub(crate) fn client(core: Arc<Core>, caller: Caller, stop: CancellationToken) -> kube::Client {
    let peer = Arc::new(Peer::Inside(caller));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (core, peer, stop) = (Arc::clone(&core), Arc::clone(&peer), stop.clone());
        async move {
            if stop.is_cancelled() {
                return Err(BoxError::from("the server is closed"));
            }
            let is_head = request.method() == Method::HEAD;
            // What would end a connection of the network must not end the component that asks.
            let answered = AssertUnwindSafe(core.respond(request, &peer)).catch_unwind().await;
            let response = answered.unwrap_or_else(|_| {
                answer::failure(&Failure::internal("the request could not be answered"))
            });
            // As over a connection, where nothing is sent of it.
            Ok(if is_head { response.map(|_| Body::empty()) } else { until(response, stop) })
        }
    });
    kube::Client::new(service, "default")
}

/// The same answer; one that is made piece by piece ends with the server.
fn until(response: Response<Body>, stop: CancellationToken) -> Response<Body> {
    if response.body().is_whole() {
        return response;
    }
    response.map(|body| {
        let pieces = body.into_data_stream().filter_map(|piece| async { piece.ok() });
        Body::pieces(pieces.take_until(stop.cancelled_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn what_goes_on_ends_with_the_server() {
        let stop = CancellationToken::new();
        let endless = stream::once(async { bytes::Bytes::from("x") }).chain(stream::pending());
        let answer = until(Response::new(Body::pieces(endless)), stop.clone());
        let mut pieces = answer.into_body().into_data_stream();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "x");
        stop.cancel();
        let end = tokio::time::timeout(Duration::from_secs(5), pieces.next()).await;
        assert!(end.unwrap().is_none());
    }
}
