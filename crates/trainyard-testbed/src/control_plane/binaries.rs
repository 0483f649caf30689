//! Which programs a control plane is made of, and where on this machine each one is found.
//! Knows the versions and the cache's layout; how a missing program is made is `build`'s matter.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::build;

/// Release of Kubernetes whose programs are built.
pub const KUBERNETES_VERSION: &str = "1.36.3";
/// Release of etcd that is built.
pub const ETCD_VERSION: &str = "3.6.16";
/// Release of `CoreDNS` that is built.
pub const COREDNS_VERSION: &str = "1.14.7";
/// Environment variable that names a folder of ready-made programs.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// One program of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The database behind the API server.
    Etcd,
    /// The API server.
    ApiServer,
    /// The garbage collector, namespace controller and their like.
    ControllerManager,
    /// The stock scheduler.
    Scheduler,
    /// The command line client.
    Kubectl,
    /// The agent of a node.
    Kubelet,
    /// The way from a Service's address to its pods.
    KubeProxy,
    /// The name server of pods.
    CoreDns,
    /// The program that keeps the namespaces of a pod.
    Pause,
}

impl Program {
    /// Every program of a cluster with nodes, in the order in which building them shares most work.
    pub const ALL: [Self; 9] = [
        Self::Etcd,
        Self::ApiServer,
        Self::Kubectl,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubelet,
        Self::KubeProxy,
        Self::Pause,
        Self::CoreDns,
    ];
    /// Those of a control plane, and its client.
    pub const CONTROL_PLANE: [Self; 5] =
        [Self::Etcd, Self::ApiServer, Self::Kubectl, Self::ControllerManager, Self::Scheduler];

    /// The file name, the same everywhere.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::CoreDns => "coredns",
            Self::Pause => "pause",
        }
    }
}

/// Where the programs are on this machine.
#[derive(Clone, Debug)]
pub struct Binaries {
    assets: Option<PathBuf>,
    cache: PathBuf,
}

impl Binaries {
    /// Finds each wanted program; those found nowhere are built into the cache first.
    pub async fn provide(wanted: &[Program]) -> Result<Self> {
        let binaries = Self::locate()?;
        let missing = binaries.missing(wanted);
        if !missing.is_empty() {
            build::build(&binaries.cache, &missing).await?;
        }
        Ok(binaries)
    }

    /// Why the wanted programs cannot be had on this machine, if so.
    pub async fn obstacle(wanted: &[Program]) -> Result<Option<String>> {
        let missing = Self::locate()?.missing(wanted);
        if missing.is_empty() { Ok(None) } else { Ok(build::obstacle(&missing).await) }
    }

    fn locate() -> Result<Self> {
        let assets = std::env::var_os(ASSETS_VARIABLE).filter(|dir| !dir.is_empty());
        Ok(Self {
            assets: assets.map(PathBuf::from),
            cache: cache_root()?.join("control-plane").join(release_name()),
        })
    }

    /// Path of a program. Assets win over the cache, so that a run can be pinned to other builds.
    #[must_use]
    pub fn path(&self, program: Program) -> PathBuf {
        if let Some(assets) = &self.assets {
            let path = assets.join(program.file_name());
            if path.is_file() {
                return path;
            }
        }
        cached(&self.cache, program)
    }

    fn missing(&self, wanted: &[Program]) -> Vec<Program> {
        // In `Program::ALL`'s order whatever the caller's, for the sake of Go's build cache.
        Program::ALL
            .into_iter()
            .filter(|program| wanted.contains(program) && !self.path(*program).is_file())
            .collect()
    }
}

/// Where the cache keeps a program.
pub(super) fn cached(cache: &Path, program: Program) -> PathBuf {
    let bin = cache.join("bin");
    match program {
        // The cache is named for the releases of all others.
        Program::CoreDns => bin.join(format!("coredns-v{COREDNS_VERSION}")),
        _ => bin.join(program.file_name()),
    }
}

/// Folder for everything the project keeps between runs outside its own tree.
pub fn cache_root() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set; set one, so that builds can be kept")?;
    Ok(base.join("trainyard"))
}

fn release_name() -> String {
    format!("kubernetes-v{KUBERNETES_VERSION}-etcd-v{ETCD_VERSION}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn assets_win_and_the_cache_fills_the_gaps() {
        let dir = tempfile::tempdir().unwrap();
        let (assets, cache) = (dir.path().join("assets"), dir.path().join("cache"));
        touch(&assets.join("etcd"));
        touch(&cache.join("bin/etcd"));
        touch(&cache.join("bin/kubectl"));
        let binaries = Binaries { assets: Some(assets.clone()), cache: cache.clone() };
        assert_eq!(binaries.path(Program::Etcd), assets.join("etcd"));
        assert_eq!(binaries.path(Program::Kubectl), cache.join("bin/kubectl"));
        assert_eq!(
            binaries.missing(&[Program::Scheduler, Program::ApiServer, Program::Etcd]),
            [Program::ApiServer, Program::Scheduler]
        );
        touch(&cache.join("bin/coredns"));
        assert_eq!(binaries.missing(&[Program::CoreDns]), [Program::CoreDns], "of any release");
    }
}
