//! Which addresses of the pods' network are taken. Pure.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The subnet of pods and virtual nodes; its first address is the gateway's.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    network: u32,
    prefix: u8,
    taken: BTreeSet<u32>,
    /// Where the search for the next one begins: an address comes back as late as possible, since
    /// peers may still talk to whoever had it.
    next: u32,
}

impl Addresses {
    /// The subnet that holds this address.
    pub(crate) fn new(inside: Ipv4Addr, prefix: u8) -> Self {
        let prefix = prefix.clamp(8, 29);
        let network = u32::from(inside) & (u32::MAX << (32 - u32::from(prefix)));
        Self { network, prefix, taken: BTreeSet::from([1]), next: 2 }
    }

    /// The bridge's own address.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1)
    }

    /// Length of the subnet's prefix.
    pub(crate) fn prefix(&self) -> u8 {
        self.prefix
    }

    /// A free address, if there is one.
    pub(crate) fn take(&mut self) -> Option<Ipv4Addr> {
        let hosts = (1_u32 << (32 - u32::from(self.prefix))) - 2;
        let candidates = (0..hosts).map(|step| (self.next - 1 + step) % hosts + 1);
        let host = candidates.into_iter().find(|host| !self.taken.contains(host))?;
        self.taken.insert(host);
        self.next = host % hosts + 1;
        Some(Ipv4Addr::from(self.network + host))
    }

    /// An address is free again.
    pub(crate) fn give_back(&mut self, address: Ipv4Addr) {
        let host = u32::from(address).wrapping_sub(self.network);
        if host > 1 {
            self.taken.remove(&host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_once_and_come_back_late() {
        let mut addresses = Addresses::new(Ipv4Addr::new(10, 77, 3, 4), 29);
        assert_eq!(addresses.gateway(), Ipv4Addr::new(10, 77, 3, 1));
        let taken: Vec<_> = std::iter::from_fn(|| addresses.take()).collect();
        let expected: Vec<_> = (2..=6).map(|last| Ipv4Addr::new(10, 77, 3, last)).collect();
        assert_eq!(taken, expected);
        addresses.give_back(taken[1]);
        addresses.give_back(taken[3]);
        addresses.give_back(addresses.gateway());
        assert_eq!(addresses.take(), Some(taken[1]));
        assert_eq!(addresses.take(), Some(taken[3]));
        assert_eq!(addresses.take(), None);
    }
}
