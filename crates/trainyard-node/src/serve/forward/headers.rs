//! Header blocks of SPDY/3.1: names and values, compressed by one stream that runs through the whole
//! connection and begins with a dictionary. Pure.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags as flag};

/// What a block may hold at most when it is no longer compressed.
const LARGEST: usize = 16 << 10;
/// How far back compressed data may refer.
const WINDOW: usize = 32 << 10;
/// Marks a compressed stream that begins with a dictionary.
const WITH_DICTIONARY: u8 = 0x20;

/// Words that the dictionary begins with, each behind its length.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding \
    accept-language accept-ranges age allow authorization cache-control connection content-base \
    content-encoding content-language content-length content-location content-md5 content-range \
    content-type date etag expect expires from host if-match if-modified-since if-none-match if-range \
    if-unmodified-since last-modified location max-forwards pragma proxy-authenticate \
    proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade \
    user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public \
    set-cookie keep-alive origin";
/// What follows them.
const REST: &str = "10010120120220520630030230330430530630740240540640740840941041141241341441541641\
    7502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 \
    Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service \
    UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, \
    Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml\
    ,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,\
    utf-,*,enq=0.";

/// Why a block cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    /// The compressed data is none, or too much.
    #[error("a header block cannot be decompressed: {0}")]
    Compressed(String),
    /// What came out is no list of headers.
    #[error("a header block is malformed")]
    Malformed,
}

fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in WORDS.split(' ') {
        let word = word.replace('_', " ");
        bytes.put_u32(u32::try_from(word.len()).unwrap_or_default());
        bytes.put_slice(word.as_bytes());
    }
    bytes.put_slice(REST.as_bytes());
    bytes
}

/// Reads the blocks of a connection, in their order.
pub(super) struct Reader {
    stream: Box<DecompressorOxide>,
    /// What came out so far, as far back as it may be referred to.
    window: Vec<u8>,
    begun: bool,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { stream: Box::default(), window: dictionary(), begun: false }
    }

    /// The names, in lower case, and values of the next block.
    pub(super) fn read(&mut self, block: &[u8]) -> Result<Vec<(String, String)>, HeaderError> {
        let mut block = block;
        if !self.begun {
            let short = || HeaderError::Compressed("it is too short".to_owned());
            let flags = *block.get(1).ok_or_else(short)?;
            let skipped = if flags & WITH_DICTIONARY == 0 { 2 } else { 6 };
            block = block.get(skipped..).ok_or_else(short)?;
            self.begun = true;
        }
        let from = self.window.len();
        self.window.resize(from + LARGEST, 0);
        let flags =
            flag::TINFL_FLAG_HAS_MORE_INPUT | flag::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, taken, made) =
            decompress(&mut self.stream, block, &mut self.window, from, flags);
        self.window.truncate(from + made);
        if status != TINFLStatus::NeedsMoreInput || taken != block.len() {
            return Err(HeaderError::Compressed(format!("{status:?}")));
        }
        let read = pairs(self.window.get(from..).unwrap_or_default());
        let old = self.window.len().saturating_sub(WINDOW);
        self.window.drain(..old);
        read
    }
}

fn pairs(mut block: &[u8]) -> Result<Vec<(String, String)>, HeaderError> {
    let count = block.try_get_u32().map_err(|_| HeaderError::Malformed)?;
    let mut text = || -> Result<String, HeaderError> {
        let length = block.try_get_u32().map_err(|_| HeaderError::Malformed)? as usize;
        let (text, rest) = block.split_at_checked(length).ok_or(HeaderError::Malformed)?;
        block = rest;
        Ok(String::from_utf8_lossy(text).into_owned())
    };
    let mut found = Vec::new();
    // What is counted must be there: a count alone takes no memory.
    for _ in 0..count {
        found.push((text()?.to_lowercase(), text()?));
    }
    Ok(found)
}

/// Writes the blocks of a connection, in their order. They hold next to nothing: nothing is compressed.
#[derive(Debug, Default)]
pub(super) struct Writer {
    begun: bool,
}

impl Writer {
    /// The next block, without any header.
    pub(super) fn empty(&mut self) -> Bytes {
        self.block(&[0, 0, 0, 0])
    }

    fn block(&mut self, text: &[u8]) -> Bytes {
        let mut out = BytesMut::new();
        if !self.begun {
            out.put_slice(&[0x78, 0x01]);
            self.begun = true;
        }
        stored(&mut out, text);
        // An empty piece makes the reader give out what it has.
        stored(&mut out, &[]);
        out.freeze()
    }
}

fn stored(out: &mut BytesMut, text: &[u8]) {
    let length = u16::try_from(text.len()).unwrap_or_default();
    out.put_u8(0);
    out.put_u16_le(length);
    out.put_u16_le(!length);
    out.put_slice(text.get(..length.into()).unwrap_or_default());
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Writer {
        /// A block with these headers.
        pub(crate) fn headers(&mut self, pairs: &[(&str, &str)]) -> Bytes {
            let mut text = Vec::new();
            text.put_u32(u32::try_from(pairs.len()).unwrap());
            for word in pairs.iter().flat_map(|(name, value)| [name, value]) {
                text.put_u32(u32::try_from(word.len()).unwrap());
                text.put_slice(word.as_bytes());
            }
            self.block(&text)
        }
    }

    #[test]
    fn the_dictionary_is_the_protocols() {
        let dictionary = dictionary();
        assert_eq!(dictionary.len(), 1423);
        // The checksum that clients send for it.
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in &dictionary {
            low = (low + u32::from(*byte)) % 65521;
            high = (high + low) % 65521;
        }
        assert_eq!(high << 16 | low, 0xe3c6_a7c2);
    }

    #[test]
    fn blocks_are_read_in_their_order() {
        let (mut writer, mut reader) = (Writer::default(), Reader::new());
        for number in 0..2000 {
            let number = number.to_string();
            let pairs = [("Streamtype", "data"), ("port", "6006"), ("requestID", &*number)];
            let read = reader.read(&writer.headers(&pairs)).unwrap();
            assert_eq!(read[0], ("streamtype".to_owned(), "data".to_owned()));
            assert_eq!(read[2], ("requestid".to_owned(), number));
        }
        assert!(reader.window.len() <= WINDOW);
        assert_eq!(reader.read(&writer.empty()), Ok(Vec::new()));
    }

    #[test]
    fn what_refers_to_the_dictionary_is_read() {
        // What Go's zlib makes, with the dictionary, of one header named `host` with the value `version`.
        let block: Vec<u8> =
            GO.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
        let read = Reader::new().read(&block).unwrap();
        assert_eq!(read, [("host".to_owned(), "version".to_owned())]);
    }

    const GO: &str = "78 f9 e3 c6 a7 c2 62 60 60 60 44 2a 0f 60 e9 12 00 00 00 ff ff";

    #[test]
    fn what_is_no_block_is_refused() {
        assert!(matches!(Reader::new().read(&[]), Err(HeaderError::Compressed(_))));
        assert!(matches!(
            Reader::new().read(&[0x78, 1, 0xff, 0xff]),
            Err(HeaderError::Compressed(_))
        ));
        let mut writer = Writer::default();
        let lie = writer.block(&[0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Reader::new().read(&lie), Err(HeaderError::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut reader = Reader::new();
            let _ = reader.read(&bytes);
            let _ = reader.read(&bytes);
        }
    }
}
