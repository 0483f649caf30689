//! How pods reach other machines, now: what the agent says of it, and what pods are told. It changes when
//! the program that carries it ends. Must not know how such a program is started.

mod tool;

use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::Ipv4Net;
use tokio::sync::watch;

pub(crate) use tool::{Tool, UPLINK};

/// What carries what pods send to other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nothing between: pods are on the machine's own network.
    Machine,
    /// A program that takes all their packets.
    Tool(Tool),
    /// The node's HTTP proxy, for programs that use it.
    Proxy,
    /// None.
    Nothing,
}

impl Way {
    /// In a word, for a label.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Tool(tool) => tool.name(),
            Self::Proxy => "proxy",
            Self::Nothing => "none",
        }
    }

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Machine => "the machine's own network",
            Self::Tool(tool) => tool.name(),
            Self::Proxy => "the node's HTTP proxy (HTTP_PROXY and HTTPS_PROXY are set in pods)",
            Self::Nothing => "none",
        }
    }
}

/// How far a way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// What it is, or will be.
    pub(crate) way: Way,
    /// Whether it can be used.
    pub(crate) is_open: bool,
}

impl State {
    /// A way that can be used.
    pub(crate) const fn open(way: Way) -> Self {
        Self { way, is_open: true }
    }

    /// A way that will be there in a moment.
    pub(crate) const fn opening(way: Way) -> Self {
        Self { way, is_open: false }
    }
}

/// The way out as it is now; clones see it change.
#[derive(Debug, Clone)]
pub(crate) struct Outbound {
    now: watch::Receiver<State>,
    /// The proxy's variables.
    variables: Arc<[(String, String)]>,
}

impl Outbound {
    /// With what pods are told where the way is the proxy.
    pub(crate) fn new(now: watch::Receiver<State>, variables: Vec<(String, String)>) -> Self {
        Self { now, variables: variables.into() }
    }

    /// One that stays as it is.
    pub(crate) fn fixed(way: Way) -> Self {
        Self::new(watch::channel(State::open(way)).1, Vec::new())
    }

    /// What it is.
    pub(crate) fn way(&self) -> Way {
        self.now.borrow().way
    }

    /// Waits until it can be used, or will not change any more.
    pub(crate) async fn opened(&self) {
        // An error means that nobody is left to open it.
        let _ = self.now.clone().wait_for(|state| state.is_open).await;
    }

    /// Variables for containers that start now.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        if self.way() == Way::Proxy { &self.variables } else { &[] }
    }

    /// Whether datagrams find their way out.
    pub(crate) fn takes_datagrams(&self) -> bool {
        matches!(self.way(), Way::Machine | Way::Tool(_))
    }

    /// Tells of every change; comes back never.
    pub(crate) async fn follow(mut self, tell: impl Fn(Way)) {
        let mut told = self.way();
        while self.now.changed().await.is_ok() {
            let way = self.way();
            if way != told {
                tell(way);
                told = way;
            }
        }
        std::future::pending::<()>().await;
    }
}

/// A cloud's metadata server is there, and whatever else is only meant for this machine's link.
const LINK_LOCAL: (Ipv4Addr, u8) = (Ipv4Addr::new(169, 254, 0, 0), 16);

/// What pods must not reach by a program that takes all their packets, as they must not by the proxy: this
/// machine and its links. Addresses of the pods' network never leave it.
pub(crate) fn kept_from(own: &[Ipv4Addr], cluster: Ipv4Net) -> Vec<(Ipv4Addr, u8)> {
    let leaves = |address: &&Ipv4Addr| {
        !cluster.contains(*address) && !address.is_loopback() && !UPLINK.contains(*address)
    };
    let own = own.iter().filter(leaves).map(|address| (*address, 32));
    [LINK_LOCAL].into_iter().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_told_of_the_proxy_only_while_it_is_the_way() {
        let (tell, now) = watch::channel(State::open(Way::Tool(Tool::Slirp4netns)));
        let variables = vec![("HTTP_PROXY".to_owned(), "http://10.77.0.1:3128".to_owned())];
        let outbound = Outbound::new(now, variables.clone());
        assert!(outbound.variables().is_empty() && outbound.takes_datagrams());
        tell.send_replace(State::open(Way::Proxy));
        assert_eq!(outbound.variables(), variables);
        assert!(!outbound.takes_datagrams());
        tell.send_replace(State::open(Way::Nothing));
        assert!(outbound.variables().is_empty() && !outbound.takes_datagrams());
        assert_eq!(Outbound::fixed(Way::Machine).way().word(), "machine");
    }

    #[tokio::test]
    async fn containers_wait_for_a_way_that_is_being_opened() {
        let (tell, now) = watch::channel(State::opening(Way::Tool(Tool::Pasta)));
        let outbound = Outbound::new(now, Vec::new());
        let mut opened = std::pin::pin!(outbound.opened());
        assert!(futures::poll!(opened.as_mut()).is_pending());
        tell.send_replace(State::open(Way::Proxy));
        opened.await;
        assert_eq!(outbound.way(), Way::Proxy);
        Outbound::fixed(Way::Nothing).opened().await;
    }

    #[test]
    fn the_machine_and_its_links_are_kept_from_pods() {
        let own = ["127.0.0.1", "192.168.1.5", "10.77.3.4", "169.254.77.2", "172.17.0.1"]
            .map(|text| text.parse().unwrap());
        let kept = kept_from(&own, "10.77.0.0/16".parse().unwrap());
        let expected = [("169.254.0.0", 16), ("192.168.1.5", 32), ("172.17.0.1", 32)];
        assert_eq!(kept, expected.map(|(text, bits)| (text.parse().unwrap(), bits)));
    }
}
