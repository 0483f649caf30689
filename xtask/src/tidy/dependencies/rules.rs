//! `deny.toml`, in the format of cargo-deny, so that it can be run with the same file. A rule that is not
//! known here is refused, not passed over. Pure.

use anyhow::{Context, Result};
use semver::{Op, Version, VersionReq};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::tidy::Finding;

/// Where the rules are, below the workspace.
pub(crate) const FILE: &str = "deny.toml";

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    pub(crate) graph: Graph,
    // Needs a database; cargo-deny reads it.
    #[serde(rename = "advisories")]
    _advisories: Option<IgnoredAny>,
    pub(crate) licenses: Licences,
    pub(crate) bans: Bans,
    pub(crate) sources: Sources,
}

/// Which part of the dependencies counts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Graph {
    #[serde(default)]
    pub(crate) all_features: bool,
    pub(crate) targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Licences {
    #[serde(rename = "version")]
    _version: Option<IgnoredAny>,
    // Of texts that cargo-deny recognises; here a crate must name its licence.
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: Option<IgnoredAny>,
    pub(crate) allow: Vec<String>,
    #[serde(default = "Level::warn")]
    pub(crate) unused_allowed_license: Level,
    #[serde(default)]
    pub(crate) private: Private,
}

/// Crates that are never published.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Private {
    pub(crate) ignore: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Bans {
    pub(crate) multiple_versions: Level,
    #[serde(default)]
    pub(crate) multiple_versions_include_dev: bool,
    pub(crate) wildcards: Level,
    #[serde(default)]
    pub(crate) allow_wildcard_paths: bool,
    #[serde(default)]
    pub(crate) deny: Vec<Banned>,
    #[serde(default)]
    pub(crate) skip: Vec<Skipped>,
}

/// A crate that nothing but its wrappers may use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Banned {
    #[serde(rename = "crate")]
    pub(crate) spec: Spec,
    #[serde(default)]
    pub(crate) wrappers: Vec<String>,
    #[serde(default)]
    pub(crate) reason: String,
}

/// A version that may be there beside another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Skipped {
    #[serde(rename = "crate")]
    pub(crate) spec: Spec,
    #[serde(default)]
    pub(crate) reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Sources {
    pub(crate) unknown_registry: Level,
    pub(crate) unknown_git: Level,
    #[serde(default)]
    pub(crate) allow_git: Vec<String>,
}

/// How much a rule matters.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Allow,
    Warn,
    Deny,
}

impl Level {
    fn warn() -> Self {
        Self::Warn
    }

    pub(crate) fn finding(self, message: String) -> Option<Finding> {
        match self {
            Self::Allow => None,
            Self::Warn => Some(Finding::Warning(message)),
            Self::Deny => Some(Finding::Error(message)),
        }
    }
}

/// Which crates a line means: `name`, `name@version`, where a version may be cut short, or
/// `name:requirement`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Spec {
    text: String,
    pub(crate) name: String,
    requirement: VersionReq,
}

impl TryFrom<String> for Spec {
    type Error = semver::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (name, requirement) = if let Some((name, version)) = text.split_once('@') {
            let mut requirement = VersionReq::parse(version)?;
            requirement.comparators.iter_mut().for_each(|comparator| comparator.op = Op::Exact);
            (name, requirement)
        } else if let Some((name, requirement)) = text.split_once(':') {
            (name, VersionReq::parse(requirement)?)
        } else {
            (text.as_str(), VersionReq::STAR)
        };
        Ok(Self { name: name.to_owned(), requirement, text })
    }
}

impl std::fmt::Display for Spec {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Spec {
    pub(crate) fn matches(&self, name: &str, version: &str) -> bool {
        self.name == name
            && Version::parse(version).is_ok_and(|version| self.requirement.matches(&version))
    }
}

pub(crate) fn parse(text: &str) -> Result<Rules> {
    toml::from_str(text).with_context(|| format!("cannot read {FILE}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rules of which a test changes one.
    pub(crate) fn strict() -> Rules {
        parse(STRICT).unwrap()
    }

    const STRICT: &str = r#"
        [graph]
        targets = ["x86_64-unknown-linux-gnu"]
        [advisories]
        yanked = "deny"
        [licenses]
        version = 2
        allow = ["MIT", "Apache-2.0"]
        unused-allowed-license = "deny"
        [licenses.private]
        ignore = true
        [bans]
        multiple-versions = "deny"
        multiple-versions-include-dev = true
        wildcards = "deny"
        allow-wildcard-paths = true
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
    "#;

    #[test]
    fn an_unknown_rule_is_refused() {
        assert!(parse(STRICT).is_ok());
        let error = parse(&STRICT.replace("[sources]", "[sources]\nrequired-git-spec = 1"));
        assert!(format!("{:#}", error.unwrap_err()).contains("required-git-spec"));
    }

    #[test]
    fn a_line_means_one_version_or_many() {
        let matches = |spec: &str, version: &str| {
            Spec::try_from(spec.to_owned()).unwrap().matches("syn", version)
        };
        for (spec, version) in
            [("syn", "2.0.1"), ("syn@2", "2.9.0"), ("syn@0.22", "0.22.1"), ("syn:<3", "2.0.0")]
        {
            assert!(matches(spec, version), "{spec} means {version}");
        }
        for (spec, version) in
            [("quote", "2.0.1"), ("syn@2", "3.0.0"), ("syn@2.0.1", "2.0.2"), ("syn:<3", "3.0.0")]
        {
            assert!(!matches(spec, version), "{spec} does not mean {version}");
        }
    }

    #[test]
    fn a_level_decides_how_much_a_finding_matters() {
        let of = |level: Level| level.finding("words".to_owned());
        assert_eq!(of(Level::Allow), None);
        assert_eq!(of(Level::Warn), Some(Finding::Warning("words".to_owned())));
        assert_eq!(of(Level::Deny), Some(Finding::Error("words".to_owned())));
    }
}
