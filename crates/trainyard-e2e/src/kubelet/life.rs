//! The life of a pod: its start, its end, its restarts in place.

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::Value;

use super::Kubelet;
use super::status::{self, Doing, End, Moment};
use crate::seen::{terminating, text};

/// What a kubelet says of an image that is not there.
const NOT_PULLED: &str = "failed to pull and unpack image: failed to resolve reference: not found";
/// What a kubelet says of a container that it does not start again yet.
const BACK_OFF: Doing<'_> =
    Doing::Waits("CrashLoopBackOff", "back-off 10s restarting failed container=tensorflow");

impl Kubelet {
    /// All containers of the pod are created and run, after its init containers have done their work; binds it
    /// first where needed.
    pub async fn start(&self, pod: &str) -> Result<()> {
        let found = self.bound(pod).await?;
        let mut moments = Self::creation(&found);
        let init = found["spec"]["initContainers"].as_array().map_or(0, Vec::len);
        for place in 0..init {
            moments.push(Moment::initializing(place, Doing::Runs));
            moments.push(Moment::initializing(place, Doing::Ended(End::by(0))));
        }
        moments.push(Moment { beside: Doing::Runs, ..Moment::running(Doing::Runs) });
        self.play(&found, &moments).await.map(drop)
    }

    /// What is published before anything of the pod runs, as far as it has not been.
    fn creation<'a>(pod: &Value) -> Vec<Moment<'a>> {
        let sandbox = if status::is_known(pod) { &[true][..] } else { &[false, true] };
        sandbox.iter().map(|has| Moment::pending(*has)).collect()
    }

    /// Starts several pods, each at its own pace.
    pub async fn start_all(&self, pods: &[&str]) -> Result<()> {
        try_join_all(pods.iter().map(|pod| self.start(pod))).await.map(drop)
    }

    /// The pod is on a node; its containers are being created, which takes its time.
    pub async fn creates(&self, pod: &str) -> Result<()> {
        let found = self.bound(pod).await?;
        self.play(&found, &Self::creation(&found)).await.map(drop)
    }

    /// The image of the pod cannot be pulled; its kubelet says so in these words and waits before the next try.
    pub async fn cannot_pull(&self, pod: &str, message: &str) -> Result<()> {
        let found = self.bound(pod).await?;
        let mut moments = Self::creation(&found);
        for (reason, message) in [("ErrImagePull", NOT_PULLED), ("ImagePullBackOff", message)] {
            let main = Doing::Waits(reason, message);
            moments.push(Moment { main, beside: main, ..Moment::pending(true) });
        }
        self.play(&found, &moments).await.map(drop)
    }

    /// The program ends with that code and the pod with it.
    pub async fn exit(&self, pod: &str, code: i64) -> Result<()> {
        self.end(pod, End::by(code)).await
    }

    /// The kernel kills the program for its memory.
    pub async fn oom(&self, pod: &str) -> Result<()> {
        self.end(pod, End { reason: "OOMKilled", ..End::by(137) }).await
    }

    /// The program ends as told and the pod with it: the terminated containers are published first, the final
    /// phase when the sandbox is gone. A pod that was deleted in between goes.
    pub async fn end(&self, pod: &str, end: End<'_>) -> Result<()> {
        let found = self.get(pod).await?;
        let policy = text(&found["spec"]["restartPolicy"]);
        let in_place = policy == "Always" || (policy == "OnFailure" && end.code != 0);
        ensure!(
            !in_place,
            "a kubelet restarts {pod} in place (its policy is {policy}): use restart_in_place"
        );
        if terminating(&found) {
            return self.finish(&found, end).await;
        }
        if self.play(&found, &[Moment::ending(end), Moment::over(end)]).await? {
            return Ok(());
        }
        self.finish(&found, end).await
    }

    /// The program ends with that code; other containers of the pod, which know nothing of it, run
    /// on.
    pub async fn main_exits(&self, pod: &str, code: i64) -> Result<()> {
        let found = self.get(pod).await?;
        self.play(&found, &[Moment::running(Doing::Ended(End::by(code)))]).await.map(drop)
    }

    /// The first init container fails and the pod never starts.
    pub async fn init_fails(&self, pod: &str, code: i64, message: &str) -> Result<()> {
        let found = self.bound(pod).await?;
        let policy = &found["spec"]["restartPolicy"];
        ensure!(policy == "Never", "a kubelet starts the init container of {pod} again");
        let end = Doing::Ended(End { message, ..End::by(code) });
        let mut moments = Self::creation(&found);
        moments.push(Moment::initializing(0, Doing::Runs));
        moments.push(Moment::initializing(0, end));
        moments.push(Moment { phase: Some("Failed"), ..Moment::default() });
        self.play(&found, &moments).await.map(drop)
    }

    /// The container ends and is restarted in place until that has happened `restarts` times: at once the first
    /// time, then after it has waited.
    pub async fn restart_in_place(&self, pod: &str, restarts: i64) -> Result<()> {
        let found = self.get(pod).await?;
        self.play(&found, &again(&found, restarts)).await.map(drop)
    }

    /// The container has ended once more after so many restarts in place, and its kubelet waits before the next
    /// start.
    pub async fn crash_loop(&self, pod: &str, restarts: i64) -> Result<()> {
        let found = self.get(pod).await?;
        let mut moments = again(&found, restarts);
        moments.extend([Doing::Ended(End::by(1)), BACK_OFF].map(Moment::running));
        self.play(&found, &moments).await.map(drop)
    }
}

/// What is published from now until the container runs and has been restarted so often.
fn again<'a>(pod: &Value, restarts: i64) -> Vec<Moment<'a>> {
    let (mut moments, mut runs) = (Vec::new(), status::runs(pod));
    for count in status::restarts(pod)..restarts {
        if runs {
            moments.push(Moment::running(Doing::Ended(End::by(1))));
            if count > 0 {
                moments.push(Moment::running(BACK_OFF));
            }
        }
        moments.push(Moment::running(Doing::Runs));
        runs = true;
    }
    moments
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_first_restart_is_at_once() {
        let pod = |count: i64, state: Value| {
            json!({"spec": {"containers": [{"name": "tensorflow"}]}, "status": {"containerStatuses": [
                {"name": "tensorflow", "restartCount": count, "state": state}]}})
        };
        let waits = |moment: &&Moment<'_>| matches!(moment.main, Doing::Waits(..));
        for (count, state, restarts, steps, waited) in [
            (0, json!({"running": {}}), 1, 2, 0),
            (0, json!({"running": {}}), 3, 8, 2),
            (1, json!({"running": {}}), 2, 3, 1),
            (1, json!({"waiting": {}}), 2, 1, 0),
            (2, json!({"running": {}}), 2, 0, 0),
        ] {
            let moments = again(&pod(count, state), restarts);
            let found = (moments.len(), moments.iter().filter(waits).count());
            assert_eq!(found, (steps, waited), "from {count} to {restarts}");
        }
    }
}
