//! Pods on the machine's own network: a library in front of `bind` and of name look-ups gives each an
//! address and names of its own. For machines where network namespaces cannot be had.

use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use trainyard_holder::protocol::{Isolation, Mount};

use super::Context;
use super::root::{Root, TOKENS};
use crate::net::hosts;
use crate::shared::Shared;

/// The file of a pod's names.
pub(crate) fn hosts_path(shared: &Shared, uid: &str) -> PathBuf {
    shared.folders(uid).ephemeral.join("hosts")
}

/// Variables that put the library in front of a container's programs.
pub(crate) fn variables(context: &Context<'_>) -> Vec<(String, String)> {
    let Some(shim) = &context.shared.shim else { return Vec::new() };
    let address = context.facts.pod_ip.unwrap_or(context.facts.host_ip);
    let hosts = hosts_path(context.shared, &context.live.uid);
    let mut variables = vec![
        ("LD_PRELOAD".to_owned(), shim.display().to_string()),
        ("TRAINYARD_POD_IP".to_owned(), address.to_string()),
    ];
    if context.shared.isolation == Isolation::Processes {
        variables.push(("TRAINYARD_HOSTS".to_owned(), hosts.display().to_string()));
    }
    variables
}

/// The API server's variables: here its own address is reached directly.
pub(crate) fn api_server(context: &Context<'_>) -> Vec<(String, String)> {
    let server = context.shared.shim.as_ref().and(context.shared.network.api_server.as_deref());
    let Some((host, port)) = server.and_then(|server| server.rsplit_once(':')) else {
        return Vec::new();
    };
    vec![
        ("KUBERNETES_SERVICE_HOST".to_owned(), host.to_owned()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), port.to_owned()),
        ("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), port.to_owned()),
    ]
}

/// What can be mounted at this level. Plain processes see the machine's files where they lie: what the
/// image shows at its own place needs no mount, and tokens cannot be given.
pub(crate) fn possible(shared: &Shared, root: Root) -> Root {
    let Root { mut base, mut mounts } = root;
    if let Some(shim) = &shared.shim
        && shared.isolation == Isolation::Namespaces
    {
        mounts.push(Mount::Bind { source: shim.clone(), target: shim.clone(), read_only: true });
    }
    if shared.isolation == Isolation::Processes {
        for part in [&mut base, &mut mounts] {
            part.retain(|mount| match mount {
                Mount::Bind { source, target, .. } => {
                    source != target && !target.starts_with(TOKENS) && !is_pods_own(target)
                }
                Mount::Volume { place, part, target, .. } => {
                    let is_there = place == target && part.as_os_str().is_empty();
                    !is_there && !target.starts_with(TOKENS) && !is_pods_own(target)
                }
                Mount::Overlay { lower, target, .. } => lower != target,
                _ => false,
            });
        }
    }
    Root { base, mounts }
}

/// Files that a private root has of its own.
fn is_pods_own(target: &Path) -> bool {
    ["/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/dev/termination-log"]
        .iter()
        .any(|own| target == Path::new(own))
}

/// Writes a pod's names, in place: the file may be mounted.
pub(crate) fn write_hosts(context: &Context<'_>, pod: &Pod) -> io::Result<PathBuf> {
    let path = hosts_path(context.shared, &context.live.uid);
    let address = context.facts.pod_ip.unwrap_or(context.facts.host_ip);
    let own = hosts::hosts_file(pod, address, context.identity);
    let others = context.shared.names.hosts_lines(&context.live.namespace);
    overwrite(&path, &format!("{own}{others}"))?;
    Ok(path)
}

/// Puts a text in a file's place without emptying it first: whoever looks up a name meanwhile would find
/// none.
fn overwrite(path: &Path, text: &str) -> io::Result<()> {
    let mut file =
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    // No more of it than that: the pod may write to it, as much as it likes.
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let mut old = Vec::new();
    (&file).take(length.saturating_add(1)).read_to_end(&mut old)?;
    if old == text.as_bytes() {
        return Ok(());
    }
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(length)
}

/// Keeps a pod's names true; never returns.
pub(crate) async fn follow_names(context: &Context<'_>, pod: &Pod) -> std::convert::Infallible {
    if context.shared.shim.is_none() {
        return std::future::pending().await;
    }
    let mut seen = 0;
    loop {
        seen = context.shared.names.changed(seen).await;
        if let Err(error) = write_hosts(context, pod) {
            tracing::warn!(pod = context.live.name, %error, "its names could not be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Compared whole with what it should hold, such a file took as much of the agent's memory as its pod
    // liked.
    #[test]
    fn a_pods_names_are_written_again_whatever_it_made_of_them() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("hosts");
        for text in ["one\n", "one\ntwo\n", "two\n", "two\n"] {
            overwrite(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::File::options().append(true).open(&path).unwrap().set_len(1 << 42).unwrap();
        overwrite(&path, "two\n").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 4);
    }
}
