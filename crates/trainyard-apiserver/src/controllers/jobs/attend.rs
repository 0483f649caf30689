//! Carries out a pass over one job: what was decided is done, in the order that lets another pass
//! begin anywhere.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::decide::{self, Tally, Verdict, Work, number};
use super::settle::{After, Settled, count, finish, settle};
use super::view::{Condition, Job, Pod};
use super::{Controller, job_path};
use crate::controllers::calls::{Propagation, delete_options};
use crate::controllers::clock::seconds;
use crate::controllers::error::{Error, unless_missing};
use crate::controllers::events::Weight;
use crate::controllers::held;
use crate::controllers::queue::Next;
use crate::controllers::view::Key;

impl Controller {
    pub(super) async fn attend_job(&self, key: &Key) -> Result<Next, Error> {
        let path = job_path(key);
        let Some(object) = self.context.calls.find::<Value>(&path).await? else {
            return Ok(Next::Rest);
        };
        let read = |source| Error::Answer { what: format!("GET {path}"), source };
        let job: Job = serde_json::from_value(object.clone()).map_err(read)?;
        if job.is_managed_elsewhere() {
            return Ok(Next::Rest);
        }
        if job.is_finished() {
            held(&self.known).failures.remove(&job.metadata.uid);
            return self.expire(&path, &job).await;
        }
        if let Some(field) = job.unsupported() {
            let words = format!("spec.{field} is not supported; the job is left alone");
            self.tell(&job.metadata, Weight::Warning, "Unsupported", &words).await;
            return Ok(Next::Rest);
        }
        match self.pass(&path, job, object).await {
            // It went in the middle of it.
            Err(error) if error.is_missing() => Ok(Next::Again),
            done => done,
        }
    }

    /// A finished job goes when its time has come.
    async fn expire(&self, path: &str, job: &Job) -> Result<Next, Error> {
        let Some(left) = decide::stay(job, self.context.clock.now()) else {
            return Ok(Next::Rest);
        };
        if job.metadata.is_deleting() {
            return Ok(Next::Rest);
        }
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        let options = delete_options(Propagation::Foreground, Some(&job.metadata.uid));
        unless_missing(self.context.calls.delete(path, &options).await)?;
        Ok(Next::Rest)
    }

    async fn pass(&self, path: &str, mut job: Job, mut object: Value) -> Result<Next, Error> {
        let pods = self.pods(&job).await?;
        let now = self.context.clock.now();
        let before = job.status.clone();
        if job.status.start_time.is_none() && !job.is_suspended() {
            job.status.start_time = Some(seconds(now));
        }
        let uid = job.metadata.uid.clone();
        let failures = held(&self.known).failures.get(&uid).cloned().unwrap_or_default();
        let tally = decide::tally(&job, &pods, &failures);
        let (ends, mut next) = match decide::verdict(&job, &pods, &tally, now) {
            Verdict::Ends(why) => (Some(why), None),
            Verdict::GoesOn(left) => (None, left),
        };
        let (after, ends, trouble) = if let Some(why) = ends {
            self.stop(&job, &tally, why).await
        } else {
            let (after, wait, trouble) = self.manage(&job, &object, &tally).await;
            next = [next, wait].into_iter().flatten().min();
            (after, None, trouble)
        };
        let settled = settle(&job, &pods, &tally, after, ends, now);
        if let Some((reason, message)) = settled.said {
            self.tell(&job.metadata, Weight::Normal, reason, message).await;
        }
        if settled.status != before {
            self.write(path, &mut object, &settled).await?;
            held(&self.known).failures.insert(uid, tally.backoff);
        }
        self.conclude(path, &job, &mut object, &pods, settled).await?;
        match (trouble, next) {
            (Some(error), _) => Err(error),
            (None, Some(next)) => Ok(Next::After(next)),
            (None, None) => Ok(Next::Rest),
        }
    }

    /// Removes what still runs of a job that ends. Only when all of it is gone may it end.
    async fn stop(
        &self,
        job: &Job,
        tally: &Tally<'_>,
        why: Condition,
    ) -> (After, Option<Condition>, Option<Error>) {
        let done = self.remove(job, &tally.active, true).await;
        let after = less(tally, done.all, done.ready, false);
        (after, Some(why).filter(|_| after.active == 0), done.error)
    }

    /// Gives a job that goes on the pods it needs; answers how long it has to wait for more.
    async fn manage(
        &self,
        job: &Job,
        object: &Value,
        tally: &Tally<'_>,
    ) -> (After, Option<Duration>, Option<Error>) {
        let as_is = less(tally, 0, 0, true);
        if job.metadata.is_deleting() {
            return (After { managed: false, ..as_is }, None, None);
        }
        match decide::work(job, tally, self.context.clock.now()) {
            Work::Nothing => (as_is, None, None),
            Work::Wait(left) => (as_is, Some(left), None),
            Work::Drop(pods) => {
                let done = self.remove(job, &pods, false).await;
                (less(tally, done.all, done.ready, true), None, done.error)
            }
            Work::Make(indexes) => {
                let done = self.make(job, object, &indexes).await;
                let active = as_is.active.saturating_add(number(done.all));
                (After { active, ..as_is }, None, done.error)
            }
        }
    }

    /// Lets counted pods go, counts them, and ends the job when nothing is left.
    async fn conclude(
        &self,
        path: &str,
        job: &Job,
        object: &mut Value,
        pods: &[Pod],
        mut settled: Settled<'_>,
    ) -> Result<(), Error> {
        let released = join_all(settled.let_go.iter().map(|pod| self.let_go(&pod.metadata))).await;
        let mut tracked: BTreeSet<&str> =
            pods.iter().filter(|pod| pod.is_tracked()).map(Pod::uid).collect();
        let mut trouble = None;
        for (pod, released) in settled.let_go.iter().zip(released) {
            match released {
                Ok(_) => {
                    tracked.remove(pod.uid());
                }
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        let before = settled.status.clone();
        count(&mut settled.status, &tracked);
        let end =
            settled.end.clone().filter(|end| trouble.is_none() && finish(&mut settled.status, end));
        if settled.status != before {
            self.write(path, object, &settled).await?;
        }
        if let Some(end) = end {
            self.tell_end(job, &settled, &end).await;
        }
        trouble.map_or(Ok(()), Err)
    }

    async fn tell_end(&self, job: &Job, settled: &Settled<'_>, end: &Condition) {
        let meta = &job.metadata;
        if end.r#type != "Complete" {
            self.tell(meta, Weight::Warning, &end.reason, &end.message).await;
            return;
        }
        if job.spec.completions.is_some_and(|wanted| settled.status.succeeded > wanted) {
            let words = "Too many succeeded pods running after completion count reached";
            self.tell(meta, Weight::Warning, "TooManySucceededPods", words).await;
        }
        self.tell(meta, Weight::Normal, "Completed", "Job completed").await;
    }

    /// Writes the status, unless the job has changed since it was read.
    async fn write(
        &self,
        path: &str,
        object: &mut Value,
        settled: &Settled<'_>,
    ) -> Result<(), Error> {
        object["status"] = json!(settled.status);
        let written = self.context.calls.replace(&format!("{path}/status"), object).await?;
        object["metadata"]["resourceVersion"] = json!(written.resource_version);
        Ok(())
    }
}

/// The numbers once some active pods have been told to go.
fn less(tally: &Tally<'_>, gone: usize, ready: usize, managed: bool) -> After {
    After {
        active: number(tally.active.len().saturating_sub(gone)),
        terminating: tally.terminating.saturating_add(number(gone)),
        ready: tally.ready.saturating_sub(number(ready)),
        managed,
    }
}
