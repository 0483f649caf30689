//! Gives all that leaves by one link that link's own address, by the kernel's `nf_tables`.
//!
//! Owns the few messages it takes; the tables are those of the current network namespace. Must not know
//! what the link is.

use std::io;

use rustix::net::netlink::NETFILTER;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

const TABLE: &[u8] = b"yard\0";
const CHAIN: &[u8] = b"out\0";
/// What comes after routing, where addresses of senders are changed.
const POST_ROUTING: u32 = 4;
const SOURCE_NAT: u32 = 100;

/// A register of rules.
const REGISTER: u32 = 1;
const META_OUT_INDEX: u32 = 5;
const EQUAL: u32 = 0;

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;

const REQUEST: u16 = 0x001;
const ACKNOWLEDGE: u16 = 0x004;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const ERROR: u16 = 2;
const NESTED: u16 = 0x8000;

/// Does so from now on, in place of what was done before.
pub(super) fn masquerade(link: u32) -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(NETFILTER),
    )?;
    let table = attribute(1, TABLE);
    let mut batch = Batch::default();
    batch.add(BATCH_BEGIN, 0, 0, SUBSYSTEM.to_be_bytes(), &[]);
    // A table that is there is taken away with all in it, one that is not would be an error.
    for (kind, flags) in [(NEW_TABLE, CREATE), (DELETE_TABLE, 0), (NEW_TABLE, CREATE)] {
        batch.add(kind, flags | ACKNOWLEDGE, INET, [0; 2], &table);
    }
    let hook = [number(1, POST_ROUTING), number(2, SOURCE_NAT)].concat();
    let chain = [
        attribute(1, TABLE),
        attribute(3, CHAIN),
        attribute(4 | NESTED, &hook),
        attribute(7, b"nat\0"),
    ];
    batch.add(NEW_CHAIN, CREATE | ACKNOWLEDGE, INET, [0; 2], &chain.concat());
    let rule = [attribute(1, TABLE), attribute(2, CHAIN), attribute(4 | NESTED, &steps(link))];
    batch.add(NEW_RULE, CREATE | APPEND | ACKNOWLEDGE, INET, [0; 2], &rule.concat());
    batch.add(BATCH_END, 0, 0, SUBSYSTEM.to_be_bytes(), &[]);
    send(&socket, &batch.bytes, SendFlags::empty())?;
    let mut waiting = batch.acknowledged;
    while waiting > 0 {
        let mut answer = vec![0; 8192];
        let (length, _) = match recv(&socket, answer.as_mut_slice(), RecvFlags::empty()) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        waiting = waiting.saturating_sub(verdicts(&answer[..length])?);
    }
    Ok(())
}

/// The family of version 4.
const INET: u8 = 2;

/// What a rule does: goes on only for the link, then gives its address.
fn steps(link: u32) -> Vec<u8> {
    let value = attribute(1, &link.to_ne_bytes());
    let which = [number(1, REGISTER), number(2, META_OUT_INDEX)].concat();
    let same = [number(1, REGISTER), number(2, EQUAL), attribute(3 | NESTED, &value)].concat();
    let step = |name: &[u8], data: &[u8]| {
        attribute(1 | NESTED, &[attribute(1, name), attribute(2 | NESTED, data)].concat())
    };
    [step(b"meta\0", &which), step(b"cmp\0", &same), step(b"masq\0", &[])].concat()
}

/// Messages that take effect together or not at all.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    count: u32,
    acknowledged: usize,
}

impl Batch {
    fn add(&mut self, kind: u16, flags: u16, family: u8, resource: [u8; 2], attributes: &[u8]) {
        let length = u32::try_from(16 + 4 + attributes.len()).unwrap_or(u32::MAX);
        self.count += 1;
        self.acknowledged += usize::from(flags & ACKNOWLEDGE != 0);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&self.count.to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&[family, 0]);
        self.bytes.extend_from_slice(&resource);
        self.bytes.extend_from_slice(attributes);
    }
}

/// A value with its length and kind, filled up to a multiple of four.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Numbers are big-endian here.
fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

/// How many messages were done, or the first error among them.
fn verdicts(mut answer: &[u8]) -> io::Result<usize> {
    let mut done = 0;
    while let (Some(length), Some(kind)) = (word(answer, 0), answer.get(4..6)) {
        if kind == ERROR.to_ne_bytes() {
            match word(answer, 16).unwrap_or(0).cast_signed() {
                0 => done += 1,
                code => return Err(io::Error::from_raw_os_error(code.saturating_abs())),
            }
        }
        let step = usize::try_from(length).unwrap_or(0).next_multiple_of(4).max(16);
        answer = answer.get(step..).unwrap_or_default();
    }
    Ok(done)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_filled_up_and_their_length_is_not() {
        assert_eq!(
            attribute(7, b"nat\0"),
            [&8_u16.to_ne_bytes()[..], &7_u16.to_ne_bytes(), b"nat\0"].concat()
        );
        assert_eq!(attribute(1, b"yard\0").len(), 12);
        assert_eq!(attribute(1, b"yard\0")[..2], 9_u16.to_ne_bytes());
    }

    #[test]
    fn answers_are_counted_and_the_first_error_counts() {
        let answer = |code: i32| {
            let mut bytes = vec![0; 36];
            bytes[..4].copy_from_slice(&36_u32.to_ne_bytes());
            bytes[4..6].copy_from_slice(&ERROR.to_ne_bytes());
            bytes[16..20].copy_from_slice(&code.to_ne_bytes());
            bytes
        };
        assert_eq!(verdicts(&[answer(0), answer(0)].concat()).unwrap(), 2);
        let error = verdicts(&[answer(0), answer(-libc::EPERM)].concat()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        assert_eq!(verdicts(&[1, 2, 3]).unwrap(), 0);
        assert_eq!(verdicts(&[0; 20]).unwrap(), 0);
    }
}
