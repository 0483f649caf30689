//! Carries out the next step of a claim. Each write follows from what is on the server now and fails
//! when that has changed; a step that was interrupted is finished by the next look.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::step::{Around, ClaimStep, Plan, Words, of_claim};
use super::view::{BIND_COMPLETED, BOUND_BY_CONTROLLER, Claim, ClaimRef, PROVISIONED_BY, Volume};
use super::{Controller, PROVISIONER, STATIC_GRACE, folder};
use crate::controllers::calls::core;
use crate::controllers::error::{Error, unless_missing};
use crate::controllers::events::{About, Weight};
use crate::controllers::held;
use crate::controllers::queue::Next;
use crate::controllers::view::Key;

const CLAIM_PROVISIONERS: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];

impl Controller {
    pub(super) async fn attend_claim(&self, key: &Key) -> Result<Next, Error> {
        let path = core(&key.namespace, "persistentvolumeclaims", &key.name);
        let Some(claim) = self.context.calls.find::<Claim>(&path).await? else {
            return Ok(Next::Rest);
        };
        if claim.metadata.is_deleting() {
            return self.let_claim_go(&path, &claim).await;
        }
        let step = {
            let known = held(&self.known);
            let wanted = known.users_of(key).next().is_some();
            of_claim(&claim, &Around { volumes: &known.volumes, classes: &known.classes, wanted })
        };
        match step {
            ClaimStep::Wait(words) => {
                if let Some(words) = words {
                    self.tell_once(key, &claim, &words).await;
                }
                Ok(Next::Rest)
            }
            ClaimStep::TakeClass(class) => {
                let edit = json!({
                    "metadata": stamp(&claim), "spec": {"storageClassName": class},
                });
                unless_missing(self.context.calls.merge(&path, &edit).await)?;
                Ok(Next::Rest)
            }
            ClaimStep::Bind(volume) => self.bind(&path, &claim, &volume).await,
            ClaimStep::Provision(plan) => self.provision(&path, &claim, &plan).await,
            ClaimStep::Lost(words) => self.lose(&path, &claim, &words).await,
        }
    }

    /// Says something about a claim, unless it was the last thing that was said.
    async fn tell_once(&self, key: &Key, claim: &Claim, words: &Words) {
        let text = format!("{}: {}", words.reason, words.message);
        let last = held(&self.known).told.insert(key.clone(), text.clone());
        if last != Some(text) {
            self.tell(claim, words.weight, words.reason, &words.message).await;
        }
    }

    async fn tell(&self, claim: &Claim, weight: Weight, reason: &str, message: &str) {
        let about = About::core("PersistentVolumeClaim", &claim.metadata);
        self.recorder.record(&about, weight, reason, message).await;
    }

    async fn bind(&self, path: &str, claim: &Claim, name: &str) -> Result<Next, Error> {
        let volume_path = core("", "persistentvolumes", name);
        let Some(volume) = self.context.calls.find::<Volume>(&volume_path).await? else {
            return Ok(Next::Again);
        };
        if volume.spec.claim_ref.is_some() && !volume.is_for(&claim.metadata) {
            // Another claim was faster.
            return Ok(Next::Again);
        }
        self.bind_volume(&volume_path, &volume, claim).await?;
        let named = claim.spec.volume_name == name;
        if !named || !claim.is_bound() {
            let mut edit = json!({"metadata": stamp(claim), "spec": {"volumeName": name}});
            edit["metadata"]["annotations"] = json!({BIND_COMPLETED: "yes"});
            if !named {
                edit["metadata"]["annotations"][BOUND_BY_CONTROLLER] = json!("yes");
            }
            self.context.calls.merge(path, &edit).await?;
        }
        if claim.status.phase != "Bound" || claim.status.access_modes != volume.spec.access_modes {
            let mut status = json!({"phase": "Bound", "accessModes": volume.spec.access_modes});
            if claim.status.phase != "Bound" || claim.status.capacity.is_empty() {
                status["capacity"] = json!(volume.spec.capacity);
            }
            let edit = json!({"metadata": {"uid": claim.metadata.uid}, "status": status});
            self.context.calls.merge(&format!("{path}/status"), &edit).await?;
        }
        let mut known = held(&self.known);
        known.told.remove(&claim.metadata.key());
        known.waiting.remove(&claim.metadata.key());
        Ok(Next::Rest)
    }

