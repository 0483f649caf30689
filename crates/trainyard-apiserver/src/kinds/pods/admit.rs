//! What admission makes of a new pod, looking at other objects: its account and the token that comes
//! with it, its priority, how long it tolerates lost nodes.
//!
//! Owns those three and their words.

use serde_json::{Value, json};

use crate::{
    failure::{About, Failure},
    kind::World,
    kinds::{
        admission::told_name,
        json::{clear, fill, items, items_mut, text},
    },
    names,
};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";
/// A year and a bit: the real server's way of keeping old clients going while tokens are renewed.
const TOKEN_SECONDS: i64 = 3607;

/// Completes a new pod or refuses it.
pub(super) fn admit(pod: &mut Value, world: &dyn World) -> Result<(), Failure> {
    account(pod, world)?;
    priority(pod, world)?;
    tolerations(&mut pod["spec"]);
    runtime(pod, world)
}

/// The class of runtime says what a pod costs beside its containers.
fn runtime(pod: &mut Value, world: &dyn World) -> Result<(), Failure> {
    let name = text(&pod["spec"], "runtimeClassName").to_owned();
    let class = world.get("runtimeclasses.node.k8s.io", "", &name).filter(|_| !name.is_empty());
    if !name.is_empty() && class.is_none() {
        let why = format!("pod rejected: RuntimeClass {name:?} not found");
        return Err(forbidden(pod, &why));
    }
    let cost = class.as_ref().and_then(|class| class["overhead"].get("podFixed"));
    match (pod["spec"].get("overhead"), cost) {
        (Some(_), None) => Err(forbidden(
            pod,
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        )),
        (Some(said), Some(cost)) if said != cost => Err(forbidden(
            pod,
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        )),
        (_, Some(cost)) => {
            pod["spec"]["overhead"] = cost.clone();
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn forbidden(pod: &Value, why: &str) -> Failure {
    Failure::forbidden(About::new("", "pods", told_name(pod)), why)
}

fn account(pod: &mut Value, world: &dyn World) -> Result<(), Failure> {
    let spec = &mut pod["spec"];
    if text(spec, "serviceAccountName").is_empty() {
        spec["serviceAccountName"] = json!("default");
    }
    spec["serviceAccount"] = spec["serviceAccountName"].clone();
    let name = text(spec, "serviceAccountName").to_owned();
    let namespace = text(&pod["metadata"], "namespace").to_owned();
    let Some(account) = world.get("serviceaccounts", &namespace, &name) else {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        );
        return Err(forbidden(pod, &why));
    };
    let spec = &mut pod["spec"];
    let mounts = [&spec["automountServiceAccountToken"], &account["automountServiceAccountToken"]];
    if mounts.into_iter().find_map(Value::as_bool).unwrap_or(true) {
        mount_token(spec);
    }
    if items(spec, "imagePullSecrets").is_empty() && !items(&account, "imagePullSecrets").is_empty()
    {
        let secrets: Vec<Value> = items(&account, "imagePullSecrets")
            .iter()
            .map(|secret| json!({"name": text(secret, "name")}))
            .collect();
        spec["imagePullSecrets"] = json!(secrets);
    }
    Ok(())
}

fn mount_token(spec: &mut Value) {
    let known = items(spec, "volumes")
        .iter()
        .map(|volume| text(volume, "name"))
        .find(|name| name.starts_with(TOKEN_VOLUME))
        .map(str::to_owned);
    let has_volume = known.is_some();
    let name = known.unwrap_or_else(|| names::generated(TOKEN_VOLUME));
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut needed = false;
    for key in ["initContainers", "containers"] {
        for container in items_mut(spec, key) {
            if items(container, "volumeMounts")
                .iter()
                .any(|one| text(one, "mountPath") == TOKEN_PATH)
            {
                continue;
            }
            needed = true;
            push(container, "volumeMounts", mount.clone());
        }
    }
    if needed && !has_volume {
        push(spec, "volumes", token_volume(&name));
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    })
}

fn push(object: &mut Value, key: &str, value: Value) {
    fill(object, key, json!([]));
    if let Some(list) = object[key].as_array_mut() {
        list.push(value);
    }
}

fn priority(pod: &mut Value, world: &dyn World) -> Result<(), Failure> {
    const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
    let name = text(&pod["spec"], "priorityClassName").to_owned();
    let class = if name.is_empty() {
        world
            .list(CLASSES, None)
            .into_iter()
            .filter(|class| class["globalDefault"].as_bool() == Some(true))
            .min_by_key(|class| class["value"].as_i64())
    } else {
        let found = world.get(CLASSES, "", &name);
        if found.is_none() {
            let why = format!("no PriorityClass with name {name} was found");
            return Err(forbidden(pod, &why));
        }
        found
    };
    let value = class.as_ref().and_then(|class| class["value"].as_i64()).unwrap_or(0);
    let policy =
        class.as_ref().map_or("PreemptLowerPriority", |class| text(class, "preemptionPolicy"));
    let spec = &pod["spec"];
    if let Some(said) = spec["priority"].as_i64().filter(|said| *said != value) {
        let why = format!(
            "the integer value of priority ({said}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        );
        return Err(forbidden(pod, &why));
    }
    let said = text(spec, "preemptionPolicy");
    if !said.is_empty() && !policy.is_empty() && said != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(pod, &why));
    }
    let spec = &mut pod["spec"];
    spec["priority"] = json!(value);
    if !policy.is_empty() {
        spec["preemptionPolicy"] = json!(policy);
    }
    match class.as_ref().map(|class| text(&class["metadata"], "name")) {
        Some(name) => spec["priorityClassName"] = json!(name),
        None => clear(spec, "priorityClassName"),
    }
    Ok(())
}

/// Five minutes without a node are tolerated, unless the pod says otherwise.
pub(super) fn tolerations(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = items(spec, "tolerations").iter().any(|toleration| {
            let (own, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (own == key || own.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            let toleration = json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            });
            push(spec, "tolerations", toleration);
        }
    }
}
