//! The one place that writes to the terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::present::harmless::{harmless_json, harmless_lines};

/// Writes a command's result to standard output, all of it or an error. Names and reasons are strangers'
/// words: what a terminal would obey is only shown.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(harmless_lines(text).as_bytes())
}

/// The same for JSON, which keeps its meaning.
pub(crate) fn print_json(text: &str) -> Result<(), Failure> {
    print_bytes(harmless_json(text).as_bytes())
}

/// The same for what programs read as it is, unless a terminal reads it.
pub(crate) fn print_data(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { print(text) } else { print_bytes(text.as_bytes()) }
}

/// Whether nobody may be there any more to read.
static LOSS_IS_FORGIVEN: AtomicBool = AtomicBool::new(false);

/// From now on it is no failure that standard output cannot be written: its terminal is gone, and work
/// that is to be ended in order goes on.
pub(crate) fn forgive_loss() {
    LOSS_IS_FORGIVEN.store(true, Ordering::Relaxed);
}

/// The same for what was made harmless before, and need not be text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if !LOSS_IS_FORGIVEN.load(Ordering::Relaxed) => Err(Failure::output(&error)),
        _ => Ok(()),
    }
}

/// Says something to people on standard error.
pub(crate) fn say(text: &str) {
    // Nobody can be told when standard error is gone.
    let _ = io::stderr().lock().write_all(harmless_lines(text).as_bytes());
}

/// Says something worth knowing on standard error.
pub(crate) fn warn(text: &str) {
    // Nobody can be told when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "warning: {}", harmless_lines(text));
}

/// Says why a command failed on standard error.
pub(crate) fn report(failure: &Failure) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless_lines(&failure.to_string()));
}
