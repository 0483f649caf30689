//! Tokens in volumes are replaced before they end.
//!
//! Must not know how a volume came to hold them.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use crate::objects::{Token, TokenAsk};

/// No token is used longer than this, however long it would live.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// After a failure the next attempt comes this much later.
pub(crate) const AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// A token that lies in a volume.
#[derive(Debug, Clone)]
pub(crate) struct TokenFile {
    /// Where: relative to its volume until the volume is made, then on this machine.
    pub(crate) path: PathBuf,
    pub(crate) account: String,
    pub(crate) ask: TokenAsk,
    /// When to replace it.
    pub(crate) renew_at: Timestamp,
}

impl TokenFile {
    /// One that was just given.
    pub(crate) fn new(path: PathBuf, account: String, ask: TokenAsk, given: &Token) -> Self {
        Self { path, account, ask, renew_at: renew_at(given) }
    }
}

/// What came of a round of renewals.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// When the next round is due; none where there is no token.
    pub(crate) next: Option<Timestamp>,
    /// What could not be renewed, and why; tried again at `next`.
    pub(crate) problems: Vec<String>,
}

/// When four fifths of its life are over, and never later than a day after it was given.
pub(crate) fn renew_at(token: &Token) -> Timestamp {
    let before = |seconds: i64| {
        let earlier = token.expires.checked_sub(SignedDuration::from_secs(seconds));
        earlier.unwrap_or(Timestamp::MIN)
    };
    let seconds = token.seconds.max(0);
    let day = before(seconds).checked_add(LONGEST).unwrap_or(Timestamp::MAX);
    before(seconds / 5).min(day)
}

#[cfg(test)]
mod tests {
    use super::renew_at;
    use crate::objects::Token;
    use jiff::{SignedDuration, Timestamp};

    #[test]
    fn replaced_at_four_fifths_of_its_life() {
        let issued: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (seconds, after) in
            [(3600, 2880), (3607, 2886), (600, 480), (365 * 24 * 3600, 24 * 3600), (0, 0), (-5, -5)]
        {
            let expires = issued + SignedDuration::from_secs(seconds);
            let token = Token { bearer: String::new(), expires, seconds };
            let expected = issued + SignedDuration::from_secs(after);
            assert_eq!(renew_at(&token), expected, "{seconds}");
        }
        let absurd = Token { bearer: String::new(), expires: Timestamp::MIN, seconds: i64::MAX };
        assert_eq!(renew_at(&absurd), Timestamp::MIN);
    }
}
