//! Where pods may connect through the proxy. The host's own services trust whoever reaches them by
//! loopback, so pods must not; nor may they reach what is only meant for this machine's link, such as a
//! cloud's metadata server. Knows addresses, not names.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use ipnet::Ipv4Net;

use super::local;

/// What the proxy allows.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// Services of this machine that pods may reach all the same.
    pub(crate) allowed: Vec<SocketAddr>,
    /// The networks of pods and services, which are not reached from here.
    pub(crate) cluster: Vec<Ipv4Net>,
    /// Who may use it; none: everybody.
    pub(crate) only: Option<Ipv4Addr>,
    /// Connections at a time.
    pub(crate) connections: usize,
    /// How long to wait for a name and for each of its addresses.
    pub(crate) patience: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            cluster: Vec::new(),
            only: None,
            connections: 512,
            patience: Duration::from_secs(10),
        }
    }
}

/// What is decided about an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// With the reason.
    Refused(&'static str),
}

impl Policy {
    /// Whether an address may be connected to.
    pub(super) fn judge(&self, target: SocketAddr) -> Verdict {
        self.judge_knowing(target, local::is_own)
    }

    fn judge_knowing(&self, target: SocketAddr, is_own: impl Fn(IpAddr) -> bool) -> Verdict {
        // An address of version 4 dressed as one of version 6 is what it is.
        let address = target.ip().to_canonical();
        let allowed = |known: &SocketAddr| {
            known.ip().to_canonical() == address && known.port() == target.port()
        };
        if self.allowed.iter().any(allowed) {
            return Verdict::Allowed;
        }
        let refusal = match address {
            IpAddr::V4(address) => self.refusal_v4(address),
            IpAddr::V6(address) if address.is_loopback() || address.is_unspecified() => Some(OWN),
            IpAddr::V6(address) if address.is_unicast_link_local() => Some(LINK),
            IpAddr::V6(address) if address.is_multicast() => Some(MANY),
            IpAddr::V6(_) => None,
        };
        match refusal {
            Some(why) => Verdict::Refused(why),
            None if is_own(address) => Verdict::Refused(OWN),
            None => Verdict::Allowed,
        }
    }

    fn refusal_v4(&self, address: Ipv4Addr) -> Option<&'static str> {
        if address.is_loopback() || address.octets()[0] == 0 {
            Some(OWN)
        } else if address.is_link_local() {
            Some(LINK)
        } else if address.is_multicast() || address.is_broadcast() {
            Some(MANY)
        } else if self.cluster.iter().any(|network| network.contains(&address)) {
            Some(CLUSTER)
        } else {
            None
        }
    }
}

const OWN: &str = "it is an address of the node's own machine, which pods may not reach unless the node allows it";
const LINK: &str = "it is a link-local address, which pods may not reach unless the node allows it";
const MANY: &str = "it is the address of many machines";
const CLUSTER: &str =
    "it is an address of the cluster, which pods reach directly: add it to NO_PROXY";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_machines_are_reached() {
        let policy = Policy {
            allowed: vec!["127.0.0.1:3000".parse().unwrap(), "192.168.1.5:80".parse().unwrap()],
            cluster: vec!["10.77.0.0/16".parse().unwrap()],
            ..Policy::default()
        };
        let own = |address: IpAddr| {
            ["192.168.1.5".parse::<IpAddr>().unwrap(), "2001:db8::5".parse().unwrap()]
                .contains(&address)
        };
        for (target, expected) in [
            ("93.184.216.34:443", None),
            ("192.168.1.6:80", None),
            ("10.0.0.1:443", None),
            ("[2001:db8::6]:443", None),
            ("127.0.0.1:3000", None),
            ("[::ffff:127.0.0.1]:3000", None),
            ("192.168.1.5:80", None),
            ("127.0.0.1:3001", Some(OWN)),
            ("127.9.9.9:3000", Some(OWN)),
            ("0.0.0.0:3000", Some(OWN)),
            ("0.1.2.3:3000", Some(OWN)),
            ("[::]:3000", Some(OWN)),
            ("[::1]:3000", Some(OWN)),
            ("[::ffff:127.0.0.1]:3001", Some(OWN)),
            ("192.168.1.5:81", Some(OWN)),
            ("[2001:db8::5]:80", Some(OWN)),
            ("169.254.169.254:80", Some(LINK)),
            ("[fe80::1]:80", Some(LINK)),
            ("224.0.0.1:80", Some(MANY)),
            ("255.255.255.255:80", Some(MANY)),
            ("[ff02::1]:80", Some(MANY)),
            ("10.77.3.4:2222", Some(CLUSTER)),
        ] {
            let verdict = policy.judge_knowing(target.parse().unwrap(), own);
            assert_eq!(verdict, expected.map_or(Verdict::Allowed, Verdict::Refused), "{target}");
        }
    }
}
