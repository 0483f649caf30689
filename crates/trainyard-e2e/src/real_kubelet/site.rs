//! The cluster that all stories are played on, with Trainyard's image on its nodes, and what a story gets of it.
//!
//! Must not know what stories do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::{OnceCell, RwLock};
use trainyard_testbed::cluster::{Cluster, Options, image};

use crate::control_plane::{Binaries, Program};
use crate::harness::{Case, product};
use crate::kubectl::{Kubectl, Outcome};

/// How long a run of kubectl may take; its own time-outs are shorter.
const PATIENCE: Duration = Duration::from_mins(3);
/// The name that the documented commands give Trainyard's image here.
pub(super) const IMAGE: &str = "registry.example/trainyard:0.1.0";
/// The cluster's name.
const NAME: &str = "kubelet";
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
    dir: TempDir,
    tensorflow: OnceCell<Result<(), String>>,
    opened: AtomicUsize,
}

impl Site {
    /// Starts the cluster and brings the images there that every story needs. That of TensorFlow, which takes long,
    /// is begun with if it will be wanted.
    pub(super) async fn start(trains: bool) -> Result<Arc<Self>> {
        let binary = product().await?;
        let programs = Binaries::provide(&[Program::Kubectl]).await?;
        let dir = tempfile::Builder::new().prefix("trainyard-kubelet-").tempdir()?;
        let home = dir.path().join("home");
        std::fs::create_dir_all(&home)?;
        let options = Options {
            name: NAME.to_owned(),
            nodes: NODES.len(),
            cpus: Some(2),
            quick_node_loss: true,
            ..Options::default()
        };
        let cluster = Cluster::start(options).await?;
        let kubeconfig = cluster.kubeconfig().to_owned();
        let kubectl = Kubectl::new(programs.path(Program::Kubectl), kubeconfig, home);
        cluster.import(&image::busybox().await?).await?;
        cluster.import(&image::of_program(&binary, IMAGE).await?).await?;
        let site = Arc::new(Self {
            cluster: RwLock::new(Some(cluster)),
            kubectl: kubectl.with_patience(PATIENCE),
            binary,
            dir,
            tensorflow: OnceCell::new(),
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
        cluster.as_ref().context("the cluster has been stopped")?.import(archive).await
    }

    /// A folder below the site's own, seen by every node.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.dir.path().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
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

    /// `trainyard manifests --image … FLAGS | kubectl apply -f -`, and waits until what was installed is there.
    pub(super) async fn install(&self, flags: &[&str]) -> Result<String> {
        self.install_by(&["apply", "-f", "-"], flags).await
    }

    /// The same with another way to apply.
    pub(super) async fn install_by(&self, apply: &[&str], flags: &[&str]) -> Result<String> {
        let manifests = self.trainyard(&[&["manifests", "--image", IMAGE], flags].concat()).await?;
        let said = self.feed(apply, &manifests).await?;
        let words = ["wait", "--for=condition=Established", "--timeout=30s", "crd", "--all"];
        self.until(&words, "definitions", |_| true).await?;
        self.is_rolled_out("trainyard-operator").await?;
        if flags.contains(&"--scheduler") {
            self.is_rolled_out("trainyard-scheduler").await?;
        }
        Ok(said)
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

    /// Ends a node without a word, as a power cut does.
    pub(super) async fn stop_node(&self, node: usize) -> Result<()> {
        let cluster = self.cluster.read().await;
        cluster.as_ref().context("the cluster has been stopped")?.stop_node(node).await
    }

    /// Starts a node again.
    pub(super) async fn start_node(&self, node: usize) -> Result<()> {
        let cluster = self.cluster.read().await;
        cluster.as_ref().context("the cluster has been stopped")?.start_node(node).await
    }

    /// Stops the cluster and makes sure that nothing is left of it.
    pub(super) async fn stop(&self) -> Result<()> {
        let cluster = self.cluster.write().await.take().context("the cluster has been stopped")?;
        let folder = cluster.folder().to_owned();
        ensure!(
            !leftovers(&folder)?.is_empty(),
            "a cluster that runs has left no trace to look for"
        );
        cluster.stop().await?;
        let left = leftovers(&folder)?;
        ensure!(left.is_empty(), "the cluster left behind: {}", left.join(", "));
        Ok(())
    }
}

/// What this machine has of a cluster: its folder, mounts of it, control groups, processes.
fn leftovers(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if folder.exists() {
        found.push(folder.display().to_string());
    }
    let of_folder = folder.display().to_string();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    found.extend(mounts.lines().filter(|line| line.contains(&of_folder)).map(str::to_owned));
    let group = format!("trainyard-{NAME}-node");
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup")?.flatten() {
        let mut places = vec![hierarchy.path()];
        places.extend(
            std::fs::read_dir(hierarchy.path()).into_iter().flatten().flatten().map(|e| e.path()),
        );
        let of_cluster = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&group))
        };
        found.extend(
            places.iter().filter(|path| of_cluster(path)).map(|path| path.display().to_string()),
        );
    }
    for process in std::fs::read_dir("/proc")?.flatten() {
        let read = |file: &str| std::fs::read(process.path().join(file)).unwrap_or_default();
        if String::from_utf8_lossy(&read("cgroup")).contains(&group) {
            let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            found.push(format!("process {} ({words})", process.file_name().display()));
        }
    }
    Ok(found)
}

/// A namespace of the cluster for one story.
pub(super) struct Scene {
    /// The cluster.
    pub(super) site: Arc<Site>,
    /// The namespace.
    pub(super) namespace: String,
}

/// As cases on the cluster, each in a namespace of its own, which is deleted when the story has passed or failed.
pub(super) fn on_site(stories: Vec<Case<Arc<Scene>>>) -> Vec<Case<Arc<Site>>> {
    let case = |story: Case<Arc<Scene>>| {
        let (name, longest) = (story.name.clone(), story.timeout + PATIENCE);
        Case::new(name, move |site: Arc<Site>| play(site, story.clone())).within(longest)
    };
    stories.into_iter().map(case).collect()
}

async fn play(site: Arc<Site>, story: Case<Arc<Scene>>) -> Result<()> {
    let namespace = format!("story-{}", site.opened.fetch_add(1, Ordering::Relaxed));
    site.ok(&["create", "namespace", &namespace]).await?;
    let scene = Arc::new(Scene { site: Arc::clone(&site), namespace });
    scene.ok(&["wait", "--for=create", "--timeout=30s", "sa/default"]).await?;
    let mut played = story.play(Arc::clone(&scene)).await;
    if played.is_err() {
        let about = scene.about().await;
        played = played.with_context(|| about);
    }
    site.ok(&["delete", "namespace", "--wait=false", &scene.namespace]).await?;
    played
}
