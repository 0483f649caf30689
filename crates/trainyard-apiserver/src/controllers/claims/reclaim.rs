//! Carries out the next step of a volume, up to its end.

use serde_json::{Value, json};

use super::step::{VolumeStep, is_bound_by_us, of_volume};
use super::view::{BOUND_BY_CONTROLLER, Claim, PROVISIONED_BY, Volume};
use super::{Controller, Task, folder};
use crate::controllers::calls::{Propagation, core, delete_options};
use crate::controllers::error::{Error, unless_missing};
use crate::controllers::events::{About, Weight};
use crate::controllers::held;
use crate::controllers::queue::Next;

impl Controller {
    pub(super) async fn attend_volume(&self, name: &str) -> Result<Next, Error> {
        let path = core("", "persistentvolumes", name);
        let Some(volume) = self.context.calls.find::<Volume>(&path).await? else {
            return Ok(Next::Rest);
        };
        let claim = self.claim_of(&volume).await?;
        let step = of_volume(&volume, claim.as_ref());
        match step {
            VolumeStep::LeaveToClaim => {
                if let Some(claim) = claim {
                    self.queue.add(Task::Claim(claim.metadata.key()));
                }
            }
            VolumeStep::Available if volume.status.phase != "Available" => {
                self.set_phase(&path, &volume, "Available").await?;
            }
            VolumeStep::Bound if volume.status.phase != "Bound" => {
                self.set_phase(&path, &volume, "Bound").await?;
            }
            VolumeStep::Available | VolumeStep::Bound => {}
            VolumeStep::Release => self.release(&path, &volume).await?,
            VolumeStep::Unbind => self.unbind(&path, &volume).await?,
        }
        if volume.metadata.is_deleting() && !matches!(step, VolumeStep::Bound) {
            self.let_volume_go(&path, &volume).await?;
        }
        Ok(Next::Rest)
    }

    /// The claim that a volume names. What is not known may still be there: a volume is released only
    /// when the server says that its claim is gone.
    async fn claim_of(&self, volume: &Volume) -> Result<Option<Claim>, Error> {
        let Some(to) = volume.spec.claim_ref.as_ref().filter(|to| !to.uid.is_empty()) else {
            return Ok(None);
        };
        let known = held(&self.known).claims.get(&to.key()).cloned();
        if let Some(claim) = known.filter(|claim| claim.metadata.uid == to.uid) {
            return Ok(Some(claim));
        }
        self.context.calls.find(&core(&to.namespace, "persistentvolumeclaims", &to.name)).await
    }

    pub(super) async fn set_phase(
        &self,
        path: &str,
        volume: &Volume,
        phase: &str,
    ) -> Result<(), Error> {
        self.write_phase(path, volume, phase, Value::Null).await
    }

    async fn write_phase(
        &self,
        path: &str,
        volume: &Volume,
        phase: &str,
        message: Value,
    ) -> Result<(), Error> {
        let edit = json!({
            "metadata": {"uid": volume.metadata.uid},
            "status": {"phase": phase, "message": message},
        });
        unless_missing(self.context.calls.merge(&format!("{path}/status"), &edit).await).map(|_| ())
    }

    async fn release(&self, path: &str, volume: &Volume) -> Result<(), Error> {
        if !matches!(&*volume.status.phase, "Released" | "Failed") {
            self.set_phase(path, volume, "Released").await?;
        }
        match &*volume.spec.reclaim {
            "Delete" => self.delete(path, volume).await,
            "Recycle" => {
                let message = "No recycler plugin found for the volume!";
                self.fail(path, volume, "VolumeFailedRecycle", message).await
            }
            _ => Ok(()),
        }
    }

    async fn delete(&self, path: &str, volume: &Volume) -> Result<(), Error> {
        let Some(place) = folder::of(&self.context.settings.claims_folder, volume) else {
            if volume.metadata.annotations.contains_key(PROVISIONED_BY) {
                // Whoever made it removes it.
                return Ok(());
            }
            let message = format!(
                "error getting deleter volume plugin for volume {:?}: no deletable volume plugin \
                 matched: remove the data and the PersistentVolume by hand, or use the reclaim \
                 policy Retain",
                volume.metadata.name
            );
            return self.fail(path, volume, "VolumeFailedDelete", &message).await;
        };
        if let Err(error) = folder::remove(place, self.context.settings.remove_folder).await {
            self.fail(path, volume, "VolumeFailedDelete", &error.to_string()).await?;
            return Err(error);
        }
        let options = delete_options(Propagation::Background, Some(&volume.metadata.uid));
        unless_missing(self.context.calls.delete(path, &options).await).map(|_| ())
    }

    async fn fail(
        &self,
        path: &str,
        volume: &Volume,
        reason: &str,
        message: &str,
    ) -> Result<(), Error> {
        if volume.status.phase == "Failed" {
            return Ok(());
        }
        self.write_phase(path, volume, "Failed", json!(message)).await?;
        let about = About::core("PersistentVolume", &volume.metadata);
        self.recorder.record(&about, Weight::Warning, reason, message).await;
        Ok(())
    }

    /// Sets a volume free whose claim has taken another; a person's wish for the claim stands.
    async fn unbind(&self, path: &str, volume: &Volume) -> Result<(), Error> {
        let meta = &volume.metadata;
        let mut edit =
            json!({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}});
        if is_bound_by_us(volume) {
            edit["spec"] = json!({"claimRef": null});
            edit["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: null});
        } else {
            edit["spec"] = json!({"claimRef": {"uid": null, "resourceVersion": null}});
        }
        unless_missing(self.context.calls.merge(path, &edit).await)?;
        self.set_phase(path, volume, "Available").await
    }
}
