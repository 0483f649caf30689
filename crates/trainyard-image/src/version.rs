//! Versions of packages and of Python, and what a tag asks of them. Pure; a small part of PEP 440:
//! releases, release candidates and post-releases, which is what the packages here use.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A package's version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Version {
    pub(crate) release: Vec<u32>,
    /// `a`, `b` or `rc`, and its number.
    pub(crate) pre: Option<(String, u32)>,
    pub(crate) post: Option<u32>,
}

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (numbers, mut rest) = text.split_at(end);
        let numbers = if rest.is_empty() { numbers } else { numbers.trim_end_matches('.') };
        let release: Vec<u32> = numbers
            .split('.')
            .map(|part| if part.len() < 6 { part.parse().ok() } else { None })
            .collect::<Option<_>>()?;
        let mut version = Self { release, pre: None, post: None };
        rest = rest.trim_start_matches(['-', '.']);
        for label in ["rc", "a", "b"] {
            if let Some(after) = rest.strip_prefix(label) {
                let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
                version.pre = Some((label.to_owned(), digits.parse().ok()?));
                rest = after[digits.len()..].trim_start_matches('.');
                break;
            }
        }
        if let Some(after) = rest.strip_prefix("post") {
            version.post = Some(after.parse().ok()?);
            rest = "";
        }
        (rest.is_empty() && (end == text.len() || version.pre.is_some() || version.post.is_some()))
            .then_some(version)
    }

    pub(crate) fn major_minor(&self) -> (u32, u32) {
        (
            self.release.first().copied().unwrap_or_default(),
            self.release.get(1).copied().unwrap_or_default(),
        )
    }

    pub(crate) fn is_pre_release(&self) -> bool {
        self.pre.is_some()
    }

    fn significant(&self) -> &[u32] {
        let end = self.release.iter().rposition(|part| *part != 0).map_or(0, |last| last + 1);
        self.release.get(..end).unwrap_or_default()
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let pre = |version: &Self| version.pre.clone().unwrap_or_else(|| ("~".to_owned(), 0));
        self.significant()
            .cmp(other.significant())
            .then_with(|| pre(self).cmp(&pre(other)))
            .then_with(|| self.post.cmp(&other.post))
            .then_with(|| self.release.len().cmp(&other.release.len()))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release: Vec<String> = self.release.iter().map(ToString::to_string).collect();
        f.write_str(&release.join("."))?;
        if let Some((label, number)) = &self.pre {
            write!(f, "{label}{number}")?;
        }
        self.post.map_or(Ok(()), |number| write!(f, ".post{number}"))
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not a version"))
    }
}

/// A version of Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Python {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

impl fmt::Display for Python {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What a tag asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The newest there is.
    Latest,
    /// The newest that begins so: `2`, `2.16`.
    Prefix(Vec<u32>),
    /// This one.
    Exact(Version),
}

impl Wanted {
    /// Three numbers are a whole version, fewer are the beginning of one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let version = Version::parse(text)?;
        let whole = version.release.len() > 2 || version.is_pre_release() || version.post.is_some();
        Some(if whole { Self::Exact(version) } else { Self::Prefix(version.release) })
    }

    pub(crate) fn matches(&self, version: &Version) -> bool {
        match self {
            Self::Latest => !version.is_pre_release(),
            Self::Prefix(prefix) => {
                !version.is_pre_release() && version.release.starts_with(prefix)
            }
            Self::Exact(exact) => exact == version,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Prefix(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                f.write_str(&parts.join("."))
            }
            Self::Exact(version) => version.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn versions_are_read_and_written_alike() {
        for text in ["2", "2.16", "2.21.0", "2.15.0.post1", "2.9.0rc1", "1.0.0a2"] {
            assert_eq!(version(text).to_string(), text);
        }
        assert_eq!(version("2.9.0-rc1"), version("2.9.0rc1"));
        for text in ["", "x", "2.", ".2", "2..1", "2.1-gpu", "2.1x", "2.rc", "99999999999.1", "2-"]
        {
            assert!(Version::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number_not_by_letter() {
        let ordered = ["1.15.5", "2.2.0", "2.9.0rc1", "2.9.0", "2.15.0", "2.15.0.post1", "2.15.1"];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn short_tags_mean_the_beginning_of_a_version() {
        let wanted = Wanted::parse("2.1").unwrap();
        assert!(wanted.matches(&version("2.1.4")));
        assert!(!wanted.matches(&version("2.16.1")));
        assert!(!wanted.matches(&version("2.1.5rc0")));
        assert_eq!(Wanted::parse("2.16.1"), Some(Wanted::Exact(version("2.16.1"))));
        assert_eq!(Wanted::parse("latest"), Some(Wanted::Latest));
        assert_eq!(Wanted::parse("nightly"), None);
    }
}
