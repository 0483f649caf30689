//! Pods that the API server refuses to create: said in a condition in its words, tried again, healed.
//!
//! The refusals come from a layer under the operator's client, with the answers of a real server: not
//! every server has quotas and webhooks.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower::BoxError;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::{Seen, text};
use crate::world::World;

pub(super) fn own_operator() -> Vec<Case<World>> {
    cases!["refused":
        by_a_quota_until_it_is_raised,
        by_a_webhook_whatever_its_code,
        half_a_job_by_a_quota,
        a_successor_by_pod_security,
        told_by_the_operator_that_comes_after,
        until_the_replicas_are_not_asked_for_any_more,
        until_the_job_is_suspended,
    ]
}

/// A refusal of the API server: its code and words.
pub(super) type Answer = (u16, &'static str);

pub(super) const QUOTA: Answer = (
    403,
    "pods \"a-worker\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, \
     limited: pods=1",
);
const WEBHOOK: Answer =
    (400, "admission webhook \"images.example.com\" denied the request: use our registry");
const SECURITY: Answer = (
    403,
    "pods \"a-worker-1\" is forbidden: violates PodSecurity \"restricted:latest\": \
     allowPrivilegeEscalation != false",
);

/// Refusals of new pods, while there are to be any.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<Option<(usize, Answer)>>>);

impl Refusals {
    /// So many pods more may be created, then this is the answer.
    pub(super) fn begin_after(&self, pods: usize, answer: Answer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((pods, answer));
    }

    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn refuses(&self, request: &Request<Body>) -> Option<Answer> {
        if request.method() != Method::POST || !request.uri().path().ends_with("/pods") {
            return None;
        }
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match refusals.as_mut()? {
            (0, answer) => Some(*answer),
            (left, _) => {
                *left -= 1;
                None
            }
        }
    }

    /// A client that meets with these refusals.
    pub(super) fn client(&self, inner: Client) -> Client {
        let (refusals, namespace) = (self.clone(), inner.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, refusal) = (inner.clone(), refusals.refuses(&request));
            async move {
                match refusal {
                    Some(answer) => refuse(answer),
                    None => Ok::<_, BoxError>(inner.send(request).await?),
                }
            }
        });
        Client::new(service, namespace)
    }
}

pub(super) fn refuse((code, message): Answer) -> Result<Response<Body>, BoxError> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
        "message": message, "code": code,
    });
    let body = Body::from(status.to_string().into_bytes());
    Ok(Response::builder().status(code).header("content-type", "application/json").body(body)?)
}

fn words(seen: &Seen) -> String {
    let condition = seen.condition("a", "ReplicaFailure");
    ["status", "reason", "message"].map(|key| text(&condition[key])).join(" ")
}

fn told((_, message): Answer) -> String {
    format!("True FailedCreate {message}")
}

async fn is_told(world: &World, answer: Answer) -> Result<()> {
    let what = "the condition has the server's words";
    world.wait_until(what, |seen| words(seen) == told(answer)).await?;
    world.never_within(1_500, "it comes and goes", |seen| words(seen) != told(answer)).await
}

