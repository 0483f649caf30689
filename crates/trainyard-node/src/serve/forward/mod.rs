//! `kubectl port-forward`: connections to a pod's ports, many over one that was upgraded.
//!
//! Clients speak SPDY/3.1 on it, either as it is or inside the messages of a websocket. This file owns
//! the request and the choice between the two; `session` owns what is said.

mod frames;
mod headers;
mod session;
mod wire;

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::TokioIo;

use super::pods::{ForwardTarget, Pods};
use super::routes::Node;
use super::upgrade;

/// What is spoken between client and node.
const PROTOCOL: &str = "portforward.k8s.io";
/// The same inside a websocket.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const SPDY: &str = "SPDY/3.1";
const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// How the frames come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// As they are.
    Plain,
    /// In binary messages.
    Websocket,
}

pub(super) async fn by_name<P: Pods>(
    State(node): State<Arc<Node<P>>>,
    Path((namespace, pod)): Path<(String, String)>,
    request: Request,
) -> Response {
    forward(node, ForwardTarget { namespace, pod, uid: None }, request)
}

pub(super) async fn by_uid<P: Pods>(
    State(node): State<Arc<Node<P>>>,
    Path((namespace, pod, uid)): Path<(String, String, String)>,
    request: Request,
) -> Response {
    forward(node, ForwardTarget { namespace, pod, uid: Some(uid) }, request)
}

fn forward<P: Pods>(node: Arc<Node<P>>, target: ForwardTarget, mut request: Request) -> Response {
    let (manner, answer) = match agree(request.headers()) {
        Ok(agreed) => agreed,
        Err(problem) => return (StatusCode::BAD_REQUEST, problem).into_response(),
    };
    let Ok(slot) = Arc::clone(&node.forwards).try_acquire_owned() else {
        let busy = "too many ports are forwarded through this node's API at once; try again later";
        return (StatusCode::TOO_MANY_REQUESTS, busy).into_response();
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let (stop, tasks) = (node.stop.clone(), node.tasks.clone());
    tasks.spawn(async move {
        let _slot = slot;
        let serving = async {
            let socket = match upgraded.await {
                Ok(upgraded) => TokioIo::new(upgraded),
                Err(error) => {
                    tracing::debug!(%error, "a client left before its ports were forwarded");
                    return;
                }
            };
            let wire = match manner {
                Manner::Plain => wire::plain(socket),
                Manner::Websocket => wire::websocket(socket).await,
            };
            if let Err(error) = session::run(wire, target, Arc::clone(&node.pods)).await {
                tracing::debug!(%error, "forwarding ports ended");
            }
        };
        tokio::select! {
            () = serving => {}
            () = stop.cancelled() => {}
        }
    });
    answer
}

/// How frames are to come, and the answer that says so; or why not, in words for the client.
fn agree(headers: &HeaderMap) -> Result<(Manner, Response), String> {
    if upgrade::asks_for(headers, "websocket") {
        return Ok((Manner::Websocket, upgrade::websocket(headers, TUNNEL)?));
    }
    let offered = upgrade::tokens(headers, &VERSION).any(|version| version == PROTOCOL);
    if !upgrade::asks_for(headers, SPDY) || !offered {
        return Err(format!(
            "forwarding ports needs an upgrade to a websocket with the protocol {TUNNEL}, or to \
             {SPDY} with {VERSION}: {PROTOCOL}"
        ));
    }
    let answer = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static(SPDY)),
        (VERSION, HeaderValue::from_static(PROTOCOL)),
    ];
    Ok((Manner::Plain, (StatusCode::SWITCHING_PROTOCOLS, answer).into_response()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn both_ways_of_kubectl_are_taken() {
        let spdy = headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "portforward.k8s.io"),
        ]);
        let (manner, answer) = agree(&spdy).unwrap();
        assert_eq!((manner, answer.status().as_u16()), (Manner::Plain, 101));
        assert_eq!(answer.headers()[VERSION], PROTOCOL);
        let tunnel = headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", TUNNEL),
        ]);
        let (manner, answer) = agree(&tunnel).unwrap();
        assert_eq!((manner, answer.status().as_u16()), (Manner::Websocket, 101));
        assert_eq!(answer.headers()["sec-websocket-protocol"], TUNNEL);
    }

    #[test]
    fn other_ways_are_told_what_is_taken() {
        for pairs in [
            &[][..],
            &[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")],
            &[("connection", "Upgrade"), ("upgrade", "h2c")],
        ] {
            let words = agree(&headers(pairs)).unwrap_err();
            assert!(words.contains(TUNNEL) && words.contains(SPDY), "{words}");
        }
    }
}
