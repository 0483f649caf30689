//! Specimens of storage.

use serde_json::json;

use super::specimen::Specimen;

pub(super) const KINDS: &[Specimen] = &[
    Specimen {
        kind: "PersistentVolumeClaim",
        resource: "persistentvolumeclaims",
        short: "pvc",
        version: "v1",
        namespaced: true,
        columns: "NAME, STATUS, VOLUME, CAPACITY, ACCESS MODES, STORAGECLASS, \
                  VOLUMEATTRIBUTESCLASS, AGE, VOLUMEMODE*",
        field: ("pvc.spec.accessModes", "<[]string>"),
        described: &["StorageClass:", "Status:", "Access Modes:", "Used By:"],
        body: || {
            json!({"spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "nobodys",
                "resources": {"requests": {"storage": "1Gi"}},
                // Waits for a volume that is not there, on every server.
                "volumeName": "matrix-nowhere",
            }})
        },
    },
    Specimen {
        kind: "PersistentVolume",
        resource: "persistentvolumes",
        short: "pv",
        version: "v1",
        namespaced: false,
        columns: "NAME, CAPACITY, ACCESS MODES, RECLAIM POLICY, STATUS, CLAIM, STORAGECLASS, \
                  VOLUMEATTRIBUTESCLASS, REASON, AGE, VOLUMEMODE*",
        field: ("pv.spec.persistentVolumeReclaimPolicy", "<string>"),
        described: &["Reclaim Policy:", "Retain", "Access Modes:", "RWX", "1Gi", "NFS"],
        body: || {
            json!({"spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                "storageClassName": "matrix",
                "nfs": {"server": "files.example.com", "path": "/model"},
            }})
        },
    },
    Specimen {
        kind: "StorageClass",
        resource: "storageclasses",
        short: "sc",
        version: "storage.k8s.io/v1",
        namespaced: false,
        columns: "NAME, PROVISIONER, RECLAIMPOLICY, VOLUMEBINDINGMODE, ALLOWVOLUMEEXPANSION, AGE",
        field: ("storageclass.provisioner", "<string>"),
        described: &["Provisioner:", "example.com/disk", "ReclaimPolicy:", "Delete", "Immediate"],
        body: || json!({"provisioner": "example.com/disk"}),
    },
];
