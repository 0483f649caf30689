//! Objects of one namespace as JSON, over a `kube::Client`.
//!
//! Owns paths and verbs. Must not know which server is behind the client, nor what the objects
//! mean: types would hide fields that a test wants to see.

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use trainyard_api::names;

/// The resources that scenarios look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// TFJobs, in the stored version.
    Jobs,
    /// Pods.
    Pods,
    /// Services.
    Services,
    /// Core events.
    Events,
    /// Volcano Jobs.
    VolcanoJobs,
    /// Volcano's PodGroups.
    Groups,
    /// Volcano's Commands.
    Commands,
    /// Config maps.
    ConfigMaps,
    /// Network policies.
    Policies,
    /// Claims of volumes.
    Claims,
}

impl Resource {
    /// What scenarios of TFJobs look at.
    pub const OF_TFJOBS: [Self; 4] = [Self::Jobs, Self::Pods, Self::Services, Self::Events];
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Jobs,
        Self::Pods,
        Self::Services,
        Self::Events,
        Self::VolcanoJobs,
        Self::Groups,
        Self::Commands,
        Self::ConfigMaps,
        Self::Policies,
        Self::Claims,
    ];

    /// The group and version part of its path.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Jobs => "/apis/kubeflow.org/v1",
            Self::Pods | Self::Services | Self::Events | Self::ConfigMaps | Self::Claims => {
                "/api/v1"
            }
            Self::VolcanoJobs => "/apis/batch.volcano.sh/v1alpha1",
            Self::Groups => "/apis/scheduling.volcano.sh/v1beta1",
            Self::Commands => "/apis/bus.volcano.sh/v1alpha1",
            Self::Policies => "/apis/networking.k8s.io/v1",
        }
    }

    /// The plural in its path.
    const fn plural(self) -> &'static str {
        match self {
            Self::Jobs => names::PLURAL,
            Self::Pods => "pods",
            Self::Services => "services",
            Self::Events => "events",
            Self::VolcanoJobs => "jobs",
            Self::Groups => "podgroups",
            Self::Commands => "commands",
            Self::ConfigMaps => "configmaps",
            Self::Policies => "networkpolicies",
            Self::Claims => "persistentvolumeclaims",
        }
    }
}

/// Access to the objects of one namespace.
#[derive(Clone)]
pub struct Rest {
    client: Client,
    namespace: String,
}

impl Rest {
    /// Objects of `namespace` through `client`.
    #[must_use]
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into() }
    }

    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The path of a collection.
    #[must_use]
    pub fn path(&self, resource: Resource) -> String {
        let (prefix, plural) = (resource.prefix(), resource.plural());
        format!("{prefix}/namespaces/{}/{plural}", self.namespace)
    }

    /// One object.
    pub async fn get(&self, resource: Resource, name: &str) -> Result<Value, kube::Error> {
        self.send(Method::GET, &format!("{}/{name}", self.path(resource)), None).await
    }

    /// All objects of the namespace: the list.
    pub async fn list(&self, resource: Resource) -> Result<Value, kube::Error> {
        self.send(Method::GET, &self.path(resource), None).await
    }

    /// Creates an object; one that brings its own `apiVersion` of the job's group is posted in
    /// that version.
    pub async fn create(&self, resource: Resource, object: &Value) -> Result<Value, kube::Error> {
        let path = match object["apiVersion"].as_str() {
            Some(version) if resource == Resource::Jobs => {
                format!("/apis/{version}/namespaces/{}/{}", self.namespace, names::PLURAL)
            }
            _ => self.path(resource),
        };
        self.send(Method::POST, &format!("{path}?fieldValidation=Strict"), Some(object)).await
    }

    /// Merges `patch` into an object or, with `name` as `pod/status`, into a subresource.
    pub async fn merge(
        &self,
        resource: Resource,
        name: &str,
        patch: &Value,
    ) -> Result<Value, kube::Error> {
        self.send(Method::PATCH, &format!("{}/{name}", self.path(resource)), Some(patch)).await
    }

    /// Asks for deletion, with a grace period where one is given.
    pub async fn delete(
        &self,
        resource: Resource,
        name: &str,
        grace_seconds: Option<i64>,
    ) -> Result<Value, kube::Error> {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let Some(seconds) = grace_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        let path = format!("{}/{name}", self.path(resource));
        self.send(Method::DELETE, &path, Some(&options)).await
    }

    /// Any request with a JSON body and a JSON answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let content = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, content)
            .header(http::header::ACCEPT, "application/json")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

/// What the server said when it refused; an error when it did not.
pub fn refusal<T>(result: Result<T, kube::Error>) -> anyhow::Result<String> {
    match result {
        Ok(_) => anyhow::bail!("was accepted, should have been refused"),
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(other) => Err(other.into()),
    }
}

/// Whether the answer was that the object is not there.
#[must_use]
pub fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the server refused a request because the object is another one, or another version of it.
#[must_use]
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Returns true if the server refused a patch because it carries the UID of another object.
#[must_use]
pub fn is_another(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status)
        if status.code == 422 && status.message.contains("metadata.uid"))
}
