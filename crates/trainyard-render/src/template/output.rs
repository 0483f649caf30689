//! Where rendered text goes: a string with a limit on what one rendering may add.

use std::fmt;

use super::functions::TEXT_BYTES_MAX;

/// Appends to a string.
#[derive(Debug)]
pub(super) struct Output<'a> {
    out: &'a mut String,
    left: usize,
}

impl<'a> Output<'a> {
    pub(super) const fn new(out: &'a mut String) -> Self {
        Self { out, left: TEXT_BYTES_MAX }
    }
}

impl fmt::Write for Output<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.out.push_str(text);
        Ok(())
    }
}
