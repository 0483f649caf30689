//! The yard in a kubeconfig: a cluster, a user and a context of its own, beside whatever else stands
//! there.
//!
//! Owns reading, merging and writing such a file; what it does not know it keeps. Must not know how
//! a yard is run.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use trainyard_apiserver::{Life, write_secret};

use crate::failure::Failure;
use crate::yaml;

/// How clients reach a yard.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// `https://127.0.0.1:6443`.
    pub(crate) server: String,
    /// The yard's authority, in PEM.
    pub(crate) authority: String,
    /// The user's certificate, in PEM.
    pub(crate) certificate: String,
    /// Its key, in PEM.
    pub(crate) key: String,
    /// The same user's token, for clients that have no certificates.
    pub(crate) token: String,
    /// How long certificate and token hold.
    pub(crate) life: Life,
    /// The yard's folder, for those who look into it beside the API.
    pub(crate) folder: PathBuf,
}

/// Under which name the folder stands in a kubeconfig.
pub(crate) const EXTENSION: &str = "trainyard.dev/yard";

/// The file that the user's tools read: the first of `KUBECONFIG`, or the one in the home folder.
pub(crate) fn usual() -> Option<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty());
    let first = listed
        .as_ref()
        .and_then(|list| std::env::split_paths(list).find(|path| !path.as_os_str().is_empty()));
    first.or_else(|| std::env::home_dir().map(|home| home.join(".kube").join("config")))
}

/// Puts a yard into a file, as its current context.
pub(crate) fn add(path: &Path, name: &str, access: &Access) -> Result<(), Failure> {
    let mut file = read(path)?;
    merge(&mut file, name, access);
    write(path, &file)
}

/// Gives the yard in a file new keys, if it stands there; the rest of the file, what is current in it too,
/// stays.
pub(crate) fn renew(path: &Path, name: &str, access: &Access) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    let mut file = read(path)?;
    let is_it = |cluster: &Value| {
        cluster["name"] == name && cluster["cluster"]["server"] == access.server.as_str()
    };
    if !file["clusters"].as_array().into_iter().flatten().any(is_it) {
        return Ok(());
    }
    let current = file["current-context"].clone();
    merge(&mut file, name, access);
    file["current-context"] = current;
    write(path, &file)
}

/// Takes a yard out of a file, if it stands there.
pub(crate) fn remove(path: &Path, name: &str) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    let mut file = read(path)?;
    let before = file.clone();
    take_out(&mut file, name);
    if file == before { Ok(()) } else { write(path, &file) }
}

fn read(path: &Path) -> Result<Value, Failure> {
    not_planted(path)?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(Failure::other(
                format!("reading the kubeconfig {}", path.display()),
                &error,
            ));
        }
    };
    if text.trim().is_empty() {
        return Ok(json!({"apiVersion": "v1", "kind": "Config"}));
    }
    let mut documents = yaml::parse(text.as_bytes()).map_err(|error| {
        Failure::usage(format!("the kubeconfig {} is not readable: {error}", path.display()))
            .hint("mend it, or name another with --kubeconfig")
    })?;
    match documents.pop().map(|document| document.value) {
        Some(file @ Value::Object(_)) if documents.is_empty() => Ok(file),
        _ => Err(Failure::usage(format!("the kubeconfig {} is no kubeconfig", path.display()))
            .hint("mend it, or name another with --kubeconfig")),
    }
}

fn merge(file: &mut Value, name: &str, access: &Access) {
    let encoded = |text: &str| STANDARD.encode(text);
    put(
        file,
        "clusters",
        name,
        "cluster",
        &json!({
            "server": access.server,
            "certificate-authority-data": encoded(&access.authority),
            "extensions": [{
                "name": EXTENSION, "extension": {"folder": access.folder.to_string_lossy()},
            }],
        }),
    );
    put(
        file,
        "users",
        name,
        "user",
        &json!({
            "client-certificate-data": encoded(&access.certificate),
            "client-key-data": encoded(&access.key),
            "token": access.token,
        }),
    );
    put(file, "contexts", name, "context", &json!({"cluster": name, "user": name}));
    file["current-context"] = json!(name);
    let members = file.as_object_mut();
    if let Some(members) = members {
        members.entry("apiVersion").or_insert_with(|| json!("v1"));
        members.entry("kind").or_insert_with(|| json!("Config"));
        members.entry("preferences").or_insert_with(|| Value::Object(Map::new()));
    }
}

/// Sets the entry of that name in one of the lists.
fn put(file: &mut Value, list: &str, name: &str, key: &str, value: &Value) {
    let mut entries: Vec<Value> = file[list].as_array().cloned().unwrap_or_default();
    entries.retain(|entry| entry["name"] != name);
    entries.push(json!({"name": name, key: value}));
    file[list] = Value::Array(entries);
}

