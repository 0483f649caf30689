//! The pods whose fields are compared, and what each of them mounts.

use serde_json::{Value, json};
use trainyard_sched::PLACEMENT;

use super::NAMESPACE;
use super::ground::{NODES, VOLUMES, volume};

/// Pods that say one thing.
pub(super) struct Row {
    pub(super) name: String,
    /// The field that it is about, as the table in the document has it.
    field: &'static str,
    /// Whether its pods have a node each of their own, full of pods of no priority.
    pub(super) has_own_nodes: bool,
    pub(super) labels: Value,
    spec: Value,
    volume: Option<Mounted>,
}

/// What a pod mounts.
#[derive(Clone, Copy)]
enum Mounted {
    /// A claim that has its volume on one node.
    Bound,
    /// A claim that has its volume in zone `x` by a label.
    Labelled,
    /// A claim that waits, and volumes on two nodes.
    Waiting,
    /// A claim that waits, of a class that makes volumes in zone `x`.
    Made,
    /// The same, and somebody has chosen a node.
    Selected,
    /// A claim that waits, of a class that says where there is space.
    Spacious,
    /// A claim that nobody binds.
    Immediate,
    /// A claim that is not there.
    Missing,
    /// A claim for one pod that another pod has.
    Taken,
}

impl Row {
    fn new(field: &'static str, name: &str, spec: Value) -> Self {
        let labels = json!({"row": name});
        let name = name.to_owned();
        Self { name, field, has_own_nodes: false, labels, spec, volume: None }
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels[key] = value.into();
        self
    }

    fn on_full_nodes(mut self) -> Self {
        self.has_own_nodes = true;
        self
    }

    fn mounts(name: &str, volume: Mounted) -> Self {
        let field = "spec.volumes[].persistentVolumeClaim";
        Self { volume: Some(volume), ..Self::new(field, name, json!({})) }
    }

    /// The nodes on which it is played.
    pub(super) const fn nodes(&self) -> &'static [&'static str] {
        if self.has_own_nodes { &["own"] } else { &NODES }
    }

    /// The field that ours refuses by name, if it is one.
    pub(super) fn refused(&self) -> Option<&'static str> {
        let field = PLACEMENT.iter().find(|one| one.path == self.field);
        field.filter(|one| one.is_refused()).map(|one| one.path)
    }

    /// The specification of a pod by that name.
    pub(super) fn spec(&self, pod: &str) -> Value {
        let mut spec = self.spec.clone();
        if spec["containers"].is_null() {
            spec["containers"] = json!([container("10m")]);
        }
        if let Some(port) = spec.pointer_mut("/containers/0/ports/0") {
            // Pods of this test are not to be in each other's way.
            let number = port["hostPort"].as_u64().unwrap_or_default();
            let address = 10 + number * 2 + u64::from(pod.ends_with("theirs"));
            port["hostIP"] = format!("127.0.0.{address}").into();
            port["hostPort"] = 8080.into();
        }
        if let Some(volume) = self.volume {
            let claim = if matches!(volume, Mounted::Taken) { "taken" } else { pod };
            spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
        }
        spec
    }

    /// What has to be there for a pod by that name: where, and what.
    pub(super) fn objects(&self, pod: &str) -> Vec<(String, Value)> {
        let claims = format!("/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims");
        let waiting = |class: &str| vec![(claims.clone(), claim(pod, class))];
        match self.volume {
            None | Some(Mounted::Missing | Mounted::Taken) => Vec::new(),
            Some(Mounted::Bound) => bound(pod, volume(pod, &format!("{pod}-v"), Some("d"))),
            Some(Mounted::Labelled) => {
                let mut volume = volume(pod, &format!("{pod}-v"), None);
                volume["metadata"]["labels"]["topology.kubernetes.io/zone"] = "x".into();
                bound(pod, volume)
            }
            Some(Mounted::Waiting) => {
                let of = |node| volume(pod, &format!("{pod}-{node}"), Some(node));
                let mut claim = claim(pod, "local");
                claim["spec"]["selector"] = json!({"matchLabels": {"for": pod}});
                [of("a"), of("b")]
                    .map(|volume| (VOLUMES.to_owned(), volume))
                    .into_iter()
                    .chain([(claims.clone(), claim)])
                    .collect()
            }
            Some(Mounted::Made) => waiting("zoned"),
            Some(Mounted::Selected) => {
                let mut claim = claim(pod, "zoned");
                claim["metadata"]["annotations"] = json!({super::SELECTED_NODE: "a"});
                vec![(claims, claim)]
            }
            Some(Mounted::Spacious) => waiting("spacious"),
            Some(Mounted::Immediate) => waiting("now"),
        }
    }
}

