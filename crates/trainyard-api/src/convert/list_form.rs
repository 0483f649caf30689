//! The oldest form, v1alpha1: a list of replicas, each naming its type.
//!
//! Owns the fields that only this form has: `tfReplicaType`, `tfPort`, `tfImage`,
//! `terminationPolicy`, `schedulerName`, `cleanupPodPolicy`, `runtimeId`. Must not know the rest.

use serde_json::{Map, Value, json};

use super::{ConvertError, Fields};
use crate::{names, replica::ReplicaType};

/// Image of parameter servers without template, unless the job names another.
const DEFAULT_IMAGE: &str = "tensorflow/tensorflow:1.3.0";

/// What the old operator ran for a parameter server without template.
const STANDARD_SERVER: &str = "\
import json, os
import tensorflow as tf
tf = getattr(tf.compat, 'v1', tf)
config = json.loads(os.environ['TF_CONFIG'])
task = config['task']
cluster = tf.train.ClusterSpec(config['cluster'])
tf.train.Server(cluster, job_name=task['type'], task_index=task['index']).join()
";

/// Fields of an entry; documents write them in more than one case.
const ENTRY_FIELDS: [&str; 5] =
    ["replicas", "restartPolicy", "template", "tfPort", "tfReplicaType"];

/// The entries by type; takes the fields of the old form out of `spec`.
pub(super) fn convert(
    list: &str,
    entries: Vec<Value>,
    spec: &mut Fields,
) -> Result<Fields, ConvertError> {
    let image = take_text(spec, "tfImage")?;
    let scheduler = take_text(spec, "schedulerName")?;
    spec.remove("runtimeId");
    spec.remove("RuntimeId");
    if let Some(policy) = take_text(spec, "cleanupPodPolicy")? {
        spec.entry("cleanPodPolicy").or_insert(json!(policy));
    }
    if let (Some(image), Some(Value::Object(board))) = (&image, spec.get_mut("tensorboard")) {
        board.entry("image").or_insert(json!(image));
    }
    let mut replicas = Map::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let path = format!("spec.{list}[{index}]");
        let Value::Object(entry) = entry else {
            return Err(ConvertError::field(path, "must be an object with a template"));
        };
        let mut entry = known_spelling(&path, entry)?;
        let kind = replica_type(&path, &mut entry)?;
        settle_template(&path, kind, &mut entry, image.as_deref(), scheduler.as_deref())?;
        if replicas.insert(kind.as_str().to_owned(), Value::Object(entry)).is_some() {
            return Err(ConvertError::field(
                format!("{path}.tfReplicaType"),
                format!("names {kind} a second time; give each type once, with its replicas"),
            ));
        }
    }
    let chief = spec.remove("terminationPolicy").unwrap_or_default();
    check_chief(&chief, &replicas)?;
    Ok(replicas)
}

fn take_text(spec: &mut Fields, name: &str) -> Result<Option<String>, ConvertError> {
    match spec.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(other) => {
            Err(ConvertError::field(format!("spec.{name}"), format!("{other} must be a string")))
        }
    }
}

fn known_spelling(path: &str, entry: Fields) -> Result<Fields, ConvertError> {
    let mut known = Map::new();
    for (key, value) in entry {
        let name = ENTRY_FIELDS.into_iter().find(|name| name.eq_ignore_ascii_case(&key));
        if known.insert(name.map_or_else(|| key.clone(), str::to_owned), value).is_some() {
            return Err(ConvertError::field(
                format!("{path}.{key}"),
                "is given twice in two spellings; keep one",
            ));
        }
    }
    Ok(known)
}

fn replica_type(path: &str, entry: &mut Fields) -> Result<ReplicaType, ConvertError> {
    let kind = match entry.remove("tfReplicaType") {
        None | Some(Value::Null) => return Ok(ReplicaType::Master),
        Some(kind) => kind,
    };
    kind.as_str().and_then(ReplicaType::parse).ok_or_else(|| {
        ConvertError::field(
            format!("{path}.tfReplicaType"),
            format!("{kind} is not a replica type; use MASTER, WORKER or PS"),
        )
    })
}

