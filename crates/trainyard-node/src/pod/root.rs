//! The root a container sees: its image's views, the pod's own files, its volumes. Pure: says what is
//! to be mounted, in order; the holder does it.

use std::path::{Path, PathBuf};

use trainyard_holder::protocol::{Mount, User};
use trainyard_image::{SystemView, View, ViewMode, system_views};

/// Where pods are given their token.
pub(crate) const TOKENS: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Files of the pod's own.
const HOSTS: &str = "/etc/hosts";
const RESOLV: &str = "/etc/resolv.conf";
const HOSTNAME: &str = "/etc/hostname";

/// Files of the pod that every container of it sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodFiles {
    /// `/etc/hosts`.
    pub(crate) hosts: Hosts,
    /// What is in `/etc/resolv.conf`.
    pub(crate) resolv: String,
    /// What is in `/etc/hostname`.
    pub(crate) hostname: String,
}

/// The names of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// They stay as they are.
    Text(String),
    /// A file that is written again when names come and go.
    File(PathBuf),
}

/// What a root is made of, parents before children.
#[derive(Debug, Default)]
pub(crate) struct Root {
    /// What other containers begin with too, so that it need not be made for each: the system's part,
    /// and places for what nearly every container is given.
    pub(crate) base: Vec<Mount>,
    /// The container's own.
    pub(crate) mounts: Vec<Mount>,
}

/// Everything that is mounted.
pub(crate) fn root(
    views: &[View],
    user: &User,
    files: PodFiles,
    termination: (&Path, &Path),
    changes: &Path,
    volumes: Vec<Mount>,
) -> Root {
    let mut base = Vec::new();
    let mut mounts = Vec::new();
    for (number, view) in views.iter().enumerate() {
        match view {
            View::System => {
                let views = system_views(user.uid, user.gid).into_iter().map(system);
                // Under nothing else, it can be where nothing else is yet.
                let place = if number == 0 { &mut base } else { &mut mounts };
                place.extend(views);
            }
            View::Directory { source, target, mode } => {
                mounts.push(directory(source, target, *mode, &changes.join(number.to_string())));
            }
        }
    }
    if !base.is_empty() {
        base.extend(places(&mounts, &volumes));
    }
    mounts.push(match files.hosts {
        Hosts::Text(text) => in_memory(HOSTS, text),
        Hosts::File(file) => writable(&file, Path::new(HOSTS)),
    });
    mounts.push(in_memory(RESOLV, files.resolv));
    mounts.push(in_memory(HOSTNAME, files.hostname));
    mounts.extend(volumes);
    let (source, target) = termination;
    mounts.push(writable(source, target));
    Root { base, mounts }
}

/// Mount points that nearly every container needs: made with the base, they cost nothing.
fn places(image: &[Mount], volumes: &[Mount]) -> Vec<Mount> {
    let folder = |target: &Path| Mount::Directory { target: target.to_owned(), mode: 0o755 };
    let file = |target: &str| {
        let (target, content) = (target.into(), String::new());
        Mount::File { target, content, mode: 0o644 }
    };
    let mut places: Vec<Mount> = ["/dev", "/proc"].map(Path::new).map(folder).into();
    places.extend([HOSTS, RESOLV, HOSTNAME].map(file));
    let overlays = image.iter().filter(|mount| matches!(mount, Mount::Overlay { .. }));
    places.extend(overlays.map(|mount| folder(mount.target())));
    if volumes.iter().any(|volume| volume.target() == Path::new(TOKENS)) {
        places.push(folder(Path::new(TOKENS)));
    }
    places
}

fn in_memory(target: &str, content: String) -> Mount {
    Mount::MemoryFile { target: target.into(), content, mode: 0o644 }
}

fn writable(source: &Path, target: &Path) -> Mount {
    Mount::Bind { source: source.to_owned(), target: target.to_owned(), read_only: false }
}

