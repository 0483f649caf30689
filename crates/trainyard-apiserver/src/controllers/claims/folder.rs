//! The folders that stand behind claims. Made and removed only directly inside the folder for claims,
//! whatever a volume object says.

use std::io;
use std::path::{Path, PathBuf};

use super::PROVISIONER;
use super::view::{ClaimRef, PROVISIONED_BY, Volume};
use crate::controllers::error::Error;

/// How much of a claim's name is in its folder's.
const NAME: usize = 100;

/// The folder of a claim, by its volume's name.
pub(super) fn place(claims: &Path, claim: &ClaimRef, volume: &str) -> Option<PathBuf> {
    let cut: String = claim.name.chars().take(NAME).collect();
    let name = format!("{}_{cut}_{volume}", claim.namespace);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let safe = name.len() < 250 && name.chars().all(plain) && !name.starts_with('.');
    safe.then(|| claims.join(name))
}

/// The folder of a volume that was made here; `None` for every other volume.
pub(super) fn of(claims: &Path, volume: &Volume) -> Option<PathBuf> {
    let ours = volume.metadata.annotations.get(PROVISIONED_BY)? == PROVISIONER;
    let path = place(claims, volume.spec.claim_ref.as_ref()?, &volume.metadata.name)?;
    let same = volume.spec.host_path.as_ref().is_some_and(|there| Path::new(&there.path) == path);
    (ours && same).then_some(path)
}

/// Makes a folder that pods of any user may write to.
pub(super) fn make(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |source| Error::Folder { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    match std::fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).map_err(failed)
}

/// Removes a folder with all that is in it. It may take its time.
pub(super) async fn remove(path: PathBuf, by: fn(&Path) -> io::Result<()>) -> Result<(), Error> {
    let shown = path.clone();
    let removed = tokio::task::spawn_blocking(move || match by(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    });
    let failed = |source| Error::Folder { path: shown, source };
    match removed.await {
        Ok(result) => result.map_err(failed),
        Err(error) => Err(failed(std::io::Error::other(error))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::choose::tests::volume;
    use super::*;

    fn claim(namespace: &str, name: &str) -> ClaimRef {
        ClaimRef { namespace: namespace.to_owned(), name: name.to_owned(), uid: "u".to_owned() }
    }

    #[test]
    fn a_folder_is_directly_inside_the_one_for_claims() {
        let claims = Path::new("/claims");
        let path = place(claims, &claim("n", "data"), "pvc-1").unwrap();
        assert_eq!(path, Path::new("/claims/n_data_pvc-1"));
        assert_eq!(place(claims, &claim("../..", "etc"), "x"), None);
        assert_eq!(place(claims, &claim("n", "a/b"), "x"), None);
        assert_eq!(place(claims, &claim(".", "a"), "x"), None);
        let long =
            place(claims, &claim(&"n".repeat(63), &"c".repeat(253)), &"v".repeat(40)).unwrap();
        assert!(long.file_name().unwrap().len() < 250);
    }

    #[test]
    fn only_what_was_made_here_is_removed() {
        let claims = Path::new("/claims");
        let spec = |path: &str| {
            json!({"hostPath": {"path": path},
                "claimRef": {"namespace": "n", "name": "data", "uid": "u"}})
        };
        let mut made = volume("pvc-1", "1Gi", &spec("/claims/n_data_pvc-1"));
        assert_eq!(of(claims, &made), None);
        made.metadata.annotations.insert(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned());
        assert_eq!(of(claims, &made).as_deref(), Some(Path::new("/claims/n_data_pvc-1")));
        let mut elsewhere = volume("pvc-1", "1Gi", &spec("/etc"));
        elsewhere.metadata.annotations.clone_from(&made.metadata.annotations);
        assert_eq!(of(claims, &elsewhere), None);
    }

    #[tokio::test]
    async fn folders_come_and_go() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("claims").join("n_data_pvc-1");
        make(&path).unwrap();
        make(&path).unwrap();
        std::fs::write(path.join("model"), "weights").unwrap();
        let by = |path: &Path| std::fs::remove_dir_all(path);
        remove(path.clone(), by).await.unwrap();
        assert!(!path.exists());
        remove(path, by).await.unwrap();
    }
}
