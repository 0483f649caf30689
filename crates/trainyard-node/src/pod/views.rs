//! Where the folders of an image's root really lie. Whoever runs the node may give pods one folder to
//! write to and another inside it: no link that a pod puts there makes the second one something else.
//!
//! Must not know what else is in a root.

use std::io;
use std::path::{Path, PathBuf};

use trainyard_image::{View, ViewMode};

use crate::volumes::{Found, Written};

/// The views with the links on their paths followed. Those that can be written to are noted as such
/// first, the outer before the inner.
pub(crate) fn resolved(views: &[View], written: &Written) -> io::Result<Vec<View>> {
    let mut writable: Vec<&Path> = views.iter().filter_map(writable).collect();
    writable.sort_by_key(|source| source.components().count());
    for source in writable {
        written.add(&real(source, written)?);
    }
    let resolve = |view: &View| -> io::Result<View> {
        match view {
            View::Directory { source, target, mode } if *mode != ViewMode::PrivateCopy => {
                let (source, target) = (real(source, written)?, target.clone());
                Ok(View::Directory { source, target, mode: *mode })
            }
            other => Ok(other.clone()),
        }
    };
    views.iter().map(resolve).collect()
}

fn writable(view: &View) -> Option<&Path> {
    match view {
        View::Directory { source, mode: ViewMode::Writable, .. } => Some(source),
        _ => None,
    }
}

fn real(source: &Path, written: &Written) -> io::Result<PathBuf> {
    let told = |error: io::Error| {
        io::Error::new(error.kind(), format!("mounting {}: {error}", source.display()))
    };
    match written.find(source).map_err(told)? {
        Found::There(_, path) => Ok(path),
        Found::Missing(..) => Err(told(io::ErrorKind::NotFound.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn view(source: PathBuf, mode: ViewMode) -> View {
        View::Directory { source, target: "/inside".into(), mode }
    }

    fn sources(views: &[View], written: &Written) -> Result<Vec<PathBuf>, String> {
        let views = resolved(views, written).map_err(|error| error.to_string())?;
        let source = |view: View| match view {
            View::Directory { source, .. } => Some(source),
            View::System => None,
        };
        Ok(views.into_iter().filter_map(source).collect())
    }

    #[test]
    fn a_link_that_a_pod_left_in_one_folder_makes_no_other_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("project/real")).unwrap();
        fs::create_dir(root.join("private")).unwrap();
        symlink("project", root.join("link")).unwrap();
        symlink("real", root.join("project/data")).unwrap();
        symlink("../private", root.join("project/out")).unwrap();
        let project = view(root.join("link"), ViewMode::Writable);
        let inner = |name: &str, mode| view(root.join("link").join(name), mode);
        for mode in [ViewMode::ReadOnly, ViewMode::Writable] {
            let views = [inner("data", mode), project.clone(), View::System];
            let found = sources(&views, &Written::default()).unwrap();
            assert_eq!(found, [root.join("project/real"), root.join("project")]);
            let views = [inner("out", mode), project.clone()];
            let error = sources(&views, &Written::default()).unwrap_err();
            assert!(error.ends_with("project, which pods write to"), "{error}");
        }
        let copy = [view(root.join("link/out"), ViewMode::PrivateCopy), project];
        assert_eq!(sources(&copy, &Written::default()).unwrap()[0], root.join("link/out"));
        let gone = [view(root.join("gone"), ViewMode::ReadOnly)];
        assert!(sources(&gone, &Written::default()).unwrap_err().starts_with("mounting "));
    }
}
