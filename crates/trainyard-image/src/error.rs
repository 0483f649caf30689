//! What can go wrong with an image, in words that say what to do. The words end in a pod's status.

use std::path::PathBuf;

/// What is said of packages that may be there and have no wheels.
pub(crate) const ONLY_WHEELS: &str = ". Only wheels are taken: where a package is published as sources alone, \
     --allow-source-packages, or allow-source-packages = true in trainyard.toml, has it built in a sandbox";

/// Why a container's image cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The name is none.
    #[error(
        "Failed to apply default image tag {reference:?}: couldn't parse image reference {reference:?}: {reason}"
    )]
    InvalidName {
        /// As given.
        reference: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Only what is ready may be used, and it is not.
    #[error("Container image {reference:?} is not present with pull policy of Never")]
    NeverPull {
        /// As given.
        reference: String,
    },
    /// Nothing here stands for it.
    #[error(
        "nothing on this machine stands for image {reference:?}: images are not pulled here. Say what to use \
         instead with --image {name}=tensorflow/tensorflow:X, --image {name}=env:DIR (a Python environment) or \
         --image {name}=host (the system's own programs), and --mount SRC:DST[:ro] for the code that the image \
         would hold; or write the same in trainyard.toml under [images] and [[mounts]]"
    )]
    Unmapped {
        /// As given.
        reference: String,
        /// Without the digest: what a mapping is written for.
        name: String,
    },
    /// A tag of an official image that names no release.
    #[error(
        "tag {tag:?} of image {reference:?} names no release that can be installed here; \
         use --image {reference}={instead}"
    )]
    UnknownTag {
        /// As given.
        reference: String,
        /// Its tag.
        tag: String,
        /// What to map it to.
        instead: String,
    },
    /// No Python here can install it.
    #[error("{what} cannot be installed on this machine: {why}. {remedy}")]
    NotInstallable {
        /// What was wanted.
        what: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// A line of requirements that is not taken.
    #[error(
        "requirement {line:?} is not taken: {why}. Write one package per line, as in requirements.txt: scikit-learn==1.5"
    )]
    Requirement {
        /// The line.
        line: String,
        /// What is wrong with it.
        why: String,
    },
    /// Extra packages for something that is not ours to change.
    #[error(
        "packages {packages} cannot be added to image {reference:?}, which stands for {target}: \
         install them there, or map the image to tensorflow/tensorflow:X"
    )]
    NotExtensible {
        /// As given.
        reference: String,
        /// What it is mapped to.
        target: String,
        /// What was to be added.
        packages: String,
    },
    /// A mapped folder that is no environment.
    #[error("image {reference:?} stands for env:{}, which is no Python environment: {why}", dir.display())]
    NoEnvironment {
        /// As given.
        reference: String,
        /// The folder.
        dir: PathBuf,
        /// What is missing.
        why: String,
    },
    /// Packages that are not to be had, or not together.
    #[error(
        "{packages} cannot be installed beside {beside}: {said}. Correct the names and versions in --with, \
         --requirements, trainyard.toml or the annotation trainyard.dev/requirements{}",
        if *.only_wheels { ONLY_WHEELS } else { "" }
    )]
    Unresolvable {
        /// The packages that were asked for.
        packages: String,
        /// What the environment holds else.
        beside: String,
        /// The installer's last words.
        said: String,
        /// Packages were not to be built.
        only_wheels: bool,
    },
    /// The package index was not reached.
    #[error(
        "{doing}: the package index was not reached, and no environment for it is ready: {said}. \
         Check the network and the configuration of {tool}, or make it ready while there is a network"
    )]
    NoNetwork {
        /// What was being done.
        doing: String,
        /// Which program tried.
        tool: String,
        /// Its last words.
        said: String,
    },
    /// No room.
    #[error("{doing}: no space left on the disk of {}: free some, or choose another folder for environments", folder.display())]
    DiskFull {
        /// What was being done.
        doing: String,
        /// Where.
        folder: PathBuf,
    },
    /// A step of making an environment failed.
    #[error("{doing} failed: {said}")]
    Failed {
        /// Which step.
        doing: String,
        /// The program's last words.
        said: String,
    },
    /// A file of the cache could not be used.
    #[error("{doing} {}: {reason}", path.display())]
    Files {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl ImageError {
    /// Whether the same may succeed later without anybody changing anything but the network or the disk.
    #[must_use]
    pub const fn may_heal(&self) -> bool {
        matches!(self, Self::NoNetwork { .. })
    }

    /// The reason as a container's waiting state names it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidName { .. } => "InvalidImageName",
            Self::NeverPull { .. } => "ErrImageNeverPull",
            _ => "ErrImagePull",
        }
    }

    pub(crate) fn files(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| match error.kind() {
            std::io::ErrorKind::StorageFull => {
                Self::DiskFull { doing: doing.to_owned(), folder: path }
            }
            _ => Self::Files { doing, path, reason: error.to_string() },
        }
    }
}

/// What is wrong with settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A mapping that cannot be read.
    #[error(
        "image mapping {text:?}: {why}; write NAME=tensorflow/tensorflow:X, NAME=python:3.X, NAME=env:DIR or NAME=host"
    )]
    Mapping {
        /// As given.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// A mount that cannot be read or made.
    #[error("mount {text:?}: {why}; write SRC:DST or SRC:DST:ro")]
    Mount {
        /// As given.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// Two mappings or mounts for the same thing.
    #[error("{what} {name:?} is given twice")]
    Twice {
        /// Image or mount.
        what: &'static str,
        /// For which.
        name: String,
    },
    /// An extra package that is not taken.
    #[error("--with: {0}")]
    With(String),
    /// No folder for environments.
    #[error("the folder for environments, {}: {reason}", path.display())]
    Cache {
        /// Where it should be.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
}

impl SettingsError {
    /// A word for this kind of error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mapping { .. } => "BadImageMapping",
            Self::Mount { .. } => "BadMount",
            Self::Twice { .. } => "GivenTwice",
            Self::With(_) => "BadRequirement",
            Self::Cache { .. } => "BadCache",
        }
    }
}