fn directory(source: &Path, target: &Path, mode: ViewMode, changes: &Path) -> Mount {
    let (place, target) = (source.to_owned(), target.to_owned());
    if mode == ViewMode::PrivateCopy {
        return Mount::Overlay { lower: place, target, changes: changes.to_owned() };
    }
    let (name, part) = (target.display().to_string(), PathBuf::new());
    Mount::Volume { name, place, part, target, read_only: mode == ViewMode::ReadOnly }
}

fn system(view: SystemView) -> Mount {
    match view {
        SystemView::Bind { source, target } => Mount::Bind { source, target, read_only: true },
        SystemView::Copy { source, target, stamp } => Mount::Copy { source, target, stamp },
        SystemView::Symlink { target, to } => Mount::Symlink { target, to },
        SystemView::Directory { target, mode } => Mount::Directory { target, mode },
        SystemView::File { target, content, mode } => Mount::File { target, content, mode },
    }
}

/// Folders that overlays need to exist beforehand.
pub(crate) fn overlay_folders(mounts: &[Mount]) -> impl Iterator<Item = &Path> {
    mounts.iter().filter_map(|mount| match mount {
        Mount::Overlay { changes, .. } => Some(changes.as_path()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(views: &[View], run: &str, volumes: Vec<Mount>) -> Root {
        let files = PodFiles {
            hosts: Hosts::Text(format!("of {run}")),
            resolv: String::new(),
            hostname: format!("{run}\n"),
        };
        let folder = Path::new("/state").join(run);
        let log = folder.join("termination-log");
        let termination = (log.as_path(), Path::new("/dev/termination-log"));
        root(views, &User::default(), files, termination, &folder.join("changes"), volumes)
    }

    fn packages() -> View {
        let (source, target) = ("/environments/x".into(), "/packages".into());
        View::Directory { source, target, mode: ViewMode::PrivateCopy }
    }

    fn is_at(target: &str) -> impl Fn(&Mount) -> bool {
        move |mount| mount.target() == Path::new(target)
    }

    #[test]
    fn containers_of_one_image_begin_with_the_same() {
        let image = [View::System, packages()];
        let (one, two) = (composed(&image, "one", vec![]), composed(&image, "two", vec![]));
        assert_eq!(one.base, two.base);
        for place in ["/usr", "/etc", "/etc/hosts", "/etc/passwd", "/packages", "/dev"] {
            assert!(one.base.iter().any(is_at(place)), "{place}");
        }
        for (root, other) in [(&one, "two"), (&two, "one")] {
            let told = format!("{:?}", root.mounts);
            assert!(
                !told.contains(&format!("/{other}/")) && !told.contains(&format!("of {other}"))
            );
        }
        let at = |target| one.mounts.iter().position(is_at(target));
        assert!(at("/packages") < at("/etc/hosts"));
        assert_eq!(at("/dev/termination-log"), Some(one.mounts.len() - 1));
    }

    #[test]
    fn a_place_for_a_token_is_made_only_with_one() {
        let image = [View::System];
        let at = |target: &str| writable(Path::new("/state/volume"), Path::new(target));
        let other = composed(&image, "one", vec![at("/data")]);
        let token = composed(&image, "two", vec![at(TOKENS), at("/etc/hosts")]);
        assert!(!other.base.iter().any(is_at(TOKENS)) && !other.base.iter().any(is_at("/data")));
        assert!(token.base.iter().any(is_at(TOKENS)));
        let own: Vec<_> = token.mounts.iter().filter(|mount| is_at("/etc/hosts")(mount)).collect();
        assert_eq!(own.last(), Some(&&at("/etc/hosts")), "a volume lies above the pod's own file");
    }

    #[test]
    fn what_lies_under_the_system_is_mounted_before_it() {
        let image = [packages(), View::System];
        let root = composed(&image, "one", vec![]);
        assert!(root.base.is_empty());
        let at = |target| root.mounts.iter().position(is_at(target));
        assert!(at("/packages") < at("/usr"));
    }
}
