//! The programs that carry a network namespace's packets out by sockets of their own: where they are, how
//! they are called, what they need. Must not start them.
//!
//! Both put a tap device into the pods' network, which is routed to, not bridged. Neither may show pods
//! the machine's loopback, nor open ports of the machine.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ipnet::Ipv4Net;
use trainyard_holder::protocol::{Uplink, YARD_NETWORK};

const LINK: &str = "out0";
/// The yard's end of the link and the program's. Nobody else is on it, and pods are kept from all other
/// addresses of this kind.
const OURS: Ipv4Addr = Ipv4Addr::new(169, 254, 77, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(169, 254, 77, 2);
const PREFIX: u8 = 30;
/// The link's network.
pub(crate) const UPLINK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 77, 0), PREFIX);
/// What slirp4netns takes for it: it takes no smaller one, and is itself at the second address.
const SLIRP_NETWORK: &str = "169.254.77.0/24";

/// Where programs are that no `PATH` names.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// A program that carries packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Answers whoever asks by the address that asked.
    Slirp4netns,
    /// Up to 2024 it answers by the address that spoke last, so pods must share one. It drops packets
    /// that it cannot pass on at once, so senders must slow down then, and puts no fragments together.
    Pasta,
}

impl Tool {
    /// In the order in which they are tried.
    pub(crate) const ALL: [Self; 2] = [Self::Slirp4netns, Self::Pasta];

    /// The program's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Slirp4netns => "slirp4netns",
            Self::Pasta => "pasta",
        }
    }

    /// The flag that requires it.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Slirp4netns => "--outbound=slirp4netns",
            Self::Pasta => "--outbound=pasta",
        }
    }

    /// The Debian package it comes in.
    fn package(self) -> &'static str {
        match self {
            Self::Slirp4netns => "slirp4netns",
            Self::Pasta => "passt",
        }
    }

    /// Its path, or why there is none.
    pub(crate) fn find(self, path: Option<&OsStr>) -> Result<PathBuf, String> {
        let given = path.into_iter().flat_map(std::env::split_paths);
        let all = given.chain(std::env::split_paths(USUAL)).filter(|folder| folder.is_absolute());
        all.map(|folder| folder.join(self.name()))
            .find(|file| is_program(file))
            .ok_or_else(|| format!("it is not installed (package {})", self.package()))
    }

    /// Whether a line that it writes says nothing about what hinders it.
    pub(crate) fn is_noise(line: &str) -> bool {
        line.is_empty()
            || ["WARNING:", "Failed to send ", "child failed("]
                .iter()
                .any(|it| line.starts_with(it))
    }

    /// The program at `path` with its arguments.
    pub(crate) fn argv(self, path: &Path) -> Vec<String> {
        let network = YARD_NETWORK.to_owned();
        let words: Vec<String> = match self {
            Self::Slirp4netns => vec![
                "--netns-type=path".to_owned(),
                format!("--cidr={SLIRP_NETWORK}"),
                "--disable-host-loopback".to_owned(),
                "--disable-dns".to_owned(),
                "--enable-sandbox".to_owned(),
                "--enable-seccomp".to_owned(),
                network,
                LINK.to_owned(),
            ],
            Self::Pasta => {
                let fixed = "--foreground --quiet --stderr --ipv4-only --no-map-gw --tcp-ports none \
                     --udp-ports none --tcp-ns none --udp-ns none --no-dhcp --no-dhcpv6 --no-ndp \
                     --no-ra --dns none --search none --no-netns-quit --runas 0";
                let ours = [
                    ("--ns-ifname", LINK.to_owned()),
                    ("--address", OURS.to_string()),
                    ("--netmask", PREFIX.to_string()),
                    ("--gateway", THEIRS.to_string()),
                    ("--netns", network),
                ];
                let ours = ours.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
                fixed.split_whitespace().map(str::to_owned).chain(ours).collect()
            }
        };
        [vec![path.display().to_string()], words].concat()
    }

    /// What the yard does with its link.
    pub(crate) fn uplink(self) -> Uplink {
        Uplink {
            link: LINK.to_owned(),
            address: OURS,
            prefix: PREFIX,
            via: THEIRS,
            masquerade: self == Self::Pasta,
        }
    }
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn found_where_the_path_says() {
        let folder = tempfile::tempdir().unwrap();
        let (file, none) = (folder.path().join("pasta"), folder.path().join("none"));
        std::fs::write(&file, "").unwrap();
        let path = std::env::join_paths([none, folder.path().to_owned()]).unwrap();
        let found = Tool::Pasta.find(Some(&path));
        assert_ne!(found.as_ref().ok(), Some(&file), "no program yet");
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(Tool::Pasta.find(Some(&path)), Ok(file));
    }

    #[test]
    fn neither_shows_the_machine_or_opens_its_ports() {
        let words = |tool: Tool| tool.argv(Path::new("/usr/bin/x")).join(" ");
        let slirp = words(Tool::Slirp4netns);
        assert!(slirp.starts_with("/usr/bin/x --netns-type=path "), "{slirp}");
        assert!(slirp.contains(" --disable-host-loopback --disable-dns "), "{slirp}");
        assert!(slirp.ends_with(" /tmp/yard-network out0"), "{slirp}");
        let pasta = words(Tool::Pasta);
        for part in [
            " --no-map-gw ",
            " --tcp-ports none --udp-ports none --tcp-ns none --udp-ns none ",
            " --netmask 30 --gateway 169.254.77.2 --netns /tmp/yard-network",
        ] {
            assert!(pasta.contains(part), "{part} in {pasta}");
        }
        assert!(UPLINK.contains(&OURS) && UPLINK.contains(&THEIRS));
    }

    #[test]
    fn what_hinders_is_no_noise() {
        assert!(Tool::is_noise("WARNING: Support for seccomp is experimental"));
        assert!(Tool::is_noise("child failed(1)") && Tool::is_noise(""));
        assert!(!Tool::is_noise("open(\"/dev/net/tun\"): No such file or directory"));
    }
}
