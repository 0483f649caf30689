//! What everybody may know: that the server lives, and its version.

use http::{Response, header};
use serde_json::{Value, json};

use crate::answer::{self, Body};

/// The Kubernetes version whose API this is.
pub(crate) const MAJOR: &str = "1";
pub(crate) const MINOR: &str = "36";

/// Answers to health and version.
pub(super) fn answer(path: &str) -> Option<Response<Body>> {
    match path {
        "/healthz" | "/livez" | "/readyz" | "/healthz/ping" | "/livez/ping" | "/readyz/ping" => {
            Some(plain("ok"))
        }
        "/version" | "/version/" => Some(answer::value(200, &version())),
        _ => None,
    }
}

fn version() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": format!("v{MAJOR}.{MINOR}.3+trainyard.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("linux/{}", architecture()),
    })
}

const fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

/// A plain text.
pub(super) fn plain(text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    let media = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}
