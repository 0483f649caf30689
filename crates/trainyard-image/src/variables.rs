//! The environment of programs that make environments: what the administrator says of package indexes,
//! certificates and proxies, and nothing else of the caller's own. Pure but for looking at the files that
//! it names.

use std::path::{Path, PathBuf};

use crate::ground::Server;

/// Where programs are that are no part of an environment.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables about indexes, and how they are reached.
const KEPT: [&str; 27] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_TRUSTED_HOST",
    "PIP_PROXY",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_TIMEOUT",
    "PIP_RETRIES",
    "PIP_USE_FEATURE",
    "PIP_USE_DEPRECATED",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_NO_INDEX",
    "UV_INSECURE_HOST",
    "UV_HTTP_TIMEOUT",
    "UV_HTTP_RETRIES",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "UV_INDEX",
];
/// With the names of indexes behind it: `UV_INDEX_URL`, `UV_INDEX_INTERNAL_PASSWORD`.
const KEPT_PREFIX: &str = "UV_INDEX_";
/// Those whose values are files or folders of this machine, several with blanks between them.
const FILES: [&str; 10] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_FIND_LINKS",
    "UV_CONFIG_FILE",
    "UV_FIND_LINKS",
];
/// Keys of pip's configuration whose values are files or folders.
const FILE_KEYS: [&str; 3] = ["cert", "client-cert", "find-links"];

/// What the administrator says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// Variables.
    pub(crate) variables: Vec<(String, String)>,
    /// Files and folders that those name.
    pub(crate) files: Vec<PathBuf>,
    /// Servers that those name.
    pub(crate) servers: Vec<Server>,
}

impl Given {
    /// What this process' environment says.
    pub(crate) fn here() -> Self {
        let pairs = std::env::vars_os();
        let pairs = pairs.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::of(&pairs.collect::<Vec<_>>(), Path::new("/"))
    }

    /// What an environment says; its files lie below `root`.
    fn of(all: &[(String, String)], root: &Path) -> Self {
        let find = |name: &str| {
            all.iter()
                .find(|(known, value)| known == name && !value.is_empty())
                .map(|pair| &*pair.1)
        };
        let kept = |name: &str| {
            KEPT.contains(&name) || FILES.contains(&name) || name.starts_with(KEPT_PREFIX)
        };
        let mut variables: Vec<(String, String)> =
            all.iter().filter(|(name, _)| kept(name)).cloned().collect();
        let on_disk = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
        // Their own folder, in which programs look for them, is not shown.
        let home = find("HOME").map(PathBuf::from);
        let config = find("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
        let own = |folder: &Option<PathBuf>, file: &str| Some(folder.as_ref()?.join(file));
        let system = |file: &str| Some(PathBuf::from(file));
        let pip = [own(&config, "pip/pip.conf"), own(&home, ".pip/pip.conf")];
        let uv =
            [own(&config, "uv/uv.toml"), system("/etc/xdg/uv/uv.toml"), system("/etc/uv/uv.toml")];
        for (name, files) in [("PIP_CONFIG_FILE", &pip[..]), ("UV_CONFIG_FILE", &uv[..])] {
            let file = files.iter().flatten().find(|file| on_disk(file).is_file());
            if let (None, Some(file)) = (find(name), file) {
                variables.push((name.to_owned(), file.display().to_string()));
            }
        }
        let mut files: Vec<PathBuf> = variables
            .iter()
            .filter(|(name, _)| FILES.contains(&name.as_str()))
            .flat_map(|(_, value)| paths(value))
            .collect();
        let mut texts: Vec<String> = variables.iter().map(|(_, value)| value.clone()).collect();
        let more = ["/etc/pip.conf", "/etc/xdg/pip/pip.conf"].map(PathBuf::from);
        for file in files.clone().into_iter().chain(more) {
            let is_config = file.extension().is_some_and(|it| it == "conf" || it == "toml");
            let text = is_config.then(|| std::fs::read_to_string(on_disk(&file)).ok()).flatten();
            let Some(text) = text else { continue };
            files.extend(named(&text));
            // As a variable it can be led through a sandbox.
            if let (None, Some(proxy)) = (find("PIP_PROXY"), proxy(&text)) {
                variables.push(("PIP_PROXY".to_owned(), proxy.to_owned()));
            }
            files.push(file);
            texts.push(text);
        }
        files.retain(|file| file.is_absolute() && on_disk(file).exists());
        files.sort();
        files.dedup();
        let mut servers: Vec<Server> = texts.iter().flat_map(|text| servers(text)).collect();
        servers.sort();
        servers.dedup();
        Self { variables, files, servers }
    }
}

/// What every such program is told, with a home of its own.
pub(crate) fn plain(home: &Path) -> Vec<(String, String)> {
    let home = home.display().to_string();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        pair("PATH", PATH),
        pair("HOME", &home),
        pair("LANG", "C.UTF-8"),
        pair("LC_ALL", "C.UTF-8"),
        pair("NO_COLOR", "1"),
        pair("PIP_CACHE_DIR", &format!("{home}/.cache/pip")),
        pair("UV_CACHE_DIR", &format!("{home}/.cache/uv")),
        // What is fetched and where it is put are different mounts in a sandbox.
        pair("UV_LINK_MODE", "copy"),
    ]
}

