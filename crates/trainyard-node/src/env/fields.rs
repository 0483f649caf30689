//! Fields of a pod that it may ask about: `metadata.name`, `status.podIP`, `metadata.labels['x']` …
//!
//! Must not know where the answer goes (a variable or a file).

use k8s_openapi::api::core::v1::{ObjectFieldSelector, Pod};

use crate::env::Facts;
use crate::env::quote;

/// Why a field cannot be told, in the kubelet's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldError {
    /// Not version `v1`.
    #[error("unsupported pod version: {version}")]
    Version {
        /// What was written.
        version: String,
    },
    /// No such field.
    #[error("field label not supported: {path}")]
    Unknown {
        /// What was written.
        path: String,
    },
    /// A field, but not one that is told in this place.
    #[error("unsupported fieldPath: {path}")]
    NotHere {
        /// What was written.
        path: String,
    },
    /// `['x']` behind a field that is no map.
    #[error("field label does not support subscript: {path}")]
    Subscript {
        /// What was written.
        path: String,
    },
}

/// The value a variable gets by `fieldRef`.
pub(crate) fn field(
    selector: &ObjectFieldSelector,
    pod: &Pod,
    facts: &Facts,
) -> Result<String, FieldError> {
    if let Some(version) = selector.api_version.as_deref().filter(|v| !matches!(*v, "v1" | "")) {
        return Err(FieldError::Version { version: version.to_owned() });
    }
    let spec = pod.spec.as_ref();
    match selector.field_path.as_str() {
        "spec.nodeName" | "spec.host" => {
            let named = spec.and_then(|s| s.node_name.clone()).filter(|n| !n.is_empty());
            Ok(named.unwrap_or_else(|| facts.node_name.clone()))
        }
        "spec.serviceAccountName" => {
            Ok(spec.and_then(|s| s.service_account_name.clone()).unwrap_or_default())
        }
        "status.hostIP" | "status.hostIPs" => Ok(facts.host_ip.to_string()),
        "status.podIP" | "status.podIPs" => {
            let shares = spec.and_then(|s| s.host_network).unwrap_or(false);
            let address = facts.pod_ip.or_else(|| shares.then_some(facts.host_ip));
            Ok(address.map(|a| a.to_string()).unwrap_or_default())
        }
        path => metadata_field(pod, path),
    }
}

/// A field of the pod's metadata: all that a file of a volume can tell.
pub(crate) fn metadata_field(pod: &Pod, path: &str) -> Result<String, FieldError> {
    let metadata = &pod.metadata;
    if let Some((map, key)) = subscripted(path) {
        let map = match map {
            "metadata.labels" => &metadata.labels,
            "metadata.annotations" => &metadata.annotations,
            _ => return Err(FieldError::Subscript { path: path.to_owned() }),
        };
        return Ok(map.as_ref().and_then(|m| m.get(key).cloned()).unwrap_or_default());
    }
    match path {
        "metadata.name" => Ok(metadata.name.clone().unwrap_or_default()),
        "metadata.namespace" => Ok(metadata.namespace.clone().unwrap_or_default()),
        "metadata.uid" => Ok(metadata.uid.clone().unwrap_or_default()),
        "metadata.labels" => Ok(metadata.labels.as_ref().map(quote::lines).unwrap_or_default()),
        "metadata.annotations" => {
            Ok(metadata.annotations.as_ref().map(quote::lines).unwrap_or_default())
        }
        "spec.nodeName"
        | "spec.serviceAccountName"
        | "spec.restartPolicy"
        | "spec.schedulerName"
        | "status.phase"
        | "status.hostIP"
        | "status.hostIPs"
        | "status.podIP"
        | "status.podIPs" => Err(FieldError::NotHere { path: path.to_owned() }),
        _ => Err(FieldError::Unknown { path: path.to_owned() }),
    }
}

