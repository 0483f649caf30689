//! Replicas whose nodes cannot be reached, as their nodes alone tell it: the node controller writes nothing into
//! pods that were not ready.

use anyhow::{Context as _, Result};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use super::refused;
use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::kubelet::presence::Pulse;
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::seen::{Seen, text};
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["lost_nodes":
        a_replica_that_was_not_ready,
        a_replica_that_never_started,
        a_node_that_is_deleted,
    ]
}

pub(super) fn own_operator() -> Vec<Case<World>> {
    cases!["lost_nodes":
        told_by_an_operator_that_was_away,
        without_a_right_over_nodes,
    ]
}

const NODES: &str = "/api/v1/nodes";
const RUNNING: [&str; 2] = ["Created=True", "Running=True"];

/// A node of one scenario: an object whose kubelet is played, and nothing more.
pub(super) struct Machine<'w> {
    world: &'w World,
    name: String,
    pulse: Pulse,
}

impl<'w> Machine<'w> {
    /// A node that is well.
    pub(super) async fn join(world: &'w World) -> Result<Self> {
        let name = format!("machine.{}", world.namespace);
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        world.rest.send(Method::POST, NODES, Some(&node)).await.context("making a node")?;
        let machine = Self { world, name, pulse: Pulse::start() };
        machine.find().await?;
        Ok(machine)
    }

    /// Puts a pod on it.
    pub(super) async fn takes(&self, pod: &str) -> Result<()> {
        self.world.kubelet.bind(pod, &self.name).await
    }

    /// It falls silent, and the node controller has noticed; since when it is lost.
    pub(super) async fn lose(&self) -> Result<String> {
        self.tell(self.pulse.unknown()).await
    }

    /// Its kubelet is heard again.
    pub(super) async fn find(&self) -> Result<()> {
        self.tell(self.pulse.ready()).await.map(drop)
    }

    async fn tell(&self, ready: Value) -> Result<String> {
        let since = text(&ready["lastTransitionTime"]).to_owned();
        let status = json!({"status": {"conditions": [ready]}});
        let path = format!("{NODES}/{}/status", self.name);
        let told = self.world.rest.send(Method::PATCH, &path, Some(&status)).await;
        told.context("writing the status of a node")?;
        Ok(since)
    }

    async fn leave(&self) -> Result<()> {
        let path = format!("{NODES}/{}", self.name);
        let gone = self.world.rest.send(Method::DELETE, &path, None).await;
        gone.map(drop).context("deleting a node")
    }
}

/// The containers of a pod run on and are not ready.
pub(super) async fn unready(world: &World, pod: &str) -> Result<()> {
    let mut conditions = world.seen().pod(pod)["status"]["conditions"].clone();
    for one in conditions.as_array_mut().into_iter().flatten() {
        if matches!(text(&one["type"]), "Ready" | "ContainersReady") {
            one["status"] = "False".into();
            one["reason"] = "ContainersNotReady".into();
        }
    }
    let status = json!({"status": {"conditions": conditions}});
    let path = format!("{pod}/status");
    let written = world.kubelet.rest().merge(Resource::Pods, &path, &status).await;
    world.view().reach(Resource::Pods, &written.context("writing the status of a pod")?).await
}

/// A job of two workers that runs; the second is on the machine and not ready.
async fn runs_on(world: &World, machine: &Machine<'_>) -> Result<()> {
    waits_on(world, machine).await?;
    world.kubelet.start("a-worker-1").await?;
    world.wait_conditions("a", &RUNNING).await?;
    unready(world, "a-worker-1").await?;
    world.settles().await
}

/// A job of two workers of which the first runs and the second waits on the machine.
async fn waits_on(world: &World, machine: &Machine<'_>) -> Result<()> {
    world.submit(tfjob("a").workers(2).restart("OnFailure")).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    machine.takes("a-worker-1").await?;
    world.kubelet.start("a-worker-0").await?;
    world.settles().await
}

fn away(seen: &Seen) -> [&str; 2] {
    let first = &seen.status("a")["unavailableReplicas"][0];
    ["replica", "reason"].map(|key| text(&first[key]))
}

