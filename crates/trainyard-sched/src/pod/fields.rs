//! Every field of a pod that matters to where it goes, and what becomes of it here.
//!
//! One list: what is refused is refused by it, and the table in `docs/scheduling.md` is made of it.

use super::read::Spec;

/// What becomes of a field.
#[derive(Debug, Clone, Copy)]
enum Treatment {
    /// It decides where the pod may go, or counts there.
    Honoured,
    /// A node that meets it is preferred.
    Preferred,
    /// A wish that the scheduler does not look at: it forbids no node.
    Ignored,
    /// A pod that has it waits and is told so. Whether it does.
    Refused(fn(&Spec) -> bool),
}

/// A field of a pod.
#[derive(Debug, Clone, Copy)]
pub struct PlacementField {
    /// Where it is in the pod.
    pub path: &'static str,
    /// What it means here.
    pub meaning: &'static str,
    treatment: Treatment,
}

impl PlacementField {
    const fn new(path: &'static str, treatment: Treatment, meaning: &'static str) -> Self {
        Self { path, meaning, treatment }
    }

    /// What becomes of it, in one word.
    #[must_use]
    pub fn treatment(&self) -> &'static str {
        match self.treatment {
            Treatment::Honoured => "honoured",
            Treatment::Preferred => "preferred",
            Treatment::Ignored => "no effect",
            Treatment::Refused(_) => "refused",
        }
    }

    /// Whether a pod that has it is refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.treatment, Treatment::Refused(_))
    }
}

/// The first field of a pod that is refused.
pub(super) fn refused(spec: &Spec) -> Option<&'static str> {
    let has = |field: &&PlacementField| match field.treatment {
        Treatment::Refused(has) => has(spec),
        _ => false,
    };
    PLACEMENT.iter().find(has).map(|field| field.path)
}

use Treatment::{Honoured, Ignored, Preferred, Refused};

