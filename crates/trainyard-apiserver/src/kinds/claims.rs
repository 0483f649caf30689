//! Volumes, claims on them and their classes.
//!
//! Owns their defaults and what may change. Who binds and provides them is another's.

use serde_json::{Value, json};
use trainyard_schema::{
    FieldError,
    quantity::{self, Quantity},
};

use super::{
    diff,
    json::{among, faults, fill, items, keep, members, text, unchanged},
    metadata, naming,
    pods::{round_up, scheduling},
};
use crate::{
    failure::Failure,
    kind::{Part, Rules, World},
};

/// The rules of volumes.
pub(super) struct Volumes;

/// The rules of claims.
pub(super) struct Claims;

/// The rules of classes.
pub(super) struct Classes;

const CLASSES: &str = "storageclasses.storage.k8s.io";
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const MODES: [&str; 2] = ["Block", "Filesystem"];
/// Fields of a volume's specification that are no source.
const PLAIN: [&str; 9] = [
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

impl Rules for Volumes {
    fn default(&self, object: &mut Value) {
        fill(&mut object["status"], "phase", "Pending");
        let spec = &mut object["spec"];
        fill(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill(spec, "volumeMode", "Filesystem");
        if let Some(path) = spec.get_mut("hostPath") {
            fill(path, "type", "");
        }
        if let Some(capacity) = spec.get_mut("capacity") {
            round_up(capacity);
        }
    }

    fn admit(&self, object: &mut Value, _world: &dyn World) -> Result<(), Failure> {
        protect(object, "kubernetes.io/pv-protection");
        Ok(())
    }

    fn prepare_create(&self, object: &mut Value) {
        let since = object["metadata"]["creationTimestamp"].clone();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": since});
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        errors.extend(volume(&object["spec"]));
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        keep(new, old, if part == Part::Main { "status" } else { "spec" });
    }

    fn admit_update(
        &self,
        new: &mut Value,
        old: &Value,
        part: Part,
        world: &dyn World,
    ) -> Result<(), Failure> {
        let key = "lastPhaseTransitionTime";
        let (now, before) = (&new["status"], &old["status"]);
        if part == Part::Status && now["phase"] != before["phase"] && now[key] == before[key] {
            new["status"][key] = json!(world.now());
        }
        Ok(())
    }

    fn validate_update(&self, new: &Value, old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Status {
            return Vec::new();
        }
        let mut errors = metadata::again(&new["metadata"], false, self);
        errors.extend(volume(&new["spec"]));
        let (now, before) = (source(&new["spec"]), source(&old["spec"]));
        if now != before {
            let words = format!(
                "spec.persistentvolumesource is immutable after creation\n{}",
                diff::unified(&before, &now)
            );
            errors.push(FieldError::forbidden("spec.persistentvolumesource", words));
        }
        errors.extend(unchanged(
            &new["spec"]["volumeMode"],
            &old["spec"]["volumeMode"],
            "volumeMode",
        ));
        errors
    }
}

fn source(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(members) = spec.as_object_mut() {
        members.retain(|key, _| !PLAIN.contains(&key.as_str()));
    }
    spec
}

fn protect(object: &mut Value, finalizer: &str) {
    let metadata = &mut object["metadata"];
    fill(metadata, "finalizers", json!([]));
    if let Some(names) = metadata["finalizers"].as_array_mut()
        && !names.iter().any(|name| name == finalizer)
    {
        names.push(json!(finalizer));
    }
}

fn amount(value: &Value) -> Quantity {
    value.as_str().and_then(|text| quantity::parse(text).ok()).unwrap_or_default()
}

fn positive(value: &Value, path: &str) -> Option<FieldError> {
    let amount = amount(value);
    (amount <= Quantity::ZERO)
        .then(|| FieldError::invalid(path, amount.to_string(), "must be greater than zero"))
}

fn access_modes(spec: &Value, words: &str) -> Vec<FieldError> {
    let path = "spec.accessModes";
    let modes = items(spec, "accessModes");
    if modes.is_empty() {
        return vec![FieldError::required(path, words)];
    }
    let mut errors: Vec<FieldError> =
        modes.iter().filter_map(|mode| among(mode, &ACCESS_MODES, path)).collect();
    let alone = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    let known = |mode: &&Value| ACCESS_MODES[..3].iter().any(|known| *mode == known);
    if alone && modes.iter().any(|mode| known(&mode)) {
        let words = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, words));
    }
    errors
}

fn volume(spec: &Value) -> Vec<FieldError> {
    let mut errors = access_modes(spec, "");
    let path = "spec.capacity";
    let capacity = &spec["capacity"];
    let count = members(spec, "capacity").count();
    if count == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if capacity.get("storage").is_none() || count > 1 {
        errors.push(FieldError::not_supported(path, capacity.clone(), &["storage"]));
    }
    for (name, value) in members(spec, "capacity") {
        errors.extend(positive(value, &format!("{path}[{name}]")));
    }
    let policies = ["Delete", "Recycle", "Retain"];
    let path = "spec.persistentVolumeReclaimPolicy";
    errors.extend(among(&spec["persistentVolumeReclaimPolicy"], &policies, path));
    if let Some(required) = spec["nodeAffinity"].get("required") {
        errors.extend(scheduling::node_selector(required, "spec.nodeAffinity.required"));
    }
    errors.extend(sources(spec));
    errors.extend(class_name(spec));
    errors.extend(among(&spec["volumeMode"], &MODES, "spec.volumeMode"));
    errors
}