async fn is_away(world: &World) -> Result<Value> {
    let named = ["worker-1", "NodeUnreachable"];
    let seen = world
        .wait_until("the replica is away", |seen| {
            seen.conditions("a") == ["Created=True", "Restarting=True"] && away(seen) == named
        })
        .await?;
    let message = text(&seen.condition("a", "Restarting")["message"]).to_owned();
    contains("the message", &message, &["the node of pod a-worker-1 cannot be reached"])?;
    Ok(seen.status("a")["unavailableReplicas"][0]["since"].clone())
}

async fn a_replica_that_was_not_ready(world: World) -> Result<()> {
    let machine = Machine::join(&world).await?;
    runs_on(&world, &machine).await?;
    equal("what a probe says is no loss", world.seen().conditions("a"), RUNNING)?;
    let since = machine.lose().await?;
    equal("since", is_away(&world).await?, since)?;
    equal("who runs", world.seen().counts("a", "Worker"), [1, 0, 0])?;
    machine.find().await?;
    let seen = world.wait_conditions("a", &RUNNING).await?;
    equal("not counted", seen.restarts("a"), 0)?;
    equal("nobody is away", &seen.status("a")["unavailableReplicas"], &Value::Null)
}

async fn a_replica_that_never_started(world: World) -> Result<()> {
    let machine = Machine::join(&world).await?;
    waits_on(&world, &machine).await?;
    equal("it waits", world.seen().conditions("a"), ["Created=True"])?;
    let since = machine.lose().await?;
    equal("since", is_away(&world).await?, since)?;
    machine.find().await?;
    world.wait_conditions("a", &["Created=True"]).await?;
    world.kubelet.start("a-worker-1").await?;
    world.wait_conditions("a", &RUNNING).await.map(drop)
}

/// As a cloud does it with a machine that does not exist any more.
async fn a_node_that_is_deleted(world: World) -> Result<()> {
    let machine = Machine::join(&world).await?;
    runs_on(&world, &machine).await?;
    let uid = world.seen().uid("a-worker-1");
    machine.lose().await?;
    let since = is_away(&world).await?;
    machine.leave().await?;
    world.never_within(1_500, "it is taken for found", |seen| seen.is("a", "Running")).await?;
    equal("since", is_away(&world).await?, since)?;
    world.kubelet.delete("a-worker-1", Some(0)).await?;
    world.wait_successor("a-worker-1", &uid).await?;
    world.kubelet.start("a-worker-1").await?;
    world.wait_conditions("a", &RUNNING).await.map(drop)
}

async fn told_by_an_operator_that_was_away(world: World) -> Result<()> {
    let operator = world.start_operator(|_| ()).await?;
    let machine = Machine::join(&world).await?;
    runs_on(&world, &machine).await?;
    operator.crash().await;
    let since = machine.lose().await?;
    let operator = world.start_operator(|_| ()).await?;
    equal("since", is_away(&world).await?, since)?;
    operator.crash().await;
    machine.find().await?;
    let _operator = world.start_operator(|_| ()).await?;
    world.wait_conditions("a", &RUNNING).await.map(drop)
}

/// A client that may not read nodes.
fn without_nodes(inner: Client) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            if request.uri().path() == NODES {
                return refused::refuse((403, "nodes is forbidden: cannot list resource"));
            }
            let answer: Result<Response<Body>, BoxError> = Ok(inner.send(request).await?);
            answer
        }
    });
    Client::new(service, namespace)
}

async fn without_a_right_over_nodes(world: World) -> Result<()> {
    let client = without_nodes(world.operator_client());
    let _operator = world.start_operator_with(client, |_| ()).await?;
    let machine = Machine::join(&world).await?;
    runs_on(&world, &machine).await?;
    machine.lose().await?;
    world.never_within(1_500, "nobody can know", |seen| !seen.is("a", "Running")).await?;
    // What the pods show is seen all the same.
    world.kubelet.lose_contact("a-worker-0").await?;
    world
        .wait_until("the other is away", |seen| away(seen) == ["worker-0", "NodeUnreachable"])
        .await?;
    Ok(())
}
