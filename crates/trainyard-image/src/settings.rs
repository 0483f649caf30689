//! What the user says about images: mappings, mounts, extra packages, where environments are kept.
//! Reads command-line words; files are read by `config`.

use std::path::{Component, Path, PathBuf};

use crate::error::SettingsError;
use crate::reference::Reference;
use crate::requirements;
use crate::tag;

/// How images are found.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where environments are kept; empty means [`default_cache`].
    pub cache: PathBuf,
    /// What stands for which image.
    pub mappings: Vec<Mapping>,
    /// What every container sees besides its image.
    pub mounts: Vec<CodeMount>,
    /// Packages in every environment that is made.
    pub with: Vec<String>,
    /// Packages may be built from their sources, and be named by addresses. Their code then runs when an
    /// environment is made.
    pub source_packages: bool,
    /// Never use the network.
    pub offline: bool,
    /// There is a GPU that TensorFlow can use.
    pub gpu: bool,
    /// What makes environments.
    pub installer: Installer,
}

/// What makes environments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Installer {
    /// `uv` where it is found, else Python's own `venv` and `pip`.
    #[default]
    Any,
    /// Only Python's own `venv` and `pip`.
    Pip,
}

/// What stands for an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The image's name, with or without a tag; with one it stands for that tag alone.
    pub name: String,
    /// What is used.
    pub target: Target,
    /// The image's entrypoint, which cannot be known otherwise.
    pub entrypoint: Vec<String>,
    /// The image's working directory.
    pub working_dir: Option<PathBuf>,
}

/// What an image can be mapped to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An official image: `tensorflow/tensorflow:X` or `python:3.X`.
    Official(String),
    /// A Python environment in this folder.
    Environment(PathBuf),
    /// The host's own programs.
    Host,
}

/// A folder or file of the host in every container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMount {
    /// On the host.
    pub source: PathBuf,
    /// Inside.
    pub target: PathBuf,
    /// Cannot be written inside.
    pub read_only: bool,
}

/// Where environments are kept unless told otherwise: `$XDG_CACHE_HOME/trainyard/envs` or
/// `~/.cache/trainyard/envs`. None where there is neither.
#[must_use]
pub fn default_cache() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("trainyard").join("envs"))
}

impl Settings {
    /// Whether all of it can be used: nothing twice, every source there, every package readable.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let mut names: Vec<_> = self.mappings.iter().map(|mapping| mapping.name.clone()).collect();
        if let Some(name) = first_twice(&mut names) {
            return Err(SettingsError::Twice { what: "image", name });
        }
        let mut targets: Vec<_> =
            self.mounts.iter().map(|mount| mount.target.display().to_string()).collect();
        if let Some(name) = first_twice(&mut targets) {
            return Err(SettingsError::Twice { what: "mount", name });
        }
        for mount in &self.mounts {
            if let Err(error) = mount.source.metadata() {
                return Err(SettingsError::Mount {
                    text: format!("{}:{}", mount.source.display(), mount.target.display()),
                    why: format!("the source cannot be used: {error}"),
                });
            }
        }
        requirements::normalise(&self.with, self.source_packages)
            .map(drop)
            .map_err(|error| SettingsError::With(error.to_string()))
    }
}

fn first_twice(names: &mut [String]) -> Option<String> {
    names.sort();
    names.windows(2).find(|pair| pair.first() == pair.get(1)).and_then(|pair| pair.first().cloned())
}

impl Mapping {
    /// Reads `NAME=TARGET`; relative folders are taken from `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Self, SettingsError> {
        let bad = |why: &str| SettingsError::Mapping { text: text.to_owned(), why: why.to_owned() };
        let (name, target) = text.split_once('=').ok_or_else(|| bad("there is no ="))?;
        Self::new(name.trim(), target.trim(), base).map_err(|why| bad(&why))
    }

    pub(crate) fn new(name: &str, target: &str, base: &Path) -> Result<Self, String> {
        match Reference::parse(name) {
            Ok(parsed) if parsed.digest.is_some() => {
                return Err(format!("{name:?} has a digest; give the name with or without a tag"));
            }
            Err(why) if !is_left_open(name) => return Err(format!("{name:?} is no image: {why}")),
            _ => {}
        }
        Ok(Self {
            name: name.to_owned(),
            target: Target::parse(target, base)?,
            entrypoint: Vec::new(),
            working_dir: None,
        })
    }
}

/// Names with a part in angle brackets, as manifests have them that are to be completed by the reader.
fn is_left_open(name: &str) -> bool {
    let closed = name.find('<').is_some_and(|at| name[at..].find('>').is_some_and(|end| end > 1));
    closed && !name.contains(char::is_whitespace)
}