fn settle_template(
    path: &str,
    kind: ReplicaType,
    entry: &mut Fields,
    image: Option<&str>,
    scheduler: Option<&str>,
) -> Result<(), ConvertError> {
    if entry.get("template").is_none_or(Value::is_null) {
        if kind != ReplicaType::Ps {
            return Err(ConvertError::field(
                format!("{path}.template"),
                format!(
                    "is missing; give {kind} a pod template with a container named {}",
                    names::CONTAINER
                ),
            ));
        }
        entry.insert("template".to_owned(), standard_server(image.unwrap_or(DEFAULT_IMAGE)));
    }
    let port = entry.remove("tfPort").filter(|port| !port.is_null());
    let template = entry.entry("template").or_insert_with(|| json!({}));
    if let Some(port) = port {
        name_port(path, template, &port)?;
    }
    if let Some((scheduler, pod)) =
        scheduler.zip(template.get_mut("spec").and_then(Value::as_object_mut))
    {
        pod.entry("schedulerName").or_insert(json!(scheduler));
    }
    Ok(())
}

fn standard_server(image: &str) -> Value {
    json!({"spec": {
        "containers": [{
            "name": names::CONTAINER,
            "image": image,
            "command": ["python", "-c", STANDARD_SERVER],
        }],
        "restartPolicy": "OnFailure",
    }})
}

/// The port under which replicas talk to each other is found by its name.
fn name_port(path: &str, template: &mut Value, port: &Value) -> Result<(), ConvertError> {
    let number = port.as_i64().filter(|number| (1..=65_535).contains(number)).ok_or_else(|| {
        ConvertError::field(
            format!("{path}.tfPort"),
            format!("{port} must be a port number from 1 to 65535"),
        )
    })?;
    let containers = template.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    let trains = |container: &&mut Value| container["name"] == names::CONTAINER;
    // Without that container validation answers; there is nothing to name.
    let Some(container) = containers.and_then(|list| list.iter_mut().find(trains)) else {
        return Ok(());
    };
    let ports = &mut container["ports"];
    if ports.is_null() {
        if number == names::PORT {
            if let Some(container) = container.as_object_mut() {
                container.remove("ports");
            }
            return Ok(());
        }
        *ports = json!([]);
    }
    let Some(ports) = ports.as_array_mut() else {
        return Ok(());
    };
    if let Some(named) = ports.iter().find(|port| port["name"] == names::PORT_NAME) {
        if named["containerPort"] == *port {
            return Ok(());
        }
        return Err(ConvertError::field(
            format!("{path}.tfPort"),
            format!(
                "{number} differs from the container's port named {}, {}; make them equal",
                names::PORT_NAME,
                named["containerPort"]
            ),
        ));
    }
    match ports.iter_mut().find(|entry| entry["containerPort"] == *port) {
        None => ports.push(json!({"containerPort": number, "name": names::PORT_NAME})),
        Some(entry) if entry["name"].is_null() => entry["name"] = json!(names::PORT_NAME),
        Some(entry) => {
            return Err(ConvertError::field(
                format!("{path}.tfPort"),
                format!(
                    "{number} is already a port of the container, under the name {}; \
                     name that port {}",
                    entry["name"],
                    names::PORT_NAME
                ),
            ));
        }
    }
    Ok(())
}

/// In v1 the Master decides the job, and worker 0 where there is none; nothing else can be said.
fn check_chief(policy: &Value, replicas: &Fields) -> Result<(), ConvertError> {
    let path = "spec.terminationPolicy.chief";
    let chief = match policy.get("chief") {
        None | Some(Value::Null) => return Ok(()),
        Some(chief) => chief,
    };
    let name = chief.get("replicaName").and_then(Value::as_str).unwrap_or("MASTER");
    let index = chief.get("replicaIndex").and_then(Value::as_i64).unwrap_or(0);
    let kind = ReplicaType::parse(name);
    if kind.is_none_or(|kind| !replicas.contains_key(kind.as_str())) {
        return Err(ConvertError::field(
            path,
            format!("{name} {index} is no replica of this job; name one that is"),
        ));
    }
    let has_master = ReplicaType::ALL
        .into_iter()
        .any(|kind| kind.is_chief() && replicas.contains_key(kind.as_str()));
    let decides = if has_master {
        kind.is_some_and(ReplicaType::is_chief)
    } else {
        kind == Some(ReplicaType::Worker)
    };
    if decides && index == 0 {
        return Ok(());
    }
    let remedy = if has_master {
        "the Master decides the job; let it decide, or make it a worker"
    } else {
        "worker 0 decides a job without Master; let it decide, or give the job a Master"
    };
    Err(ConvertError::field(path, format!("{name} {index} cannot be said in v1: {remedy}")))
}
