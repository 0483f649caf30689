//! What came of one probing, and what an event says about it in a kubelet's words.

use super::plan::Kind;

/// What came of one probing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    /// It succeeded, with something to tell.
    Warning(String),
    /// It failed; how.
    Failure(String),
    /// It could not be made. Counts neither way.
    Errored(String),
}

impl Outcome {
    /// Reason and message of the warning event that tells of it, if one does.
    pub(crate) fn event(&self, kind: Kind) -> Option<(&'static str, String)> {
        let kind = kind.word();
        match self {
            Self::Success => None,
            Self::Warning(text) => Some(("ProbeWarning", format!("{kind} probe warning: {text}"))),
            Self::Failure(text) => Some(("Unhealthy", format!("{kind} probe failed: {text}"))),
            Self::Errored(text) => Some((
                "Unhealthy",
                format!("{kind} probe errored and resulted in unknown state: {text}"),
            )),
        }
    }

    /// Good or bad; none where it counts neither way.
    pub(super) fn verdict(&self) -> Option<bool> {
        match self {
            Self::Success | Self::Warning(_) => Some(true),
            Self::Failure(_) => Some(false),
            Self::Errored(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events() {
        let text = || "x".to_owned();
        assert_eq!(Outcome::Success.event(Kind::Liveness), None);
        assert_eq!(
            Outcome::Failure(text()).event(Kind::Liveness),
            Some(("Unhealthy", "Liveness probe failed: x".to_owned()))
        );
        assert_eq!(
            Outcome::Warning(text()).event(Kind::Readiness),
            Some(("ProbeWarning", "Readiness probe warning: x".to_owned()))
        );
        assert_eq!(
            Outcome::Errored(text()).event(Kind::Startup),
            Some((
                "Unhealthy",
                "Startup probe errored and resulted in unknown state: x".to_owned()
            ))
        );
    }
}
