//! What `trainyard.toml` says: `[images]`, `[[mounts]]`, `with`, and which packages may be installed.
//! Unknown keys are errors that name the line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};

use crate::settings::{CodeMount, Mapping, Settings};

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// From `[images]`.
    pub mappings: Vec<Mapping>,
    /// From `[[mounts]]`.
    pub mounts: Vec<CodeMount>,
    /// From `with`.
    pub with: Vec<String>,
    /// From `allow-source-packages`: packages may be built from their sources.
    pub allow_source_packages: bool,
    /// From `allow-requirements`: pods may ask for packages.
    pub allow_requirements: bool,
}

/// Why the file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, with the line.
    pub reason: String,
}

impl ConfigError {
    /// A word for this kind of error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        "BadConfigFile"
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Raw {
    images: BTreeMap<String, toml::Spanned<RawImage>>,
    mounts: Vec<toml::Spanned<RawMount>>,
    with: Vec<String>,
    allow_source_packages: bool,
    allow_requirements: bool,
}

struct RawImage {
    detail: RawDetail,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawDetail {
    #[serde(rename = "use")]
    target: String,
    #[serde(default)]
    entrypoint: Vec<String>,
    #[serde(default)]
    working_dir: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawMount {
    source: String,
    target: String,
    #[serde(default)]
    read_only: bool,
}

impl<'de> Deserialize<'de> for RawImage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrTable;
        impl<'de> Visitor<'de> for StringOrTable {
            type Value = RawImage;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("what to use for the image, or a table with `use`")
            }
            fn visit_str<E>(self, text: &str) -> Result<RawImage, E> {
                let target = text.to_owned();
                let detail = RawDetail { target, entrypoint: Vec::new(), working_dir: None };
                Ok(RawImage { detail })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawImage, A::Error> {
                let detail = RawDetail::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawImage { detail })
            }
        }
        deserializer.deserialize_any(StringOrTable)
    }
}

impl ConfigFile {
    /// Reads the file's text. Relative paths in it are taken from the folder of `file`.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let bad = |reason: String| ConfigError { file: file.to_owned(), reason };
        let at = |offset: usize, why: String| {
            let line = text.get(..offset).unwrap_or_default().matches('\n').count() + 1;
            bad(format!("line {line}: {why}"))
        };
        let raw: Raw = toml::from_str(text).map_err(|error| match error.span() {
            Some(span) => at(span.start, error.message().to_owned()),
            None => bad(error.message().to_owned()),
        })?;
        let base = file.parent().unwrap_or(Path::new("."));
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        let mut found = Self {
            with: raw.with,
            allow_source_packages: raw.allow_source_packages,
            allow_requirements: raw.allow_requirements,
            ..Self::default()
        };
        for (name, image) in raw.images {
            let offset = image.span().start;
            let detail = image.into_inner().detail;
            let mut mapping = Mapping::new(&name, &detail.target, &base)
                .map_err(|why| at(offset, format!("image {name:?}: {why}")))?;
            mapping.entrypoint = detail.entrypoint;
            mapping.working_dir = detail.working_dir;
            found.mappings.push(mapping);
        }
        for mount in raw.mounts {
            let offset = mount.span().start;
            let mount = mount.into_inner();
            let mount = CodeMount::new(&mount.source, &mount.target, mount.read_only, &base)
                .map_err(|why| at(offset, format!("mount: {why}")))?;
            found.mounts.push(mount);
        }
        Ok(found)
    }

    /// Adds what the file says to settings; what is there already (from the command line) wins.
    pub fn apply(self, settings: &mut Settings) {
        for mapping in self.mappings {
            if !settings.mappings.iter().any(|given| given.name == mapping.name) {
                settings.mappings.push(mapping);
            }
        }
        for mount in self.mounts {
            if !settings.mounts.iter().any(|given| given.target == mount.target) {
                settings.mounts.push(mount);
            }
        }
        settings.with.extend(self.with);
        settings.source_packages |= self.allow_source_packages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Target;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(text, Path::new("/project/trainyard.toml"))
    }

    #[test]
    fn a_whole_file_is_read() {
        let file = parse(
            r#"
with = ["scikit-learn"]
allow-source-packages = true
[images]
"gcr.io/me/mnist:1" = "tensorflow/tensorflow:2.21.0"
other = { use = "env:venv", entrypoint = ["python", "/app/main.py"], working-dir = "/app" }
[[mounts]]
source = "code"
target = "/app"
read-only = true
"#,
        )
        .unwrap();
        assert_eq!(file.with, ["scikit-learn"]);
        assert!(file.allow_source_packages && !file.allow_requirements);
        let other = file.mappings.iter().find(|mapping| mapping.name == "other").unwrap();
        assert_eq!(other.target, Target::Environment(PathBuf::from("/project/venv")));
        assert_eq!(other.entrypoint, ["python", "/app/main.py"]);
        assert_eq!(other.working_dir.as_deref(), Some(Path::new("/app")));
        assert_eq!(file.mappings.len(), 2);
        assert_eq!(file.mounts[0].source, Path::new("/project/code"));
        assert!(file.mounts[0].read_only);
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, line, words) in [
            ("wiht = []\n", 1, "unknown field `wiht`"),
            ("with = []\n[images]\nmnist = 3\n", 3, "what to use for the image"),
            ("\n[images]\nmnist = \"gcr.io/x\"\n", 3, "none that can be made here"),
            ("[images]\nmnist = { use = \"host\", entry = [] }\n", 2, "unknown field `entry`"),
            ("[[mounts]]\nsource = \"a\"\ntarget = \"b\"\n", 1, "is not absolute"),
            ("[[mounts]]\nsource = \"a\"\ntarget = \"/b\"\nro = true\n", 4, "unknown field `ro`"),
            ("with = [\n", 1, "unclosed array"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            let place = format!("/project/trainyard.toml: line {line}: ");
            assert!(error.starts_with(&place) && error.contains(words), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let mut settings = Settings {
            mappings: vec![Mapping::parse("mnist=host", Path::new("/")).unwrap()],
            ..Settings::default()
        };
        parse("[images]\nmnist = \"python:3.11\"\nb = \"host\"\n").unwrap().apply(&mut settings);
        assert_eq!(settings.mappings.len(), 2);
        assert_eq!(settings.mappings[0].target, Target::Host);
    }
}
