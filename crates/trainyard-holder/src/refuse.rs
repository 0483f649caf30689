//! How failures become refusals: the step, the reason in words, the kind.
//!
//! Owns the wording of operating system errors. Must not know the requests.

use std::io;

use crate::protocol::{Refusal, RefusalKind};

/// A refusal in words of our own.
pub(crate) fn refusal(
    kind: RefusalKind,
    step: impl Into<String>,
    reason: impl Into<String>,
) -> Refusal {
    Refusal { step: step.into(), reason: reason.into(), kind }
}

/// What an error says, without its number, as other programs say it.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => {
            let mut letters = words.chars();
            let first = letters.next().map(|c| c.to_ascii_lowercase());
            first.into_iter().chain(letters).collect()
        }
        None => text,
    }
}

/// Turns an error into a refusal that names the step.
pub(crate) trait OrRefuse<T> {
    /// `step` is only made when it is needed.
    fn or_refuse(self, kind: RefusalKind, step: impl FnOnce() -> String) -> Result<T, Refusal>;
}

impl<T, E: Into<io::Error>> OrRefuse<T> for Result<T, E> {
    fn or_refuse(self, kind: RefusalKind, step: impl FnOnce() -> String) -> Result<T, Refusal> {
        self.map_err(|error| refusal(kind, step(), words(&error.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_lose_their_number_and_capital() {
        let missing: Result<(), _> = Err(io::Error::from_raw_os_error(libc::ENOENT));
        let said = missing.or_refuse(RefusalKind::Mount, || "mounting /a".to_owned()).unwrap_err();
        assert_eq!(said.to_string(), "mounting /a: no such file or directory");
        assert_eq!(words(&io::Error::other("IPv6 is off")), "IPv6 is off");
    }
}
