//! Takes from an environment what the code of a package may have given it for others than its pods: rights
//! of whoever made it, and rights to change it. Nothing else runs in it at that time.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Set-uid, set-gid, and writing by others than the owner.
const TAKEN: u32 = 0o6022;
/// Without these its owner could not remove it.
const FOLDERS: u32 = 0o700;

/// Folders further down are moved up: paths have a longest length, and a removal goes as deep as they are.
const LONGEST: usize = 2000;

/// Goes through a folder and all that is in it; follows no link.
pub(crate) fn settle(dir: &Path) -> io::Result<()> {
    let longest = dir.as_os_str().len() + LONGEST;
    let (mut folders, mut moved) = (vec![dir.to_owned()], 0);
    while let Some(mut folder) = folders.pop() {
        set(&folder, FOLDERS)?;
        if folder.as_os_str().len() > longest {
            let up = dir.join(format!(".moved-{moved}"));
            std::fs::rename(&folder, &up)?;
            (folder, moved) = (up, moved + 1);
        }
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                set(&entry.path(), 0)?;
            } else if !kind.is_symlink() {
                // No package needs a socket, a pipe or a device.
                std::fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

fn set(path: &Path, wanted: u32) -> io::Result<()> {
    let permissions = path.symlink_metadata()?.permissions();
    let mode = permissions.mode() & 0o7777;
    let settled = mode & !TAKEN | wanted;
    if settled == mode {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(settled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_taken_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (env, outside) = (dir.path().join("env"), dir.path().join("outside"));
        let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
        let give = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        std::fs::create_dir_all(env.join("inner")).unwrap();
        let program = env.join("inner/program");
        for file in [&program, &outside] {
            std::fs::write(file, "").unwrap();
            give(file, 0o6777);
        }
        std::os::unix::fs::symlink(&outside, env.join("link")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(env.join("socket")).unwrap();
        drop(socket);
        give(&env.join("inner"), 0o2777);
        settle(&env).unwrap();
        assert_eq!(mode(&program), 0o755);
        assert_eq!(mode(&env.join("inner")), 0o755);
        assert_eq!(mode(&outside), 0o6777, "it lies elsewhere");
        assert!(!env.join("socket").exists());
        assert!(env.join("inner").exists());
        give(&env.join("inner"), 0);
        settle(&env).unwrap();
        assert_eq!(mode(&env.join("inner")), 0o700);
    }

    #[test]
    fn depth_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        let name = "n".repeat(200);
        // Each goes into the one after it, so that no path is ever too long.
        let mut inner = dir.path().join("0");
        std::fs::create_dir(&inner).unwrap();
        for number in 1..60 {
            let outer = dir.path().join(number.to_string());
            std::fs::create_dir(&outer).unwrap();
            std::fs::rename(&inner, outer.join(&name)).unwrap();
            inner = outer;
        }
        settle(dir.path()).unwrap();
        std::fs::remove_dir_all(dir.path()).unwrap();
        assert!(!dir.path().exists());
    }
}
