//! The one place that writes to the terminal.

use std::io::{self, Write as _};

use crate::failure::Failure;

/// Writes a command's result to standard output, all of it or an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same for what need not be text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}

/// Says something to people on standard error.
pub(crate) fn say(text: &str) {
    // Nobody can be told when standard error is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Says something worth knowing on standard error.
pub(crate) fn warn(text: &str) {
    // Nobody can be told when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "warning: {text}");
}

/// Says why a command failed on standard error.
pub(crate) fn report(failure: &Failure) {
    let _ = writeln!(io::stderr().lock(), "{failure}");
}
