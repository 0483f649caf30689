//! Looking at everything in a volume, of which a pod may be changing anything meanwhile: each file is held
//! open, never named twice, and no link is followed.
//!
//! Must not know what is done with what is found.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

/// Folders below folders that are walked. Each level holds a descriptor open.
const DEEPEST: usize = 128;

const NO_LINK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Shows everything below a folder, and says of each folder whether it could be listed.
pub(crate) fn below(
    top: &OwnedFd,
    mut show: impl FnMut(&OwnedFd, &Stat) -> io::Result<()>,
    unlisted: impl Fn(Errno) -> io::Result<()>,
) -> io::Result<()> {
    let mut open = Vec::from_iter(listing(top).map(Some).or_else(|e| unlisted(e).map(|()| None))?);
    while let Some(folder) = open.last_mut() {
        let Some(entry) = folder.next().transpose()? else {
            open.pop();
            continue;
        };
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let found = match openat(folder.fd()?, entry.file_name(), NO_LINK, Mode::empty()) {
            // Gone meanwhile.
            Err(Errno::NOENT) => continue,
            Err(error) => {
                unlisted(error)?;
                continue;
            }
            Ok(found) => found,
        };
        let seen = fstat(&found)?;
        show(&found, &seen)?;
        if FileType::from_raw_mode(seen.st_mode).is_dir() {
            if open.len() >= DEEPEST {
                let text = format!("folders are nested more than {DEEPEST} deep");
                return Err(io::Error::other(text));
            }
            match listing(&found) {
                Ok(listing) => open.push(listing),
                Err(error) => unlisted(error)?,
            }
        }
    }
    Ok(())
}

fn listing(folder: &OwnedFd) -> Result<Dir, Errno> {
    Dir::new(openat(folder, ".", FOLDER, Mode::empty())?)
}
