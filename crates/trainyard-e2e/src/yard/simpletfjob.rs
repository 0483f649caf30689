//! What simpletfjob renders, run: one machine pretends to be three, a Job on each, and real
//! TensorFlow finds its peers by the machines' names.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::bed::Bed;
use crate::check::{contains, equal};
use crate::kubectl::Kubectl;

/// Three replicas import TensorFlow on two cores; once, an environment is made.
const PATIENCE: Duration = Duration::from_mins(12);
const TRAINING: &str = "--timeout=600s";

/// What the tool has to write for the nodes h10, h100 and h14.
const GOLDEN: &str = include_str!("../../../trainyard-render/tests/data/mnist_tfjob.yaml");

/// The template that people know.
const TEMPLATE: &str = include_str!("../../../trainyard-render/tests/data/mnist.yaml");

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/simpletfjob").join(name)
}

/// The rendered file is right in the eyes of a real API server.
pub(super) async fn accepted(kubectl: &Kubectl) -> Result<()> {
    let words = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
    let told = kubectl.run_with_input(&words, GOLDEN).await?.stdout_of_success()?;
    let wanted: String = ["ps-0", "worker-0", "worker-1"]
        .map(|name| format!("job.batch/mnist-{name} created (server dry run)\n"))
        .concat();
    equal("what it says", told, wanted)
}

/// Trains three times: as rendered, without one machine, and, from the example, with the parameter
/// server elsewhere.
pub(super) async fn run(binary: &Path) -> Result<()> {
    let flags = [
        "--nodes=h10,h100,h14",
        "--image=tensorflow/tensorflow:1.13.1-py3=tensorflow/tensorflow:2.21.0",
        "--with=scikit-learn",
    ];
    let mut bed = Bed::start(binary, &flags).await?;
    bed.kubectl = bed.kubectl.clone().with_patience(PATIENCE);
    let trained = train_all(&bed, binary).await;
    let stopped = bed.stop().await;
    trained.and(stopped)
}

async fn train_all(bed: &Bed, binary: &Path) -> Result<()> {
    let desk = Desk::open(bed, binary).await?;
    desk.render(&["-N", "3"]).await?;
    equal("the rendered file", desk.rendered()?, GOLDEN.to_owned())?;
    let placed = [("ps-0", "h10"), ("worker-0", "h100"), ("worker-1", "h14")];
    desk.train(&placed).await.context("-N 3")?;
    fs::write(desk.dir.join("exc"), "h100\n")?;
    desk.render(&["-N", "2", "-E"]).await?;
    desk.train(&[("ps-0", "h10"), ("worker-0", "h14")]).await.context("-N 2 -E")?;
    fs::copy(example("mnist.yaml"), desk.dir.join("mnist.yaml"))?;
    fs::write(desk.dir.join("servers"), "h14\n")?;
    desk.render(&["--psf", "servers"]).await?;
    let placed = [("ps-0", "h14"), ("worker-0", "h10"), ("worker-1", "h100")];
    desk.train(&placed).await.context("--psf")
}

/// A folder with the tool and the template in it, and the claim with the script.
struct Desk<'a> {
    bed: &'a Bed,
    dir: PathBuf,
    /// What is in the claim, as this machine sees it.
    model: PathBuf,
}

impl<'a> Desk<'a> {
    async fn open(bed: &'a Bed, binary: &Path) -> Result<Self> {
        let dir = bed.dir().join("desk");
        fs::create_dir(&dir)?;
        symlink(fs::canonicalize(binary)?, dir.join("simpletfjob"))?;
        fs::write(dir.join("mnist.yaml"), TEMPLATE)?;
        let claim = example("claim.yaml").display().to_string();
        bed.ok(&["apply", "-f", &claim]).await?;
        let bound = "--for=jsonpath={.status.phase}=Bound";
        bed.ok(&["wait", bound, "--timeout=60s", "pvc/nfs-pvc"]).await?;
        let volume = bed.ok(&["get", "pvc", "nfs-pvc", "-o=jsonpath={.spec.volumeName}"]).await?;
        let folder = bed.ok(&["get", "pv", &volume, "-o=jsonpath={.spec.hostPath.path}"]).await?;
        let folder = Path::new(&folder).join("tensorflow/mnist");
        fs::create_dir_all(&folder)?;
        fs::copy(example("mnist_cnn.py"), folder.join("mnist_cnn.py"))?;
        Ok(Self { bed, dir, model: folder.join("model") })
    }

