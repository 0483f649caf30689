//! Clients inside the process: the same HTTP over a pipe in memory, with an identity of their own.
//!
//! Must not know what is asked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service, ServiceExt as _};

use super::respond::{Core, Peer};
use super::serve::connection;
use crate::kind::Caller;

/// Bytes that a pipe holds in each direction.
const PIPE: usize = 256 * 1024;

/// Makes a pipe and serves its other end.
#[derive(Clone)]
struct Pipes {
    core: Arc<Core>,
    caller: Caller,
    stop: CancellationToken,
}

/// One end of a pipe.
struct End(TokioIo<DuplexStream>);

impl Service<Uri> for Pipes {
    type Response = End;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<End, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let peer = Peer::Inside(self.caller.clone());
        tokio::spawn(connection(self.core.clone(), theirs, peer, self.stop.clone()));
        Box::pin(std::future::ready(Ok(End(TokioIo::new(ours)))))
    }
}

impl Connection for End {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl hyper::rt::Write for End {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// A client in this process that is `caller` to the server.
pub(crate) fn client(core: Arc<Core>, caller: Caller, stop: CancellationToken) -> kube::Client {
    let pipes = Pipes { core, caller, stop };
    let client = HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build::<_, kube::client::Body>(pipes);
    let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        let client = client.clone();
        async move {
            // A pipe has no address; the client library wants one.
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
            *request.uri_mut() = format!("http://inside{path}").parse()?;
            client.oneshot(request).await.map_err(BoxError::from)
        }
    });
    kube::Client::new(service, "default")
}
