//! A yard: the API server, its controllers, the operator, the scheduler and a node in this process,
//! each a client of the API like any other.
//!
//! Owns how they are put together, in which order they start and end. Must not know the terminal.

mod definitions;
pub(crate) mod folder;
pub(crate) mod kubeconfig;
mod operator_pod;
pub(crate) mod residents;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use trainyard_apiserver::{Clock, Server, Settings, USER, controllers};
use trainyard_core::Gang;
use trainyard_operator::{Operator, VolcanoJobs};

use crate::failure::Failure;
use crate::memory;
use folder::Folder;
use kubeconfig::Access;
use residents::{House, Lines};

/// How long components may take to end before they are left behind.
const CLOSING: Duration = Duration::from_secs(30);

/// How long nodes may take to be ready before the yard is announced without them.
const SETTLING: Duration = Duration::from_secs(20);
/// What the controllers keep pods from a node by that is not ready.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
const SETTLING_POLL: Duration = Duration::from_millis(5);

/// What a yard is told.
pub(crate) struct Plan {
    /// Its folder.
    pub(crate) folder: Folder,
    /// Whether objects are kept after the end.
    pub(crate) durable: bool,
    /// Where the API is served.
    pub(crate) listener: std::net::TcpListener,
    /// The node; none when it is left out.
    pub(crate) node: Option<trainyard_node::Options>,
    /// Neither operator nor scheduler are wanted: somebody else brings them.
    pub(crate) api_only: bool,
    /// Volcano Jobs are wanted, and not only the kinds by which pods are scheduled.
    pub(crate) volcano_jobs: bool,
    /// What the operator says.
    pub(crate) operator_lines: Lines,
}

/// A running yard.
pub(crate) struct Yard {
    server: Server,
    address: SocketAddr,
    parts: JoinSet<(&'static str, Result<(), String>)>,
    /// Told first: jobs and pods end while the API still answers.
    stop_workers: CancellationToken,
    stop_controllers: CancellationToken,
}

impl Yard {
    /// Starts all components; the API answers when this returns.
    pub(crate) async fn start(plan: Plan) -> Result<Self, Failure> {
        let address = plan
            .listener
            .local_addr()
            .map_err(|error| Failure::other("looking at the listener", &error))?;
        let pod = operator_pod::name();
        let house =
            House { pods: vec![(operator_pod::NAMESPACE.into(), pod, plan.operator_lines)] };
        let server = Server::open(Settings {
            folder: plan.durable.then(|| plan.folder.store()),
            clock: Clock::Wall,
            address: address.to_string(),
            residents: Some(Arc::new(house)),
            ..Settings::default()
        })
        .map_err(|error| Failure::other("opening the yard's store", &error))?;
        let mut yard = Self {
            server,
            address,
            parts: JoinSet::new(),
            stop_workers: CancellationToken::new(),
            stop_controllers: CancellationToken::new(),
        };
        yard.serve(plan.listener)?;
        yard.keep_small();
        yard.furnish(&plan.folder).await?;
        // A node's start is mostly waiting for the kernel: the definitions are read meanwhile.
        if let Some(node) = plan.node.filter(|_| !plan.api_only) {
            yard.add_node(node);
        }
        definitions::define(&yard.server, plan.volcano_jobs).await?;
        if !plan.api_only {
            operator_pod::show(&yard.server.client("trainyard")).await?;
            yard.employ(plan.volcano_jobs);
        }
        Ok(yard)
    }

    /// Gives memory back for as long as components run.
    fn keep_small(&self) {
        let stop = self.stop_controllers.clone();
        tokio::spawn(stop.run_until_cancelled_owned(memory::keep_small()));
    }

    fn serve(&mut self, listener: std::net::TcpListener) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::other("serving the API", &error);
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        let server = self.server.clone();
        self.parts.spawn(async move {
            ("API server", server.serve(listener).await.map_err(|error| error.to_string()))
        });
        Ok(())
    }

    /// What a fresh yard has: namespaces, classes, accounts.
    async fn furnish(&mut self, folder: &Folder) -> Result<(), Failure> {
        let client = self.server.client("system:kube-controller-manager");
        let authority = self.server.authority().certificate().to_owned();
        let mut settings = controllers::Settings::new(folder.claims(), authority);
        settings.remove_folder = trainyard_holder::sweep::sweep;
        controllers::bootstrap(client.clone(), settings.clone())
            .await
            .map_err(|error| Failure::other("making the yard's first objects", &error))?;
        let stop = self.stop_controllers.clone();
        self.parts.spawn(async move {
            controllers::run_all(client, settings, stop).await;
            ("controllers", Ok(()))
        });
        Ok(())
    }

    /// The operator and the scheduler.
    fn employ(&mut self, volcano_jobs: bool) {
        let mut options = trainyard_operator::Options::default();
        options.planner.gang = Gang::by_scheduler(Gang::TRAINYARD);
        options.volcano_jobs = if volcano_jobs { VolcanoJobs::Always } else { VolcanoJobs::Never };
        let account = "system:serviceaccount:kubeflow:trainyard-operator";
        let operator = Operator::new(self.server.client(account), options);
        let stop = self.stop_workers.clone();
        self.parts.spawn(async move {
            ("operator", operator.run(stop).await.map_err(|error| error.to_string()))
        });
        let client = self.server.client("system:kube-scheduler");
        let stop = self.stop_controllers.clone();
        self.parts.spawn(async move {
            let options = trainyard_operator::scheduler::Options::default();
            let ended = trainyard_operator::scheduler::run(client, options, stop).await;
            ("scheduler", ended.map_err(|error| error.to_string()))
        });
    }

