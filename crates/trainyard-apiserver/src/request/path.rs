//! The path of a request: which group, version, namespace, resource, name and subresource.
//!
//! Must not know which kinds there are.

/// A path below `/api/v1` or `/apis/GROUP/VERSION`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ApiPath {
    /// Empty for the core.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    /// The plural name; empty for the list of resources.
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// What stands behind the subresource (`proxy/healthz`).
    pub(crate) rest: String,
    /// Whether it is the old form of a watch: `/api/v1/watch/pods`.
    pub(crate) watching: bool,
}

/// What a path is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// A version's resources or something in them.
    Api(ApiPath),
    /// Anything else, as it stands.
    Other(String),
}

const DEEPEST: usize = 24;

/// Reads a path.
pub(crate) fn read(path: &str) -> Path {
    let other = || Path::Other(path.to_owned());
    let segments: Option<Vec<String>> =
        path.trim_matches('/').split('/').take(DEEPEST).map(decoded).collect();
    let Some(segments) = segments else { return other() };
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["api"] => Path::CoreVersions,
        ["apis"] => Path::Groups,
        ["apis", group] => Path::Group((*group).to_owned()),
        ["api", version, rest @ ..] => Path::Api(inside("", version, rest)),
        ["apis", group, version, rest @ ..] => Path::Api(inside(group, version, rest)),
        _ => other(),
    }
}

/// Undoes `%41`; `None` when what comes out is no text.
fn decoded(segment: &str) -> Option<String> {
    if !segment.contains('%') {
        return Some(segment.to_owned());
    }
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = (byte == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let value = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(value) = value.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            out.push(value);
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

fn inside(group: &str, version: &str, rest: &[&str]) -> ApiPath {
    let mut path = ApiPath { group: group.into(), version: version.into(), ..ApiPath::default() };
    let rest = match rest {
        ["watch", inner @ ..] if !inner.is_empty() => {
            path.watching = true;
            inner
        }
        all => all,
    };
    let own = |words: &[&str]| matches!(words.first(), Some(&("status" | "finalize")));
    let rest = match rest {
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() && !own(inner) => {
            path.namespace = Some((*namespace).to_owned());
            inner
        }
        all => all,
    };
    let mut words = rest.iter().map(|word| (*word).to_owned());
    path.resource = words.next().unwrap_or_default();
    path.name = words.next();
    path.subresource = words.next();
    path.rest = words.collect::<Vec<_>>().join("/");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(path: &str) -> ApiPath {
        match read(path) {
            Path::Api(path) => path,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_of_all_shapes() {
        assert_eq!(read("/api"), Path::CoreVersions);
        assert_eq!(read("/apis/"), Path::Groups);
        assert_eq!(read("/apis/batch"), Path::Group("batch".into()));
        assert_eq!(read("/version"), Path::Other("/version".into()));
        let pod = api("/api/v1/namespaces/default/pods/a/log");
        assert_eq!(pod.namespace.as_deref(), Some("default"));
        assert_eq!((pod.resource.as_str(), pod.name.as_deref()), ("pods", Some("a")));
        assert_eq!(pod.subresource.as_deref(), Some("log"));
        let job = api("/apis/kubeflow.org/v1/tfjobs");
        assert_eq!((job.group.as_str(), job.resource.as_str()), ("kubeflow.org", "tfjobs"));
    }

    #[test]
    fn a_namespace_is_an_object_too() {
        let namespace = api("/api/v1/namespaces/a");
        assert_eq!(
            (namespace.resource.as_str(), namespace.name.as_deref()),
            ("namespaces", Some("a"))
        );
        let finalize = api("/api/v1/namespaces/a/finalize");
        assert_eq!(finalize.subresource.as_deref(), Some("finalize"));
        assert_eq!(finalize.namespace, None);
    }

    #[test]
    fn escapes_are_undone_and_broken_ones_kept() {
        assert_eq!(api("/api/v1/nodes/a%2Db").name.as_deref(), Some("a-b"));
        assert_eq!(api("/api/v1/nodes/a%zz").name.as_deref(), Some("a%zz"));
        assert!(matches!(read("/api/v1/nodes/%ff"), Path::Other(_)));
    }
}
