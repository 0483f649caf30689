//! The signals that end a command which runs until it is told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The name of the signal that a terminal sends when it goes.
pub(crate) const HANGUP: &str = "SIGHUP";

/// SIGTERM and SIGINT; SIGHUP where it is asked for.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Catches them from now on.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|error| Failure::other("catching signals", &error));
        let (term, int) = (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
        Ok(Self { term, int, hangup: None })
    }

    /// Catches SIGHUP as well, unless whoever started this process has it ignored, as nohup does.
    pub(crate) fn with_hangup(mut self) -> Result<Self, Failure> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if !is_hangup_ignored(&status) {
            let hangup = signal(SignalKind::hangup())
                .map_err(|error| Failure::other("catching signals", &error))?;
            self.hangup = Some(hangup);
        }
        Ok(self)
    }

    /// The name of the next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
            Some(()) = hung_up(self.hangup.as_mut()) => HANGUP,
        }
    }
}

async fn hung_up(hangup: Option<&mut Signal>) -> Option<()> {
    match hangup {
        Some(hangup) => hangup.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether a process ignores SIGHUP, by what the kernel says of it: signal 1 is the lowest bit.
fn is_hangup_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_nohup_ignores_is_left_ignored() {
        assert!(is_hangup_ignored("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!is_hangup_ignored("SigIgn:\t0000000000001000\n"));
        assert!(!is_hangup_ignored(""));
    }
}