    fn add_node(&mut self, mut options: trainyard_node::Options) {
        options.client_authority = Some(self.server.authority().certificate().into());
        options.client_names = vec![trainyard_apiserver::NODE_CLIENT.to_owned()];
        options.api_server = Some(self.address.to_string());
        let Some(first) = options.nodes.first() else { return };
        let mut accounts = trainyard_node::Accounts::from(self.server.node_client(first));
        for node in &options.nodes {
            accounts = accounts.with(node, self.server.node_client(node));
        }
        let stop = self.stop_workers.clone();
        self.parts.spawn(async move {
            let ended = trainyard_node::run(accounts, options, stop).await;
            ("node", ended.map_err(|error| error.to_string()))
        });
    }

    /// Waits until all nodes are ready, so that whoever is told of the yard finds it whole. A node
    /// that takes long is not waited for: pods wait for it instead.
    pub(crate) fn settle<'n>(&self, nodes: &'n [String]) -> impl Future<Output = ()> + use<'n> {
        self.until(nodes, is_ready)
    }

    /// Waits until it is known what all nodes have; pods can be made for them, and wait until they are
    /// ready.
    pub(crate) fn appear<'n>(&self, nodes: &'n [String]) -> impl Future<Output = ()> + use<'n> {
        self.until(nodes, |node| node.data["status"]["allocatable"].is_object())
    }

    fn until<'n>(
        &self,
        nodes: &'n [String],
        is_so: fn(&DynamicObject) -> bool,
    ) -> impl Future<Output = ()> + use<'n> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
        let api: Api<DynamicObject> = Api::all_with(self.client(), &kind);
        let settled = async move {
            for name in nodes {
                while !api.get_opt(name).await.ok().flatten().is_some_and(|node| is_so(&node)) {
                    tokio::time::sleep(SETTLING_POLL).await;
                }
            }
        };
        async move {
            if tokio::time::timeout(SETTLING, settled).await.is_err() {
                warn!("not all nodes are ready yet");
            }
        }
    }

    /// A client of the API in this process.
    pub(crate) fn client(&self) -> kube::Client {
        self.server.client("trainyard")
    }

    /// Where the API is.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Who gives users what they need to reach the yard.
    pub(crate) fn issuer(&self) -> Issuer {
        Issuer { server: self.server.clone(), url: self.url() }
    }

    /// Waits until a component ends that should not.
    pub(crate) async fn broken(&mut self) -> Failure {
        match self.parts.join_next().await {
            Some(Ok((part, Err(problem)))) => {
                Failure::usage(format!("the {part} ended: {problem}"))
            }
            Some(Ok((part, Ok(())))) => Failure::usage(format!("the {part} ended by itself")),
            Some(Err(error)) => Failure::other("a part of the yard broke", &error),
            None => Failure::usage("nothing runs in this yard"),
        }
    }

    /// Ends all components, the API last.
    pub(crate) async fn stop(mut self) {
        info!("stopping: pods are being ended");
        self.stop_workers.cancel();
        let ended = async {
            // The API server and the controllers are the ones left.
            while self.parts.len() > STAYING {
                if self.parts.join_next().await.is_none() {
                    break;
                }
            }
        };
        if tokio::time::timeout(CLOSING, ended).await.is_err() {
            warn!("some pods did not end in time; their processes end with this one");
        }
        self.stop_controllers.cancel();
        let _ = tokio::time::timeout(CLOSING, async {
            self.server.close().await;
            while self.parts.join_next().await.is_some() {}
        })
        .await;
    }
}

/// Who gives users what they need to reach a yard.
pub(crate) struct Issuer {
    server: Server,
    url: String,
}

impl Issuer {
    /// A certificate and a token for the user, and when they end.
    pub(crate) fn access(&self, folder: &Folder) -> Result<Access, Failure> {
        let authority = self.server.authority();
        let user = authority
            .client(USER, &["system:masters"])
            .map_err(|error| Failure::other("making the user's certificate", &error))?;
        Ok(Access {
            server: self.url.clone(),
            authority: authority.certificate().to_owned(),
            certificate: user.certificate,
            key: user.key,
            token: authority.user_token(user.life),
            life: user.life,
            folder: folder.path().to_owned(),
        })
    }
}

/// Whether it says that it is ready, and the controllers have taken off what kept pods from it.
fn is_ready(node: &DynamicObject) -> bool {
    let mut conditions = node.data["status"]["conditions"].as_array().into_iter().flatten();
    let mut taints = node.data["spec"]["taints"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        && !taints.any(|taint| taint["key"] == NOT_READY)
}

/// Components that end after the others: the API server, the controllers, the scheduler.
const STAYING: usize = 3;
