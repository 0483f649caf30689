//! Which lists of the server's own kinds are merged by which key.
//!
//! Kubernetes says so at its types; the rows here are those of the fields that people write.

use serde_json::Value;

/// How lists are treated.
pub(super) enum Lists<'a> {
    /// Replaced as a whole: all that a server knows of kinds that were defined later.
    Whole,
    /// Merged by key, where there is one.
    ByKey {
        /// The object's kind.
        kind: &'a str,
    },
}

const KEYS: [(&str, &str); 17] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("ephemeralContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("imagePullSecrets", "name"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
    ("schedulingGates", "name"),
    ("resourceClaims", "name"),
    ("ownerReferences", "uid"),
    ("webhooks", "name"),
    ("matchConditions", "name"),
    ("variables", "name"),
    ("drivers", "name"),
];

/// The key of a list's elements; none if the list is one value.
pub(super) fn key_of(
    lists: &Lists<'_>,
    field: &str,
    wanted: &[Value],
    current: &[Value],
) -> Option<&'static str> {
    let Lists::ByKey { kind } = lists else { return None };
    match field {
        // Containers and Services mean different things by it; others have it as one value.
        "ports" => {
            let first = wanted.first().or(current.first())?;
            if first.get("containerPort").is_some() {
                Some("containerPort")
            } else {
                (*kind == "Service").then_some("port")
            }
        }
        "secrets" => (*kind == "ServiceAccount").then_some("name"),
        _ => KEYS.iter().find(|(name, _)| *name == field).map(|(_, key)| *key),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_depend_on_whose_they_are() {
        let (port, container) = ([json!({"port": 80})], [json!({"containerPort": 80})]);
        let by = |kind, list: &[Value]| key_of(&Lists::ByKey { kind }, "ports", list, &[]);
        assert_eq!(by("Pod", &container), Some("containerPort"));
        assert_eq!(by("Service", &port), Some("port"));
        assert_eq!(by("NetworkPolicy", &port), None);
        assert_eq!(key_of(&Lists::Whole, "containers", &[], &[]), None);
    }
}