fn container(cpu: &str) -> Value {
    json!({"name": "c", "image": "example.com/c:1", "resources": {"requests": {"cpu": cpu}}})
}

pub(super) fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}}},
    })
}

/// A volume and the claim that asks for it by name.
fn bound(pod: &str, volume: Value) -> Vec<(String, Value)> {
    let mut claim = claim(pod, "local");
    claim["spec"]["volumeName"] = volume["metadata"]["name"].clone();
    let claims = format!("/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims");
    vec![(VOLUMES.to_owned(), volume), (claims, claim)]
}

fn asking(resource: &str, amount: &str) -> Value {
    json!({"containers": [{"name": "c", "image": "example.com/c:1",
        "resources": {"limits": {resource: amount}, "requests": {resource: amount}}}]})
}

fn term(app: &str, topology: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology})
}

fn required(kind: &str, terms: &Value) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
}

fn node_term(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions":
            [{"key": key, "operator": operator, "values": values}]}]}}}})
}

fn with_init(init: &Value, cpu: &str) -> Value {
    json!({"initContainers": init, "containers": [container(cpu)]})
}

/// All rows.
pub(super) fn all() -> Vec<Row> {
    let groups =
        [of_schedulers(), of_resources(), of_nodes(), of_pods(), of_spread(), of_volumes()];
    groups.into_iter().flatten().chain(refused()).collect()
}

fn of_schedulers() -> Vec<Row> {
    let gates = json!({"schedulingGates": [{"name": "example.com/wait"}]});
    let whole = |class: &str| json!({"priorityClassName": class, "containers": [container("1")]});
    vec![
        Row::new("spec.schedulerName", "plain", json!({})),
        Row::new("spec.schedulingGates", "gated", gates),
        Row::new("spec.priority", "urgent", whole("urgent")).on_full_nodes(),
        Row::new("spec.priority", "equal", whole("")).on_full_nodes(),
        Row::new("spec.preemptionPolicy", "meek", whole("meek")).on_full_nodes(),
    ]
}

fn of_resources() -> Vec<Row> {
    const CONTAINERS: &str = "spec.containers[].resources.requests";
    const INITIAL: &str = "spec.initContainers[].resources.requests";
    const RESIZED: &str =
        "status.containerStatuses[].resources, .allocatedResources; status.resources";
    let mut sidecar = container("2");
    sidecar["name"] = "side".into();
    sidecar["restartPolicy"] = "Always".into();
    let mut before = container("3");
    before["name"] = "before".into();
    let whole = json!({"containers": [container("10m")], "resources": {"requests": {"cpu": "3"}}});
    // The number tells addresses apart: see `Row::spec`.
    let port = |number: u16| {
        json!({"containers": [{"name": "c", "image": "example.com/c:1",
            "ports": [{"containerPort": 8080, "hostPort": number}]}]})
    };
    let mut in_host_network = port(2);
    in_host_network["hostNetwork"] = true.into();
    let mut rules = container("10m");
    rules["restartPolicy"] = "Never".into();
    rules["restartPolicyRules"] = json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}}]);
    let features = "spec.hostUsers, containers[].restartPolicyRules";
    vec![
        Row::new(CONTAINERS, "cpu", json!({"containers": [container("3")]})),
        Row::new(CONTAINERS, "device", asking("example.com/gpu", "1")),
        Row::new("spec.nodeName", "beside-bound", asking("memory", "50Gi")),
        Row::new(RESIZED, "beside-resized", json!({"containers": [container("400")]})),
        Row::new(INITIAL, "init", with_init(&json!([before]), "10m")),
        Row::new(INITIAL, "sidecar", with_init(&json!([sidecar]), "500m")),
        Row::new("spec.resources.requests", "whole", whole),
        Row::new("spec.overhead", "overhead", json!({"runtimeClassName": "heavy"})),
        Row::new("spec.runtimeClassName", "runtime", json!({"runtimeClassName": "picky"})),
        Row::new("spec.containers[].ports[].hostPort", "port", port(1)),
        Row::new("spec.hostNetwork", "host-network", in_host_network),
        Row::new(features, "features", json!({"containers": [rules]})),
    ]
}