impl Target {
    fn parse(text: &str, base: &Path) -> Result<Self, String> {
        if text == "host" {
            return Ok(Self::Host);
        }
        if let Some(dir) = text.strip_prefix("env:") {
            if dir.is_empty() {
                return Err("env: names no folder".to_owned());
            }
            return Ok(Self::Environment(absolute(dir, base)));
        }
        let parsed =
            Reference::parse(text).map_err(|why| format!("{text:?} is no image: {why}"))?;
        let known = (parsed.is_tensorflow() && tag::tensorflow(parsed.tag()).is_some())
            || (parsed.is_python() && tag::python(parsed.tag()).is_some());
        if known {
            Ok(Self::Official(text.to_owned()))
        } else {
            Err(format!("{text:?} is none that can be made here"))
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Official(name) => f.write_str(name),
            Self::Environment(dir) => write!(f, "env:{}", dir.display()),
            Self::Host => f.write_str("host"),
        }
    }
}

impl CodeMount {
    /// Reads `SRC:DST[:ro|:rw]`; a relative source is taken from `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Self, SettingsError> {
        let bad = |why: &str| SettingsError::Mount { text: text.to_owned(), why: why.to_owned() };
        let (rest, read_only) = match text.rsplit_once(':') {
            Some((rest, "ro")) => (rest, true),
            Some((rest, "rw")) => (rest, false),
            _ => (text, false),
        };
        let (source, target) =
            rest.rsplit_once(':').ok_or_else(|| bad("there is no : between source and target"))?;
        Self::new(source, target, read_only, base).map_err(|why| bad(&why))
    }

    pub(crate) fn new(
        source: &str,
        target: &str,
        read_only: bool,
        base: &Path,
    ) -> Result<Self, String> {
        if source.is_empty() {
            return Err("there is no source".to_owned());
        }
        let target = PathBuf::from(target);
        if !target.is_absolute() {
            return Err(format!("the target {:?} is not absolute", target.display()));
        }
        if target == Path::new("/") || target.components().any(|part| part == Component::ParentDir)
        {
            return Err(format!("the target {:?} cannot be mounted on", target.display()));
        }
        Ok(Self { source: absolute(source, base), target, read_only })
    }
}

/// Expands `~/` and makes the path absolute.
fn absolute(text: &str, base: &Path) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    match text.strip_prefix("~/").and_then(|rest| Some(home()?.join(rest))) {
        Some(path) => path,
        None => base.join(text).components().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> &'static Path {
        Path::new("/base")
    }

    #[test]
    fn mappings_are_read() {
        let mapping =
            Mapping::parse("gcr.io/me/mnist:1=tensorflow/tensorflow:2.21.0", base()).unwrap();
        assert_eq!(mapping.name, "gcr.io/me/mnist:1");
        assert_eq!(mapping.target, Target::Official("tensorflow/tensorflow:2.21.0".to_owned()));
        let mapping = Mapping::parse("mnist=env:venvs/a", base()).unwrap();
        assert_eq!(mapping.target, Target::Environment(PathBuf::from("/base/venvs/a")));
        assert_eq!(Mapping::parse("mnist=host", base()).unwrap().target, Target::Host);
        assert!(Mapping::parse("mnist=python:3.11-slim", base()).is_ok());
        assert_eq!(Mapping::parse("<IMAGE>=host", base()).unwrap().name, "<IMAGE>");
    }

    #[test]
    fn bad_mappings_say_what_is_wrong() {
        for (text, words) in [
            ("mnist", "there is no ="),
            ("Mnist=host", "must be lowercase"),
            ("<IMAGE=host", "is no image"),
            ("<>=host", "is no image"),
            ("<MY IMAGE>=host", "is no image"),
            ("mnist=", "is no image"),
            ("mnist=env:", "names no folder"),
            ("mnist=gcr.io/other", "none that can be made here"),
            ("mnist=tensorflow/tensorflow:nightly", "none that can be made here"),
        ] {
            let error = Mapping::parse(text, base()).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("NAME=host"), "{text}: {error}");
        }
    }

    #[test]
    fn mounts_are_read() {
        let mount = CodeMount::parse("./code:/app:ro", base()).unwrap();
        assert_eq!(mount.source, Path::new("/base/code"));
        assert_eq!((mount.target.as_path(), mount.read_only), (Path::new("/app"), true));
        assert!(!CodeMount::parse("/code:/app", base()).unwrap().read_only);
        assert!(!CodeMount::parse("/code:/app:rw", base()).unwrap().read_only);
        assert_eq!(CodeMount::parse("/a:b:/app", base()).unwrap().source, Path::new("/a:b"));
    }

    #[test]
    fn bad_mounts_say_what_is_wrong() {
        for (text, words) in [
            ("/code", "there is no :"),
            ("/code:app", "is not absolute"),
            (":/app", "there is no source"),
            ("/code:/", "cannot be mounted on"),
            ("/code:/a/../b", "cannot be mounted on"),
        ] {
            let error = CodeMount::parse(text, base()).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
