//! How long keys of a yard hold, and when they are made anew. Pure: the time is an argument.

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;
/// How long the authority of a yard holds.
const AUTHORITY: i64 = 3_652 * DAY;
/// How long a client's or server's certificate holds, and the user's token.
const CERTIFICATE: i64 = 365 * DAY;
/// So much earlier they begin, for clocks that are behind.
const EARLIER: i64 = 60 * 60;

/// The time in which a key or certificate holds, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// From when on.
    pub begin: i64,
    /// Until when.
    pub end: i64,
}

impl Life {
    /// The life of an authority that is made now.
    pub(super) const fn of_authority(now: i64) -> Self {
        Self { begin: now - EARLIER, end: now + AUTHORITY }
    }

    /// The life of what an authority vouches for now.
    pub(super) const fn of_certificate(now: i64) -> Self {
        Self { begin: now - EARLIER, end: now + CERTIFICATE }
    }

    /// Whether less than a third of it is left, so that it is to be made anew.
    #[must_use]
    pub const fn is_due(self, now: i64) -> bool {
        (self.end.saturating_sub(now)).saturating_mul(3) < self.end.saturating_sub(self.begin)
    }

    /// Whether an authority is to be made anew: also one of a time when they held for ever.
    pub(super) const fn is_due_for_authority(self, now: i64) -> bool {
        self.is_due(now) || self.end.saturating_sub(self.begin) > AUTHORITY + 2 * EARLIER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    #[test]
    fn what_has_a_third_of_its_life_left_is_kept() {
        let life = Life { begin: 0, end: 300 };
        for (now, is_due) in [(0, false), (199, false), (200, false), (201, true), (1_000, true)] {
            assert_eq!(life.is_due(now), is_due, "{now}");
        }
        // A clock that was set back is no reason.
        assert!(!life.is_due(-1_000));
    }

    #[test]
    fn certificates_hold_for_a_year_and_authorities_for_ten() {
        let (certificate, authority) = (Life::of_certificate(NOW), Life::of_authority(NOW));
        assert!(certificate.begin < NOW && authority.begin < NOW);
        assert_eq!(certificate.end - NOW, 365 * DAY);
        assert!(!certificate.is_due(NOW + 243 * DAY) && certificate.is_due(NOW + 244 * DAY));
        assert!(!authority.is_due_for_authority(NOW));
        assert!(!authority.is_due_for_authority(NOW + 6 * 365 * DAY));
        assert!(authority.is_due_for_authority(NOW + 7 * 365 * DAY));
        // No certificate outlives its authority.
        let last = NOW + 6 * 365 * DAY;
        assert!(Life::of_certificate(last).end < authority.end);
    }

    #[test]
    fn an_authority_of_earlier_versions_is_made_anew() {
        // From 1975 to 4096.
        let life = Life { begin: 157_766_400, end: 67_090_118_400 };
        assert!(life.is_due_for_authority(NOW));
    }
}
