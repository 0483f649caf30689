//! Cuts what a container prints into records: at line ends, and every 16 KiB of a longer line.
//!
//! Knows bytes only: whatever they mean, joined together again they are what was printed.

use super::record::{MAX_TEXT, Tag};

/// One stream's cutter. Holds the start of a line whose end has not been printed yet.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    held: Vec<u8>,
}

impl Splitter {
    /// Takes what was printed and gives out what is complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Tag, &[u8])) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            let last = self.cut(line, &mut emit);
            if self.held.is_empty() {
                emit(Tag::Full, last);
            } else {
                self.held.extend_from_slice(last);
                emit(Tag::Full, &self.held);
                self.held.clear();
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        let last = self.cut(bytes, &mut emit);
        self.held.extend_from_slice(last);
    }

    /// The output has ended: a line without an end is given out as it is.
    pub(super) fn finish(&mut self, mut emit: impl FnMut(Tag, &[u8])) {
        if !self.held.is_empty() {
            emit(Tag::Partial, &self.held);
            self.held = Vec::new();
        }
    }

    /// Gives out full-sized parts as long as more of the line is known to follow; what remains fits
    /// into one record together with what is held.
    fn cut<'a>(&mut self, mut line: &'a [u8], emit: &mut impl FnMut(Tag, &[u8])) -> &'a [u8] {
        while self.held.len() + line.len() > MAX_TEXT {
            let (part, rest) = line.split_at(MAX_TEXT - self.held.len());
            if self.held.is_empty() {
                emit(Tag::Partial, part);
            } else {
                self.held.extend_from_slice(part);
                emit(Tag::Partial, &self.held);
                self.held.clear();
            }
            line = rest;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Records = Vec<(Tag, Vec<u8>)>;

    fn split(pieces: &[&[u8]]) -> Records {
        let mut splitter = Splitter::default();
        let mut records = Vec::new();
        for piece in pieces {
            splitter.feed(piece, |tag, text| records.push((tag, text.to_vec())));
            assert!(splitter.held.len() <= MAX_TEXT);
        }
        splitter.finish(|tag, text| records.push((tag, text.to_vec())));
        records
    }

    #[test]
    fn lines_are_cut_at_their_ends_whatever_the_pieces() {
        let full = |text: &[u8]| (Tag::Full, text.to_vec());
        let partial = |text: &[u8]| (Tag::Partial, text.to_vec());
        let long = vec![b'x'; MAX_TEXT];
        let longer = vec![b'x'; 2 * MAX_TEXT + 3];
        let cases: [(&[&[u8]], Records); 9] = [
            (&[b"a\nb\n"], vec![full(b"a"), full(b"b")]),
            (&[b"a", b"b", b"\n"], vec![full(b"ab")]),
            (&[b"\n\n"], vec![full(b""), full(b"")]),
            (&[b"a\r\n"], vec![full(b"a\r")]),
            (&[b"no end"], vec![partial(b"no end")]),
            (&[], vec![]),
            (&[&long, b"\n"], vec![full(&long)]),
            (&[&long, b"y\n"], vec![partial(&long), full(b"y")]),
            (&[b"x", &longer[1..]], vec![partial(&long), partial(&long), partial(b"xxx")]),
        ];
        for (pieces, expected) in cases {
            assert!(split(pieces) == expected, "{} pieces", pieces.len());
        }
    }

    proptest! {
        #[test]
        fn joined_records_are_what_was_printed(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..40),
                    (1usize..40_000).prop_map(|length| vec![b'z'; length]),
                ],
                0..8,
            ),
        ) {
            let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let mut joined = Vec::new();
            for (tag, text) in split(&slices) {
                prop_assert!(text.len() <= MAX_TEXT);
                prop_assert!(!text.contains(&b'\n'));
                joined.extend_from_slice(&text);
                if tag == Tag::Full {
                    joined.push(b'\n');
                }
            }
            prop_assert_eq!(joined, pieces.concat());
        }
    }
}
