//! `cluster`: a real cluster with nodes to try things on, which stays until it is taken down. Only starts it, says
//! where it is and ends it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use trainyard_testbed::cluster::{Cluster, Options, Started, image};
use trainyard_testbed::control_plane::{Binaries, Program};

use crate::cargo::{become_program, workspace};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// Which cluster: they do not get into each other's way.
    #[arg(long, global = true, default_value = "developer", value_name = "NAME")]
    name: String,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Start it, building what it is made of the first time, and wait until all nodes are ready.
    Up(Up),
    /// End it and remove all that is left of it.
    Down,
    /// Run a command, or a shell, with KUBECONFIG and with kubectl in PATH.
    Sh(Sh),
    /// Say which of its nodes run, and what it says of them itself.
    Status,
}

#[derive(Debug, clap::Args)]
struct Up {
    /// How many nodes.
    #[arg(long, default_value_t = 2, value_name = "N")]
    nodes: usize,
    /// Put the image `trainyard:VERSION` on all nodes, of the program that was built last with this profile.
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, default_missing_value = "debug")]
    trainyard: Option<String>,
    /// Put the image of TensorFlow on all nodes too.
    #[arg(long)]
    tensorflow: bool,
}

#[derive(Debug, clap::Args)]
struct Sh {
    /// Inside of this node's namespaces, where pods have their addresses.
    #[arg(long, value_name = "N")]
    node: Option<usize>,
    /// The command; a shell without one.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    let name = &arguments.name;
    match arguments.action {
        Action::Up(up) => up.run(name).await?,
        Action::Down => match Started::find(name)? {
            Some(cluster) => cluster.stop().await?,
            None => println!("there is no cluster `{name}`"),
        },
        Action::Sh(sh) => return sh.run(&found(name)?).await,
        Action::Status => status(&found(name)?).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn found(name: &str) -> Result<Started> {
    let found = Started::find(name)?.filter(Started::runs);
    found.with_context(|| format!("no cluster `{name}` runs: `cargo xtask cluster up` starts one"))
}

impl Up {
    async fn run(self, name: &str) -> Result<()> {
        if let Some(obstacle) = Cluster::obstacle().await? {
            anyhow::bail!("{obstacle}");
        }
        Cluster::provide().await?;
        // Before minutes are spent on anything.
        let trainyard = self.trainyard.as_deref().map(built).transpose()?;
        let started = Instant::now();
        let (name, nodes) = (name.to_owned(), self.nodes);
        let options = Options { name, nodes, lasting: true, ..Options::default() };
        let cluster = Cluster::start(options).await?;
        println!("{} nodes ready after {:.1} s", self.nodes, started.elapsed().as_secs_f64());
        let mut images = vec![(image::BUSYBOX.to_owned(), image::busybox().await?)];
        if let Some(program) = trainyard {
            let name = format!("trainyard:{}", env!("CARGO_PKG_VERSION"));
            images.push((name.clone(), image::of_program(&program, &name).await?));
        }
        if self.tensorflow {
            images.push((image::TENSORFLOW.to_owned(), image::tensorflow().await?));
        }
        for (name, archive) in images {
            cluster.import(&archive).await?;
            println!("image on all nodes: {name}");
        }
        println!("logs: {}/node*/log", cluster.folder().display());
        println!("export KUBECONFIG={}", cluster.kubeconfig().display());
        println!("for example:");
        println!("  cargo xtask cluster sh kubectl get pods -A -o wide");
        let busybox = image::BUSYBOX;
        println!("  cargo xtask cluster sh kubectl run -it --rm try --image={busybox} -- sh");
        Ok(())
    }
}

/// The program as Cargo has built it last.
fn built(profile: &str) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let program = workspace().join(target).join(profile).join("trainyard");
    let there = program.display();
    ensure!(program.is_file(), "there is no {there}: build it first, or name another profile");
    Ok(program)
}

impl Sh {
    async fn run(self, cluster: &Started) -> Result<ExitCode> {
        let programs = Binaries::provide(&[Program::Kubectl]).await?;
        let kubectl = programs.path(Program::Kubectl);
        let bin = kubectl.parent().context("kubectl is in no folder")?.to_owned();
        let shell = std::env::var("SHELL").unwrap_or_else(|_| "sh".to_owned());
        let (program, words) = match self.command.split_first() {
            Some((program, words)) => (program.clone(), words),
            None => (shell, &[][..]),
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)))?;
        let mut command = match self.node {
            Some(index) => cluster.command_inside(index, "env")?.into_std(),
            None => std::process::Command::new("env"),
        };
        let kubeconfig = cluster.kubeconfig();
        command.arg(format!("KUBECONFIG={}", kubeconfig.display()));
        command.arg(format!("PATH={}", path.display())).arg(program).args(words);
        match become_program(&mut command)? {}
    }
}

async fn status(cluster: &Started) -> Result<()> {
    for (name, process) in cluster.nodes() {
        match process {
            Some(process) => println!("{name}: runs, first process {process}"),
            None => println!("{name}: does not run"),
        }
    }
    println!("logs: {}/node*/log", cluster.folder().display());
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    let programs = Binaries::provide(&[Program::Kubectl]).await?;
    let mut kubectl = tokio::process::Command::new(programs.path(Program::Kubectl));
    kubectl.args(["get", "nodes", "-o", "wide"]).arg("--kubeconfig").arg(cluster.kubeconfig());
    let shown = kubectl.kill_on_drop(true).status().await.context("cannot run kubectl")?;
    ensure!(shown.success(), "its API server does not answer");
    Ok(())
}
