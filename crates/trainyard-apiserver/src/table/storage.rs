//! The cells of volumes, claims and storage classes.
//!
//! Must not know other kinds.

use serde_json::{Value, json};

use super::Shown;
use super::read::{access_modes, amount, has, is_going, text, text_or, yes};

const CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
const DEFAULT_ANNOTATIONS: [&str; 2] = [
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class",
];

fn phase(object: &Value) -> &str {
    if is_going(object) { "Terminating" } else { text(object, "/status/phase") }
}

/// The class of a volume or claim; an old annotation wins.
fn class_of(object: &Value) -> &str {
    let pointer =
        if has(object, CLASS_ANNOTATION) { CLASS_ANNOTATION } else { "/spec/storageClassName" };
    text(object, pointer)
}

/// A text that may be left out, but not be empty instead.
fn or_unset<'a>(object: &'a Value, pointer: &str) -> &'a str {
    if has(object, pointer) { text(object, pointer) } else { "<unset>" }
}

pub(super) fn volume(shown: &Shown<'_>) -> Vec<Value> {
    let volume = shown.object;
    let claim = if has(volume, "/spec/claimRef") {
        let (namespace, name) = ("/spec/claimRef/namespace", "/spec/claimRef/name");
        format!("{}/{}", text(volume, namespace), text(volume, name))
    } else {
        String::new()
    };
    vec![
        json!(shown.name()),
        json!(amount(volume.pointer("/spec/capacity/storage"))),
        json!(access_modes(volume, "/spec/accessModes")),
        json!(text(volume, "/spec/persistentVolumeReclaimPolicy")),
        json!(phase(volume)),
        json!(claim),
        json!(class_of(volume)),
        json!(or_unset(volume, "/spec/volumeAttributesClassName")),
        json!(text(volume, "/status/reason")),
        json!(shown.age()),
        json!(or_unset(volume, "/spec/volumeMode")),
    ]
}

pub(super) fn claim(shown: &Shown<'_>) -> Vec<Value> {
    let claim = shown.object;
    let volume = text(claim, "/spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let capacity = amount(claim.pointer("/status/capacity/storage"));
        (capacity, access_modes(claim, "/status/accessModes"))
    };
    vec![
        json!(shown.name()),
        json!(phase(claim)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(class_of(claim)),
        json!(or_unset(claim, "/spec/volumeAttributesClassName")),
        json!(shown.age()),
        json!(or_unset(claim, "/spec/volumeMode")),
    ]
}

pub(super) fn class(shown: &Shown<'_>) -> Vec<Value> {
    let class = shown.object;
    let default = DEFAULT_ANNOTATIONS.iter().any(|pointer| text(class, pointer) == "true");
    let suffix = if default { " (default)" } else { "" };
    vec![
        json!(format!("{}{suffix}", shown.name())),
        json!(text(class, "/provisioner")),
        json!(text_or(class, "/reclaimPolicy", "Delete")),
        json!(text_or(class, "/volumeBindingMode", "Immediate")),
        json!(yes(class, "/allowVolumeExpansion")),
        json!(shown.age()),
    ]
}
