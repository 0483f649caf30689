//! For tests: an API server made of one function, without sockets.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};

use crate::{Metrics, Options, calls::Calls};

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
}

impl Asked {
    /// Method and path, for comparing.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }
}

/// What the server answers.
pub(crate) enum Reply {
    Json(u16, Value),
    /// With a `Retry-After` header.
    Later(u16, u64),
    /// Lines of a watch; then the connection stays open or ends.
    Lines {
        lines: Vec<String>,
        open: bool,
    },
    /// Lines of a watch as they come.
    Live(futures::channel::mpsc::UnboundedReceiver<String>),
    /// The answer never comes.
    Silence,
    /// The connection breaks.
    Broken,
    /// An answer after some time.
    After(Duration, Box<Self>),
}

impl Reply {
    /// A refusal as the API server words it.
    pub(crate) fn refuse(code: u16, reason: &str, name: &str) -> Self {
        let message = format!("{reason} {name}");
        Self::Json(
            code,
            json!({"kind": "Status", "code": code, "reason": reason, "message": message,
                "details": {"name": name}}),
        )
    }
}

/// A server and what it was asked.
#[derive(Clone)]
pub(crate) struct Fake {
    answer: Arc<dyn Fn(&Asked) -> Reply + Send + Sync>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    pub(crate) fn new(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), asked: Arc::default() }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| fake.clone().serve(request));
        kube::Client::new(service, "default")
    }

    pub(crate) fn calls(&self, options: &Options) -> Calls {
        Calls::new(self.client(), Arc::new(Metrics::default()), options)
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// All requests so far that are no list and no watch, as lines.
    pub(crate) fn writes(&self) -> Vec<String> {
        let asked = self.asked();
        asked.iter().filter(|asked| asked.method != Method::GET).map(Asked::line).collect()
    }

    fn serve(
        self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<UnsyncBoxBody<Bytes, Infallible>>, std::io::Error>>
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let asked = Asked {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            };
            self.asked.lock().unwrap().push(asked.clone());
            let mut reply = (self.answer)(&asked);
            while let Reply::After(pause, next) = reply {
                tokio::time::sleep(pause).await;
                reply = *next;
            }
            respond(reply).await
        })
    }
}

async fn respond(
    reply: Reply,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, std::io::Error> {
    let mut response = Response::builder();
    let body = match reply {
        Reply::Json(code, value) => {
            response = response.status(StatusCode::from_u16(code).unwrap());
            Full::new(Bytes::from(value.to_string())).boxed_unsync()
        }
        Reply::Later(code, seconds) => {
            response = response.status(code).header("retry-after", seconds);
            Full::new(Bytes::from_static(b"too many requests")).boxed_unsync()
        }
        Reply::Lines { lines, open } => {
            let lines = lines.into_iter().map(|line| Bytes::from(line + "\n"));
            let frames = stream::iter(lines.map(|line| Ok(http_body::Frame::data(line))));
            if open {
                StreamBody::new(frames.chain(stream::pending())).boxed_unsync()
            } else {
                StreamBody::new(frames).boxed_unsync()
            }
        }
        Reply::Live(lines) => {
            let frames = lines.map(|line| Ok(http_body::Frame::data(Bytes::from(line + "\n"))));
            StreamBody::new(frames).boxed_unsync()
        }
        Reply::Silence | Reply::After(..) => std::future::pending().await,
        Reply::Broken => return Err(std::io::Error::other("connection reset")),
    };
    Ok(response.body(body).unwrap())
}
