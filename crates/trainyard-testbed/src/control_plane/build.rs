//! Builds the control plane's programs from their Go modules into the cache.
//! Knows those modules; knows nothing of how the programs are run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::binaries::{
    ASSETS_VARIABLE, COREDNS_VERSION, ETCD_VERSION, KUBERNETES_VERSION, Program, cached,
};
use super::go;
use super::process::say;

const KUBERNETES_MODULE: &str = "k8s.io/kubernetes";
const ETCD_MODULE: &str = "go.etcd.io/etcd/server/v3";
const COREDNS_MODULE: &str = "github.com/coredns/coredns";
/// What of `CoreDNS` a cluster needs; its own list of plugins takes in the clients of three clouds.
const COREDNS_PLUGINS: [&str; 6] = ["bind", "errors", "kubernetes", "loadbalance", "log", "ready"];

/// Builds `missing` into `<cache>/bin`. Several runs at once wait for each other and share the result.
pub(super) async fn build(cache: &Path, missing: &[Program]) -> Result<()> {
    let go = go::release().await.with_context(|| no_go(missing))?;
    fs::create_dir_all(cache.join("bin"))
        .with_context(|| format!("cannot make the cache folder {}", cache.display()))?;
    let _lock = go::lock(&cache.join("build.lock")).await?;
    say(&format!(
        "building {} with {go}; kept in {} (the first time takes some minutes)",
        names(missing),
        cache.display()
    ));
    for program in missing {
        // Another run may have built it while this one waited for the lock.
        if !cached(cache, *program).is_file() {
            build_one(cache, *program).await?;
        }
    }
    Ok(())
}

/// Why nothing can be built here, if so.
pub(super) async fn obstacle(missing: &[Program]) -> Option<String> {
    let error = go::release().await.err()?;
    Some(format!("{}: {error:#}", no_go(missing)))
}

fn names(programs: &[Program]) -> String {
    programs.iter().map(|program| program.file_name()).collect::<Vec<_>>().join(", ")
}

fn no_go(missing: &[Program]) -> String {
    format!(
        "the real Kubernetes needs {}, which are neither in {ASSETS_VARIABLE} nor in the cache, \
         and there is no working Go to build them: install Go 1.26 or newer, or set \
         {ASSETS_VARIABLE} to a folder that holds them",
        names(missing)
    )
}

async fn build_one(cache: &Path, program: Program) -> Result<()> {
    let (module, package) = match program {
        Program::Pause => return build_pause(cache).await,
        Program::Etcd => (etcd_module(cache).await?, ETCD_MODULE.to_owned()),
        Program::CoreDns => (coredns_module(cache).await?, ".".to_owned()),
        _ => (
            kubernetes_module(cache).await?,
            format!("{KUBERNETES_MODULE}/cmd/{}", program.file_name()),
        ),
    };
    go::build(&module, &package, &linker_flags(program), &cached(cache, program)).await
}

/// Without the version stamps kubectl cannot parse the server's version.
fn linker_flags(program: Program) -> String {
    if matches!(program, Program::Etcd | Program::CoreDns) {
        return "-s -w".to_owned();
    }
    let mut parts = KUBERNETES_VERSION.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion=v{KUBERNETES_VERSION} -X {package}.gitMajor={major} \
         -X {package}.gitMinor={minor}"
    )
}

async fn etcd_module(cache: &Path) -> Result<PathBuf> {
    let module = cache.join("src").join("etcd");
    go::write_module(&module, "module trainyard.local/etcd\n\ngo 1.24\n")?;
    go::run(go::go_in(&module).args(["get", &format!("{ETCD_MODULE}@v{ETCD_VERSION}")])).await?;
    Ok(module)
}

async fn coredns_module(cache: &Path) -> Result<PathBuf> {
    let module = cache.join("src").join("coredns");
    go::write_module(&module, "module trainyard.local/coredns\n\ngo 1.24\n")?;
    fs::write(module.join("main.go"), coredns_main())
        .with_context(|| format!("cannot write main.go in {}", module.display()))?;
    go::run(go::go_in(&module).args(["get", &format!("{COREDNS_MODULE}@v{COREDNS_VERSION}")]))
        .await?;
    Ok(module)
}

fn coredns_main() -> String {
    let mut text = format!("package main\n\nimport (\n\t\"{COREDNS_MODULE}/coremain\"\n");
    for plugin in COREDNS_PLUGINS {
        text.extend(["\t_ \"", COREDNS_MODULE, "/plugin/", plugin, "\"\n"]);
    }
    text.push_str(")\n\nfunc main() { coremain.Run() }\n");
    text
}

