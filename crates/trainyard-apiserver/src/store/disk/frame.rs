//! The shape of the files: a head that says what a file is, then frames, each whole or not there.
//!
//! Heads and the heads of frames are 32 bytes long and begin at multiples of 32, so that none lies
//! across two sectors of a disk. They and the frames end with a byte that is not zero: where the end
//! is zero, it was not written. Their marks hold bytes that no text has. All numbers are little
//! endian. Must not know what a frame carries.

/// How long a head is, and what every length is a multiple of.
pub(super) const UNIT: usize = 32;
/// How much room a frame keeps.
const KEPT: usize = 1 << 20;
const MARK: [u8; 4] = [0xFE, b't', b'y', 0xFF];
const END: [u8; 4] = [0xF5, 0xFD, 0xFB, 0xF7];

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Writes in their order.
    Log,
    /// Everything at one revision.
    Snapshot,
}

impl Sort {
    const fn magic(self) -> [u8; 8] {
        match self {
            Self::Log => *b"\xFEyardlog",
            Self::Snapshot => *b"\xFEyardall",
        }
    }
}

/// The first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHead {
    pub(super) format: u32,
    /// Of a log its first revision, of a snapshot the one it shows.
    pub(super) revision: u64,
}

impl FileHead {
    pub(super) fn bytes(self, sort: Sort) -> [u8; UNIT] {
        let mut bytes = [0; UNIT];
        bytes[..8].copy_from_slice(&sort.magic());
        bytes[8..12].copy_from_slice(&self.format.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.revision.to_le_bytes());
        seal(bytes)
    }

    /// Every format has this head, whatever follows it.
    pub(super) fn read(bytes: &[u8; UNIT], sort: Sort) -> Option<Self> {
        let known = is_sealed(bytes) && bytes[..8] == sort.magic();
        known.then(|| Self { format: number32(bytes, 8), revision: number64(bytes, 16) })
    }
}

/// The first bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    /// How many bytes follow the head.
    pub(super) len: u32,
    /// How many entries are in them.
    pub(super) count: u32,
    /// The revision of the first of them; in a snapshot the place of the frame.
    pub(super) number: u64,
    check: u32,
}

impl FrameHead {
    fn bytes(self) -> [u8; UNIT] {
        let mut bytes = [0; UNIT];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.count.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.check.to_le_bytes());
        seal(bytes)
    }

    pub(super) fn read(bytes: &[u8; UNIT]) -> Option<Self> {
        let known = bytes[..4] == MARK && is_sealed(bytes);
        known.then(|| Self {
            len: number32(bytes, 4),
            count: number32(bytes, 16),
            number: number64(bytes, 8),
            check: number32(bytes, 20),
        })
    }

    /// Whether these are the bytes that followed it.
    pub(super) fn fits(&self, body: &[u8]) -> bool {
        body.len() == self.len as usize && crc32fast::hash(body) == self.check
    }
}

/// A frame in the making.
#[derive(Debug)]
pub(super) struct Frame {
    bytes: Vec<u8>,
    count: u32,
}

impl Frame {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; UNIT], count: 0 }
    }

    /// Forgets what is in it and keeps its room, unless that is much.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(UNIT);
        self.bytes.shrink_to(KEPT);
        self.count = 0;
    }

    /// Where the next entry is to be written.
    pub(super) fn entry(&mut self) -> &mut Vec<u8> {
        self.count += 1;
        &mut self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The whole frame, ready to be written. `None` if it is larger than a frame can be.
    pub(super) fn finish(&mut self, number: u64) -> Option<&[u8]> {
        // At least one byte more, so that there is room for the one that is not zero.
        let len = (self.bytes.len() + 1).next_multiple_of(UNIT);
        self.bytes.resize(len - 1, 0);
        self.bytes.push(END[3]);
        let body = self.bytes.get(UNIT..)?;
        let (len, check) = (u32::try_from(body.len()).ok()?, crc32fast::hash(body));
        let head = FrameHead { len, count: self.count, number, check };
        self.bytes.get_mut(..UNIT)?.copy_from_slice(&head.bytes());
        Some(&self.bytes)
    }
}

fn seal(mut bytes: [u8; UNIT]) -> [u8; UNIT] {
    let check = crc32fast::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&check.to_le_bytes());
    bytes[28..].copy_from_slice(&END);
    bytes
}

fn is_sealed(bytes: &[u8; UNIT]) -> bool {
    bytes[28..] == END && number32(bytes, 24) == crc32fast::hash(&bytes[..24])
}

fn number32(bytes: &[u8; UNIT], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
}

fn number64(bytes: &[u8; UNIT], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_were_and_any_flipped_bit_shows() {
        let head = FileHead { format: 3, revision: 1 << 40 };
        let bytes = head.bytes(Sort::Log);
        assert_eq!(FileHead::read(&bytes, Sort::Log), Some(head));
        assert_eq!(FileHead::read(&bytes, Sort::Snapshot), None);
        let mut frame = Frame::new();
        frame.entry().extend_from_slice(b"something");
        let written = frame.finish(7).unwrap();
        assert_eq!(written.len(), 2 * UNIT);
        let (first, body) = written.split_first_chunk().unwrap();
        let read = FrameHead::read(first).unwrap();
        assert_eq!((read.number, read.count, read.len), (7, 1, 32));
        assert!(read.fits(body) && body.starts_with(b"something"));
        for bit in 0..UNIT * 8 {
            let flipped = |bytes: &[u8; UNIT]| {
                let mut bytes = *bytes;
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            };
            assert_eq!(FileHead::read(&flipped(&bytes), Sort::Log), None, "bit {bit}");
            assert_eq!(FrameHead::read(&flipped(first)), None, "bit {bit}");
            assert!(!read.fits(&flipped(body.first_chunk().unwrap())), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_can_be_used_again() {
        let mut frame = Frame::new();
        frame.entry().extend_from_slice(&[1; 100]);
        frame.finish(1).unwrap();
        frame.clear();
        frame.entry().extend_from_slice(b"x");
        let again = frame.finish(2).unwrap().to_vec();
        let mut fresh = Frame::new();
        fresh.entry().extend_from_slice(b"x");
        assert_eq!(fresh.finish(2).unwrap(), again);
    }
}