/// `map['key']` taken apart.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    (!map.is_empty()).then_some((map, key))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{FieldError, field, metadata_field};
    use crate::env::Facts;
    use k8s_openapi::api::core::v1::{ObjectFieldSelector, Pod};

    fn pod(spec: &str) -> Pod {
        let text = format!(
            r#"{{"metadata": {{"name": "p", "namespace": "ns", "uid": "u-1",
                "labels": {{"app": "mnist", "a/b.c": "x[y]"}},
                "annotations": {{"note": "two\nlines"}}}},
                "spec": {spec}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn facts() -> Facts {
        Facts {
            pod_ip: Some(Ipv4Addr::new(10, 77, 0, 9)),
            host_ip: Ipv4Addr::new(10, 77, 0, 2),
            node_name: "yard".to_owned(),
            allocatable: std::collections::BTreeMap::new(),
        }
    }

    fn ask(pod: &Pod, facts: &Facts, path: &str) -> Result<String, FieldError> {
        let selector = ObjectFieldSelector { api_version: None, field_path: path.to_owned() };
        field(&selector, pod, facts)
    }

    #[test]
    fn every_field_is_told() {
        let pod = pod(r#"{"containers": [], "nodeName": "n1", "serviceAccountName": "trainer"}"#);
        for (path, value) in [
            ("metadata.name", "p"),
            ("metadata.namespace", "ns"),
            ("metadata.uid", "u-1"),
            ("metadata.labels['app']", "mnist"),
            ("metadata.labels['a/b.c']", "x[y]"),
            ("metadata.labels['none']", ""),
            ("metadata.labels['']", ""),
            ("metadata.annotations['note']", "two\nlines"),
            ("metadata.labels", "a/b.c=\"x[y]\"\napp=\"mnist\""),
            ("metadata.annotations", "note=\"two\\nlines\""),
            ("spec.nodeName", "n1"),
            ("spec.host", "n1"),
            ("spec.serviceAccountName", "trainer"),
            ("status.hostIP", "10.77.0.2"),
            ("status.hostIPs", "10.77.0.2"),
            ("status.podIP", "10.77.0.9"),
            ("status.podIPs", "10.77.0.9"),
        ] {
            assert_eq!(ask(&pod, &facts(), path).as_deref(), Ok(value), "{path}");
        }
    }

    #[test]
    fn a_pod_on_the_nodes_network_has_the_nodes_address() {
        let mut facts = facts();
        facts.pod_ip = None;
        let shared = pod(r#"{"containers": [], "hostNetwork": true}"#);
        assert_eq!(ask(&shared, &facts, "status.podIP").unwrap(), "10.77.0.2");
        let own = pod(r#"{"containers": []}"#);
        assert_eq!(ask(&own, &facts, "status.podIP").unwrap(), "");
        assert_eq!(ask(&own, &facts, "spec.nodeName").unwrap(), "yard");
    }

    #[test]
    fn unknown_fields_are_refused_in_the_kubelets_words() {
        let pod = pod(r#"{"containers": []}"#);
        for (path, text) in [
            ("metadata.nope", "field label not supported: metadata.nope"),
            ("", "field label not supported: "),
            ("['x']", "field label not supported: ['x']"),
            ("metadata.name['x']", "field label does not support subscript: metadata.name['x']"),
            ("status.phase", "unsupported fieldPath: status.phase"),
        ] {
            assert_eq!(ask(&pod, &facts(), path).unwrap_err().to_string(), text);
        }
        assert_eq!(
            metadata_field(&pod, "status.podIP").unwrap_err().to_string(),
            "unsupported fieldPath: status.podIP"
        );
        let selector = ObjectFieldSelector {
            api_version: Some("v2".to_owned()),
            field_path: "metadata.name".to_owned(),
        };
        let error = field(&selector, &pod, &facts()).unwrap_err();
        assert_eq!(error.to_string(), "unsupported pod version: v2");
    }
}
