//! What is in use stays: a claim until its last pod has gone, a volume until its claim has. And the
//! claims that are made for one pod.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Controller;
use super::view::{Claim, ServedPod, User, Volume};
use crate::controllers::calls::{WHOLE, core};
use crate::controllers::error::{Error, unless_missing};
use crate::controllers::held;
use crate::controllers::queue::Next;
use crate::controllers::view::{Key, Meta, null_is_empty};

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pods {
    #[serde(deserialize_with = "null_is_empty")]
    items: Vec<ServedPod>,
}

impl Controller {
    /// Lets a claim go that nobody uses any more.
    pub(super) async fn let_claim_go(&self, path: &str, claim: &Claim) -> Result<Next, Error> {
        if !claim.metadata.has_finalizer(CLAIM_FINALIZER) {
            return Ok(Next::Rest);
        }
        let key = claim.metadata.key();
        let used = held(&self.known).users_of(&key).any(|(_, user)| user.placed);
        // A pod may use it of which nobody has heard here.
        if used || self.is_used(&key).await? {
            return Ok(Next::Rest);
        }
        self.drop_finalizer(path, &claim.metadata, CLAIM_FINALIZER).await?;
        Ok(Next::Rest)
    }

    async fn is_used(&self, claim: &Key) -> Result<bool, Error> {
        let path = core(&claim.namespace, "pods", "");
        let pods: Pods = self.context.calls.read(&path, WHOLE).await?;
        let users = pods.items.into_iter().filter_map(User::of);
        Ok(users.into_iter().any(|user| user.placed && user.claims.contains(&claim.name)))
    }

    pub(super) async fn let_volume_go(&self, path: &str, volume: &Volume) -> Result<(), Error> {
        if !volume.metadata.has_finalizer(VOLUME_FINALIZER) {
            return Ok(());
        }
        // Its phase may have been written since it was read.
        let Some(fresh) = self.context.calls.find::<Volume>(path).await? else { return Ok(()) };
        if fresh.status.phase == "Bound" {
            return Ok(());
        }
        self.drop_finalizer(path, &fresh.metadata, VOLUME_FINALIZER).await
    }

    async fn drop_finalizer(&self, path: &str, meta: &Meta, name: &str) -> Result<(), Error> {
        let left: Vec<&String> = meta.finalizers.iter().filter(|there| *there != name).collect();
        let edit = json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left,
        }});
        unless_missing(self.context.calls.merge(path, &edit).await).map(|_| ())
    }

    /// Makes the claims that a pod has for itself.
    pub(super) async fn attend_pod(&self, key: &Key) -> Result<Next, Error> {
        let Some(user) = held(&self.known).users.get(key).cloned() else { return Ok(Next::Rest) };
        if user.going {
            return Ok(Next::Rest);
        }
        for (name, template) in &user.own {
            let claim = own_claim(key, &user.uid, name, template);
            let path = core(&key.namespace, "persistentvolumeclaims", "");
            match self.context.calls.create_missing(&path, &claim).await {
                Err(error) if error.is_ending_namespace() => {}
                answer => {
                    answer?;
                }
            }
        }
        Ok(Next::Rest)
    }
}

/// The claim that a pod has for itself. It goes with the pod.
fn own_claim(pod: &Key, uid: &str, name: &str, template: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name, "namespace": pod.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pods_own_claim_belongs_to_it() {
        let pod = Key { namespace: "n".to_owned(), name: "p".to_owned() };
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}});
        let claim = own_claim(&pod, "u", "p-scratch", &template);
        assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(claim["metadata"]["labels"]["a"], "b");
        assert_eq!(claim["spec"]["x"], 1);
    }

    #[test]
    fn pods_that_have_ended_use_nothing() {
        let pod = |phase: &str| -> Option<User> {
            let pod = json!({
                "metadata": {"name": "p", "uid": "u"},
                "spec": {"nodeName": "n1", "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
                    {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                    {"name": "none", "emptyDir": {}}]},
                "status": {"phase": phase},
            });
            User::of(serde_json::from_value(pod).unwrap())
        };
        let user = pod("Running").unwrap();
        assert_eq!(user.claims, ["c", "p-own"]);
        assert_eq!(user.own.len(), 1);
        assert!(pod("Succeeded").is_none());
    }
}
