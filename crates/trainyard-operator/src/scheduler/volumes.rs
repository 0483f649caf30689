//! Carries out what is decided about claims: the node that one is provisioned for, the volume that is
//! kept for one. Whoever provisions and binds does the rest; the claim tells when it is bound.

use serde_json::{Value, json};
use tracing::{debug, warn};
use trainyard_sched::{BindClaim, BindVolume, ClaimWritten, Delta, ReleaseClaim};

use super::act::{Actor, Done, call, version};
use crate::calls::{CallError, Verb};

/// The node that a claim is provisioned for.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// A volume was not given to its claim by a person.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

impl Actor {
    pub(super) async fn bind_claim(&self, bind: &BindClaim) -> Done {
        let written = match &bind.volume {
            None => self.select_node(bind, &json!(bind.node)).await,
            Some(volume) => self.keep_volume(bind, volume).await,
        };
        let outcome = |version| {
            Delta::ClaimWritten(ClaimWritten {
                namespace: bind.namespace.clone(),
                name: bind.name.clone(),
                uid: bind.uid.clone(),
                version,
            })
        };
        let failure = match written {
            Ok(version) => {
                self.world.tell_quietly(outcome(Some(version)));
                None
            }
            Err(error) => {
                warn!(claim = %bind.name, node = %bind.node, %error, "binding a claim failed");
                Some((outcome(None), error))
            }
        };
        Done { uid: bind.uid.clone(), is_word: false, failure }
    }

    pub(super) async fn release_claim(&self, release: &ReleaseClaim) -> Done {
        let ReleaseClaim { namespace, name, uid, version } = release.clone();
        let bind = BindClaim {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            version,
            node: String::new(),
            volume: None,
        };
        let failure = self.select_node(&bind, &Value::Null).await.err().map(|error| {
            debug!(claim = %name, %error, "a claim was not taken from its node");
            let uid = uid.clone();
            (Delta::ClaimWritten(ClaimWritten { namespace, name, uid, version: None }), error)
        });
        Done { uid, is_word: false, failure }
    }

    async fn select_node(&self, claim: &BindClaim, node: &Value) -> Result<u64, CallError> {
        let mut body = json!({"metadata": stamp(&claim.uid, claim.version)});
        body["metadata"]["annotations"] = json!({SELECTED_NODE: node});
        let BindClaim { namespace, name, .. } = claim;
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
        let call = call(Verb::Patch, "persistentvolumeclaims", path, &body);
        Ok(version(&self.calls.send(call).await?))
    }

    async fn keep_volume(&self, claim: &BindClaim, volume: &BindVolume) -> Result<u64, CallError> {
        let mut body = json!({
            "metadata": stamp(&volume.uid, volume.version),
            "spec": {"claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace, "name": claim.name, "uid": claim.uid,
                "resourceVersion": claim.version.to_string(),
            }},
        });
        if !volume.is_prebound {
            body["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
        }
        let path = format!("/api/v1/persistentvolumes/{}", volume.name);
        let call = call(Verb::Patch, "persistentvolumes", path, &body);
        Ok(version(&self.calls.send(call).await?))
    }
}

/// What makes a write fail when the object has changed since it was decided about.
fn stamp(uid: &str, version: u64) -> Value {
    if version == 0 {
        return json!({"uid": uid});
    }
    json!({"uid": uid, "resourceVersion": version.to_string()})
}