/// The paths among words.
fn paths(words: &str) -> impl Iterator<Item = PathBuf> {
    words
        .split_whitespace()
        .map(|word| word.strip_prefix("file://").unwrap_or(word))
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
}

/// The files that a configuration of pip names.
fn named(text: &str) -> Vec<PathBuf> {
    let mut is_file = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let value = if line.starts_with(char::is_whitespace) {
            line
        } else {
            let (key, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
            is_file = FILE_KEYS.contains(&key.trim());
            value
        };
        if is_file {
            found.extend(paths(value));
        }
    }
    found
}

/// The proxy that a configuration of pip names.
fn proxy(text: &str) -> Option<&str> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(key, value)| (key.trim(), value.trim()))
        .find(|pair| pair.0 == "proxy")
        .map(|it| it.1)
}

/// The servers whose addresses stand in a text.
fn servers(text: &str) -> Vec<Server> {
    let mut found = Vec::new();
    for (scheme, usual) in [("http://", 80), ("https://", 443)] {
        for (at, _) in text.match_indices(scheme) {
            let rest = &text[at + scheme.len()..];
            let ends =
                |c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | ',' | '?' | '#');
            let authority = rest.split(ends).next().unwrap_or_default();
            let place = authority.rsplit('@').next().unwrap_or_default();
            let (host, port) = match place.strip_prefix('[') {
                Some(rest) => rest.split_once(']').unwrap_or((rest, "")),
                None => place.split_at(place.find(':').unwrap_or(place.len())),
            };
            let port = port.strip_prefix(':').map_or(Ok(usual), str::parse);
            if let (false, Ok(port)) = (host.is_empty(), port) {
                found.push(Server { host: host.to_owned(), port });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn server(host: &str, port: u16) -> Server {
        Server { host: host.to_owned(), port }
    }

    #[test]
    fn only_what_is_about_indexes_is_kept() {
        let all = pairs(&[
            ("HOME", "/users/me"),
            ("PATH", "/users/me/bin"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("PYTHONPATH", "/tmp"),
            ("PIP_TARGET", "/tmp"),
            ("PIP_INDEX_URL", "https://me:word@index.example/simple"),
            ("UV_INDEX_INNER_PASSWORD", "word"),
            ("UV_PYTHON", "3.9"),
            ("no_proxy", "localhost"),
            ("LD_PRELOAD", "/tmp/x.so"),
        ]);
        let given = Given::of(&all, Path::new("/nowhere"));
        let names: Vec<&str> = given.variables.iter().map(|pair| pair.0.as_str()).collect();
        assert_eq!(names, ["PIP_INDEX_URL", "UV_INDEX_INNER_PASSWORD", "no_proxy"]);
        assert_eq!(given.servers, [server("index.example", 443)]);
        let own = plain(Path::new("/work"));
        assert!(own.contains(&("HOME".to_owned(), "/work".to_owned())));
    }

    #[test]
    fn files_that_the_configuration_names_are_found() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let conf = "[global]\nindex-url = http://127.0.0.1:3141/simple\ncert: /ca/own.pem\n\
                    proxy = http://gate:8080\nfind-links =\n    /wheels\n    https://[::1]/x\ncache-dir = /secret\n";
        write("users/me/.config/pip/pip.conf", conf);
        for file in ["ca/own.pem", "ca/other.pem", "secret/x", "wheels/y", "links/z"] {
            write(file, "");
        }
        let all = pairs(&[
            ("HOME", "/users/me"),
            ("SSL_CERT_FILE", "/ca/other.pem"),
            ("PIP_FIND_LINKS", "file:///links /gone http://host:81/z"),
        ]);
        let given = Given::of(&all, root.path());
        let files: Vec<_> = given.files.iter().map(|file| file.to_str().unwrap()).collect();
        let expected =
            ["/ca/other.pem", "/ca/own.pem", "/links", "/users/me/.config/pip/pip.conf", "/wheels"];
        assert_eq!(files, expected);
        let config = ("PIP_CONFIG_FILE".to_owned(), "/users/me/.config/pip/pip.conf".to_owned());
        assert!(given.variables.contains(&config), "{:?}", given.variables);
        let proxy = ("PIP_PROXY".to_owned(), "http://gate:8080".to_owned());
        assert!(given.variables.contains(&proxy), "{:?}", given.variables);
        let expected = [
            server("127.0.0.1", 3141),
            server("::1", 443),
            server("gate", 8080),
            server("host", 81),
        ];
        assert_eq!(given.servers, expected);
    }
}
