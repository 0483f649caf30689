//! The Node at the API server: made, taken over from a dead agent, kept true, set not ready at the end.
//! Never takes what another kubelet or a running agent keeps.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::api::{GetParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use super::error::NodeError;
use super::facts::{NodeFacts, Readiness};
use super::identity::{AgentIdentity, Verdict};
use super::lease;
use super::object::{
    AGENT_ANNOTATION, RUNTIME, metadata_patch, node_json, status_differs, status_patch,
};

const WRITER: &str = "trainyard-node";
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(7);
/// An API server that takes longer than this to answer is taken for silent.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the last write may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Makes the Node, or makes the one that is there say `facts`.
pub(crate) async fn register(client: &Client, facts: &NodeFacts) -> Result<Node, NodeError> {
    sync(client, facts, Freshness::Latest, true).await
}

/// Registers, and tries again for so long while that may help; none when it was told to stop meanwhile.
pub(crate) async fn register_within(
    client: &Client,
    facts: &NodeFacts,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<Option<Node>, NodeError> {
    let mut attempts = Attempts::for_so_long(patience);
    loop {
        let error = tokio::select! {
            biased;
            () = stop.cancelled() => {
                // What was under way may have been done.
                farewell(client, facts).await;
                return Ok(None);
            }
            done = register(client, facts) => match done {
                Ok(node) => return Ok(Some(node)),
                Err(error) => error,
            },
        };
        tracing::warn!(node = facts.name, %error, "cannot register yet");
        if attempts.stopped_before_next(error, stop).await? {
            return Ok(None);
        }
    }
}

/// Waits until the API server answers, and asks for its version; none when it was told to stop meanwhile.
pub(crate) async fn server_version(
    client: &Client,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<Option<Info>, NodeError> {
    let mut attempts = Attempts::for_so_long(patience);
    loop {
        let asked = call("asking the API server".to_owned(), client.apiserver_version());
        let error = match stop.run_until_cancelled(asked).await {
            None => return Ok(None),
            Some(Ok(version)) => return Ok(Some(version)),
            // It is there; whether it lets us in is seen when more is asked.
            Some(Err(error)) if !error.passes() => return Ok(Some(Info::default())),
            Some(Err(error)) => error,
        };
        tracing::warn!(%error, "the API server does not answer yet");
        if attempts.stopped_before_next(error, stop).await? {
            return Ok(None);
        }
    }
}

/// Attempts at something that may take time to come right, with longer and longer pauses.
struct Attempts {
    until: tokio::time::Instant,
    pause: Duration,
}

impl Attempts {
    fn for_so_long(patience: Duration) -> Self {
        Self { until: tokio::time::Instant::now() + patience, pause: FIRST_PAUSE }
    }

    /// Waits before the next one; an error where there is to be none. True: it was told to stop.
    async fn stopped_before_next(
        &mut self,
        error: NodeError,
        stop: &CancellationToken,
    ) -> Result<bool, NodeError> {
        if !error.passes() || tokio::time::Instant::now() + self.pause >= self.until {
            return Err(error);
        }
        let waited = stop.run_until_cancelled(tokio::time::sleep(self.pause)).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(waited.is_none())
    }
}

/// How new the Node must be that is compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Freshness {
    Latest,
    /// What the API server has at hand.
    Cached,
}

/// Makes the Node say `facts`: creates it where it is missing, writes what differs, and the whole
/// status where `all` is set.
pub(super) async fn sync(
    client: &Client,
    facts: &NodeFacts,
    freshness: Freshness,
    all: bool,
) -> Result<Node, NodeError> {
    let (there, fresh) = match find(client, &facts.name, freshness).await? {
        Some(node) => (node, false),
        None => (create(client, facts).await?, true),
    };
    write(client, facts, there, all && !fresh).await
}

/// Sets the Node not ready, in a few seconds or not at all; one that has been deleted stays so.
pub(super) async fn farewell(client: &Client, facts: &NodeFacts) {
    let facts = NodeFacts { readiness: Readiness::stopped(), ..facts.clone() };
    match tokio::time::timeout(FAREWELL, resign(client, &facts)).await {
        Ok(Ok(())) => tracing::debug!(node = facts.name, "the node is set not ready"),
        Ok(Err(error)) => {
            tracing::warn!(node = facts.name, %error, "cannot set the node not ready");
        }
        Err(_) => tracing::warn!(node = facts.name, "no time to set the node not ready"),
    }
}

async fn resign(client: &Client, facts: &NodeFacts) -> Result<(), NodeError> {
    if let Some(there) = find(client, &facts.name, Freshness::Latest).await? {
        write(client, facts, there, true).await?;
    }
    Ok(())
}

async fn find(
    client: &Client,
    name: &str,
    freshness: Freshness,
) -> Result<Option<Node>, NodeError> {
    let api: Api<Node> = Api::all(client.clone());
    let doing = || format!("reading node {name:?}");
    if matches!(freshness, Freshness::Cached) {
        match call(doing(), api.get_with(name, &GetParams::any())).await {
            Ok(node) => return Ok(Some(node)),
            // What was made a moment ago may not be at hand yet.
            Err(error) if error.status_code() == Some(404) => {}
            Err(error) => return Err(error),
        }
    }
    call(doing(), api.get_opt(name)).await
}

async fn write(
    client: &Client,
    facts: &NodeFacts,
    there: Node,
    all: bool,
) -> Result<Node, NodeError> {
    let api: Api<Node> = Api::all(client.clone());
    let name = &facts.name;
    check_keeper(client, facts, &there).await?;
    let params = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
    if let Some(patch) = metadata_patch(facts, &there) {
        let patch = Patch::Merge(&patch);
        call(format!("labelling node {name:?}"), api.patch(name, &params, &patch)).await?;
    }
    if all || status_differs(facts, &there) {
        let patch = status_patch(facts, &there, Timestamp::now());
        let patch = Patch::Strategic(&patch);
        let doing = format!("writing the status of node {name:?}");
        return call(doing, api.patch_status(name, &params, &patch)).await;
    }
    Ok(there)
}

async fn create(client: &Client, facts: &NodeFacts) -> Result<Node, NodeError> {
    let doing = format!("creating node {:?}", facts.name);
    let body = serde_json::to_vec(&node_json(facts, Timestamp::now()))
        .map_err(|error| NodeError::api(doing.clone())(kube::Error::SerdeError(error)))?;
    let params = PostParams { field_manager: Some(WRITER.to_owned()), ..PostParams::default() };
    let request = kube::core::Request::new("/api/v1/nodes")
        .create(&params, body)
        .map_err(|error| NodeError::api(doing.clone())(kube::Error::BuildRequest(error)))?;
    call(doing, client.request(request)).await
}

/// Refuses a Node that someone else keeps.
async fn check_keeper(client: &Client, facts: &NodeFacts, there: &Node) -> Result<(), NodeError> {
    let Some(other) = keeper(facts, there, Path::new("/"))? else { return Ok(()) };
    let lease = lease::read(client, &facts.name).await?;
    let Some(left) = lease.as_ref().and_then(|lease| seconds_left(lease, Timestamp::now())) else {
        return Ok(());
    };
    let words = other.words(&facts.agent);
    Err(NodeError::Held {
        name: facts.name.clone(),
        holder: format!("{words}, whose lease ends in {left} s"),
        lapses: true,
    })
}

/// An agent that may keep this Node and of which only its lease can tell; an error where someone
/// certainly does.
fn keeper(
    facts: &NodeFacts,
    there: &Node,
    root: &Path,
) -> Result<Option<AgentIdentity>, NodeError> {
    let status = there.status.clone().unwrap_or_default();
    let written = there.metadata.annotations.as_ref().and_then(|all| all.get(AGENT_ANNOTATION));
    let Some(other) = written.and_then(|text| AgentIdentity::parse(text)) else {
        let info = status.node_info.unwrap_or_default();
        // A Node made by hand, waiting for its kubelet, says nothing of one.
        let free =
            info.kubelet_version.is_empty() || info.container_runtime_version.starts_with(RUNTIME);
        return if free {
            Ok(None)
        } else {
            Err(NodeError::Foreign {
                name: facts.name.clone(),
                runtime: info.container_runtime_version,
                kubelet: info.kubelet_version,
            })
        };
    };
    if other == facts.agent {
        return Ok(None);
    }
    let ready =
        status.conditions.iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    match facts.agent.judge(&other, root) {
        Verdict::Runs if ready => Err(NodeError::Held {
            name: facts.name.clone(),
            holder: other.words(&facts.agent),
            lapses: false,
        }),
        Verdict::Unknown if ready => Ok(Some(other)),
        Verdict::Runs | Verdict::Unknown | Verdict::Ended => Ok(None),
    }
}

/// Seconds until a lease ends; none where it has.
fn seconds_left(lease: &Lease, now: Timestamp) -> Option<i64> {
    let spec = lease.spec.as_ref()?;
    let renewed = spec.renew_time.as_ref()?.0.as_second();
    let ends = renewed.checked_add(i64::from(spec.lease_duration_seconds?))?;
    Some(ends.saturating_sub(now.as_second())).filter(|left| *left > 0)
}

/// Awaits an API call, for a bounded time.
pub(super) async fn call<T>(
    doing: String,
    answer: impl Future<Output = kube::Result<T>>,
) -> Result<T, NodeError> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(NodeError::api(doing)),
        Err(_) => Err(NodeError::Silence { doing, seconds: PATIENCE.as_secs() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::object::node_object;
    use crate::node::object::tests::facts;
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    fn node_of(agent: &str) -> Node {
        let mut node = node_object(&facts("n1"), Timestamp::now());
        let annotations = node.metadata.annotations.as_mut().unwrap();
        annotations.insert(AGENT_ANNOTATION.to_owned(), agent.to_owned());
        node
    }

    #[test]
    fn our_own_node_and_that_of_a_dead_agent_are_ours() {
        let facts = facts("n1");
        let own = node_of(&facts.agent.to_string());
        assert_eq!(keeper(&facts, &own, Path::new("/")).unwrap(), None);
        // The same machine and boot, another process that is no more.
        let text = facts.agent.to_string();
        let (place, _began) = text.rsplit_once('/').unwrap();
        let dead = node_of(&format!("{place}/1"));
        if !text.starts_with('/') {
            assert_eq!(keeper(&facts, &dead, Path::new("/")).unwrap(), None);
        }
    }

    #[test]
    fn a_running_agent_of_this_machine_keeps_its_node() {
        let facts = facts("n1");
        let text = facts.agent.to_string();
        if text.starts_with('/') {
            return;
        }
        // The parent of this process runs, whatever it is.
        let parent = std::os::unix::process::parent_id();
        let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap();
        let began = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
        let place: Vec<_> = text.split('/').take(3).collect();
        let node = node_of(&format!("{}/{parent}/{began}", place.join("/")));
        let error = keeper(&facts, &node, Path::new("/")).unwrap_err();
        assert_eq!(error.kind(), "HeldNode");
        assert!(
            error.to_string().contains(&format!("process {parent} on this machine")),
            "{error}"
        );
        assert!(!error.passes());
        // After a clean end the Node says so, even if the process lingers.
        let mut stopped = node;
        let conditions = stopped.status.as_mut().unwrap().conditions.as_mut().unwrap();
        conditions.last_mut().unwrap().status = "False".to_owned();
        assert_eq!(keeper(&facts, &stopped, Path::new("/")).unwrap(), None);
    }

    #[test]
    fn elsewhere_only_the_lease_can_tell() {
        let facts = facts("n1");
        let node = node_of("other/boot/1/2/3");
        let other = keeper(&facts, &node, Path::new("/")).unwrap().unwrap();
        assert_eq!(other.words(&facts.agent), "process 2 on machine other");
    }

    #[test]
    fn a_foreign_node_is_refused_and_one_without_a_kubelet_taken() {
        let facts = facts("n1");
        let mut node = node_object(&facts, Timestamp::now());
        node.metadata.annotations = None;
        assert_eq!(keeper(&facts, &node, Path::new("/")).unwrap(), None);
        let info = node.status.as_mut().unwrap().node_info.as_mut().unwrap();
        info.container_runtime_version = "containerd://2.1.0".to_owned();
        info.kubelet_version = "v1.35.1".to_owned();
        let error = keeper(&facts, &node, Path::new("/")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "node \"n1\" is already registered by another kubelet (containerd://2.1.0, v1.35.1); \
             choose another name, or remove it with `kubectl delete node n1`"
        );
        node.status = None;
        assert_eq!(keeper(&facts, &node, Path::new("/")).unwrap(), None);
    }

    #[test]
    fn leases_end() {
        let lease = |renewed: Option<i64>| Lease {
            spec: Some(LeaseSpec {
                renew_time: renewed.map(|at| MicroTime(Timestamp::from_second(at).unwrap())),
                lease_duration_seconds: Some(40),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        let now = Timestamp::from_second(100).unwrap();
        assert_eq!(seconds_left(&lease(Some(97)), now), Some(37));
        assert_eq!(seconds_left(&lease(Some(60)), now), None);
        assert_eq!(seconds_left(&lease(None), now), None);
        assert_eq!(seconds_left(&Lease::default(), now), None);
    }
}
