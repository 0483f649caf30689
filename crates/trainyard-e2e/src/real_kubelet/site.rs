//! The cluster that all stories are played on, with Trainyard's image on its nodes, and what can be done to it.
//!
//! Must not know what stories do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::{OnceCell, RwLock};
use trainyard_testbed::cluster::{Cluster, Options, image};

use super::company::Company;
use super::leftovers::{Surroundings, leftovers};
use super::page;
use crate::harness::product;
use crate::kubectl::{Kubectl, Outcome};
use crate::rest::Rest;

/// How long a run of kubectl may take; its own time-outs are shorter.
pub(super) const PATIENCE: Duration = Duration::from_mins(3);
/// The name that the documented commands give Trainyard's image here.
pub(super) const IMAGE: &str = "registry.example/trainyard:0.1.0";
/// The cluster's name.
const NAME: &str = "kubelet";
/// How long an operator that is braced waits for a lost node.
const LOST_POD_TIMEOUT: &str = "--lost-pod-timeout=5s";
/// A lease that is given up a third as late as usual.
const QUICK_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];
/// How long kubelets wait at most before they start a program once more: by default it is 10 s, 20 s, 40 s …
const BACK_OFF: &str = "4s";
/// The taint by which people say that a lost node does not run.
pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const STOPPED: &str = "the cluster has been stopped";
/// The nodes.
pub(super) const NODES: [&str; 2] = ["node0", "node1"];

/// A cluster of two nodes.
pub(super) struct Site {
    cluster: RwLock<Option<Cluster>>,
    /// kubectl as the cluster's administrator.
    pub(super) kubectl: Kubectl,
    /// Trainyard's program.
    pub(super) binary: PathBuf,
    /// A folder that all nodes see.
    folder: PathBuf,
    /// The machine before there was a cluster.
    before: Surroundings,
    client: OnceCell<Client>,
    tensorflow: OnceCell<Result<(), String>>,
    /// Stories that lose a node together.
    pub(super) outage: Company,
    /// How many namespaces have been made for stories.
    pub(super) opened: AtomicUsize,
}

impl Site {
    /// Starts the cluster and brings the images there that every story needs. That of TensorFlow, which takes long,
    /// is begun with if it will be wanted.
    pub(super) async fn start(trains: bool) -> Result<Arc<Self>> {
        let binary = product().await?;
        let before = Surroundings::now()?;
        let options = Options {
            name: NAME.to_owned(),
            nodes: NODES.len(),
            cpus: Some(2),
            quick_node_loss: true,
            kubelet: json!({"crashLoopBackOff": {"maxContainerRestartPeriod": BACK_OFF}}),
            ..Options::default()
        };
        let (cluster, busybox, program) = tokio::try_join!(
            Cluster::start(options),
            image::busybox(),
            image::of_program(&binary, IMAGE)
        )?;
        tokio::try_join!(cluster.import(&busybox), cluster.import(&program))?;
        let site = Arc::new(Self {
            kubectl: cluster.kubectl().with_patience(PATIENCE),
            // It goes with the cluster, also with one whose program was killed.
            folder: cluster.folder().join("stories"),
            cluster: RwLock::new(Some(cluster)),
            binary,
            before,
            client: OnceCell::new(),
            tensorflow: OnceCell::new(),
            outage: Company::default(),
            opened: AtomicUsize::new(0),
        });
        if trains {
            let site = Arc::clone(&site);
            // Whoever needs it is told how it went.
            tokio::spawn(async move { site.with_tensorflow().await.ok() });
        }
        Ok(site)
    }

    /// Waits until TensorFlow's image is on every node.
    pub(super) async fn with_tensorflow(&self) -> Result<()> {
        let done = self.tensorflow.get_or_init(|| self.import_tensorflow()).await;
        done.clone().map_err(|error| anyhow!("the image of TensorFlow: {error}"))
    }

    async fn import_tensorflow(&self) -> Result<(), String> {
        let imported = match image::tensorflow().await {
            Ok(archive) => self.import(&archive).await,
            Err(error) => Err(error),
        };
        imported.map_err(|error| format!("{error:#}"))
    }

