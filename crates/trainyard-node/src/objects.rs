//! What the agent reads from the API for a pod: config maps, secrets, claims, volumes, tokens.
//!
//! Owns the questions and how a refusal is told. Must not know what the answers are used for.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, PersistentVolume, PersistentVolumeClaim, Secret, ServiceAccount,
};
use kube::Api;
use kube::api::PostParams;

/// A namespace that every cluster has and that is never made anew.
const SYSTEM: &str = "kube-system";

/// Why an object could not be read. That it does not exist is no error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectsError {
    /// The API server said no; its own words.
    #[error("{message}")]
    Refused {
        /// What it said.
        message: String,
    },
    /// No answer, or none that can be understood.
    #[error("reading {what} from the API server: {problem}")]
    Unanswered {
        /// Kind, namespace and name.
        what: String,
        /// What went wrong.
        problem: String,
    },
}

impl ObjectsError {
    fn from_client(what: String, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused { message: status.message.clone() },
            other => Self::Unanswered { what, problem: other.to_string() },
        }
    }
}

/// What a token is asked for with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenAsk {
    /// Whom it is for; none: the API server itself.
    pub(crate) audience: Option<String>,
    /// How long it should live.
    pub(crate) seconds: i64,
    /// The pod it is bound to: it ends with it.
    pub(crate) pod_name: String,
    /// That pod's UID.
    pub(crate) pod_uid: String,
}

/// A service account's token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The secret itself.
    pub(crate) bearer: String,
    /// When it ends.
    pub(crate) expires: Timestamp,
    /// How long it lives in all, in seconds; may be less than was asked for.
    pub(crate) seconds: i64,
}

impl fmt::Debug for Token {
    // A token must not reach a log by accident.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Where objects are read from.
pub(crate) trait Objects: Send + Sync {
    /// A config map, if it exists.
    fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<ConfigMap>, ObjectsError>> + Send;

    /// A secret, if it exists.
    fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Secret>, ObjectsError>> + Send;

    /// A claim, if it exists.
    fn claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<PersistentVolumeClaim>, ObjectsError>> + Send;

    /// A persistent volume, if it exists.
    fn volume(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Option<PersistentVolume>, ObjectsError>> + Send;

    /// A new token of a service account.
    fn token(
        &self,
        namespace: &str,
        account: &str,
        ask: &TokenAsk,
    ) -> impl Future<Output = Result<Token, ObjectsError>> + Send;
}

/// Objects of an API server.
#[derive(Clone)]
pub(crate) struct ApiObjects {
    client: kube::Client,
}

impl ApiObjects {
    /// Reads with this client's rights.
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// What tells this cluster from others: the UID of a namespace that each has.
    pub(crate) async fn cluster(&self) -> Result<String, ObjectsError> {
        let found: Option<Namespace> =
            read(Api::all(self.client.clone()), "namespace", SYSTEM).await?;
        found.and_then(|namespace| namespace.metadata.uid).ok_or_else(|| ObjectsError::Refused {
            message: format!("namespaces {SYSTEM:?} not found"),
        })
    }
}

/// Names become a part of a request's path: one that could mean another path names nothing.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
}

async fn read<K>(api: Api<K>, what: &str, name: &str) -> Result<Option<K>, ObjectsError>
where
    K: Clone + fmt::Debug + serde::de::DeserializeOwned,
{
    if !is_name(name) {
        return Ok(None);
    }
    let mut pauses = KIN.into_iter();
    loop {
        let found = api.get_opt(name).await;
        match (&found, pauses.next()) {
            (Err(error), Some(pause)) if is_unrelated(error) => tokio::time::sleep(pause).await,
            _ => {
                let failed = |e| ObjectsError::from_client(format!("{what} {name}"), &e);
                return found.map_err(failed);
            }
        }
    }
}

/// An API server lets a node read what its pods name, and may hear of a pod later than the node itself.
const KIN: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// Whether a node was refused something because no pod of its is known to name it.
fn is_unrelated(error: &kube::Error) -> bool {
    let words = "no relationship found between node";
    matches!(error, kube::Error::Api(status) if status.code == 403 && status.message.contains(words))
}

impl Objects for ApiObjects {
    async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ConfigMap>, ObjectsError> {
        read(Api::namespaced(self.client.clone(), namespace), "config map", name).await
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, ObjectsError> {
        read(Api::namespaced(self.client.clone(), namespace), "secret", name).await
    }

    async fn claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<PersistentVolumeClaim>, ObjectsError> {
        read(Api::namespaced(self.client.clone(), namespace), "claim", name).await
    }

    async fn volume(&self, name: &str) -> Result<Option<PersistentVolume>, ObjectsError> {
        read(Api::all(self.client.clone()), "persistent volume", name).await
    }

    async fn token(
        &self,
        namespace: &str,
        account: &str,
        ask: &TokenAsk,
    ) -> Result<Token, ObjectsError> {
        let what = format!("a token of service account {namespace}/{account}");
        if !is_name(account) {
            let message = format!("serviceaccounts {account:?} not found");
            return Err(ObjectsError::Refused { message });
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let (params, request) = (PostParams::default(), token_request(ask));
        let mut pauses = KIN.into_iter();
        let answer = loop {
            let answer = accounts.create_token_request(account, &params, &request).await;
            match (&answer, pauses.next()) {
                (Err(error), Some(pause)) if is_unrelated(error) => tokio::time::sleep(pause).await,
                _ => break answer.map_err(|e| ObjectsError::from_client(what.clone(), &e))?,
            }
        };
        let seconds = answer.spec.expiration_seconds.unwrap_or(ask.seconds);
        let status = answer.status.ok_or_else(|| ObjectsError::Unanswered {
            what,
            problem: "the answer holds no token".to_owned(),
        })?;
        Ok(Token { bearer: status.token, expires: status.expiration_timestamp.0, seconds })
    }
}

fn token_request(ask: &TokenAsk) -> TokenRequest {
    TokenRequest {
        spec: TokenRequestSpec {
            audiences: ask.audience.iter().cloned().collect(),
            expiration_seconds: Some(ask.seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(ask.pod_name.clone()),
                uid: Some(ask.pod_uid.clone()),
            }),
        },
        ..TokenRequest::default()
    }
}

#[cfg(test)]
pub(crate) mod memory {
    //! Objects in memory, for tests.

    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret};

