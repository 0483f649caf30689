//! A connection that breaks off: requests that fail, and answers that end in the middle.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use kube::client::Body;

/// A client whose connection breaks in ways that depend on the seed alone.
pub(crate) fn client(inner: kube::Client, seed: u64) -> kube::Client {
    let state = Arc::new(AtomicU64::new(seed | 1));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, luck) = (inner.clone(), next(&state));
        async move {
            if luck % 11 == 0 {
                return Err(kube::Error::Service("the connection was refused".into()));
            }
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
            let response = inner.send(request).await?;
            // Lists are whole or fail; watches end anywhere.
            let frames = if is_watch { luck % 6 } else { u64::MAX };
            Ok(response.map(|body| Cut { body, frames }))
        }
    });
    kube::Client::new(service, "default")
}

/// Xorshift: good enough to break things.
fn next(state: &AtomicU64) -> u64 {
    let mut luck = state.load(Ordering::Relaxed);
    luck ^= luck << 13;
    luck ^= luck >> 7;
    luck ^= luck << 17;
    state.store(luck, Ordering::Relaxed);
    luck
}

/// A body that ends after so many pieces.
struct Cut {
    body: Body,
    frames: u64,
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.frames == 0 {
            return Poll::Ready(None);
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.frames -= 1;
        }
        frame
    }
}