    async fn bind_volume(&self, path: &str, volume: &Volume, claim: &Claim) -> Result<(), Error> {
        let wanted = reference(claim);
        if volume.spec.claim_ref.as_ref() != Some(&wanted) {
            let meta = &volume.metadata;
            let mut edit = json!({
                "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
                "spec": {"claimRef": claim_ref(&wanted)},
            });
            if !volume.is_for(&claim.metadata) {
                edit["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
            }
            self.context.calls.merge(path, &edit).await?;
        }
        if volume.status.phase != "Bound" {
            self.set_phase(path, volume, "Bound").await?;
        }
        Ok(())
    }

    async fn lose(&self, path: &str, claim: &Claim, words: &Words) -> Result<Next, Error> {
        if claim.status.phase == "Lost" {
            return Ok(Next::Rest);
        }
        if !claim.spec.volume_name.is_empty() {
            // A volume that was just made may not have been heard of yet.
            let volume = core("", "persistentvolumes", &claim.spec.volume_name);
            let volume = self.context.calls.find::<Volume>(&volume).await?;
            if volume.is_some_and(|volume| volume.is_for(&claim.metadata)) {
                return Ok(Next::Again);
            }
        }
        let edit = json!({
            "metadata": {"uid": claim.metadata.uid},
            "status": {"phase": "Lost", "accessModes": null, "capacity": null},
        });
        let status = format!("{path}/status");
        if unless_missing(self.context.calls.merge(&status, &edit).await)?.is_some() {
            self.tell(claim, words.weight, words.reason, &words.message).await;
        }
        Ok(Next::Rest)
    }

    async fn provision(&self, path: &str, claim: &Claim, plan: &Plan) -> Result<Next, Error> {
        if plan.class_unknown {
            let key = claim.metadata.key();
            let since = *held(&self.known).waiting.entry(key).or_insert_with(Instant::now);
            let left = STATIC_GRACE.saturating_sub(since.elapsed());
            if !left.is_zero() {
                return Ok(Next::After(left));
            }
        }
        let name = format!("pvc-{}", claim.metadata.uid);
        let claims = &self.context.settings.claims_folder;
        let wanted = reference(claim);
        let made = match folder::place(claims, &wanted, &name) {
            Some(folder) => folder::make(&folder).map(|()| folder),
            None => Err(Error::Folder {
                path: claims.clone(),
                source: std::io::Error::other("the claim's names do not make a folder's name"),
            }),
        };
        let folder = match made {
            Ok(folder) => folder,
            Err(error) => {
                let class = &plan.class;
                let message =
                    format!("Failed to provision volume with StorageClass {class:?}: {error}");
                self.tell(claim, Weight::Warning, "ProvisioningFailed", &message).await;
                return Err(error);
            }
        };
        let annotations = json!(
            CLAIM_PROVISIONERS
                .map(|key| (key, PROVISIONER))
                .into_iter()
                .collect::<std::collections::BTreeMap<_, _>>()
        );
        let edit = json!({"metadata": {"uid": claim.metadata.uid, "annotations": annotations}});
        self.context.calls.merge(path, &edit).await?;
        let volume = volume(claim, plan, &name, &folder.to_string_lossy());
        if self.context.calls.create_missing(&core("", "persistentvolumes", ""), &volume).await? {
            if plan.stands_in {
                let message = format!(
                    "storage class {:?} is not available on this machine: the claim is kept in \
                     the local directory {}",
                    plan.class,
                    folder.display()
                );
                self.tell(claim, Weight::Warning, "ProvisionedLocally", &message).await;
            }
            let message = format!("Successfully provisioned volume {name} using {PROVISIONER}");
            self.tell(claim, Weight::Normal, "ProvisioningSucceeded", &message).await;
        }
        Ok(Next::Rest)
    }
}

/// What a patch says so that it fails when the object has changed.
fn stamp(claim: &Claim) -> Value {
    json!({"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version})
}

fn reference(claim: &Claim) -> ClaimRef {
    let meta = &claim.metadata;
    ClaimRef { namespace: meta.namespace.clone(), name: meta.name.clone(), uid: meta.uid.clone() }
}

fn claim_ref(to: &ClaimRef) -> Value {
    let mut value = json!(to);
    value["kind"] = json!("PersistentVolumeClaim");
    value["apiVersion"] = json!("v1");
    value
}

/// The volume that is made for a claim.
fn volume(claim: &Claim, plan: &Plan, name: &str, folder: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": {PROVISIONED_BY: PROVISIONER, BOUND_BY_CONTROLLER: "yes"},
        },
        "spec": {
            "capacity": {"storage": claim.request()},
            "accessModes": claim.spec.access_modes,
            "persistentVolumeReclaimPolicy": plan.reclaim,
            "storageClassName": plan.class,
            "volumeMode": "Filesystem",
            "claimRef": claim_ref(&reference(claim)),
            "hostPath": {"path": folder, "type": "DirectoryOrCreate"},
        },
    })
}
