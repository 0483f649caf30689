//! Volcano's programs and definitions, built from its Go module into the cache.
//!
//! Must not know how they are run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::control_plane::cache_root;
use crate::control_plane::go;

/// The release that is asked.
const VOLCANO_VERSION: &str = "1.14.1";
/// The newest published release of its API types that goes with it: its own go.mod names a folder.
const TYPES_VERSION: &str = "1.14.0";
const MODULE: &str = "volcano.sh/volcano";
const TYPES: &str = "volcano.sh/apis";
/// Folders of the commands, and thereby names of the programs.
const COMMANDS: [&str; 2] = ["controller-manager", "webhook-manager"];

/// Where Volcano is on this machine.
#[derive(Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    definitions: PathBuf,
}

impl Programs {
    /// Why Volcano cannot be had here, if so.
    pub(super) async fn obstacle() -> Option<String> {
        let error = go::release().await.err()?;
        Some(format!("Volcano is built by Go, and there is none: {error:#}"))
    }

    /// Builds what is not there yet.
    pub(super) async fn provide() -> Result<Self> {
        let cache = cache_root()?.join("volcano").join(format!("v{VOLCANO_VERSION}"));
        let folder = cache.join("bin");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let _lock = go::lock(&cache.join("build.lock")).await?;
        let module = go::downloaded(&format!("{MODULE}@v{VOLCANO_VERSION}")).await?;
        let own = fs::read_to_string(&module.go_mod).context("reading Volcano's go.mod")?;
        let missing: Vec<&str> =
            COMMANDS.into_iter().filter(|command| !folder.join(command).is_file()).collect();
        if !missing.is_empty() {
            let source = cache.join("src");
            go::write_module(&source, &wrapper(&own))?;
            for command in missing {
                let package = format!("{MODULE}/cmd/{command}");
                go::build(&source, &package, "-s -w", &folder.join(command)).await?;
            }
        }
        Ok(Self { folder, definitions: module.folder.join("config/crd/volcano/bases") })
    }

    pub(super) fn controllers(&self) -> PathBuf {
        self.folder.join(COMMANDS[0])
    }

    pub(super) fn admission(&self) -> PathBuf {
        self.folder.join(COMMANDS[1])
    }

    /// The folder of its definitions of kinds.
    pub(super) fn definitions(&self) -> &Path {
        &self.definitions
    }
}

/// The go.mod of a module that builds Volcano. An importing module inherits no replacements, so they
/// are repeated.
fn wrapper(own: &str) -> String {
    let mut text = format!(
        "module trainyard.local/volcano\n\ngo 1.24\n\nrequire {MODULE} v{VOLCANO_VERSION}\n\n\
         replace (\n\t{TYPES} => {TYPES} v{TYPES_VERSION}\n"
    );
    for line in own.lines().map(str::trim) {
        let line = line.strip_prefix("replace ").unwrap_or(line);
        if line.contains(" => ") && !line.starts_with(TYPES) {
            text.extend(["\t", line, "\n"]);
        }
    }
    text.push_str(")\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_repeated_apart_from_the_one_by_a_folder() {
        let own = "module volcano.sh/volcano\n\nrequire k8s.io/api v0.34.1\n\nreplace (\n\t\
            k8s.io/api => k8s.io/api v0.34.1\n\tvolcano.sh/apis => ./staging/src/volcano.sh/apis\n)\n\
            replace example.com/a => example.com/b v1.0.0\n";
        assert_eq!(
            wrapper(own),
            "module trainyard.local/volcano\n\ngo 1.24\n\nrequire volcano.sh/volcano v1.14.1\n\n\
             replace (\n\tvolcano.sh/apis => volcano.sh/apis v1.14.0\n\t\
             k8s.io/api => k8s.io/api v0.34.1\n\texample.com/a => example.com/b v1.0.0\n)\n"
        );
    }
}
