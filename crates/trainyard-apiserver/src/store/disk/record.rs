//! An object as bytes on disk: what is known of it beside its text, then the text.
//!
//! All numbers are little endian; texts have their length before them. Must not know the database.

use bytes::Bytes;

use crate::object::{Meta, Stored};

type Pairs = Box<[(Box<str>, Box<str>)]>;

/// The bytes of an object.
pub(super) fn encode(object: &Stored) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(object.text.len() + 256);
    bytes.extend_from_slice(&object.revision.to_le_bytes());
    push_len(&mut bytes, object.head);
    push_text(&mut bytes, &object.meta.uid);
    for pairs in [&object.meta.labels, &object.meta.fields] {
        push_len(&mut bytes, pairs.len());
        for (key, value) in pairs {
            push_text(&mut bytes, key);
            push_text(&mut bytes, value);
        }
    }
    bytes.extend_from_slice(&object.text);
    bytes
}

fn push_len(bytes: &mut Vec<u8>, len: usize) {
    // Objects are far smaller than what 32 bits can count.
    bytes.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_len(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

/// The object of some bytes, if they are one.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Stored> {
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

fn take_text(bytes: &mut &[u8]) -> Option<Box<str>> {
    let len = take_len(bytes)?;
    let (text, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    str::from_utf8(text).ok().map(Into::into)
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
            if let Some(object) = decode(&bytes) {
                prop_assert_eq!(encode(&object), bytes);
            }
        }
    }
}
