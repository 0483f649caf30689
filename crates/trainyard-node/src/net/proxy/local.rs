//! Which addresses are this machine's own, as the kernel lists them now.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
};

/// Whether an address is one of this machine's.
pub(super) fn is_own(address: IpAddr) -> bool {
    let listed = match address {
        IpAddr::V4(address) => own_addresses().map(|own| own.contains(&address)),
        IpAddr::V6(address) => match fs::read_to_string("/proc/net/if_inet6") {
            // The kernel was built or started without version 6: nothing of it is here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            read => read.map(|text| own_v6(&text).any(|own| own == address)),
        },
    };
    // Where the list is hidden: only an own address can be bound.
    listed.unwrap_or_else(|_| UdpSocket::bind((address, 0)).is_ok())
}

/// All of this machine's addresses of version 4.
pub(crate) fn own_addresses() -> io::Result<Vec<Ipv4Addr>> {
    Ok(own_v4(&fs::read_to_string("/proc/net/fib_trie")?).collect())
}

/// The addresses that a forwarding trie marks as local.
fn own_v4(text: &str) -> impl Iterator<Item = Ipv4Addr> {
    let lines = text.lines().zip(text.lines().skip(1));
    lines.filter_map(|(leaf, below)| {
        let address = leaf.trim_start().strip_prefix("|-- ")?.trim().parse().ok()?;
        below.contains("/32 host LOCAL").then_some(address)
    })
}

/// The addresses of the interfaces.
fn own_v6(text: &str) -> impl Iterator<Item = Ipv6Addr> {
    text.lines().filter_map(|line| {
        let digits = line.split_whitespace().next()?;
        (digits.len() == 32)
            .then(|| u128::from_str_radix(digits, 16).ok())
            .flatten()
            .map(Ipv6Addr::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lists_are_understood() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
                    Local:\n     |-- 10.1.2.3\n        /32 host LOCAL\n     |-- 10.1.2.255\n        \
                    /32 link BROADCAST\n        |-- 127.0.0.1\n           /32 host LOCAL\n";
        let own: Vec<String> = own_v4(trie).map(|address| address.to_string()).collect();
        assert_eq!(own, ["10.1.2.3", "127.0.0.1"]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\n\
                    20010db8000000000000000000000005 02 40 00 80     eth0\nrubbish\n";
        let own: Vec<String> = own_v6(list).map(|address| address.to_string()).collect();
        assert_eq!(own, ["::1", "2001:db8::5"]);
    }

    #[test]
    fn this_machine_knows_itself() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
        assert!(!is_own("2001:db8::1".parse().unwrap()));
    }
}
