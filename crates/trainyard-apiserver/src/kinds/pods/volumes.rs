//! The volumes of a pod: defaults and checks.
//!
//! Owns the rules of each source of a volume that people meet. Must not look at other objects.

use std::collections::HashSet;

use serde_json::{Value, json};
use trainyard_schema::{FieldError, quantity};

use crate::kinds::{
    json::{fill, items, items_mut, text},
    naming,
};

/// The sources in the order in which the real server looks at them, with the name it tells when
/// there is more than one.
const SOURCES: [(&str, &str); 29] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
];

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The defaults of a volume.
pub(super) fn default(volume: &mut Value) {
    let has_source =
        volume.as_object().is_some_and(|members| members.keys().any(|key| key != "name"));
    if !has_source {
        fill(volume, "emptyDir", json!({}));
    }
    if let Some(path) = volume.get_mut("hostPath") {
        fill(path, "type", "");
    }
    for key in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(key) {
            fill(source, "defaultMode", 0o644);
        }
    }
    if let Some(source) = volume.get_mut("downwardAPI") {
        items_mut(source, "items").iter_mut().for_each(super::defaults::field_reference);
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in items_mut(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = source.get_mut("downwardAPI") {
                items_mut(downward, "items").iter_mut().for_each(super::defaults::field_reference);
            }
        }
    }
    if let Some(spec) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        fill(spec, "volumeMode", "Filesystem");
    }
}

/// Checks the volumes; tells the names of those that are right.
pub(super) fn validate(spec: &Value, path: &str) -> (HashSet<String>, Vec<FieldError>) {
    let mut names = HashSet::new();
    let mut errors = Vec::new();
    for (at, volume) in items(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{at}]");
        let mut own = source(volume, &path);
        let name = text(volume, "name");
        let name_path = format!("{path}.name");
        if name.is_empty() {
            own.push(FieldError::required(&name_path, ""));
        } else {
            let faults = naming::label(name).into_iter();
            own.extend(faults.map(|fault| FieldError::invalid(&name_path, name, fault)));
        }
        if names.contains(name) {
            own.push(FieldError::duplicate(&name_path, name));
        }
        if own.is_empty() {
            names.insert(name.to_owned());
        }
        errors.extend(own);
    }
    (names, errors)
}

fn source(volume: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut found = false;
    for (key, told) in SOURCES {
        let Some(source) = volume.get(key).filter(|source| !source.is_null()) else { continue };
        if found {
            let words = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(format!("{path}.{told}"), words));
            continue;
        }
        found = true;
        errors.extend(one(key, source, &format!("{path}.{key}")));
    }
    if volume.get("image").is_some() {
        found = true;
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

fn one(key: &str, source: &Value, path: &str) -> Vec<FieldError> {
    match key {
        "emptyDir" => size_limit(source, path),
        "hostPath" => host_path(source, path),
        "secret" => keys(source, "secretName", path),
        "configMap" => keys(source, "name", path),
        "persistentVolumeClaim" => required(source, "claimName", path).into_iter().collect(),
        "nfs" => nfs(source, path),
        "projected" => mode(source, "defaultMode", path).into_iter().collect(),
        "ephemeral" => required(source, "volumeClaimTemplate", path).into_iter().collect(),
        "csi" => required(source, "driver", path).into_iter().collect(),
        "azureFile" => ["secretName", "shareName"]
            .into_iter()
            .filter_map(|key| required(source, key, path))
            .collect(),
        _ => Vec::new(),
    }
}

fn required(source: &Value, key: &str, path: &str) -> Option<FieldError> {
    let absent = match &source[key] {
        Value::String(text) => text.is_empty(),
        other => other.is_null(),
    };
    absent.then(|| FieldError::required(format!("{path}.{key}"), ""))
}

fn size_limit(source: &Value, path: &str) -> Vec<FieldError> {
    let limit = quantity::parse(text(source, "sizeLimit")).unwrap_or_default();
    if limit < quantity::Quantity::ZERO {
        let words = "SizeLimit field must be a valid resource quantity";
        return vec![FieldError::forbidden(format!("{path}.sizeLimit"), words)];
    }
    Vec::new()
}

fn host_path(source: &Value, path: &str) -> Vec<FieldError> {
    let place = text(source, "path");
    if place.is_empty() {
        return vec![FieldError::required(format!("{path}.path"), "")];
    }
    let mut errors = Vec::from_iter(no_backsteps(place, &format!("{path}.path")));
    let kind = text(source, "type");
    if !HOST_PATH_TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(format!("{path}.type"), kind, &HOST_PATH_TYPES));
    }
    errors
}

/// A path that does not lead upwards.
pub(super) fn no_backsteps(place: &str, path: &str) -> Option<FieldError> {
    place
        .split('/')
        .any(|word| word == "..")
        .then(|| FieldError::invalid(path, place, "must not contain '..'"))
}

/// A path that leads downwards from here.
pub(super) fn descending(place: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if place.starts_with('/') {
        errors.push(FieldError::invalid(path, place, "must be a relative path"));
    }
    errors.extend(no_backsteps(place, path));
    errors
}

fn mode(source: &Value, key: &str, path: &str) -> Option<FieldError> {
    let mode = source[key].as_i64()?;
    (!(0..=0o777).contains(&mode))
        .then(|| FieldError::invalid(format!("{path}.{key}"), mode, FILE_MODE))
}

fn keys(source: &Value, name: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::from_iter(required(source, name, path));
    errors.extend(mode(source, "defaultMode", path));
    for (at, item) in items(source, "items").iter().enumerate() {
        let path = format!("{path}.items[{at}]");
        errors.extend(required(item, "key", &path));
        errors.extend(required(item, "path", &path));
        let place = text(item, "path");
        let place_path = format!("{path}.path");
        errors.extend(descending(place, &place_path));
        if place.starts_with("..") && !place.starts_with("../") {
            errors.push(FieldError::invalid(place_path, place, "must not start with '..'"));
        }
        errors.extend(mode(item, "mode", &path));
    }
    errors
}

fn nfs(source: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::from_iter(required(source, "server", path));
    errors.extend(required(source, "path", path));
    let place = text(source, "path");
    if !place.starts_with('/') {
        errors.push(FieldError::invalid(format!("{path}.path"), place, "must be an absolute path"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(volumes: &Value) -> Vec<String> {
        let (_, errors) = validate(&json!({"volumes": volumes}), "spec");
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn volumes_have_one_source_and_a_name_of_their_own() {
        let volumes = json!([
            {"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}},
            {"name": "b", "emptyDir": {}},
            {"name": "b", "secret": {}},
            {"name": "C"},
        ]);
        let told = told(&volumes);
        assert_eq!(
            told[0],
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"
        );
        assert_eq!(told[1], "spec.volumes[2].secret.secretName: Required value");
        assert_eq!(told[2], "spec.volumes[2].name: Duplicate value: \"b\"");
        assert_eq!(told[3], "spec.volumes[3]: Required value: must specify a volume type");
        assert!(told[4].starts_with("spec.volumes[3].name: Invalid value: \"C\""));
    }

    #[test]
    fn host_paths_do_not_lead_upwards() {
        let told = told(&json!([{"name": "a", "hostPath": {"path": "/a/../b", "type": "Floppy"}}]));
        assert_eq!(
            told[0],
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"
        );
        assert!(told[1].starts_with("spec.volumes[0].hostPath.type: Unsupported value: \"Floppy\": supported values: \"\", \"BlockDevice\""));
    }
}