/// All of them, in the order of the table.
pub const PLACEMENT: &[PlacementField] = &[
    PlacementField::new("spec.schedulerName", Honoured, "who places the pod"),
    PlacementField::new("spec.nodeName", Honoured, "the pod is placed; what it has is counted"),
    PlacementField::new("spec.schedulingGates", Honoured, "the pod waits until there is none"),
    PlacementField::new("spec.priority", Honoured, "who goes first and who may be evicted"),
    PlacementField::new("spec.preemptionPolicy", Honoured, "`Never`: evicts nobody"),
    PlacementField::new(
        "spec.containers[].resources.requests",
        Honoured,
        "every resource, extended ones included",
    ),
    PlacementField::new(
        "spec.containers[].resources.requests: deviceclass.resource.kubernetes.io/…",
        Refused(Spec::asks_for_device_classes),
        "devices by dynamic resource allocation; what only a `DeviceClass` offers counts as missing",
    ),
    PlacementField::new(
        "spec.initContainers[].resources.requests",
        Honoured,
        "the worst moment; those that stay (`restartPolicy: Always`) are added",
    ),
    PlacementField::new(
        "spec.resources.requests",
        Honoured,
        "processor, memory and huge pages of the pod as a whole go before its containers'",
    ),
    PlacementField::new("spec.overhead", Honoured, "added"),
    PlacementField::new(
        "status.containerStatuses[].resources, .allocatedResources; status.resources",
        Honoured,
        "a resize in place: the most of what is asked for, in effect and set aside",
    ),
    PlacementField::new(
        "spec.containers[].ports[].hostPort",
        Honoured,
        "free on the node; those of initial containers that stay, too",
    ),
    PlacementField::new("spec.hostNetwork", Honoured, "its ports are the node's"),
    PlacementField::new(
        "spec.hostUsers, containers[].restartPolicyRules",
        Honoured,
        "what only some nodes can do: their `status.declaredFeatures`",
    ),
    PlacementField::new("spec.nodeSelector", Honoured, "labels of the node"),
    PlacementField::new(
        "spec.affinity.nodeAffinity.required…",
        Honoured,
        "labels, name of the node",
    ),
    PlacementField::new("spec.affinity.nodeAffinity.preferred…", Preferred, "by weight"),
    PlacementField::new("spec.tolerations", Honoured, "taints `NoSchedule` and `NoExecute`"),
    PlacementField::new(
        "spec.affinity.podAffinity.required…, podAntiAffinity.required…",
        Honoured,
        "pods around the node, in both directions; namespaces by name and by label",
    ),
    PlacementField::new(
        "spec.affinity.podAffinity.preferred…, podAntiAffinity.preferred…",
        Ignored,
        "a gang goes close together anyway",
    ),
    PlacementField::new(
        "spec.topologySpreadConstraints: DoNotSchedule",
        Honoured,
        "`maxSkew`, `minDomains`, `matchLabelKeys` and both policies",
    ),
    PlacementField::new("spec.topologySpreadConstraints: ScheduleAnyway", Ignored, "a wish"),
    PlacementField::new(
        "spec.volumes[].persistentVolumeClaim",
        Honoured,
        "where its volume can be used; a claim that waits for its first pod is bound before the pod",
    ),
    PlacementField::new("spec.volumes[].ephemeral", Honoured, "the claim that is made for the pod"),
    PlacementField::new(
        "spec.volumes[].azureDisk, cinder, portworxVolume",
        Honoured,
        "count among the volumes that the node can have",
    ),
    PlacementField::new(
        "spec.volumes[].awsElasticBlockStore, gcePersistentDisk, iscsi, rbd",
        Refused(Spec::has_inline_disk),
        "two pods could get one disk: use a claim",
    ),
    PlacementField::new(
        "spec.resourceClaims",
        Refused(|spec| !spec.resource_claims.is_empty()),
        "devices by dynamic resource allocation: ask for an extended resource",
    ),
    PlacementField::new(
        "spec.schedulingGroup",
        Refused(|spec| spec.scheduling_group.is_some()),
        "gangs are named by a PodGroup of Volcano's",
    ),
    PlacementField::new(
        "spec.runtimeClassName",
        Honoured,
        "by the node selector, the tolerations and the overhead that admission adds",
    ),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::Pod;

    /// Set it to have the table in the document written anew.
    const WRITE: &str = "TRAINYARD_WRITE_SCHEDULING_DOC";
    const BEGIN: &str = "<!-- table of fields: begin -->\n";
    const END: &str = "<!-- table of fields: end -->\n";

    fn table() -> String {
        let mut table = "| field of the pod | | |\n|---|---|---|\n".to_owned();
        for field in PLACEMENT {
            let (path, treatment, meaning) = (field.path, field.treatment(), field.meaning);
            table.extend(["| `", path, "` | ", treatment, " | ", meaning, " |\n"]);
        }
        table
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it compares a document, or writes it")]
    fn the_document_has_the_table_of_all_fields() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scheduling.md");
        let page = std::fs::read_to_string(&file).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (now, after) = rest.split_once(END).unwrap();
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&file, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
            return;
        }
        assert!(now == table(), "docs/scheduling.md is out of date: write it with {WRITE}=1");
    }

    fn beyond(spec: &Value) -> Option<&'static str> {
        from_value::<Pod>(json!({"spec": spec})).unwrap().beyond
    }

    #[test]
    fn what_is_refused_is_refused_by_name() {
        let device = json!({"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}});
        for (spec, field) in [
            (json!({"containers": [{"resources": device}]}), "deviceclass"),
            (json!({"volumes": [{"name": "d", "rbd": {"image": "i"}}]}), "rbd"),
            (json!({"volumes": [{"name": "d", "iscsi": {"iqn": "i"}}]}), "iscsi"),
            (json!({"resourceClaims": [{"name": "gpu"}]}), "spec.resourceClaims"),
            (json!({"schedulingGroup": {"podGroupName": "g"}}), "spec.schedulingGroup"),
        ] {
            let named = beyond(&spec);
            assert!(named.is_some_and(|named| named.contains(field)), "{field}: {named:?}");
        }
        assert_eq!(beyond(&json!({"volumes": [{"name": "d", "emptyDir": {}}]})), None);
    }
}
