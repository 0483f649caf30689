//! The policy of a namespace, as its labels say: a level and a version for each of three modes.
//!
//! Owns the labels, how they are read and what is said of wrong ones. Must not know what a level asks.

use std::fmt;

use serde_json::Value;
use trainyard_schema::FieldError;

/// How much a level asks, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn read(text: &str) -> Result<Self, &'static str> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        })
    }
}

/// Whose rules of a level hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Those of Kubernetes 1.N; of the newest known where that is older.
    Minor(u32),
    Latest,
}

impl Version {
    fn read(text: &str) -> Result<Self, &'static str> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let digits = text.strip_prefix("v1.").filter(|digits| {
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && (!digits.starts_with('0') || *digits == "0")
        });
        let minor = digits.and_then(|digits| digits.parse().ok()).map(Self::Minor);
        minor.ok_or("must be \"latest\" or \"v1.x\"")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(f, "v1.{minor}"),
            Self::Latest => f.write_str("latest"),
        }
    }
}

/// What one mode asks, shown as `baseline:latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) level: Level,
    pub(super) version: Version,
}

impl Demand {
    const NONE: Self = Self { level: Level::Privileged, version: Version::Latest };
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level, self.version)
    }
}

/// What a namespace asks. The third mode, `audit`, is for a log that is not kept here: its labels are
/// only checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: Demand,
    pub(super) warn: Demand,
}

/// Reads the labels. A wrong one is told, and counts as the strictest where it is enforced and as
/// none where it only warns.
pub(super) fn policy(namespace: &Value) -> (Policy, Vec<FieldError>) {
    let mut errors = Vec::new();
    let (enforce, enforced) = mode(namespace, "enforce", Level::Restricted, &mut errors);
    mode(namespace, "audit", Level::Privileged, &mut errors);
    let (mut warn, warned) = mode(namespace, "warn", Level::Privileged, &mut errors);
    if !warned.has_level && enforced.is_level && enforce.level > warn.level {
        warn.level = enforce.level;
        if !warned.has_version {
            warn.version = enforce.version;
        }
    }
    (Policy { enforce, warn }, errors)
}

/// Which labels of a mode there are.
struct Said {
    has_level: bool,
    /// The level is one.
    is_level: bool,
    has_version: bool,
}

fn mode(
    namespace: &Value,
    mode: &str,
    if_wrong: Level,
    errors: &mut Vec<FieldError>,
) -> (Demand, Said) {
    let said = |key: &str| namespace["metadata"]["labels"][key].as_str();
    let key = format!("pod-security.kubernetes.io/{mode}");
    let mut told = |key: &str, value: &str, why: &str| {
        errors.push(FieldError::invalid(format!("metadata.labels[{key}]"), value, why));
    };
    let mut demand = Demand::NONE;
    let level = said(&key);
    let read = level.map(Level::read);
    match read {
        Some(Ok(level)) => demand.level = level,
        Some(Err(why)) => {
            demand.level = if_wrong;
            told(&key, level.unwrap_or_default(), why);
        }
        None => {}
    }
    let key = format!("{key}-version");
    let version = said(&key);
    match version.map(Version::read) {
        Some(Ok(version)) => demand.version = version,
        Some(Err(why)) => told(&key, version.unwrap_or_default(), why),
        None => {}
    }
    let (has_level, is_level) = (level.is_some(), matches!(read, Some(Ok(_))));
    (demand, Said { has_level, is_level, has_version: version.is_some() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(labels: &[(&str, &str)]) -> (String, String, Vec<String>) {
        let mut namespace = json!({"metadata": {"labels": {}}});
        for (key, value) in labels {
            let key = format!("pod-security.kubernetes.io/{key}");
            namespace["metadata"]["labels"][key] = json!(value);
        }
        let (policy, errors) = policy(&namespace);
        let errors = errors.iter().map(ToString::to_string).collect();
        (policy.enforce.to_string(), policy.warn.to_string(), errors)
    }

    #[test]
    fn what_is_enforced_is_warned_of_unless_it_is_said_otherwise() {
        let plain = |enforce: &str, warn: &str| (enforce.to_owned(), warn.to_owned(), Vec::new());
        assert_eq!(of(&[]), plain("privileged:latest", "privileged:latest"));
        assert_eq!(of(&[("enforce", "baseline")]), plain("baseline:latest", "baseline:latest"));
        assert_eq!(
            of(&[("enforce", "restricted"), ("enforce-version", "v1.24")]),
            plain("restricted:v1.24", "restricted:v1.24")
        );
        assert_eq!(
            of(&[
                ("enforce", "restricted"),
                ("enforce-version", "v1.24"),
                ("warn-version", "v1.9")
            ]),
            plain("restricted:v1.24", "restricted:v1.9")
        );
        assert_eq!(
            of(&[("enforce", "restricted"), ("warn", "privileged")]),
            plain("restricted:latest", "privileged:latest")
        );
    }

    #[test]
    fn wrong_labels_are_told_and_enforced_as_the_strictest() {
        let (enforce, warn, errors) =
            of(&[("enforce", "strict"), ("audit-version", "v1.07"), ("warn", "")]);
        assert_eq!((enforce.as_str(), warn.as_str()), ("restricted:latest", "privileged:latest"));
        let expected = [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"v1.07\": must be \"latest\" or \"v1.x\"",
            "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"\": must be one of privileged, baseline, restricted",
        ];
        assert_eq!(errors, expected);
    }
}
