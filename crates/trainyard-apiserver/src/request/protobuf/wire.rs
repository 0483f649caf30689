//! The wire format of protocol buffers: numbered fields, one after another.
//!
//! Owns varints, tags and lengths. Must not know messages; reads any bytes without failing otherwise
//! than by an error.

use super::ProtobufError;

/// What one field holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Piece<'b> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes, which no type of ours has.
    Fixed32,
    /// Bytes of a given length: text, bytes, a message or packed numbers.
    Bytes(&'b [u8]),
}

impl Piece<'_> {
    /// The number by which the format knows this form.
    pub(super) const fn wire_type(&self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        }
    }
}

/// The fields of one message.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

/// Groups nest; nothing of ours has any.
const DEEPEST_GROUP: usize = 64;

impl<'b> Fields<'b> {
    pub(super) const fn of(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field's number and what it holds. Groups are passed over.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Piece<'b>)>, ProtobufError> {
        while !self.rest.is_empty() {
            let (number, wire) = self.tag()?;
            match wire {
                3 => self.skip_group()?,
                4 => return Err(ProtobufError::EndOfNoGroup { message: String::new() }),
                _ => return self.piece(wire).map(|piece| Some((number, piece))),
            }
        }
        Ok(None)
    }

    fn tag(&mut self) -> Result<(u32, u8), ProtobufError> {
        let tag = self.varint()?;
        let wire = tag.to_le_bytes()[0] & 7;
        // The reference reads the number as one of 32 bits with a sign.
        let [a, b, c, d, ..] = (tag >> 3).to_le_bytes();
        let number = i32::from_le_bytes([a, b, c, d]);
        let positive = u32::try_from(number).ok().filter(|number| *number > 0);
        let known = positive.filter(|_| wire <= 5);
        known.map(|number| (number, wire)).ok_or_else(|| ProtobufError::Tag {
            message: String::new(),
            number,
            wire,
        })
    }

    fn piece(&mut self, wire: u8) -> Result<Piece<'b>, ProtobufError> {
        match wire {
            0 => self.varint().map(Piece::Varint),
            1 => {
                let (bytes, rest) = self.rest.split_first_chunk().ok_or(ProtobufError::End)?;
                self.rest = rest;
                Ok(Piece::Fixed64(u64::from_le_bytes(*bytes)))
            }
            2 => {
                let length = i64::try_from(self.varint()?).map_err(|_| ProtobufError::Length)?;
                let length = usize::try_from(length).map_err(|_| ProtobufError::Length)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::End)?;
                self.rest = rest;
                Ok(Piece::Bytes(bytes))
            }
            _ => {
                self.rest = self.rest.get(4..).ok_or(ProtobufError::End)?;
                Ok(Piece::Fixed32)
            }
        }
    }

    /// A number; also the elements of packed lists, until nothing is left.
    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::End)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn skip_group(&mut self) -> Result<(), ProtobufError> {
        let mut open = 1;
        while open > 0 {
            let (_, wire) = self.tag()?;
            match wire {
                3 if open == DEEPEST_GROUP => return Err(ProtobufError::Depth(DEEPEST_GROUP)),
                3 => open += 1,
                4 => open -= 1,
                _ => drop(self.piece(wire)?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Piece<'_>)>, ProtobufError> {
        let mut fields = Fields::of(bytes);
        let mut found = Vec::new();
        while let Some(field) = fields.next()? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn fields_of_every_form() {
        let bytes =
            b"\x08\x96\x01\x12\x02hi\x19\x01\0\0\0\0\0\0\0\x25\0\0\0\0\x2b\x08\x01\x2c\x30\x05";
        let expected = [
            (1, Piece::Varint(150)),
            (2, Piece::Bytes(b"hi")),
            (3, Piece::Fixed64(1)),
            (4, Piece::Fixed32),
            (6, Piece::Varint(5)),
        ];
        assert_eq!(all(bytes).unwrap(), expected);
    }

    #[test]
    fn broken_bytes_are_told_in_the_words_of_the_reference() {
        let told = |bytes: &[u8]| all(bytes).unwrap_err().to_string();
        assert_eq!(told(b"\x0a\x05ab"), "unexpected EOF");
        assert_eq!(told(b"\x08"), "unexpected EOF");
        assert_eq!(told(&[0xff; 11]), "proto: integer overflow");
        assert_eq!(
            told(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            "proto: negative length found during unmarshaling"
        );
        assert_eq!(told(b"\x0c"), "proto: : wiretype end group for non-group");
        assert_eq!(told(b"\x00\x01"), "proto: : illegal tag 0 (wire type 0)");
        assert_eq!(told(&[0x0b; 100]), "the message is nested deeper than 64 levels");
    }
}
