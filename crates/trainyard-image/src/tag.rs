//! What the tags of the official images mean: `2.16.1-gpu-jupyter`, `latest-py3`, `3.11-slim`. Pure.

use crate::version::Wanted;

/// A tag of `tensorflow/tensorflow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TensorflowTag {
    pub(crate) wanted: Wanted,
    pub(crate) gpu: bool,
    pub(crate) jupyter: bool,
}

/// None for tags that name no release, as `nightly` or `custom-op-ubuntu16`.
pub(crate) fn tensorflow(tag: &str) -> Option<TensorflowTag> {
    let mut found = TensorflowTag { wanted: Wanted::Latest, gpu: false, jupyter: false };
    let mut parts = tag.split('-').peekable();
    let first = parts.peek().copied().unwrap_or_default();
    if let Some(wanted) = Wanted::parse(first) {
        parts.next();
        found.wanted = wanted;
        // `2.9.0-rc1` and `2.9.0rc1` are both in use.
        if let Some(pre) = parts.next_if(|part| part.starts_with("rc")) {
            found.wanted = Wanted::parse(&format!("{first}{pre}"))?;
        }
    }
    for part in parts {
        match part {
            "gpu" => found.gpu = true,
            "jupyter" => found.jupyter = true,
            "py3" | "py2" | "devel" | "cpu" => {}
            _ => return None,
        }
    }
    Some(found)
}

/// A tag of `python`: the flavour of the distribution after the version says nothing here.
pub(crate) fn python(tag: &str) -> Option<Wanted> {
    let (version, _flavour) = tag.split_once('-').unwrap_or((tag, ""));
    match version {
        "slim" | "alpine" | "bookworm" | "bullseye" | "buster" | "trixie" => Some(Wanted::Latest),
        _ => Wanted::parse(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    #[test]
    fn suffixes_are_taken_in_any_order() {
        let tag = tensorflow("2.16.1-gpu-jupyter").unwrap();
        assert_eq!(tag.wanted, Wanted::Exact(Version::parse("2.16.1").unwrap()));
        assert!(tag.gpu && tag.jupyter);
        let tag = tensorflow("1.13.1-devel-gpu-py3-jupyter").unwrap();
        assert!(tag.gpu && tag.jupyter);
        for latest in ["latest", "latest-gpu", "gpu", "py3", "latest-devel-py3", "devel-gpu"] {
            assert_eq!(tensorflow(latest).unwrap().wanted, Wanted::Latest, "{latest}");
        }
        assert_eq!(tensorflow("2.16").unwrap().wanted, Wanted::Prefix(vec![2, 16]));
        assert_eq!(tensorflow("2.9.0-rc1-gpu"), tensorflow("2.9.0rc1-gpu"));
    }

    #[test]
    fn tags_that_name_no_release_are_none() {
        for tag in ["nightly", "nightly-gpu", "custom-op-ubuntu16", "2.16.1-foo", "", "v2.1"] {
            assert_eq!(tensorflow(tag), None, "{tag}");
        }
    }

    #[test]
    fn flavours_of_python_do_not_matter() {
        assert_eq!(python("3.11"), Some(Wanted::Prefix(vec![3, 11])));
        assert_eq!(python("3.11-slim-bookworm"), python("3.11-alpine"));
        assert_eq!(python("slim"), Some(Wanted::Latest));
        assert!(matches!(python("3.11.7-slim"), Some(Wanted::Exact(_))));
        assert_eq!(python("windowsservercore"), None);
    }
}
