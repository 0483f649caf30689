//! Plugin `svc`: pods find each other by name, and know all names from files and variables.
//!
//! A config map with the hosts of every task, a headless service, and a network policy that lets
//! only pods of the job in. Must not know frameworks.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trainyard_api::volcano::TaskSpec;

use super::{Flags, Plugin, Scene, hosts};
use crate::{
    child::Child,
    container::{containers, mount, set_env},
    patch::merge_patch,
    plan::{Create, Patch, Write},
    volcano::{
        objects::{default_to, labels, metadata, pod_name},
        volumes,
    },
};

/// Where the hosts' files are.
const HOSTS_PATH: &str = "/etc/volcano";

/// The plugin.
pub(super) struct Svc {
    publish_not_ready: bool,
    no_network_policy: bool,
    inject_hosts: bool,
}

impl Svc {
    /// With these arguments.
    pub(super) fn new(flags: &mut Flags<'_>) -> Self {
        Self {
            publish_not_ready: flags.switch("publish-not-ready-addresses", false),
            no_network_policy: flags.switch("disable-network-policy", false),
            inject_hosts: flags.switch("inject-hosts-env", true),
        }
    }

    fn config_map(scene: &Scene<'_>) -> Option<Write> {
        let (name, data) = (map_name(scene), data(scene));
        if let Some(map) = scene.seen.config_maps.iter().find(|map| *map.name == *name) {
            let change = merge_patch(&json!(map.facts.data), &json!(data))?;
            let body = json!({"data": change});
            let uid = map.uid.to_string();
            return (!map.is_leaving)
                .then_some(Write::Patch(Child::ConfigMap, Patch { name, uid, body }));
        }
        Some(create(Child::ConfigMap, scene, &name, "data", json!(data)))
    }

    fn service(&self, scene: &Scene<'_>) -> Option<Write> {
        let name = &scene.meta.name;
        let is_there = scene.seen.services.iter().any(|service| *service.name == **name);
        let spec = json!({
            "clusterIP": "None",
            "selector": labels(scene.meta),
            "publishNotReadyAddresses": self.publish_not_ready,
        });
        (!is_there).then(|| create(Child::Service, scene, name, "spec", spec))
    }

    fn network_policy(&self, scene: &Scene<'_>) -> Option<Write> {
        let name = &scene.meta.name;
        let is_there = scene.seen.policies.iter().any(|policy| *policy.name == **name);
        let own = json!({"matchLabels": labels(scene.meta)});
        let spec = json!({
            "podSelector": own,
            "ingress": [{"from": [{"podSelector": own}]}],
            "policyTypes": ["Ingress"],
        });
        (!is_there && !self.no_network_policy)
            .then(|| create(Child::NetworkPolicy, scene, name, "spec", spec))
    }
}

impl Plugin for Svc {
    fn name(&self) -> &'static str {
        "svc"
    }

    fn objects(&self, scene: &Scene<'_>) -> Vec<Write> {
        let all = [Self::config_map(scene), self.service(scene), self.network_policy(scene)];
        all.into_iter().flatten().collect()
    }

    fn dress(&self, scene: &Scene<'_>, task: &TaskSpec, index: u32, pod_spec: &mut Value) {
        let map = map_name(scene);
        default_to(pod_spec, "hostname", &pod_name(&scene.meta.name, &task.name, index));
        default_to(pod_spec, "subdomain", &scene.meta.name);
        volumes::add(pod_spec, &map, &json!({"configMap": {"name": map}}));
        for container in containers(pod_spec, true) {
            mount(container, &map, HOSTS_PATH);
            for other in scene.spec.tasks.iter().filter(|_| self.inject_hosts) {
                for name in variables(other) {
                    let from = json!({"configMapKeyRef": {"name": map, "key": name}});
                    set_env(container, &json!({"name": name, "valueFrom": from}));
                }
            }
        }
    }
}

fn create(child: Child, scene: &Scene<'_>, name: &str, key: &str, value: Value) -> Write {
    let mut body = json!({
        "apiVersion": child.api_version(),
        "kind": child.kind(),
        "metadata": metadata(scene.meta, name),
    });
    body[key] = value;
    Write::Create(child, Create { name: name.to_owned(), group: "".into(), index: 0, body })
}

fn map_name(scene: &Scene<'_>) -> String {
    format!("{}-svc", scene.meta.name)
}

/// The variables that name a task's hosts and their number.
fn variables(task: &TaskSpec) -> [String; 2] {
    let task = task.name.to_uppercase().replace('-', "_");
    [format!("VC_{task}_HOSTS"), format!("VC_{task}_NUM")]
}

fn data(scene: &Scene<'_>) -> BTreeMap<String, String> {
    let mut data = BTreeMap::new();
    for task in &scene.spec.tasks {
        let hosts = hosts(scene, task);
        let [names, number] = variables(task);
        data.insert(format!("{}.host", task.name.replace('-', "_")), hosts.join("\n"));
        data.insert(names, hosts.join(","));
        data.insert(number, hosts.len().to_string());
    }
    data
}
