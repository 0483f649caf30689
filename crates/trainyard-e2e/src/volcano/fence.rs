//! A layer under a scheduler's client that shows it one scenario's nodes, queues and pods only, so
//! that several scenarios with schedulers of their own can be played on one server.
//!
//! Must not know what a scheduler does.

use http::uri::PathAndQuery;
use http::{Method, Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use tower::BoxError;

/// Label of everything that belongs to the whole cluster and to one scenario.
pub(crate) const SCENE: &str = "trainyard.dev/scene";

/// Collections of the whole cluster that are told apart by the label.
const LABELLED: [&str; 3] =
    ["/api/v1/nodes", "/api/v1/persistentvolumes", "/apis/scheduling.volcano.sh/v1beta1/queues"];
/// Collections of all namespaces that are asked for one: what stands before and after it.
const OF_ONE_NAMESPACE: [(&str, &str); 4] = [
    ("/api/v1", "pods"),
    ("/api/v1", "persistentvolumeclaims"),
    ("/apis/scheduling.volcano.sh/v1beta1", "podgroups"),
    ("/apis/bus.volcano.sh/v1alpha1", "commands"),
];

/// A client like `inner` that sees the scene of this namespace only.
pub(super) fn client(inner: Client, namespace: &str) -> Client {
    let (scene, default) = (namespace.to_owned(), inner.default_namespace().to_owned());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, scene) = (inner.clone(), scene.clone());
        async move { pass(inner, &scene, request).await }
    });
    Client::new(service, default)
}

async fn pass(
    inner: Client,
    scene: &str,
    mut request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    if request.method() == Method::GET {
        let uri = request.uri();
        if let Some(fenced) = fenced(uri.path(), uri.query().unwrap_or_default(), scene) {
            let mut parts = uri.clone().into_parts();
            parts.path_and_query = Some(PathAndQuery::try_from(fenced)?);
            *request.uri_mut() = Uri::from_parts(parts)?;
        }
    }
    Ok(inner.send(request).await?)
}

/// Path and query of a list or watch within the fence; `None` where there is none to keep.
fn fenced(path: &str, query: &str, scene: &str) -> Option<String> {
    if LABELLED.contains(&path) {
        let selector = format!("labelSelector={}%3D{scene}", SCENE.replace('/', "%2F"));
        let query = if query.is_empty() { selector } else { format!("{query}&{selector}") };
        return Some(format!("{path}?{query}"));
    }
    let is_it = |(base, plural): &&(&str, &str)| path == format!("{base}/{plural}");
    let (base, plural) = OF_ONE_NAMESPACE.iter().find(is_it)?;
    Some(format!("{base}/namespaces/{scene}/{plural}?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_collections_are_fenced() {
        assert_eq!(
            fenced("/api/v1/nodes", "watch=1", "n").as_deref(),
            Some("/api/v1/nodes?watch=1&labelSelector=trainyard.dev%2Fscene%3Dn")
        );
        assert_eq!(
            fenced("/api/v1/pods", "limit=5", "n").as_deref(),
            Some("/api/v1/namespaces/n/pods?limit=5")
        );
        assert_eq!(fenced("/api/v1/nodes/a", "", "n"), None);
        assert_eq!(fenced("/api/v1/namespaces/n/pods", "", "n"), None);
    }
}
