//! What a pod may write to the disk, and whether it wrote more: `limits.ephemeral-storage` of its
//! containers and the sizes of its volumes. The logs of containers have bounds of their own.

use std::path::Path;

use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource, PodSpec, Volume};
use trainyard_api::quantity::Quantity;

use super::limits;
use crate::shared::run_folder;
use crate::status::PodRecord;
use crate::volumes::{self, Volumes};

const NAME: &str = "ephemeral-storage";

/// What is looked at.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Of all containers and volumes together.
    whole: Option<Quantity>,
    /// Of each container by its name, and no more than it says.
    each: Vec<(String, Quantity)>,
    /// A volume has a size.
    volumes: bool,
}

impl Bounds {
    /// Those of a pod; none where nothing is bounded.
    pub(super) fn of(spec: &PodSpec) -> Option<Self> {
        let own = |container: &Container| {
            let limit = limits::limit(container.resources.as_ref()?, NAME)?;
            Some((container.name.clone(), limit))
        };
        let all = spec.init_containers.iter().flatten().chain(&spec.containers);
        let sized = |volume: &Volume| {
            let on_disk = |dir: &EmptyDirVolumeSource| dir.medium.as_deref() != Some("Memory");
            let dir = volume.empty_dir.as_ref().filter(|dir| on_disk(dir));
            dir.is_some_and(|dir| dir.size_limit.is_some())
        };
        let bounds = Self {
            whole: limits::most(spec, NAME),
            each: all.filter_map(own).collect(),
            volumes: spec.volumes.iter().flatten().any(sized),
        };
        let any = bounds.whole.is_some() || !bounds.each.is_empty() || bounds.volumes;
        any.then_some(bounds)
    }

    /// Says what holds more than it may, in the kubelet's words and its order. Reads the disk.
    pub(super) fn exceeded(
        &self,
        volumes: &Volumes,
        record: &PodRecord,
        ephemeral: &Path,
    ) -> Option<String> {
        if let Some(message) = volumes.over_limit() {
            return Some(message);
        }
        if self.whole.is_none() && self.each.is_empty() {
            return None;
        }
        let all = record.init.iter().chain(&record.containers);
        let written: Vec<(&str, u64)> = all
            .filter(|container| !container.id.is_empty())
            .map(|container| {
                let folder = run_folder(ephemeral, &container.id);
                (container.name.as_str(), volumes::used(&folder))
            })
            .collect();
        let in_volumes = if self.whole.is_some() { volumes.written() } else { 0 };
        self.judge(&written, in_volumes)
    }

    /// Ends with a space, as every kubelet writes it.
    fn judge(&self, written: &[(&str, u64)], in_volumes: u64) -> Option<String> {
        let bytes = |bytes: u64| Quantity::from_bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
        let whole = written.iter().map(|(_, used)| *used).fold(in_volumes, u64::saturating_add);
        if let Some(limit) = self.whole
            && bytes(whole) > limit
        {
            return Some(format!(
                "Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
            ));
        }
        self.each.iter().find_map(|(name, limit)| {
            let (_, used) = written.iter().find(|(container, _)| container == name)?;
            (bytes(*used) > *limit).then(|| {
                format!("Container {name} exceeded its local ephemeral storage limit \"{limit}\". ")
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bounds(limits: &[Option<&str>], volume: &serde_json::Value) -> Option<Bounds> {
        let container = |(number, limit): (usize, Option<&str>)| {
            let mut container = json!({"name": format!("c{number}")});
            if let Some(limit) = limit {
                container["resources"] = json!({"limits": {"ephemeral-storage": limit}});
            }
            container
        };
        let containers: Vec<_> = limits.iter().copied().enumerate().map(container).collect();
        let spec =
            json!({"containers": containers, "volumes": [{"name": "v", "emptyDir": volume}]});
        Bounds::of(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_pod_without_bounds_is_not_looked_at() {
        assert!(bounds(&[None], &json!({})).is_none());
        assert!(bounds(&[None], &json!({"sizeLimit": "1Mi"})).is_some());
        assert!(bounds(&[Some("1Mi"), None], &json!({})).is_some());
    }

    #[test]
    fn what_is_written_is_judged_in_the_words_of_a_kubelet() {
        let mib = 1 << 20;
        let one = bounds(&[Some("1Mi"), None], &json!({})).unwrap();
        assert_eq!(one.judge(&[("c0", mib), ("c1", 9 * mib)], 9 * mib), None);
        assert_eq!(
            one.judge(&[("c0", mib + 1), ("c1", 0)], 0).unwrap(),
            "Container c0 exceeded its local ephemeral storage limit \"1Mi\". "
        );
        let both = bounds(&[Some("1Mi"), Some("2Mi")], &json!({})).unwrap();
        assert_eq!(both.judge(&[("c0", mib), ("c1", mib)], mib), None);
        assert_eq!(
            both.judge(&[("c0", 0), ("c1", mib)], 3 * mib).unwrap(),
            "Pod ephemeral local storage usage exceeds the total limit of containers 3Mi. "
        );
    }
}