fn sources(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let source = source(spec);
    // Those that people use come first, as on the real server.
    let order = ["hostPath", "nfs", "local", "csi"];
    let mut found: Vec<&str> =
        source.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    found.sort_by_key(|key| order.iter().position(|known| known == key).unwrap_or(order.len()));
    if found.is_empty() {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    for extra in found.iter().skip(1) {
        let words = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(format!("spec.{extra}"), words));
    }
    let needed: &[(&str, &str)] = &[
        ("hostPath", "path"),
        ("local", "path"),
        ("nfs", "server"),
        ("nfs", "path"),
        ("csi", "driver"),
        ("csi", "volumeHandle"),
    ];
    for (name, key) in needed.iter().filter(|(name, _)| found.first() == Some(name)) {
        if text(&source[*name], key).is_empty() {
            errors.push(FieldError::required(format!("spec.{name}.{key}"), ""));
        }
    }
    errors
}

fn class_name(spec: &Value) -> Vec<FieldError> {
    let name = text(spec, "storageClassName");
    if name.is_empty() {
        return Vec::new();
    }
    faults(naming::subdomain(name), name, "spec.storageClassName")
}

impl Rules for Claims {
    fn default(&self, object: &mut Value) {
        fill(&mut object["status"], "phase", "Pending");
        let spec = &mut object["spec"];
        fill(spec, "volumeMode", "Filesystem");
        for key in ["limits", "requests"] {
            if let Some(list) = spec["resources"].get_mut(key) {
                round_up(list);
            }
        }
    }

    /// A claim that names no class gets the one that is marked as default, the newest of several.
    fn admit(&self, object: &mut Value, world: &dyn World) -> Result<(), Failure> {
        protect(object, "kubernetes.io/pvc-protection");
        if object["spec"].get("storageClassName").is_some() {
            return Ok(());
        }
        let mut classes = world.list(CLASSES, None);
        classes.retain(|class| {
            let annotations = &class["metadata"]["annotations"];
            IS_DEFAULT.iter().any(|key| text(annotations, key) == "true")
        });
        let newest = classes.iter().max_by(|one, other| {
            let since = |class: &Value| text(&class["metadata"], "creationTimestamp").to_owned();
            let name = |class: &Value| text(&class["metadata"], "name").to_owned();
            since(one).cmp(&since(other)).then_with(|| name(other).cmp(&name(one)))
        });
        if let Some(class) = newest {
            object["spec"]["storageClassName"] = class["metadata"]["name"].clone();
        }
        Ok(())
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"phase": "Pending"});
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        errors.extend(claim(&object["spec"]));
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        keep(new, old, if part == Part::Main { "status" } else { "spec" });
    }

    fn validate_update(&self, new: &Value, old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Status {
            return Vec::new();
        }
        let mut errors = metadata::again(&new["metadata"], true, self);
        errors.extend(claim(&new["spec"]));
        errors.extend(claim_change(new, old));
        errors
    }
}

fn claim(spec: &Value) -> Vec<FieldError> {
    let mut errors = access_modes(spec, "at least 1 access mode is required");
    errors.extend(scheduling::label_selector(&spec["selector"], "spec.selector"));
    let path = "spec.resources[storage]";
    match spec["resources"]["requests"].get("storage") {
        None => errors.push(FieldError::required(path, "")),
        Some(value) => errors.extend(positive(value, path)),
    }
    errors.extend(class_name(spec));
    errors.extend(among(&spec["volumeMode"], &MODES, "spec.volumeMode"));
    errors
}

fn claim_change(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (mut now, mut before) = (new["spec"].clone(), old["spec"].clone());
    if text(&before, "volumeName").is_empty() {
        keep(&mut before, &now, "volumeName");
    }
    // A claim that was made before there was a default class may get it later.
    if before.get("storageClassName").is_none() {
        keep(&mut now, &before, "storageClassName");
    }
    if text(&new["status"], "phase") == "Bound" {
        let size = before["resources"]["requests"]["storage"].clone();
        if let Some(requests) =
            now.pointer_mut("/resources/requests").and_then(Value::as_object_mut)
        {
            requests.insert("storage".to_owned(), size);
        }
        keep(&mut now, &before, "volumeAttributesClassName");
    }
    if now != before {
        let words = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{}",
            diff::unified(&before, &now)
        );
        errors.push(FieldError::forbidden("spec", words));
    }
    let size = |claim: &Value| amount(&claim["spec"]["resources"]["requests"]["storage"]);
    let given = amount(&old["status"]["capacity"]["storage"]);
    if size(new) < size(old) && size(new) <= given {
        let words = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden("spec.resources.requests.storage", words));
    }
    let (now, before) = (&new["spec"]["volumeMode"], &old["spec"]["volumeMode"]);
    errors.extend(unchanged(now, before, "volumeMode"));
    errors
}

impl Rules for Classes {
    fn default(&self, object: &mut Value) {
        fill(object, "reclaimPolicy", "Delete");
        fill(object, "volumeBindingMode", "Immediate");
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let provisioner = text(object, "provisioner");
        if provisioner.is_empty() {
            errors.push(FieldError::required("provisioner", ""));
        } else {
            let wrong = naming::qualified(&provisioner.to_lowercase());
            errors.extend(faults(wrong, provisioner, "provisioner"));
        }
        errors.extend(among(&object["reclaimPolicy"], &["Delete", "Retain"], "reclaimPolicy"));
        let modes = ["Immediate", "WaitForFirstConsumer"];
        errors.extend(among(&object["volumeBindingMode"], &modes, "volumeBindingMode"));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            errors.extend(unchanged(&new[key], &old[key], key));
        }
        errors
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
