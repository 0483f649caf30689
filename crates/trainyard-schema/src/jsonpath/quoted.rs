//! Texts in quotes, with Go's escapes.
//!
//! Must not know paths.

/// The text between quotes; `None` when an escape means nothing or a quote stands bare.
pub(super) fn unquoted(text: &str, quote: char) -> Option<String> {
    if !text.contains('\\') && !text.contains(quote) {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => escape(&mut bytes, &mut letters, quote)?,
            bare if bare == quote => return None,
            plain => push(&mut bytes, plain),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn push(bytes: &mut Vec<u8>, letter: char) {
    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

fn escape(bytes: &mut Vec<u8>, letters: &mut std::str::Chars<'_>, quote: char) -> Option<()> {
    let number = |letters: &mut std::str::Chars<'_>, count: usize, radix: u32, first: u32| {
        (0..count).try_fold(first, |number, _| {
            let digit = letters.next()?.to_digit(radix)?;
            number.checked_mul(radix)?.checked_add(digit)
        })
    };
    match letters.next()? {
        'a' => bytes.push(7),
        'b' => bytes.push(8),
        'f' => bytes.push(12),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'v' => bytes.push(11),
        '\\' => bytes.push(b'\\'),
        same @ ('"' | '\'') if same == quote => push(bytes, same),
        'x' => bytes.push(u8::try_from(number(letters, 2, 16, 0)?).ok()?),
        'u' => push(bytes, char::from_u32(number(letters, 4, 16, 0)?)?),
        'U' => push(bytes, char::from_u32(number(letters, 8, 16, 0)?)?),
        digit @ '0'..='7' => {
            let first = digit.to_digit(8)?;
            bytes.push(u8::try_from(number(letters, 2, 8, first)?).ok()?);
        }
        _ => return None,
    }
    Some(())
}
