//! Writes and objects as bytes on disk. Of an object: what is known of it beside its text, then the
//! text.
//!
//! All numbers are little endian; texts have their length before them. Must not know frames or files.

use bytes::Bytes;

use crate::object::{Meta, Stored};

type Pairs = Box<[(Box<str>, Box<str>)]>;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const DROP: u8 = 3;
const TOTAL: u8 = 4;

/// One entry of a log or a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// An object that came or changed, or that is there.
    Put(&'a str, &'a str, Stored),
    /// An object that went.
    Delete(&'a str, &'a str),
    /// A storage that went, with all in it.
    Drop(&'a str),
    /// The end of a snapshot: how many objects were before.
    Total(u64),
}

/// Writes down an object of a storage under its path.
pub(super) fn put(bytes: &mut Vec<u8>, storage: &str, path: &str, object: &Stored) {
    bytes.push(PUT);
    push_text(bytes, storage);
    push_text(bytes, path);
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    push_object(bytes, object);
    let len = short(bytes.len() - at - 4);
    if let Some(hole) = bytes.get_mut(at..at + 4) {
        hole.copy_from_slice(&len);
    }
}

pub(super) fn delete(bytes: &mut Vec<u8>, storage: &str, path: &str) {
    bytes.push(DELETE);
    push_text(bytes, storage);
    push_text(bytes, path);
}

pub(super) fn drop_storage(bytes: &mut Vec<u8>, storage: &str) {
    bytes.push(DROP);
    push_text(bytes, storage);
}

pub(super) fn total(bytes: &mut Vec<u8>, count: u64) {
    bytes.push(TOTAL);
    bytes.extend_from_slice(&count.to_le_bytes());
}

/// The next entry of some bytes, if they begin with one.
pub(super) fn take<'a>(bytes: &mut &'a [u8]) -> Option<Entry<'a>> {
    let (sort, rest) = bytes.split_first()?;
    *bytes = rest;
    match *sort {
        PUT => {
            let (storage, path) = (take_str(bytes)?, take_str(bytes)?);
            let object = decode(take_slice(bytes)?)?;
            Some(Entry::Put(storage, path, object))
        }
        DELETE => Some(Entry::Delete(take_str(bytes)?, take_str(bytes)?)),
        DROP => Some(Entry::Drop(take_str(bytes)?)),
        TOTAL => {
            let (count, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(Entry::Total(u64::from_le_bytes(*count)))
        }
        _ => None,
    }
}

fn push_object(bytes: &mut Vec<u8>, object: &Stored) {
    bytes.extend_from_slice(&object.revision.to_le_bytes());
    push_len(bytes, object.head);
    push_text(bytes, &object.meta.uid);
    for pairs in [&object.meta.labels, &object.meta.fields] {
        push_len(bytes, pairs.len());
        for (key, value) in pairs {
            push_text(bytes, key);
            push_text(bytes, value);
        }
    }
    bytes.extend_from_slice(&object.text);
}

fn short(len: usize) -> [u8; 4] {
    // Objects are far smaller than what 32 bits can count.
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

fn push_len(bytes: &mut Vec<u8>, len: usize) {
    bytes.extend_from_slice(&short(len));
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_len(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

/// The object of some bytes, if they are one.
fn decode(mut bytes: &[u8]) -> Option<Stored> {
    let (revision, rest) = bytes.split_first_chunk::<8>()?;
    bytes = rest;
    let head = take_len(&mut bytes)?;
    let uid = take_text(&mut bytes)?;
    let labels = take_pairs(&mut bytes)?;
    let fields = take_pairs(&mut bytes)?;
    if head > bytes.len() {
        return None;
    }
    let text = Bytes::copy_from_slice(bytes);
    let meta = Meta { uid, labels, fields };
    Some(Stored { revision: u64::from_le_bytes(*revision), text, head, meta })
}

fn take_len(bytes: &mut &[u8]) -> Option<usize> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*len)).ok()
}

fn take_slice<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_len(bytes)?;
    let (slice, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(slice)
}

fn take_str<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    str::from_utf8(take_slice(bytes)?).ok()
}

fn take_text(bytes: &mut &[u8]) -> Option<Box<str>> {
    take_str(bytes).map(Into::into)
}

fn take_pairs(bytes: &mut &[u8]) -> Option<Pairs> {
    let count = take_len(bytes)?;
    // No reservation by a number that may be wrong: every pair takes eight bytes at least.
    let mut pairs = Vec::with_capacity(count.min(bytes.len() / 8));
    for _ in 0..count {
        pairs.push((take_text(bytes)?, take_text(bytes)?));
    }
    Some(pairs.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::object::Draft;

    fn sample() -> Stored {
        let value = json!({"metadata": {"name": "a", "uid": "u", "labels": {"k": "v", "ä": ""}}});
        let fields = [("spec.nodeName".into(), "n1".into())].into();
        Draft::of("v1", "Pod", value.as_object().unwrap(), fields).at(7)
    }

    fn encode(object: &Stored) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_object(&mut bytes, object);
        bytes
    }

    #[test]
    fn entries_come_back_in_their_order() {
        let mut bytes = Vec::new();
        put(&mut bytes, "pods", "ns/a", &sample());
        delete(&mut bytes, "pods", "ns/b");
        drop_storage(&mut bytes, "jobs.batch");
        total(&mut bytes, 5);
        bytes.extend_from_slice(&[0; 9]);
        let mut rest = bytes.as_slice();
        assert_eq!(take(&mut rest), Some(Entry::Put("pods", "ns/a", sample())));
        assert_eq!(take(&mut rest), Some(Entry::Delete("pods", "ns/b")));
        assert_eq!(take(&mut rest), Some(Entry::Drop("jobs.batch")));
        assert_eq!(take(&mut rest), Some(Entry::Total(5)));
        assert_eq!(take(&mut rest), None);
    }

    #[test]
    fn comes_back_as_it_was() {
        let object = sample();
        assert_eq!(decode(&encode(&object)), Some(object));
    }

    #[test]
    fn cut_short_within_its_head_it_is_none() {
        let object = sample();
        let bytes = encode(&object);
        let text_at = bytes.len() - object.text.len();
        for len in 0..text_at + object.head {
            assert_eq!(decode(&bytes[..len]), None, "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_object_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = bytes.as_slice();
            while take(&mut rest).is_some() {}
            if let Some(object) = decode(&bytes) {
                prop_assert_eq!(encode(&object), bytes);
            }
        }
    }
}