/// The one program that Kubernetes has written in C; static, for an image that holds nothing else.
async fn build_pause(cache: &Path) -> Result<()> {
    let kubernetes = go::downloaded(&format!("{KUBERNETES_MODULE}@v{KUBERNETES_VERSION}")).await?;
    let program = cached(cache, Program::Pause);
    let unfinished = program.with_file_name(".pause.unfinished");
    let mut compiler = Command::new("cc");
    compiler.args(["-Os", "-static", "-s"]).arg(format!("-DVERSION={KUBERNETES_VERSION}"));
    compiler.arg("-o").arg(&unfinished).arg(kubernetes.folder.join("build/pause/linux/pause.c"));
    go::run(compiler.kill_on_drop(true)).await?;
    fs::rename(&unfinished, &program)
        .with_context(|| format!("cannot put {} in place", program.display()))
}

/// Kubernetes' own go.mod replaces its staging modules by folders of its repository, which no
/// importing module inherits: the wrapper repeats them as the published modules.
async fn kubernetes_module(cache: &Path) -> Result<PathBuf> {
    let module = cache.join("src").join("kubernetes");
    fs::create_dir_all(&module)?;
    let own = go::downloaded(&format!("{KUBERNETES_MODULE}@v{KUBERNETES_VERSION}")).await?;
    let go_mod = fs::read_to_string(&own.go_mod)
        .with_context(|| format!("cannot read {}", own.go_mod.display()))?;
    go::write_module(&module, &kubernetes_wrapper(&go_mod, KUBERNETES_VERSION))?;
    Ok(module)
}

/// The wrapper module's go.mod, given Kubernetes' own. A staging module is required in its true
/// version, so that this is what the programs report, and replaced, because the version that
/// Kubernetes requires was never published.
fn kubernetes_wrapper(go_mod: &str, version: &str) -> String {
    let staging_version = version.strip_prefix("1.").unwrap_or(version);
    let mut staging: Vec<_> = go_mod.lines().filter_map(staging_module).collect();
    staging.sort_unstable();
    staging.dedup();
    let mut text = format!(
        "module trainyard.local/kubernetes\n\ngo 1.24\n\n\
         require (\n\t{KUBERNETES_MODULE} v{version}\n"
    );
    for module in &staging {
        text.extend(["\t", module, " v0.", staging_version, "\n"]);
    }
    text.push_str(")\n\nreplace (\n");
    for module in &staging {
        text.extend(["\t", module, " => ", module, " v0.", staging_version, "\n"]);
    }
    text.push_str(")\n");
    text
}

/// The module of a go.mod line that requires a staging module (`k8s.io/api v0.0.0`).
fn staging_module(line: &str) -> Option<&str> {
    let line = line.split("//").next()?.trim();
    let line = line.strip_prefix("require ").unwrap_or(line);
    let module = line.strip_suffix(" v0.0.0")?;
    module.starts_with("k8s.io/").then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrapper_replaces_each_staging_module_once() {
        let go_mod = "module k8s.io/kubernetes\n\nrequire (\n\tk8s.io/api v0.0.0\n\t\
            k8s.io/klog/v2 v2.140.0\n\tk8s.io/cri-api v0.0.0 // indirect\n)\n\
            require k8s.io/api v0.0.0\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";
        assert_eq!(
            kubernetes_wrapper(go_mod, "1.36.3"),
            "module trainyard.local/kubernetes\n\ngo 1.24\n\nrequire (\n\t\
             k8s.io/kubernetes v1.36.3\n\tk8s.io/api v0.36.3\n\tk8s.io/cri-api v0.36.3\n)\n\n\
             replace (\n\tk8s.io/api => k8s.io/api v0.36.3\n\t\
             k8s.io/cri-api => k8s.io/cri-api v0.36.3\n)\n"
        );
    }

    #[test]
    fn programs_are_stamped_with_their_version() {
        let flags = linker_flags(Program::Kubectl);
        assert!(flags.contains("version.gitVersion=v1.36.3 "), "{flags}");
        assert!(flags.ends_with("version.gitMinor=36"), "{flags}");
        assert_eq!(linker_flags(Program::Etcd), "-s -w");
    }

    #[test]
    fn coredns_has_the_plugins_of_a_cluster() {
        let main = coredns_main();
        assert!(main.starts_with("package main\n\nimport (\n\t\"github.com/coredns/coredns/"));
        assert!(main.contains("\t_ \"github.com/coredns/coredns/plugin/kubernetes\"\n"), "{main}");
        assert!(main.ends_with(")\n\nfunc main() { coremain.Run() }\n"), "{main}");
    }
}
