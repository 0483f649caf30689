//! Which kind of volume a manifest names, also among those that cannot be mounted here.
//!
//! Must not know how any of them is made.

use k8s_openapi::api::core::v1::{PersistentVolumeSpec, Volume};
use serde_json::Value;

/// What can be used in place of a kind that cannot be mounted here.
pub(crate) const INSTEAD: &str = "use a persistentVolumeClaim (kept in a local folder), hostPath or emptyDir, or give the data with --mount SRC:DST";

/// The field of a volume that says what it is.
pub(crate) fn of_volume(volume: &Volume) -> String {
    named(&serde_json::to_value(volume).unwrap_or_default(), |field| field != "name").0
}

/// The field of a persistent volume that says what it is, and whether it is read-only there.
pub(crate) fn of_persistent(spec: &PersistentVolumeSpec) -> (String, bool) {
    let about = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    named(&serde_json::to_value(spec).unwrap_or_default(), |field| !about.contains(&field))
}

fn named(value: &Value, is_source: impl Fn(&str) -> bool) -> (String, bool) {
    match value.as_object().into_iter().flatten().find(|(field, _)| is_source(field)) {
        Some((field, source)) => {
            let read_only = source.get("readOnly").and_then(Value::as_bool);
            (field.clone(), read_only.unwrap_or(false))
        }
        None => ("(unknown)".to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_persistent, of_volume};
    use k8s_openapi::api::core::v1::{PersistentVolumeSpec, Volume};
    use serde_json::{from_value, json};

    #[test]
    fn kinds_are_read_from_the_manifest() {
        for (volume, kind) in [
            (json!({"name": "v", "nfs": {"server": "s", "path": "/"}}), "nfs"),
            (json!({"name": "v", "csi": {"driver": "d"}}), "csi"),
            (json!({"name": "v", "gitRepo": {"repository": "r"}}), "gitRepo"),
            (json!({"name": "v", "new2031": {}}), "(unknown)"),
        ] {
            assert_eq!(of_volume(&from_value::<Volume>(volume).unwrap()), kind);
        }
        let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
            "volumeMode": "Filesystem", "nfs": {"server": "s", "path": "/", "readOnly": true}});
        let spec: PersistentVolumeSpec = from_value(spec).unwrap();
        assert_eq!(of_persistent(&spec), ("nfs".to_owned(), true));
    }
}