    /// Calls the tool as people call it.
    async fn render(&self, words: &[&str]) -> Result<()> {
        let output = Command::new(self.dir.join("simpletfjob"))
            .arg("mnist.yaml")
            .args(words)
            .current_dir(&self.dir)
            .env("KUBECONFIG", self.bed.kubectl.kubeconfig())
            .stdin(Stdio::null())
            .output()
            .await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "simpletfjob {words:?} ended with {}: {said}",
            output.status
        );
        Ok(())
    }

    fn rendered(&self) -> Result<String> {
        Ok(fs::read_to_string(self.dir.join("mnist_tfjob.yaml"))?)
    }

    /// Runs the rendered file; each Job has its machine.
    async fn train(&self, placed: &[(&str, &str)]) -> Result<()> {
        let bed = self.bed;
        let file = self.dir.join("mnist_tfjob.yaml").display().to_string();
        bed.ok(&["apply", "-f", &file]).await?;
        let jobs: Vec<String> =
            placed.iter().map(|(name, _)| format!("job/mnist-{name}")).collect();
        let mut words = vec!["wait", "--for=condition=Complete", TRAINING];
        words.extend(jobs.iter().map(String::as_str));
        if let Err(error) = bed.ok(&words).await {
            let told = bed.ok(&["describe", "jobs,pods"]).await.unwrap_or_default();
            let mut logs = String::new();
            for job in &jobs {
                logs += &bed.ok(&["logs", "--tail=30", job]).await.unwrap_or_default();
            }
            return Err(error.context(format!("{told}\n{logs}")));
        }
        self.look(placed).await?;
        bed.ok(&["delete", "-f", &file]).await?;
        bed.until(&["get", "pods", "-o", "name"], "an end of the pods", str::is_empty).await?;
        // The next training begins from nothing.
        fs::remove_dir_all(&self.model).context("no model was kept in the claim")
    }

    async fn look(&self, placed: &[(&str, &str)]) -> Result<()> {
        let bed = self.bed;
        let mut addresses = BTreeSet::new();
        for (name, node) in placed {
            let job = format!("job-name=mnist-{name}");
            let list = bed.ok(&["get", "pods", "-l", &job, "-o", "json"]).await?;
            let list: Value = serde_json::from_str(&list)?;
            let pod = &list["items"][0];
            equal("the node", &pod["spec"]["nodeName"], *node)?;
            let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
            equal("restarts", restarts, &Value::from(0))?;
            addresses.insert(pod["status"]["hostIP"].as_str().unwrap_or_default().to_owned());
            let log = bed.ok(&["logs", &format!("job/mnist-{name}")]).await?;
            if name.starts_with("ps") {
                let workers = placed.len() - 1;
                equal("the workers it saw", log.matches("is done").count(), workers)?;
            } else {
                contains("the worker's log", &log, &["training is done"])?;
                let told = log.split("accuracy ").nth(1).and_then(|rest| rest.get(..6));
                let accuracy: f64 = told.context("no accuracy")?.parse()?;
                ensure!(accuracy > 0.8, "it has learnt too little: {accuracy}");
            }
        }
        equal("the machines' addresses", addresses.len(), placed.len())?;
        let table = bed.ok(&["get", "jobs"]).await?;
        contains("get jobs", &table, &["mnist-ps-0", "mnist-worker-0", "Complete", "1/1"])
    }
}
