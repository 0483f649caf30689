//! Names of images, by the grammar that registries use: `[domain/]path[:tag][@digest]`. Pure; says
//! what is wrong with a name in the words users know.

/// The registry that a name without one means, as names are normalised everywhere.
const DEFAULT_DOMAIN: &str = "docker.io";
const LONGEST_NAME: usize = 255;

/// A name taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The registry.
    pub(crate) domain: String,
    /// The repository in it.
    pub(crate) path: String,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<String>,
}

impl Reference {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) if is_digest(digest) => (rest, Some(digest.to_owned())),
            Some(_) => return Err("invalid reference format"),
            None => (text, None),
        };
        // A colon after the last slash begins a tag; one before it belongs to a port.
        let start = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[start..].find(':') {
            Some(colon) => {
                let (name, tag) = rest.split_at(start + colon);
                (name, Some(tag[1..].to_owned()))
            }
            None => (rest, None),
        };
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err("invalid reference format");
        }
        let (domain, path) = split_domain(name);
        let parts: Vec<&str> = path.split('/').collect();
        if !is_domain(domain) {
            return Err("invalid reference format");
        }
        if !parts.iter().all(|part| is_path_part(part)) {
            let lower = path.to_ascii_lowercase();
            let only_case = lower != path && lower.split('/').all(is_path_part);
            return Err(if only_case {
                "invalid reference format: repository name must be lowercase"
            } else {
                "invalid reference format"
            });
        }
        if name.len() > LONGEST_NAME {
            return Err("repository name must not be more than 255 characters");
        }
        let path = if domain == DEFAULT_DOMAIN && parts.len() == 1 {
            format!("library/{path}")
        } else {
            path.to_owned()
        };
        Ok(Self { domain: domain.to_owned(), path, tag, digest })
    }

    /// The tag, or the one that its absence means.
    pub(crate) fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// The official TensorFlow image, from whatever registry or mirror.
    pub(crate) fn is_tensorflow(&self) -> bool {
        self.path == "tensorflow/tensorflow" || self.path.ends_with("/tensorflow/tensorflow")
    }

    /// The official Python image, from whatever registry or mirror.
    pub(crate) fn is_python(&self) -> bool {
        self.path == "python"
            || self.path == "library/python"
            || self.path.ends_with("/library/python")
    }

    /// Whether both name the same repository.
    pub(crate) fn same_repository(&self, other: &Self) -> bool {
        self.domain == other.domain && self.path == other.path
    }
}

fn split_domain(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.chars().any(|c| c.is_ascii_uppercase()) =>
        {
            (if first == "index.docker.io" { DEFAULT_DOMAIN } else { first }, rest)
        }
        _ => (DEFAULT_DOMAIN, name),
    }
}

fn is_domain(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(h, p)| (h, Some(p)));
    let port_is_good =
        port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = bracketed {
        return port_is_good && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    port_is_good
        && host.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
}

/// Lower-case letters and digits, separated by `.`, `_`, `__` or any number of dashes.
fn is_path_part(part: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = part.as_bytes();
    if !bytes.first().is_some_and(|b| plain(*b)) || !bytes.last().is_some_and(|b| plain(*b)) {
        return false;
    }
    part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()).all(|separator| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|b| b == b'-')
    })
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else { return false };
    let mut parts = algorithm.split(['+', '.', '-', '_']);
    parts.all(|part| {
        part.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric())
    }) && hex.len() >= 32
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Reference {
        Reference::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn names_are_normalised() {
        let plain = parsed("mnist");
        assert_eq!((plain.domain.as_str(), plain.path.as_str()), ("docker.io", "library/mnist"));
        assert_eq!(plain.tag(), "latest");
        let whole = parsed("localhost:5000/team/mnist_v2:1.0-a");
        assert_eq!(
            (whole.domain.as_str(), whole.path.as_str()),
            ("localhost:5000", "team/mnist_v2")
        );
        assert_eq!(whole.tag(), "1.0-a");
        assert!(parsed("docker.io/library/mnist:2").same_repository(&plain));
        assert!(parsed("index.docker.io/mnist").same_repository(&plain));
        assert!(!parsed("gcr.io/library/mnist").same_repository(&plain));
    }

    #[test]
    fn official_images_are_known_from_any_registry() {
        for text in [
            "tensorflow/tensorflow",
            "docker.io/tensorflow/tensorflow:2.9.1",
            "mirror.example:5000/proxy/tensorflow/tensorflow:2.9.1-gpu",
        ] {
            assert!(parsed(text).is_tensorflow(), "{text}");
        }
        assert!(!parsed("gcr.io/me/nottensorflow/tensorflow").is_tensorflow());
        assert!(parsed("python:3.11").is_python());
        assert!(parsed("mirror.example/library/python:3.11").is_python());
        assert!(!parsed("gcr.io/me/python:3.11").is_python());
    }

    #[test]
    fn digests_are_kept() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let with = parsed(&format!("tensorflow/tensorflow:2.9.1@{digest}"));
        assert_eq!((with.tag(), with.digest.as_deref()), ("2.9.1", Some(digest.as_str())));
        assert!(Reference::parse("a@sha256:12").is_err());
    }

    #[test]
    fn what_is_no_name_is_refused_in_known_words() {
        assert_eq!(
            Reference::parse("Team/Mnist"),
            Err("invalid reference format: repository name must be lowercase")
        );
        assert_eq!(
            Reference::parse(&"a".repeat(300)),
            Err("repository name must not be more than 255 characters")
        );
        for text in [
            "",
            " ",
            "<IMAGE>",
            "<DOCKER_USERNAME>/tf-mnist:gpu",
            "a:",
            "a/",
            "/a",
            "a//b",
            "a b",
            "a:b:c",
            "-a",
            "a_",
            "a___b",
            "a..b",
            "x@y",
            "http://a/b",
            "ü",
            "a:-b",
        ] {
            assert_eq!(Reference::parse(text), Err("invalid reference format"), "{text:?}");
        }
    }
}
