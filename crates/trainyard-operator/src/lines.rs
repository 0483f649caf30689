//! Lines out of pieces of a stream.
//!
//! Must not know what the lines say.

/// Longer than any object that the API server stores.
const LINE_MAX: usize = 32 << 20;
/// Room that is kept for the next incomplete line.
const KEEP: usize = 16 << 10;

/// Holds the beginning of a line until its end has come.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Takes the next piece and gives out every line that it completes, without its end. Returns
    /// whether it fits: a line may be too long to be kept.
    pub(crate) fn feed(&mut self, mut piece: &[u8], mut line: impl FnMut(&[u8])) -> bool {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (first, rest) = piece.split_at(end);
            piece = rest.get(1..).unwrap_or_default();
            if self.begun.is_empty() {
                tell(first, &mut line);
            } else {
                self.begun.extend_from_slice(first);
                tell(&self.begun, &mut line);
                self.begun.clear();
                self.begun.shrink_to(KEEP);
            }
        }
        if self.begun.len() + piece.len() > LINE_MAX {
            return false;
        }
        self.begun.extend_from_slice(piece);
        true
    }
}

fn tell(text: &[u8], line: &mut impl FnMut(&[u8])) {
    let text = text.trim_ascii();
    if !text.is_empty() {
        line(text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_that_never_ends_is_given_up() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; LINE_MAX / 2 + 1];
        assert!(lines.feed(&piece, |_| {}));
        assert!(!lines.feed(&piece, |_| {}));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_pieces(
            text in prop::collection::vec("[a-c]{0,4}", 0..10),
            cuts in prop::collection::vec(1_usize..6, 0..40),
        ) {
            let stream = text.join("\n") + "\n";
            let expected: Vec<_> = text.iter().filter(|line| !line.is_empty()).cloned().collect();
            let mut rest = stream.as_bytes();
            let mut lines = Lines::default();
            let mut found = Vec::new();
            let mut take = |line: &[u8]| found.push(String::from_utf8(line.to_vec()).unwrap());
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                prop_assert!(lines.feed(piece, &mut take));
                rest = later;
            }
            lines.feed(rest, &mut take);
            prop_assert_eq!(found, expected);
        }
    }
}
