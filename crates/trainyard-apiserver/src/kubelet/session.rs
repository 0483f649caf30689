//! Sessions in containers and forwarded ports: a connection handed through to the node.

use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;

use super::Kubelets;
use super::reach::{Address, container, node_of};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::{About, Failure};
use crate::request::query::Query;
use crate::verbs::Target;

const WORDS: usize = 16 * 1024;

impl Kubelets {
    /// Runs a command in a container.
    pub(super) async fn session<B>(
        &self,
        api: &Api,
        target: &Target,
        query: &Query,
        request: Request<B>,
    ) -> Result<Response<Body>, Failure> {
        let name = target.name.as_deref().unwrap_or_default();
        let pod = api.store.get("pods", &target.namespace, name);
        let pod = pod.ok_or_else(|| Failure::not_found(About::new("", "pods", name)))?.value();
        let container = container(&pod, query.text("container"))?;
        let address = Self::node(api, &node_of(&pod, name)?)?;
        let uri = format!("/exec/{}/{name}/{container}?{}", target.namespace, parameters(query));
        self.hand_through(&address, uri, request).await
    }

    /// Forwards ports of a pod.
    pub(super) async fn forward<B>(
        &self,
        api: &Api,
        target: &Target,
        request: Request<B>,
    ) -> Result<Response<Body>, Failure> {
        let name = target.name.as_deref().unwrap_or_default();
        let pod = api.store.get("pods", &target.namespace, name);
        let pod = pod.ok_or_else(|| Failure::not_found(About::new("", "pods", name)))?.value();
        let address = Self::node(api, &node_of(&pod, name)?)?;
        let uri = format!("/portForward/{}/{name}", target.namespace);
        self.hand_through(&address, uri, request).await
    }

    /// Makes the client's connection the node's.
    async fn hand_through<B>(
        &self,
        address: &Address,
        uri: String,
        request: Request<B>,
    ) -> Result<Response<Body>, Failure> {
        let mut passed = Request::get(uri).body(Empty::new()).map_err(Failure::internal)?;
        *passed.headers_mut() = upgrade_headers(request.headers());
        let mut response = self.ask(address, passed).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let code = response.status().as_u16();
            let words = Limited::new(response.into_body(), WORDS).collect().await;
            let words = words.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).trim().to_owned();
            return Err(Failure::new(code, "BadRequest", words));
        }
        let node_side = hyper::upgrade::on(&mut response);
        let client_side = hyper::upgrade::on(request);
        tokio::spawn(async move {
            let (Ok(node), Ok(client)) = tokio::join!(node_side, client_side) else { return };
            let (mut node, mut client) = (TokioIo::new(node), TokioIo::new(client));
            let _ended = tokio::io::copy_bidirectional(&mut node, &mut client).await;
        });
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *answer.headers_mut() = response.headers().clone();
        Ok(answer)
    }

    /// A node's own answer to a question about itself.
    pub(super) async fn node_proxy(
        &self,
        api: &Api,
        target: &Target,
        query: &Query,
        rest: &str,
    ) -> Result<Response<Body>, Failure> {
        let name = target.name.as_deref().unwrap_or_default();
        let address = Self::node(api, name)?;
        let uri = format!("/{rest}?{}", query.without(&[]));
        let request = Request::get(uri).body(Empty::new()).map_err(Failure::internal)?;
        let response = self.ask(&address, request).await?;
        let (parts, body) = response.into_parts();
        let whole = Limited::new(body, 8 << 20).collect().await.map_err(Failure::internal)?;
        let mut out = answer::text(parts.status.as_u16(), whole.to_bytes());
        if let Some(media) = parts.headers.get(header::CONTENT_TYPE) {
            out.headers_mut().insert(header::CONTENT_TYPE, media.clone());
        }
        Ok(out)
    }
}

/// What makes a request the beginning of a websocket, or of what older clients speak.
fn upgrade_headers(headers: &HeaderMap) -> HeaderMap {
    let names = [
        HeaderName::from_static("x-stream-protocol-version"),
        header::CONNECTION,
        header::UPGRADE,
        header::SEC_WEBSOCKET_KEY,
        header::SEC_WEBSOCKET_PROTOCOL,
        header::SEC_WEBSOCKET_VERSION,
    ];
    let mut kept = HeaderMap::new();
    for name in names {
        for value in headers.get_all(&name) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// The parameters in the words that a kubelet reads.
fn parameters(query: &Query) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for command in query.all("command") {
        out.append_pair("command", command);
    }
    for (asked, passed) in
        [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")]
    {
        if query.flag(asked) {
            out.append_pair(passed, "1");
        }
    }
    out.finish()
}
