//! Terminals for programs: from the container's own set, so that they have a name inside.
//!
//! Must not know who sits at the other side.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Gid, Mode, OFlags, ResolveFlags, Uid, fchown, openat2};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

/// Where a container's terminals come from.
#[derive(Debug)]
pub(crate) enum Terminals {
    /// Its own file system of them.
    Own(OwnedFd),
    /// It shares the machine's.
    Machine,
}

/// Both sides of a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// The side of whoever types and reads.
    pub(crate) ours: OwnedFd,
    /// The side of the program.
    pub(crate) inside: OwnedFd,
}

impl Terminals {
    /// A new terminal that belongs to this user.
    pub(crate) fn open(&self, uid: u32) -> io::Result<Terminal> {
        let ours = match self {
            // By the file system itself: the way there is the container's to change.
            Self::Own(set) => {
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
                let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
                openat2(set, "ptmx", flags, Mode::empty(), resolve)?
            }
            Self::Machine => {
                openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?
            }
        };
        unlockpt(&ours)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let inside = ioctl_tiocgptpeer(&ours, flags)?;
        // Without root there is one user only, whatever numbers it has, and it is the owner.
        let _ = fchown(&inside, Some(Uid::from_raw(uid)), None::<Gid>);
        Ok(Terminal { ours, inside })
    }
}

impl Terminal {
    /// Input, output and errors of a program.
    pub(crate) fn stdio(&self) -> io::Result<[OwnedFd; 3]> {
        let copy = || self.inside.try_clone();
        Ok([copy()?, copy()?, copy()?])
    }
}