fn take_out(file: &mut Value, name: &str) {
    for list in ["clusters", "users", "contexts"] {
        if let Some(entries) = file[list].as_array_mut() {
            entries.retain(|entry| entry["name"] != name);
        }
    }
    if file["current-context"] == name {
        file["current-context"] = json!("");
    }
}

/// Writes the file, whole or not at all.
fn write(path: &Path, file: &Value) -> Result<(), Failure> {
    let doing = || format!("writing the kubeconfig {}", path.display());
    let failed = |error: std::io::Error| Failure::other(doing(), &error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // A link stays a link: what it leads to is written.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write_secret(&path, yaml::to_string([file]).as_bytes()).map_err(failed)
}

/// Refuses a file or link that somebody else has put into a folder in which everybody may, as `/tmp`: our
/// key would go where they want, and their programs would stand beside our yard.
fn not_planted(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let (Ok(own), Ok(around)) = (std::fs::symlink_metadata(path), std::fs::metadata(folder)) else {
        return Ok(());
    };
    let me = rustix::process::geteuid().as_raw();
    if !is_planted(own.uid(), (around.uid(), around.mode()), me) {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::usage(format!(
        "the kubeconfig {path} belongs to somebody else (user {})",
        own.uid()
    ))
    .hint("name a file in a folder of your own with --kubeconfig"))
}

/// Whether a file's owner is a stranger in a folder (its owner and mode) where everybody may write.
const fn is_planted(owner: u32, (folder, mode): (u32, u32), me: u32) -> bool {
    mode & 0o002 != 0 && owner != me && owner != folder
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn access() -> Access {
        Access {
            server: "https://127.0.0.1:6443".into(),
            authority: "ca".into(),
            certificate: "cert".into(),
            key: "key".into(),
            token: "word".into(),
            life: Life { begin: 0, end: 300 },
            folder: "/yard".into(),
        }
    }

    #[test]
    fn what_stood_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub").join("config");
        add(&path, "trainyard", &access()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut file = read(&path).unwrap();
        put(&mut file, "clusters", "work", "cluster", &json!({"server": "https://work"}));
        file["current-context"] = json!("work");
        file["extensions"] = json!([{"name": "kept"}]);
        write(&path, &file).unwrap();
        add(&path, "trainyard", &access()).unwrap();
        let file = read(&path).unwrap();
        assert_eq!(file["current-context"], "trainyard");
        assert_eq!(file["clusters"].as_array().unwrap().len(), 2);
        assert_eq!(file["extensions"][0]["name"], "kept");
        remove(&path, "trainyard").unwrap();
        let file = read(&path).unwrap();
        assert_eq!(
            file["clusters"],
            json!([{"name": "work", "cluster": {"server": "https://work"}}])
        );
        assert_eq!(file["contexts"], json!([]));
        assert_eq!(file["current-context"], "");
    }

    #[test]
    fn new_keys_come_only_where_this_yard_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        renew(&path, "trainyard", &access()).unwrap();
        assert!(!path.exists());
        add(&path, "trainyard", &access()).unwrap();
        let mut file = read(&path).unwrap();
        file["current-context"] = json!("work");
        write(&path, &file).unwrap();
        let renewed = Access { token: "another".into(), ..access() };
        renew(&path, "trainyard", &renewed).unwrap();
        let file = read(&path).unwrap();
        assert_eq!(file["current-context"], "work");
        assert_eq!(file["users"][0]["user"]["token"], "another");
        let elsewhere = Access { server: "https://127.0.0.1:7001".into(), ..access() };
        renew(&path, "trainyard", &elsewhere).unwrap();
        assert_eq!(read(&path).unwrap(), file);
    }

    #[test]
    fn a_broken_file_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, "[1, 2").unwrap();
        assert!(add(&path, "trainyard", &access()).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[1, 2");
    }

    /// Seen before: the key was written to `FILE.PID`, through whatever link was there.
    #[test]
    fn links_beside_it_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, theirs) = (folder.path().join("config"), folder.path().join("theirs"));
        std::fs::write(&theirs, "").unwrap();
        let beside = folder.path().join(format!("config.{}", std::process::id()));
        std::os::unix::fs::symlink(&theirs, beside).unwrap();
        add(&path, "trainyard", &access()).unwrap();
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "");
        // One that the user has made stays one.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        remove(&link, "trainyard").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(read(&path).unwrap()["users"], json!([]));
    }

    #[test]
    fn files_of_strangers_count_only_where_everybody_may_write() {
        let (root, me, stranger) = (0, 1000, 1001);
        assert!(is_planted(stranger, (root, 0o41777), me));
        assert!(!is_planted(me, (root, 0o41777), me));
        assert!(!is_planted(root, (root, 0o41777), me));
        assert!(!is_planted(stranger, (me, 0o40755), me));
    }
}
