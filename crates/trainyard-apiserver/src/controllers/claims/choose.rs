//! Which volume suits a claim. Pure.

use trainyard_schema::select::labels::Selector;

use super::view::{Claim, Volume};

/// The best of these volumes for a claim that names none. One that is kept for the claim wins; of
/// the others the one with the fewest access modes, then the smallest.
pub(super) fn choose<'a>(
    claim: &Claim,
    volumes: impl Iterator<Item = &'a Volume>,
) -> Option<&'a Volume> {
    let selector = claim.spec.selector.as_ref().map(Selector::from_label_selector);
    let selector = match selector {
        Some(Err(_)) => return None,
        Some(Ok(selector)) => Some(selector),
        None => None,
    };
    let mut best: Option<&Volume> = None;
    for volume in volumes {
        if volume.size() < claim.size()
            || volume.mode() != claim.mode()
            || volume.metadata.is_deleting()
        {
            continue;
        }
        if volume.is_for(&claim.metadata) {
            return Some(volume);
        }
        let free = volume.spec.claim_ref.is_none() && volume.status.phase == "Available";
        let class = volume.class() == claim.class().unwrap_or_default();
        let labels = selector.as_ref().is_none_or(|selector| selects(selector, volume));
        if !(free && class && labels && covers(claim, volume)) {
            continue;
        }
        let rank = |volume: &Volume| (volume.spec.access_modes.len(), volume.size());
        if best.is_none_or(|best| rank(volume) < rank(best)) {
            best = Some(volume);
        }
    }
    best
}

fn selects(selector: &Selector, volume: &Volume) -> bool {
    let labels: Vec<(Box<str>, Box<str>)> = volume
        .metadata
        .labels
        .iter()
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect();
    selector.matches(&labels)
}

fn covers(claim: &Claim, volume: &Volume) -> bool {
    claim.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
}

/// Why a volume that a claim asks for by name does not suit it.
pub(super) fn mismatch(claim: &Claim, volume: &Volume) -> Option<String> {
    let name = &volume.metadata.name;
    if volume.metadata.is_deleting() {
        Some(format!("the volume is marked for deletion {name:?}"))
    } else if volume.size() < claim.size() {
        Some("requested PV is too small".to_owned())
    } else if volume.class() != claim.class().unwrap_or_default() {
        Some("storageClassName does not match".to_owned())
    } else if volume.mode() != claim.mode() {
        Some("incompatible volumeMode".to_owned())
    } else if !covers(claim, volume) {
        Some("incompatible accessMode".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(in crate::controllers::claims) fn claim(spec: &Value) -> Claim {
        let mut claim = json!({
            "metadata": {"name": "data", "namespace": "n", "uid": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                "resources": {"requests": {"storage": "5Gi"}}},
            "status": {"phase": "Pending"},
        });
        for (key, value) in spec.as_object().unwrap() {
            claim["spec"][key] = value.clone();
        }
        serde_json::from_value(claim).unwrap()
    }

    pub(in crate::controllers::claims) fn volume(name: &str, size: &str, spec: &Value) -> Volume {
        let mut volume = json!({
            "metadata": {"name": name, "uid": name, "labels": {"disk": name}},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                "capacity": {"storage": size}, "persistentVolumeReclaimPolicy": "Retain"},
            "status": {"phase": "Available"},
        });
        for (key, value) in spec.as_object().unwrap() {
            volume["spec"][key] = value.clone();
        }
        serde_json::from_value(volume).unwrap()
    }

    fn chosen(claim: &Claim, volumes: &[Volume]) -> Option<String> {
        choose(claim, volumes.iter()).map(|volume| volume.metadata.name.clone())
    }

    #[test]
    fn the_smallest_that_is_large_enough() {
        let all = [
            volume("big", "10Gi", &json!({})),
            volume("small", "1Gi", &json!({})),
            volume("fit", "6Gi", &json!({})),
        ];
        assert_eq!(chosen(&claim(&json!({})), &all).as_deref(), Some("fit"));
        let huge = claim(&json!({"resources": {"requests": {"storage": "1Ti"}}}));
        assert_eq!(chosen(&huge, &all), None);
    }

    #[test]
    fn class_modes_and_labels_must_suit() {
        let many = json!({"accessModes": ["ReadWriteOnce", "ReadWriteMany"]});
        let all = [volume("a", "5Gi", &many), volume("b", "9Gi", &json!({}))];
        assert_eq!(chosen(&claim(&json!({})), &all).as_deref(), Some("b"));
        let shared = claim(&json!({"accessModes": ["ReadWriteMany"]}));
        assert_eq!(chosen(&shared, &all).as_deref(), Some("a"));
        assert_eq!(chosen(&claim(&json!({"storageClassName": "other"})), &all), None);
        assert_eq!(chosen(&claim(&json!({"storageClassName": ""})), &all), None);
        let labelled = claim(&json!({"selector": {"matchLabels": {"disk": "a"}}}));
        assert_eq!(chosen(&labelled, &all).as_deref(), Some("a"));
        let block = claim(&json!({"volumeMode": "Block"}));
        assert_eq!(chosen(&block, &all), None);
        let nonsense = claim(&json!({"selector": {"matchLabels": 3}}));
        assert_eq!(chosen(&nonsense, &all), None);
    }

    #[test]
    fn a_volume_that_is_kept_for_the_claim_wins_and_strangers_keep_theirs() {
        let mine = json!({"claimRef": {"namespace": "n", "name": "data"}});
        let yours = json!({"claimRef": {"namespace": "n", "name": "data", "uid": "other"}});
        let all = [
            volume("yours", "5Gi", &yours),
            volume("free", "5Gi", &json!({})),
            volume("mine", "50Gi", &mine),
        ];
        assert_eq!(chosen(&claim(&json!({})), &all).as_deref(), Some("mine"));
        assert_eq!(chosen(&claim(&json!({})), &all[..1]), None);
        let mut released = volume("old", "5Gi", &json!({}));
        released.status.phase = "Released".to_owned();
        assert_eq!(chosen(&claim(&json!({})), &[released]), None);
    }

    #[test]
    fn a_named_volume_is_refused_with_the_reason() {
        let claim = claim(&json!({}));
        let why = |volume: &Volume| mismatch(&claim, volume);
        assert_eq!(why(&volume("a", "5Gi", &json!({}))), None);
        assert_eq!(why(&volume("a", "1Gi", &json!({}))).unwrap(), "requested PV is too small");
        let other = volume("a", "5Gi", &json!({"storageClassName": "x"}));
        assert_eq!(why(&other).unwrap(), "storageClassName does not match");
        let many = volume("a", "5Gi", &json!({"accessModes": ["ReadOnlyMany"]}));
        assert_eq!(why(&many).unwrap(), "incompatible accessMode");
    }
}