    use super::{Objects, ObjectsError, Token, TokenAsk};

    /// What the "API server" holds; everything is in one namespace, `ns`.
    #[derive(Default)]
    pub(crate) struct MemoryObjects {
        pub(crate) config_maps: BTreeMap<String, ConfigMap>,
        pub(crate) secrets: BTreeMap<String, Secret>,
        pub(crate) claims: BTreeMap<String, PersistentVolumeClaim>,
        pub(crate) volumes: BTreeMap<String, PersistentVolume>,
        /// Every token asked for, in order.
        pub(crate) asked: Mutex<Vec<(String, TokenAsk)>>,
        /// When the tokens given are issued.
        pub(crate) now: Mutex<Timestamp>,
        /// Refuses everything with these words.
        pub(crate) broken: Mutex<Option<String>>,
    }

    impl MemoryObjects {
        fn answer<T: Clone>(
            &self,
            namespace: &str,
            map: &BTreeMap<String, T>,
            name: &str,
        ) -> Result<Option<T>, ObjectsError> {
            if let Some(message) = self.broken.lock().unwrap().clone() {
                return Err(ObjectsError::Refused { message });
            }
            Ok(if namespace == "ns" { map.get(name).cloned() } else { None })
        }
    }

    impl Objects for MemoryObjects {
        async fn config_map(
            &self,
            ns: &str,
            name: &str,
        ) -> Result<Option<ConfigMap>, ObjectsError> {
            self.answer(ns, &self.config_maps, name)
        }

        async fn secret(&self, ns: &str, name: &str) -> Result<Option<Secret>, ObjectsError> {
            self.answer(ns, &self.secrets, name)
        }

        async fn claim(
            &self,
            ns: &str,
            name: &str,
        ) -> Result<Option<PersistentVolumeClaim>, ObjectsError> {
            self.answer(ns, &self.claims, name)
        }

        async fn volume(&self, name: &str) -> Result<Option<PersistentVolume>, ObjectsError> {
            self.answer("ns", &self.volumes, name)
        }

        async fn token(
            &self,
            ns: &str,
            account: &str,
            ask: &TokenAsk,
        ) -> Result<Token, ObjectsError> {
            self.answer::<()>(ns, &BTreeMap::new(), "")?;
            let mut asked = self.asked.lock().unwrap();
            asked.push((account.to_owned(), ask.clone()));
            let expires = *self.now.lock().unwrap() + SignedDuration::from_secs(ask.seconds);
            let bearer = format!("token-{}", asked.len());
            Ok(Token { bearer, expires, seconds: ask.seconds })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, TokenAsk, is_name, token_request};

    #[test]
    fn names_cannot_become_other_paths() {
        for name in ["a", "kube-root-ca.crt", "A.b-1"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(254);
        for name in
            ["", ".", "..", "../secrets/x", "a/b", "a?b", "a%2fb", "a#b", "a b", "ä", long.as_str()]
        {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn tokens_are_bound_to_the_pod() {
        let ask = TokenAsk {
            audience: Some("vault".to_owned()),
            seconds: 3607,
            pod_name: "p".to_owned(),
            pod_uid: "u".to_owned(),
        };
        let spec = token_request(&ask).spec;
        assert_eq!(spec.audiences, ["vault"]);
        assert_eq!(spec.expiration_seconds, Some(3607));
        let bound = spec.bound_object_ref.unwrap();
        assert_eq!(bound.kind.as_deref(), Some("Pod"));
        assert_eq!((bound.name.as_deref(), bound.uid.as_deref()), (Some("p"), Some("u")));
    }

    #[test]
    fn tokens_do_not_show_in_logs() {
        let expires = jiff::Timestamp::UNIX_EPOCH;
        let token = Token { bearer: "geheim".to_owned(), expires, seconds: 1 };
        assert!(!format!("{token:?}").contains("geheim"));
    }
}
