//! How messages travel over a UNIX stream socket: a header of eight bytes (length of the payload,
//! number of descriptors) sent together with the descriptors, then the payload as JSON.
//!
//! Owns the framing and its bounds. Must not know what the messages mean.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;

/// The most bytes a payload may have.
pub(crate) const MOST_BYTES: usize = 16 << 20;
/// The most descriptors that may travel with one message.
pub(crate) const MOST_DESCRIPTORS: usize = 8;

const HEADER: usize = 8;

/// One message as it came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) payload: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Sends one message; the descriptors stay the caller's.
pub(crate) fn send(
    mut socket: &UnixStream,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let payload = serde_json::to_vec(message)?;
    if payload.len() > MOST_BYTES || descriptors.len() > MOST_DESCRIPTORS {
        return Err(invalid(format!(
            "a message of {} bytes and {} descriptors is above the bounds of {MOST_BYTES} and \
             {MOST_DESCRIPTORS}",
            payload.len(),
            descriptors.len()
        )));
    }
    let mut header = [0; HEADER];
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let count = u32::try_from(descriptors.len()).map_err(io::Error::other)?;
    header[..4].copy_from_slice(&length.to_ne_bytes());
    header[4..].copy_from_slice(&count.to_ne_bytes());

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(invalid("the descriptors do not fit beside the message".to_owned()));
    }
    let sent = loop {
        let header = [IoSlice::new(&header)];
        match sendmsg(socket, &header, &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    // The rest of a header that went out in part brings no descriptors of its own.
    socket.write_all(&header[sent..])?;
    socket.write_all(&payload)
}

/// Takes one message; none at the end of the stream. An end within a message is an error.
pub(crate) fn receive(mut socket: &UnixStream) -> io::Result<Option<Frame>> {
    let mut header = [0; HEADER];
    let mut descriptors = Vec::new();
    let mut have = 0;
    while have < HEADER {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut part = [IoSliceMut::new(&mut header[have..])];
        match recvmsg(socket.as_fd(), &mut part, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(taken) if taken.bytes == 0 && have == 0 => return Ok(None),
            Ok(taken) if taken.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(taken) => have += taken.bytes,
        }
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(brought) = message {
                descriptors.extend(brought);
            }
        }
    }
    let number = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        usize::try_from(u32::from_ne_bytes(bytes)).map_err(io::Error::other)
    };
    let (length, count) = (number(0)?, number(4)?);
    if length > MOST_BYTES {
        return Err(invalid(format!("a message announces {length} bytes, above {MOST_BYTES}")));
    }
    if count != descriptors.len() {
        return Err(invalid(format!(
            "a message announces {count} descriptors and brings {}",
            descriptors.len()
        )));
    }
    let mut payload = vec![0; length];
    socket.read_exact(&mut payload)?;
    Ok(Some(Frame { payload, descriptors }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(socket: &UnixStream) -> (serde_json::Value, Vec<OwnedFd>) {
        let frame = receive(socket).unwrap().unwrap();
        (serde_json::from_slice(&frame.payload).unwrap(), frame.descriptors)
    }

    #[test]
    fn messages_and_descriptors_come_whole_and_in_order() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&here, &"one", &[]).unwrap();
        send(&here, &"two", &[writer.as_fd(), writer.as_fd()]).unwrap();
        drop((here, writer));
        assert_eq!(taken(&there).0, "one");
        let (message, descriptors) = taken(&there);
        assert_eq!((message, descriptors.len()), ("two".into(), 2));
        for descriptor in descriptors {
            let flags = rustix::io::fcntl_getfd(&descriptor).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            std::fs::File::from(descriptor).write_all(b"x").unwrap();
        }
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "xx");
        assert!(receive(&there).unwrap().is_none());
    }

    #[test]
    fn long_messages_pass_and_longer_ones_are_refused() {
        let (here, there) = UnixStream::pair().unwrap();
        let text = "a".repeat(3 << 20);
        let expected = text.clone();
        let sender = std::thread::spawn(move || send(&here, &text, &[]));
        assert_eq!(taken(&there).0, expected);
        sender.join().unwrap().unwrap();

        let (here, _there) = UnixStream::pair().unwrap();
        let error = send(&here, &"a".repeat(MOST_BYTES), &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn an_end_within_a_message_is_an_error() {
        for cut in [3, HEADER, HEADER + 2] {
            let (mut here, there) = UnixStream::pair().unwrap();
            let mut bytes = Vec::from(9_u32.to_ne_bytes());
            bytes.extend(0_u32.to_ne_bytes());
            bytes.extend(b"\"a text\"");
            here.write_all(&bytes[..cut]).unwrap();
            drop(here);
            assert_eq!(receive(&there).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        for (length, count) in [(u32::MAX, 0), (2, 1)] {
            let (mut here, there) = UnixStream::pair().unwrap();
            here.write_all(&length.to_ne_bytes()).unwrap();
            here.write_all(&u32::to_ne_bytes(count)).unwrap();
            here.write_all(b"{}").unwrap();
            assert_eq!(receive(&there).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
