//! What an exit code says under restart policy `ExitCode`, and the names of signals.
//!
//! Must not know pods.

/// Whether running again may help.
#[must_use]
pub(super) fn is_retryable(code: i64) -> bool {
    match code {
        // A segmentation fault comes back; 128 is a bad argument to exit.
        139 => false,
        code => code > 128,
    }
}

/// Name of the signal that an exit code stands for, if it stands for one.
#[must_use]
pub(crate) fn signal_name(code: i64) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let number = usize::try_from(code - 128).ok()?.checked_sub(1)?;
    NAMES.get(number).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_documented_table() {
        for permanent in [1, 2, 126, 127, 128, 139] {
            assert!(!is_retryable(permanent), "{permanent} is permanent");
        }
        for retryable in [130, 137, 138, 143] {
            assert!(is_retryable(retryable), "{retryable} is retryable");
        }
    }

    #[test]
    fn codes_the_table_leaves_open() {
        for permanent in [0, 3, 42, 64, 125] {
            assert!(!is_retryable(permanent), "{permanent} is permanent");
        }
        for retryable in [129, 131, 134, 140, 200, 255] {
            assert!(is_retryable(retryable), "{retryable} is retryable");
        }
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_name(137), Some("SIGKILL"));
        assert_eq!(signal_name(143), Some("SIGTERM"));
        assert_eq!(signal_name(139), Some("SIGSEGV"));
        assert_eq!(signal_name(138), Some("SIGUSR1"));
        assert_eq!(signal_name(130), Some("SIGINT"));
        for plain in [0, 1, 128, 160, 255, -1] {
            assert_eq!(signal_name(plain), None, "{plain}");
        }
    }
}