async fn by_a_quota_until_it_is_raised(world: World) -> Result<()> {
    let (_auto, refusals) = (world.kubelet.auto(), Refusals::default());
    refusals.begin_after(0, QUOTA);
    let _operator =
        world.start_operator_with(refusals.client(world.operator_client()), |_| ()).await?;
    world.submit(tfjob("a").workers(2)).await?;
    world.wait_conditions("a", &["Created=True", "ReplicaFailure=True"]).await?;
    is_told(&world, QUOTA).await?;
    refusals.end();
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn by_a_webhook_whatever_its_code(world: World) -> Result<()> {
    let (_auto, refusals) = (world.kubelet.auto(), Refusals::default());
    refusals.begin_after(0, WEBHOOK);
    let _operator =
        world.start_operator_with(refusals.client(world.operator_client()), |_| ()).await?;
    world.submit(tfjob("a").workers(1)).await?;
    is_told(&world, WEBHOOK).await?;
    equal("it is not the job's last word", world.seen().is("a", "Failed"), false)?;
    refusals.end();
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn half_a_job_by_a_quota(world: World) -> Result<()> {
    let (_auto, refusals) = (world.kubelet.auto(), Refusals::default());
    refusals.begin_after(1, QUOTA);
    let _operator =
        world.start_operator_with(refusals.client(world.operator_client()), |_| ()).await?;
    world.submit(tfjob("a").workers(3)).await?;
    is_told(&world, QUOTA).await?;
    equal("one pod was let in", world.seen().pods().len(), 1)?;
    refusals.end();
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn a_successor_by_pod_security(world: World) -> Result<()> {
    let (_auto, refusals) = (world.kubelet.auto(), Refusals::default());
    let _operator =
        world.start_operator_with(refusals.client(world.operator_client()), |_| ()).await?;
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    refusals.begin_after(0, SECURITY);
    world.kubelet.exit("a-worker-1", 137).await?;
    let both = ["Created=True", "Restarting=True", "ReplicaFailure=True"];
    world.wait_conditions("a", &both).await?;
    is_told(&world, SECURITY).await?;
    refusals.end();
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn told_by_the_operator_that_comes_after(world: World) -> Result<()> {
    let (_auto, refusals) = (world.kubelet.auto(), Refusals::default());
    refusals.begin_after(0, QUOTA);
    let client = refusals.client(world.operator_client());
    let first = world.start_operator_with(client.clone(), |_| ()).await?;
    world.submit(tfjob("a").workers(1)).await?;
    is_told(&world, QUOTA).await?;
    first.crash().await;
    let _second = world.start_operator_with(client, |_| ()).await?;
    is_told(&world, QUOTA).await?;
    refusals.end();
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn until_the_replicas_are_not_asked_for_any_more(world: World) -> Result<()> {
    let (_auto, refusals) = (world.kubelet.auto(), Refusals::default());
    let _operator =
        world.start_operator_with(refusals.client(world.operator_client()), |_| ()).await?;
    let running = ["Created=True", "Running=True"];
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &running).await?;
    refusals.begin_after(0, QUOTA);
    world.set_replicas("a", "Worker", 3).await?;
    let both = ["Created=True", "Running=True", "ReplicaFailure=True"];
    world.wait_conditions("a", &both).await?;
    world.set_replicas("a", "Worker", 1).await?;
    world.wait_conditions("a", &running).await?;
    world.wait_services(&["a-worker-0"]).await?;
    world.settles().await?;
    world.stays_silent().await?;
    refusals.end();
    world.set_replicas("a", "Worker", 2).await?;
    let what = "the refusal of before is told again";
    world.never_within(1_500, what, |seen| seen.conditions("a") != running).await?;
    equal("all are there", world.seen().pods(), ["a-worker-0", "a-worker-1"])
}

async fn until_the_job_is_suspended(world: World) -> Result<()> {
    let (_auto, refusals) = (world.kubelet.auto(), Refusals::default());
    refusals.begin_after(1, QUOTA);
    let _operator =
        world.start_operator_with(refusals.client(world.operator_client()), |_| ()).await?;
    world.submit(tfjob("a").workers(2)).await?;
    is_told(&world, QUOTA).await?;
    world.patch_spec("a", json!({"runPolicy": {"suspend": true}})).await?;
    world.wait_conditions("a", &["Created=True", "Suspended=True"]).await?;
    world.wait_pods(&[]).await?;
    refusals.end();
    world.patch_spec("a", json!({"runPolicy": {"suspend": false}})).await?;
    let resumed = ["Created=True", "Suspended=False", "Running=True"];
    world.wait_conditions("a", &resumed).await?;
    world.settles().await?;
    world.stays_silent().await
}