fn of_nodes() -> Vec<Row> {
    const REQUIRED: &str = "spec.affinity.nodeAffinity.required…";
    let tolerant = |name: &str, value: Value| {
        Row::new("spec.tolerations", name, json!({"tolerations": [value]}))
    };
    let selector = json!({"nodeSelector": {"zone": "x"}});
    let wish = json!({"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference":
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}}]}}});
    vec![
        Row::new("spec.nodeSelector", "selector", selector),
        Row::new(REQUIRED, "in", node_term("zone", "In", &["y", "z"])),
        Row::new(REQUIRED, "not-in", node_term("zone", "NotIn", &["y"])),
        Row::new(REQUIRED, "exists", node_term("zone", "Exists", &[])),
        Row::new(REQUIRED, "more", node_term("cores", "Gt", &["8"])),
        Row::new("spec.affinity.nodeAffinity.preferred…", "wish", wish),
        tolerant("tolerant", json!({"key": "gpu", "operator": "Exists"})),
        tolerant("exact", json!({"key": "gpu", "value": "no", "effect": "NoSchedule"})),
        tolerant("anywhere", json!({"operator": "Exists"})),
    ]
}

fn of_pods() -> Vec<Row> {
    const NEAR: &str = "podAffinity";
    const AWAY: &str = "podAntiAffinity";
    let row = |name: &str, kind: &str, terms: Value| {
        let field = "spec.affinity.podAffinity.required…, podAntiAffinity.required…";
        let spec = if kind.is_empty() { json!({}) } else { required(kind, &terms) };
        Row::new(field, name, spec)
    };
    let with = |mut term: Value, key: &str, value: Value| {
        term[key] = value;
        term
    };
    let of_team = json!({"matchLabels": {"team": "y"}});
    let soft = json!({"affinity": {AWAY: {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 100, "podAffinityTerm": term("db", "zone")}]}}});
    let wished = "spec.affinity.podAffinity.preferred…, podAntiAffinity.preferred…";
    vec![
        row("near", NEAR, json!([term("db", "zone")])),
        row("beside", NEAR, json!([term("db", "name")])),
        row("near-both", NEAR, json!([term("db", "zone"), term("web", "zone")])),
        row("near-nobody", NEAR, json!([term("nobody", "zone")])),
        row("apart", AWAY, json!([term("db", "name")])),
        row(
            "apart-keys",
            AWAY,
            json!([with(term("db", "name"), "matchLabelKeys", json!(["rev"]))]),
        )
        .label("rev", "2"),
        row("unwelcome", "", json!([])).label("app", "loner"),
        row(
            "near-elsewhere",
            NEAR,
            json!([with(term("far", "zone"), "namespaces", json!(["elsewhere"]))]),
        ),
        row(
            "near-team",
            NEAR,
            json!([with(term("far", "zone"), "namespaceSelector", of_team.clone())]),
        ),
        row(
            "apart-team",
            AWAY,
            json!([with(term("far", "zone"), "namespaceSelector", of_team.clone())]),
        ),
        row("apart-own", AWAY, json!([with(term("db", "name"), "namespaceSelector", of_team)])),
        row("unwelcome-team", "", json!([])).label("app", "unloved"),
        Row::new(wished, "apart-wish", soft),
    ]
}