    /// Brings an image to every node.
    pub(super) async fn import(&self, archive: &Path) -> Result<()> {
        let cluster = self.cluster.read().await;
        cluster.as_ref().context(STOPPED)?.import(archive).await
    }

    /// A folder below the site's own, seen by every node.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The objects of a namespace, as the cluster's administrator sees them.
    pub(super) async fn rest(&self, namespace: &str) -> Result<Rest> {
        let connect = async || {
            let file = Kubeconfig::read_from(self.kubectl.kubeconfig())?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(file, &options).await?;
            anyhow::Ok(Client::try_from(config)?)
        };
        let client = self.client.get_or_try_init(connect).await?;
        Ok(Rest::new(client.clone(), namespace))
    }

    /// kubectl with these words, which must do.
    pub(super) async fn ok(&self, words: &[&str]) -> Result<String> {
        self.kubectl.run(words).await?.stdout_of_success()
    }

    /// The same with something on standard input.
    pub(super) async fn feed(&self, words: &[&str], input: &str) -> Result<String> {
        self.kubectl.run_with_input(words, input).await?.stdout_of_success()
    }

    /// What `trainyard` prints when it is given these words.
    pub(super) async fn trainyard(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.args(words).env("KUBECONFIG", self.kubectl.kubeconfig()).kill_on_drop(true);
        let output = command.output().await.context("running trainyard")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`trainyard {}`: {said}", words.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a line of two programs of the documentation, with more words for the first; gives what the second says.
    pub(super) async fn pipe(&self, line: &str, flags: &[&str]) -> Result<String> {
        let [writer, reader] = page::pipeline(line)?;
        let manifests = self.trainyard(&[&writer, flags].concat()).await?;
        self.feed(&reader, &manifests).await
    }

    /// Installs Trainyard as documented, with these flags, and waits until what was installed is there.
    pub(super) async fn install(&self, flags: &[&str]) -> Result<String> {
        self.install_by(page::INSTALL, flags).await
    }

    /// The same by a line that differs from the documented one.
    pub(super) async fn install_by(&self, line: &str, flags: &[&str]) -> Result<String> {
        let said = self.pipe(line, flags).await?;
        let words = ["wait", "--for=condition=Established", "--timeout=30s", "crd", "--all"];
        self.until(&words, "definitions", |_| true).await?;
        let with_scheduler = async {
            let is_there = flags.contains(&"--scheduler");
            if is_there { self.is_rolled_out("trainyard-scheduler").await } else { Ok(()) }
        };
        tokio::try_join!(self.is_rolled_out("trainyard-operator"), with_scheduler)?;
        Ok(said)
    }

    /// Gives Trainyard's image another name on every node.
    pub(super) async fn name_image(&self, name: &str) -> Result<()> {
        let cluster = self.cluster.read().await;
        let cluster = cluster.as_ref().context(STOPPED)?;
        for index in 0..NODES.len() {
            let mut ctr = cluster.command_inside(index, "ctr").await?;
            let output = ctr.args(["--namespace=k8s.io", "images", "tag", "--force", IMAGE, name]);
            let output = output.output().await.context("running ctr")?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "naming an image {name}: {said}");
        }
        Ok(())
    }

