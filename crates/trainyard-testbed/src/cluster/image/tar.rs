//! The tar format, as far as images need it: POSIX headers, the same bytes whenever they are made. Pure.

use anyhow::{Result, ensure};

/// The unit of the format.
pub(super) const BLOCK: usize = 512;

/// What a header is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    File,
    Folder,
    /// A symbolic link, with what it points to.
    Link(&'a str),
}

/// The header of an entry; everything is root's.
pub(super) fn header(path: &str, kind: Kind<'_>, mode: u32, size: u64) -> Result<[u8; BLOCK]> {
    let (flag, target) = match kind {
        Kind::File => (b'0', ""),
        Kind::Folder => (b'5', ""),
        Kind::Link(target) => (b'2', target),
    };
    ensure!(path.len() <= 100 && target.len() <= 100, "{path} is too long a name for an image");
    ensure!(size < 1 << 33, "{path} is too large for an image");
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // Counted as blanks in the sum.
    put(148, b"        ");
    put(156, &[flag]);
    put(157, target.as_bytes());
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// How many bytes follow an entry of this size up to the next block.
pub(super) fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    if over == 0 { 0 } else { BLOCK - over }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_its_sum() {
        let block = header("bin/sh", Kind::Link("busybox"), 0o777, 0).unwrap();
        assert_eq!(&block[..7], b"bin/sh\0");
        assert_eq!(&block[100..108], b"0000777\0");
        assert_eq!((block[156], &block[157..165]), (b'2', &b"busybox\0"[..]));
        let stated = std::str::from_utf8(&block[148..154]).unwrap();
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        let own: u32 = block[148..156].iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(u32::from_str_radix(stated, 8).unwrap(), sum - own + 8 * 32);
        assert!(header(&"x".repeat(101), Kind::File, 0o644, 0).is_err());
    }

    #[test]
    fn entries_fill_blocks() {
        assert_eq!([0, 1, 512, 513].map(padding), [0, 511, 0, 511]);
    }
}
