//! The frames of SPDY/3.1, as far as forwarding ports needs them. Pure: bytes in and out; what header
//! blocks hold is `headers`'.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// A connection's data comes in pieces of some 32 KiB; anyone who sends much larger ones is no client.
const LONGEST: usize = 4 << 20;
const HEAD: usize = 8;
const CONTROL: u16 = 0x8003;
const FIN: u8 = 1;
const STREAM: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;

/// What is sent to and fro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// A new stream, with its compressed headers.
    Open { stream: u32, headers: Bytes },
    /// It is taken; headers as they go on the wire.
    Reply { stream: u32, headers: Bytes },
    /// A piece of a stream, perhaps its last.
    Data { stream: u32, piece: Bytes, last: bool },
    /// A stream is given up.
    Reset { stream: u32 },
    /// To be sent back as it is.
    Ping { number: u32 },
    /// No more streams will come.
    GoAway,
    /// Anything else, which means nothing here.
    Other,
}

/// Why what came is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    /// Longer than anybody sends.
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    /// Another version of the protocol, or none.
    #[error("a frame begins with {0:#06x}, which is not SPDY/3.1")]
    Version(u16),
    /// It is shorter than its kind.
    #[error("a frame of kind {0} is too short")]
    TooShort(u16),
}

/// Takes the next frame out of what came, if it is there whole.
pub(super) fn next(came: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    let Some(mut head) = came.get(..HEAD) else { return Ok(None) };
    let first = head.get_u32();
    let tail = head.get_u32();
    let flags = (tail >> 24) as u8;
    let length = (tail & 0x00ff_ffff) as usize;
    if length > LONGEST {
        return Err(FrameError::TooLong(length));
    }
    if came.len() < HEAD + length {
        return Ok(None);
    }
    came.advance(HEAD);
    let mut body = came.split_to(length).freeze();
    if first & !STREAM == 0 {
        let last = flags & FIN != 0;
        return Ok(Some(Frame::Data { stream: first, piece: body, last }));
    }
    let (version, kind) = ((first >> 16) as u16, (first & 0xffff) as u16);
    if version != CONTROL {
        return Err(FrameError::Version(version));
    }
    let needed = match kind {
        SYN_STREAM => 10,
        RST_STREAM => 8,
        PING => 4,
        _ => 0,
    };
    if body.len() < needed {
        return Err(FrameError::TooShort(kind));
    }
    Ok(Some(match kind {
        SYN_STREAM => {
            let stream = body.get_u32() & STREAM;
            // The stream it belongs to, its priority and its slot say nothing here.
            body.advance(6);
            Frame::Open { stream, headers: body }
        }
        RST_STREAM => Frame::Reset { stream: body.get_u32() & STREAM },
        PING => Frame::Ping { number: body.get_u32() },
        GO_AWAY => Frame::GoAway,
        _ => Frame::Other,
    }))
}

/// A frame as it goes on the wire.
pub(super) fn written(frame: &Frame) -> Bytes {
    let mut out = BytesMut::new();
    match frame {
        Frame::Data { stream, piece, last } => {
            out.put_u32(stream & STREAM);
            head(&mut out, if *last { FIN } else { 0 }, piece.len());
            out.put_slice(piece);
        }
        Frame::Open { stream, headers } => {
            control(&mut out, SYN_STREAM, headers.len() + 10);
            out.put_u32(stream & STREAM);
            out.put_bytes(0, 6);
            out.put_slice(headers);
        }
        Frame::Reply { stream, headers } => {
            control(&mut out, SYN_REPLY, headers.len() + 4);
            out.put_u32(stream & STREAM);
            out.put_slice(headers);
        }
        Frame::Reset { stream } => {
            // With the word for "no longer wanted".
            control(&mut out, RST_STREAM, 8);
            out.put_u32(stream & STREAM);
            out.put_u32(5);
        }
        Frame::Ping { number } => {
            control(&mut out, PING, 4);
            out.put_u32(*number);
        }
        Frame::GoAway => {
            control(&mut out, GO_AWAY, 8);
            out.put_bytes(0, 8);
        }
        Frame::Other => {}
    }
    out.freeze()
}

fn control(out: &mut BytesMut, kind: u16, length: usize) {
    out.put_u16(CONTROL);
    out.put_u16(kind);
    head(out, 0, length);
}

fn head(out: &mut BytesMut, flags: u8, length: usize) {
    let length = u32::try_from(length).unwrap_or(u32::MAX) & 0x00ff_ffff;
    out.put_u32(u32::from(flags) << 24 | length);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> Vec<Frame> {
        let piece = Bytes::from_static(b"hello");
        vec![
            Frame::Open { stream: 1, headers: piece.clone() },
            Frame::Data { stream: 3, piece: piece.clone(), last: false },
            Frame::Data { stream: 3, piece: Bytes::new(), last: true },
            Frame::Ping { number: 7 },
            Frame::Reset { stream: 3 },
            Frame::GoAway,
        ]
    }

    #[test]
    fn frames_come_back_however_they_are_cut() {
        let whole: Vec<u8> = frames().iter().flat_map(|frame| written(frame).to_vec()).collect();
        for size in [1, 3, 8, 1000] {
            let mut came = BytesMut::new();
            let mut read = Vec::new();
            for piece in whole.chunks(size) {
                came.extend_from_slice(piece);
                while let Some(frame) = next(&mut came).unwrap() {
                    read.push(frame);
                }
            }
            assert_eq!(read, frames(), "in pieces of {size}");
            assert!(came.is_empty());
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let error = |bytes: &[u8]| next(&mut BytesMut::from(bytes)).unwrap_err();
        assert_eq!(error(&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff]), FrameError::TooLong(0x00ff_ffff));
        assert_eq!(error(&[0x80, 2, 0, 1, 0, 0, 0, 0]), FrameError::Version(0x8002));
        assert_eq!(error(&[0x80, 3, 0, 1, 0, 0, 0, 0]), FrameError::TooShort(1));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut came = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = next(&mut came) {}
        }
    }
}
