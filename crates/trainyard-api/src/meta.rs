//! The part of object metadata that decisions need.
//!
//! Everything else, above all `managedFields` and other people's annotations, is skipped while reading
//! and never held in memory. It must not grow a field that no decision uses.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Annotations of a job that begin so are passed on to its pods: they are for whoever runs them.
pub const OWN_ANNOTATIONS: &str = "trainyard.dev/";
/// Volcano's annotations, which decisions about its jobs read.
pub const VOLCANO_ANNOTATIONS: &str = "volcano.sh/";

/// Metadata of an object, reduced to what decisions read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; empty for cluster-scoped ones.
    pub namespace: String,
    /// Identity that survives neither deletion nor re-creation under the same name.
    pub uid: String,
    /// Version of the object, as the API server wrote it.
    pub resource_version: String,
    /// Generation of the specification; the API server raises it when `spec` changes.
    pub generation: i64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations that begin with [`OWN_ANNOTATIONS`] or [`VOLCANO_ANNOTATIONS`].
    #[serde(deserialize_with = "own_annotations")]
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    pub owner_references: Vec<OwnerRef>,
    /// When the object was created.
    pub creation_timestamp: Option<Timestamp>,
    /// When the object is to be gone: the time of the deletion request plus its grace period.
    pub deletion_timestamp: Option<Timestamp>,
    /// Grace period of the deletion request.
    pub deletion_grace_period_seconds: Option<i64>,
}

/// One owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerRef {
    /// API group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Identity of the owner.
    pub uid: String,
    /// Whether this owner is the managing controller.
    pub controller: Option<bool>,
}

impl Meta {
    /// The UID of the controller that owns this object, if there is one.
    #[must_use]
    pub fn controller_uid(&self) -> Option<&str> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.as_str())
    }

    /// The version as a number, for comparing two versions of one resource; 0 when it is opaque.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }

    /// Whether deletion of the object has been asked for.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// Reads only our own annotations; the text of all others is never copied.
fn own_annotations<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    struct Own;

    impl<'de> Visitor<'de> for Own {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a map of annotations")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut own = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                if key.starts_with(OWN_ANNOTATIONS) || key.starts_with(VOLCANO_ANNOTATIONS) {
                    own.insert(key, map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(own)
        }
    }

    deserializer.deserialize_any(Own)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(annotations: Value) -> BTreeMap<String, String> {
        let mut meta = json!({"name": "n"});
        meta["annotations"] = annotations;
        serde_json::from_str::<Meta>(&meta.to_string()).unwrap().annotations
    }

    #[test]
    fn only_our_own_annotations_are_kept() {
        let kept = read(json!({"a": "b", "trainyard.dev/requirements": "six", "c/d": "e"}));
        assert_eq!(
            kept.into_iter().collect::<Vec<_>>(),
            [("trainyard.dev/requirements".to_owned(), "six".to_owned())]
        );
        assert!(read(json!({})).is_empty());
        assert!(read(Value::Null).is_empty());
    }
}