fn of_spread() -> Vec<Row> {
    // Each pod is bound to a node: only where that is ignored are there several domains.
    let spread = |name: &str, app: &str, topology: &str, more: &Value| {
        let mut rule = json!({"maxSkew": 1, "topologyKey": topology,
            "whenUnsatisfiable": "DoNotSchedule", "nodeAffinityPolicy": "Ignore",
            "labelSelector": {"matchLabels": {"app": app}}});
        for (key, value) in more.as_object().into_iter().flatten() {
            rule[key] = value.clone();
        }
        let field = if rule["whenUnsatisfiable"] == "ScheduleAnyway" {
            "spec.topologySpreadConstraints: ScheduleAnyway"
        } else {
            "spec.topologySpreadConstraints: DoNotSchedule"
        };
        Row::new(field, name, json!({"topologySpreadConstraints": [rule]}))
    };
    vec![
        spread("spread", "db", "zone", &json!({})),
        spread("spread-own", "db", "zone", &json!({"nodeAffinityPolicy": "Honor"})),
        spread("spread-domains", "anchor", "zone", &json!({"minDomains": 5})),
        spread("spread-few", "anchor", "zone", &json!({})),
        spread("spread-taints", "lane", "lane", &json!({"nodeTaintsPolicy": "Honor"})),
        spread("spread-lanes", "lane", "lane", &json!({})),
        spread("spread-keys", "db", "zone", &json!({"matchLabelKeys": ["rev"]})).label("rev", "2"),
        spread("spread-all", "db", "zone", &json!({"labelSelector": {}})),
        spread("spread-wish", "db", "zone", &json!({"whenUnsatisfiable": "ScheduleAnyway"})),
    ]
}

fn of_volumes() -> Vec<Row> {
    let template = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "zoned",
        "resources": {"requests": {"storage": "1Gi"}}}});
    let own = json!({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]});
    let disk = json!({"volumes": [{"name": "v", "cinder": {"volumeID": "two"}}]});
    vec![
        Row::mounts("bound", Mounted::Bound),
        Row::mounts("labelled", Mounted::Labelled),
        Row::mounts("waiting", Mounted::Waiting),
        Row::mounts("made", Mounted::Made),
        Row::mounts("selected", Mounted::Selected),
        Row::mounts("spacious", Mounted::Spacious),
        Row::mounts("immediate", Mounted::Immediate),
        Row::mounts("missing", Mounted::Missing),
        Row::mounts("taken", Mounted::Taken),
        Row::new("spec.volumes[].ephemeral", "ephemeral", own),
        Row::new("spec.volumes[].azureDisk, cinder, portworxVolume", "cinder", disk),
    ]
}

fn refused() -> Vec<Row> {
    let class = "deviceclass.resource.kubernetes.io/gpu";
    let disk = json!({"volumes": [{"name": "d", "rbd":
        {"monitors": ["192.0.2.1:6789"], "image": "i"}}]});
    let claims = json!({
        "containers": [{"name": "c", "image": "example.com/c:1",
            "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
    });
    let group = json!({"schedulingGroup": {"podGroupName": "g"}});
    vec![
        Row::new(
            "spec.containers[].resources.requests: deviceclass.resource.kubernetes.io/…",
            "device-class",
            asking(class, "1"),
        ),
        Row::new(
            "spec.volumes[].awsElasticBlockStore, gcePersistentDisk, iscsi, rbd",
            "disk",
            disk,
        ),
        Row::new("spec.resourceClaims", "claims", claims),
        Row::new("spec.schedulingGroup", "group", group),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_field_of_the_table_is_played() {
        let rows = all();
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows.len(), "two rows have one name");
        let played: BTreeSet<&str> = rows.iter().map(|row| row.field).collect();
        let listed: BTreeSet<&str> = PLACEMENT.iter().map(|field| field.path).collect();
        assert_eq!(played, listed);
    }
}