    /// Waits until the pods of a Deployment in `kubeflow` are there and ready.
    pub(super) async fn is_rolled_out(&self, deployment: &str) -> Result<()> {
        let target = format!("deployment/{deployment}");
        let words = ["-n", "kubeflow", "rollout", "status", "--timeout=90s", &target];
        match self.ok(&words).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let about = self.kubectl.run(&["-n", "kubeflow", "describe", "pods"]).await?.stdout;
                Err(error.context(about))
            }
        }
    }

    /// Runs kubectl again and again until it succeeds and answers as wanted.
    pub(super) async fn until(
        &self,
        words: &[&str],
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let mut last = None;
        for _ in 0..160 {
            let outcome = self.kubectl.run(words).await?;
            if outcome.success() && wanted(&outcome.stdout) {
                return Ok(outcome.stdout);
            }
            last = Some(outcome);
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        let Some(Outcome { command, stdout, stderr, .. }) = last else { bail!("never asked") };
        bail!("{what} has not come; `{command}` gives {stdout}{stderr}")
    }

    /// Ends a node without a word, as a power cut does, when all stories of the outage are ready for it.
    pub(super) async fn stop_node(&self, node: usize) -> Result<()> {
        let stop = async || {
            let cluster = self.cluster.read().await;
            cluster.as_ref().context(STOPPED)?.stop_node(node).await
        };
        self.outage.meet(stop).await
    }

    /// Starts a node again, when all stories of the outage have seen enough.
    pub(super) async fn start_node(&self, node: usize) -> Result<()> {
        self.outage.meet(async || self.power_up(node).await).await
    }

    /// Starts a node if it is down.
    async fn power_up(&self, node: usize) -> Result<()> {
        let cluster = self.cluster.read().await;
        cluster.as_ref().context(STOPPED)?.start_node(node).await
    }

    /// Has a node that can be lost keep nothing that all stories need, and the operator give up lost pods soon.
    pub(super) async fn brace(&self, node: usize) -> Result<()> {
        let stays = NODES.into_iter().find(|name| *name != NODES[node]);
        let stays = json!({"kubernetes.io/hostname": stays});
        let here = json!({"op": "add", "path": "/spec/template/spec/nodeSelector", "value": stays});
        tokio::try_join!(
            self.change("trainyard-operator", json!([here, argument(LOST_POD_TIMEOUT)])),
            self.change("trainyard-scheduler", json!([here])),
        )
        .map(drop)
    }

    /// Has an operator that waits for another's end not wait long.
    pub(super) async fn hurry(&self) -> Result<()> {
        self.change("trainyard-operator", QUICK_LEASE.into_iter().map(argument).collect()).await
    }

    async fn change(&self, deployment: &str, patch: Value) -> Result<()> {
        let patch = patch.to_string();
        let words =
            ["-n", "kubeflow", "patch", "deployment", deployment, "--type=json", "-p", &patch];
        self.ok(&words).await?;
        self.is_rolled_out(deployment).await
    }

    /// Makes good what a story that broke off may have left: a node that is down or drained, an operator that was
    /// scaled or removed.
    pub(super) async fn recover(&self) -> Result<()> {
        self.end_outage().await?;
        self.install(&["--volcano", "--scheduler"]).await.map(drop)
    }

    /// Has all nodes run and take pods.
    pub(super) async fn end_outage(&self) -> Result<()> {
        for index in 0..NODES.len() {
            self.power_up(index).await?;
        }
        self.ok(&[&["uncordon"][..], &NODES].concat()).await?;
        // It fails where there is none.
        self.kubectl
            .run(&["taint", "nodes", "--all", &format!("{OUT_OF_SERVICE}-")])
            .await
            .map(drop)
    }

    /// Stops the cluster and makes sure that nothing is left of it.
    pub(super) async fn stop(&self) -> Result<()> {
        let cluster = self.cluster.write().await.take().context(STOPPED)?;
        let folder = cluster.folder().to_owned();
        let group = format!("trainyard-{NAME}-node");
        let there = leftovers(&folder, &group)?;
        ensure!(!there.is_empty(), "a cluster that runs has left no trace to look for");
        cluster.stop().await?;
        let mut left = leftovers(&folder, &group)?;
        left.extend(Surroundings::now()?.changes(&self.before));
        ensure!(left.is_empty(), "the cluster left behind: {}", left.join(", "));
        Ok(())
    }
}

/// One more argument of a Deployment's program, as part of a patch.
fn argument(argument: &str) -> Value {
    json!({"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": argument})
}

/// A namespace of the cluster for one story.
pub(super) struct Scene {
    /// The cluster.
    pub(super) site: Arc<Site>,
    /// The namespace.
    pub(super) namespace: String,
}
