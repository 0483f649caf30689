//! Kinds of volumes from before CSI whose work a CSI driver does today: the driver attaches them, so
//! they count among its volumes on a node.
//!
//! By the table of `csi-translation-lib`, as far as kube-scheduler's limits go by it.

use serde::Deserialize;

/// A disk that a CSI driver attaches: the driver's name and the disk's.
pub(crate) type Disk = (String, String);

/// The provisioners of these kinds, and the drivers that do their work.
const DRIVERS: [(&str, &str); 5] = [
    ("kubernetes.io/aws-ebs", EBS),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];
const EBS: &str = "ebs.csi.aws.com";

/// Who does a provisioner's work: for most of them they themselves.
pub(super) fn driver_of(provisioner: &str) -> &str {
    let row = DRIVERS.iter().find(|(before, _)| *before == provisioner);
    row.map_or(provisioner, |(_, driver)| driver)
}

/// The sources of a volume that are of these kinds; at most one is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct InTree {
    aws_elastic_block_store: Option<Source>,
    gce_persistent_disk: Option<Source>,
    azure_disk: Option<Source>,
    cinder: Option<Source>,
    portworx_volume: Option<Source>,
}

/// One source, by the one field that says which disk it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Source {
    #[serde(alias = "volumeID", alias = "pdName", alias = "diskURI")]
    disk: String,
}

impl InTree {
    /// The disk, and the driver that attaches it.
    pub(crate) fn attached(&self) -> Option<Disk> {
        let sources = [
            &self.aws_elastic_block_store,
            &self.gce_persistent_disk,
            &self.azure_disk,
            &self.cinder,
            &self.portworx_volume,
        ];
        let mut rows = DRIVERS.iter().zip(sources);
        rows.find_map(|((_, driver), source)| {
            let disk = &source.as_ref()?.disk;
            // Here the zone may be in front, as in `aws://zone/vol-1`.
            let own = if *driver == EBS { disk.rsplit('/').next() } else { None };
            Some(((*driver).to_owned(), own.unwrap_or(disk).to_owned()))
        })
    }

    /// Whether it is of a kind that two pods on one node must not both name.
    pub(crate) fn is_for_one_pod(&self) -> bool {
        self.aws_elastic_block_store.is_some() || self.gce_persistent_disk.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn disks_of_old_kinds_are_those_of_their_drivers() {
        let attached = |source: Value| from_value::<InTree>(source).unwrap().attached();
        let disk = |driver: &str, disk: &str| Some((driver.to_owned(), disk.to_owned()));
        for (source, expected) in [
            (json!({"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}}), disk(EBS, "vol-1")),
            (json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}), disk(EBS, "vol-1")),
            (json!({"gcePersistentDisk": {"pdName": "d"}}), disk("pd.csi.storage.gke.io", "d")),
            (json!({"azureDisk": {"diskURI": "/a/b"}}), disk("disk.csi.azure.com", "/a/b")),
            (json!({"cinder": {"volumeID": "c"}}), disk("cinder.csi.openstack.org", "c")),
            (json!({"portworxVolume": {"volumeID": "p"}}), disk("pxd.portworx.com", "p")),
            (json!({"nfs": {"server": "n"}}), None),
        ] {
            assert_eq!(attached(source), expected);
        }
        assert_eq!(driver_of("kubernetes.io/cinder"), "cinder.csi.openstack.org");
        assert_eq!(driver_of("disk.example.com"), "disk.example.com");
    }
}
