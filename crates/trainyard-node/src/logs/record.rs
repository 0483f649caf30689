//! One line of a log file as the CRI writes it: `<time> stdout|stderr F|P <text>`.
//!
//! Times are in UTC with nine digits, so that they all have one width and compare as text.

use jiff::Timestamp;

/// Bytes of text in one record at most; longer lines become several.
pub(super) const MAX_TEXT: usize = 16 << 10;

/// Bytes of a time.
const STAMP: usize = 30;

/// Bytes before the text.
pub(super) const HEADER: usize = STAMP + " stdout F ".len();

/// Which of its outputs a container printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    const fn name(self) -> &'static [u8; 6] {
        match self {
            Self::Stdout => b"stdout",
            Self::Stderr => b"stderr",
        }
    }
}

/// Whether a record ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// The line ends here.
    Full,
    /// The next record of the same stream goes on with it.
    Partial,
}

/// A time as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp([u8; STAMP]);

impl Stamp {
    pub(super) fn of(time: Timestamp) -> Self {
        let text = format!("{time:.9}");
        // Years outside 0..=9999 have another width; no clock of a running machine shows them.
        Self(text.as_bytes().try_into().unwrap_or(*b"1970-01-01T00:00:00.000000000Z"))
    }

    pub(super) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let stamp: [u8; STAMP] = bytes.try_into().ok()?;
        let shape = b"0000-00-00T00:00:00.000000000Z";
        let fits = stamp.iter().zip(shape).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            _ => byte == like,
        });
        fits.then_some(Self(stamp))
    }
}

/// A record as read; the text has no line end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) stamp: Stamp,
    pub(super) stream: Stream,
    pub(super) tag: Tag,
    pub(super) text: &'a [u8],
}

/// Appends a record with its line end.
pub(super) fn write(out: &mut Vec<u8>, stamp: Stamp, stream: Stream, tag: Tag, text: &[u8]) {
    out.extend_from_slice(stamp.as_bytes());
    out.push(b' ');
    out.extend_from_slice(stream.name());
    out.extend_from_slice(match tag {
        Tag::Full => b" F ",
        Tag::Partial => b" P ",
    });
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// Reads a line without its end; none if it is no record.
pub(super) fn parse(line: &[u8]) -> Option<Record<'_>> {
    let stamp = Stamp::parse(line.get(..STAMP)?)?;
    let rest = line.get(STAMP..)?.strip_prefix(b" ")?;
    let (stream, rest) = if let Some(rest) = rest.strip_prefix(b"stdout ") {
        (Stream::Stdout, rest)
    } else {
        (Stream::Stderr, rest.strip_prefix(b"stderr ")?)
    };
    let space = memchr::memchr(b' ', rest)?;
    // More tags may follow the first, after colons.
    let tag = match rest.get(..space)?.split(|&byte| byte == b':').next()? {
        b"F" => Tag::Full,
        b"P" => Tag::Partial,
        _ => return None,
    };
    Some(Record { stamp, stream, tag, text: rest.get(space + 1..)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(text: &str) -> Stamp {
        Stamp::of(text.parse().unwrap())
    }

    #[test]
    fn times_have_one_width_and_order_as_text() {
        let round = stamp("2026-11-15T09:30:00Z");
        assert_eq!(round.as_bytes(), b"2026-11-15T09:30:00.000000000Z");
        assert!(stamp("2026-11-15T09:30:00.000000001Z") > round);
        assert!(stamp("2026-11-15T10:29:59.999+01:00") < round);
        assert_eq!(Stamp::of(Timestamp::MIN).as_bytes().len(), STAMP);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (stream, tag, text) in [
            (Stream::Stdout, Tag::Full, &b"epoch 1"[..]),
            (Stream::Stderr, Tag::Partial, b""),
            (Stream::Stdout, Tag::Full, b"\xff\xfe F P \r"),
        ] {
            let mut out = Vec::new();
            let stamp = stamp("2026-11-15T09:30:00.5Z");
            write(&mut out, stamp, stream, tag, text);
            assert_eq!(out.len(), HEADER + text.len() + 1);
            let line = out.strip_suffix(b"\n").unwrap();
            assert_eq!(parse(line), Some(Record { stamp, stream, tag, text }));
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        let good = "2026-11-15T09:30:00.500000000Z stdout F text";
        assert!(parse(good.as_bytes()).is_some());
        assert!(parse(good.replace(" F ", " P:x ").as_bytes()).is_some());
        for bad in [
            "",
            "text",
            "2026-11-15T09:30:00.500000000Z",
            "2026-11-15T09:30:00.500000000Z stdout",
            "2026-11-15T09:30:00.500000000Z stdout F",
            "2026-11-15T09:30:00.500000000Z stdin F text",
            "2026-11-15T09:30:00.500000000Z stdout X text",
            "2026-11-15 09:30:00.500000000Z stdout F text",
            "2026-11-15T09:30:00.5Z stdout F text",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
