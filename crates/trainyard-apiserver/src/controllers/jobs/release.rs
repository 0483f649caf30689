//! Pods that wait to be counted by a job that is gone, or has ended, or was never theirs: they are
//! let go.

use super::view::{Job, Pod, controller};
use super::{Controller, job_path};
use crate::controllers::calls::core;
use crate::controllers::error::Error;
use crate::controllers::queue::Next;
use crate::controllers::view::Key;

impl Controller {
    pub(super) async fn attend_stray(&self, key: &Key) -> Result<Next, Error> {
        let path = core(&key.namespace, "pods", &key.name);
        let Some(pod) = self.context.calls.find::<Pod>(&path).await? else {
            return Ok(Next::Rest);
        };
        if !pod.is_tracked() {
            return Ok(Next::Rest);
        }
        if let Some(owner) = controller(&pod.metadata) {
            if owner.kind != "Job" || owner.api_version != "batch/v1" {
                return Ok(Next::Rest);
            }
            let job = Key { namespace: key.namespace.clone(), name: owner.name.clone() };
            let job = self.context.calls.find::<Job>(&job_path(&job)).await?;
            let counts = |job: &Job| {
                job.metadata.uid == owner.uid && (!job.is_finished() || job.is_managed_elsewhere())
            };
            if job.as_ref().is_some_and(counts) {
                return Ok(Next::Rest);
            }
        }
        self.let_go(&pod.metadata).await?;
        Ok(Next::Rest)
    }
}
