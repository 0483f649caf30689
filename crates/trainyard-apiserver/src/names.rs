//! Names and identities that the server makes up.

use std::fmt::Write as _;

use ring::rand::{SecureRandom as _, SystemRandom};

/// Letters that spell no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// A name and its suffix fit a DNS label.
const LONGEST_PREFIX: usize = 63 - SUFFIX;

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The system's source fails only where there is none; then names meet and are made anew.
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}

/// A name from its beginning.
pub(crate) fn generated(prefix: &str) -> String {
    let kept: String = prefix.chars().take(LONGEST_PREFIX).collect();
    let suffix = random::<SUFFIX>().map(|byte| {
        let index = usize::from(byte) % ALPHABET.len();
        char::from(ALPHABET.get(index).copied().unwrap_or(b'x'))
    });
    kept.chars().chain(suffix).collect()
}

/// A random identity (UUID, version 4).
pub(crate) fn uid() -> String {
    let mut bytes = random::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut hex = String::with_capacity(32);
    for byte in bytes {
        // Writing into a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        let (one, other) = (generated("mnist-"), generated("mnist-"));
        assert!(one.starts_with("mnist-") && one.len() == 11 && one != other);
        assert_eq!(generated(&"x".repeat(80)).len(), 63);
        let id = uid();
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'));
    }
}
