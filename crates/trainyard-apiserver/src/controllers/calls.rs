//! Requests to the API server: JSON in, JSON out, by path.
//!
//! Owns paths, content types and deletion options. Must not know what objects mean.

use std::fmt::Write as _;

use http::{Method, Request, header};
use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::Error;
use super::view::Meta;

/// Asks for metadata only; a server that cannot do so sends whole objects, which are read as well.
pub(super) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// The same for lists.
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Whole objects.
pub(super) const WHOLE: &str = "application/json";

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// What becomes of the dependents of an object that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    const fn word(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// The requests that controllers make.
#[derive(Clone)]
pub(super) struct Calls {
    client: Client,
}

impl Calls {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Reads anything.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        accept: &'static str,
    ) -> Result<T, Error> {
        self.send(Method::GET, path, accept, None).await
    }

    /// Reads an object that may not be there.
    pub(super) async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Error> {
        super::error::unless_missing(self.read(path, WHOLE).await)
    }

    /// Creates an object.
    pub(super) async fn create(&self, path: &str, object: &Value) -> Result<Meta, Error> {
        let answer: super::view::Bare =
            self.send(Method::POST, path, WHOLE, Some((WHOLE, object))).await?;
        Ok(answer.metadata)
    }

    /// Creates an object; false when there is one of that name already.
    pub(super) async fn create_missing(&self, path: &str, object: &Value) -> Result<bool, Error> {
        match self.create(path, object).await {
            Ok(_) => Ok(true),
            Err(error) if error.reason() == "AlreadyExists" => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces an object or a subresource.
    pub(super) async fn replace(&self, path: &str, object: &Value) -> Result<Meta, Error> {
        let body = Some((WHOLE, object));
        let answer: super::view::Bare = self.send(Method::PUT, path, METADATA, body).await?;
        Ok(answer.metadata)
    }

    /// Merges a patch into an object or a subresource.
    pub(super) async fn merge(&self, path: &str, edit: &Value) -> Result<(), Error> {
        let body = Some((MERGE, edit));
        self.send::<Value>(Method::PATCH, path, METADATA, body).await.map(|_| ())
    }

    /// Merges a patch as the kind's own rules say: conditions by their type.
    pub(super) async fn merge_parts(&self, path: &str, edit: &Value) -> Result<(), Error> {
        let body = Some((STRATEGIC, edit));
        self.send::<Value>(Method::PATCH, path, METADATA, body).await.map(|_| ())
    }

    /// Deletes an object or a collection with these options.
    pub(super) async fn delete(&self, path: &str, options: &Value) -> Result<(), Error> {
        let body = Some((WHOLE, options));
        self.send::<Value>(Method::DELETE, path, WHOLE, body).await.map(|_| ())
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        body: Option<(&'static str, &Value)>,
    ) -> Result<T, Error> {
        let what = || format!("{method} {path}");
        let failed = |answer| Error::Call { what: what(), answer: Box::new(answer) };
        let mut request = Request::builder().method(&method).uri(path);
        request = request.header(header::ACCEPT, accept);
        if let Some((content, _)) = body {
            request = request.header(header::CONTENT_TYPE, content);
        }
        let bytes = body.map(|(_, value)| value.to_string()).unwrap_or_default().into_bytes();
        let request = request.body(bytes).map_err(|error| failed(kube::Error::HttpError(error)))?;
        let text = self.client.request_text(request).await.map_err(failed)?;
        serde_json::from_str(&text).map_err(|source| Error::Answer { what: what(), source })
    }
}

/// Options of a deletion.
pub(super) fn delete_options(propagation: Propagation, uid: Option<&str>) -> Value {
    let mut options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation.word(),
    });
    if let Some(uid) = uid {
        options["preconditions"] = json!({"uid": uid});
    }
    options
}

/// A part of a path: a name that may hold anything.
pub(super) fn segment(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// The path of an object of the core group.
pub(super) fn core(namespace: &str, plural: &str, name: &str) -> String {
    object("/api/v1", namespace, plural, name)
}

/// The path of an object; of the collection when there is no name.
pub(super) fn object(prefix: &str, namespace: &str, plural: &str, name: &str) -> String {
    let mut path = prefix.to_owned();
    if !namespace.is_empty() {
        let _ = write!(path, "/namespaces/{}", segment(namespace));
    }
    let _ = write!(path, "/{plural}");
    if !name.is_empty() {
        let _ = write!(path, "/{}", segment(name));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hold_any_name() {
        assert_eq!(core("a", "pods", "b"), "/api/v1/namespaces/a/pods/b");
        assert_eq!(core("", "nodes", ""), "/api/v1/nodes");
        let roles = "/apis/rbac.authorization.k8s.io/v1";
        let path = object(roles, "", "clusterroles", "system:a b/ü");
        assert_eq!(path, format!("{roles}/clusterroles/system:a%20b%2F%C3%BC"));
    }

    #[test]
    fn a_deletion_names_whom_it_means() {
        let options = delete_options(Propagation::Foreground, Some("u"));
        assert_eq!(options["propagationPolicy"], "Foreground");
        assert_eq!(options["preconditions"]["uid"], "u");
    }
}
