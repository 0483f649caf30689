//! What can go wrong in a controller. All of it is tried again.

use std::path::PathBuf;

/// Why a piece of work could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or was not reached.
    #[error("{what}: {}", words(answer))]
    Call {
        /// What was asked.
        what: String,
        /// What came back.
        answer: Box<kube::Error>,
    },
    /// The API server's answer cannot be read.
    #[error("{what}: the answer cannot be read: {source}")]
    Answer {
        /// What was asked.
        what: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// A folder for a claim cannot be made or removed.
    #[error("folder {} of a claim: {source}; check that its parent exists and is writable", path.display())]
    Folder {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// A refusal in the server's own words.
fn words(answer: &kube::Error) -> String {
    match answer {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Error {
    /// A word for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Call { .. } => "call",
            Self::Answer { .. } => "answer",
            Self::Folder { .. } => "folder",
        }
    }

    /// What went wrong, in the server's own words where it was the server.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Call { answer, .. } => words(answer),
            other => other.to_string(),
        }
    }

    /// The HTTP code of a refusal; 0 for everything else.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Call { answer, .. } => match answer.as_ref() {
                kube::Error::Api(status) => status.code,
                _ => 0,
            },
            _ => 0,
        }
    }

    /// The reason word of a refusal, such as `AlreadyExists`.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Call { answer, .. } => match answer.as_ref() {
                kube::Error::Api(status) => &status.reason,
                _ => "",
            },
            _ => "",
        }
    }

    /// Whether the object is not there.
    pub(super) fn is_missing(&self) -> bool {
        self.code() == 404
    }

    /// Whether somebody else was faster: the object exists already, or has changed.
    pub(super) fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// Whether a creation failed because the namespace is going away. It will not help to try again.
    pub(super) fn is_ending_namespace(&self) -> bool {
        let Self::Call { answer, .. } = self else { return false };
        let kube::Error::Api(status) = answer.as_ref() else { return false };
        let ending =
            |cause: &kube::core::response::StatusCause| cause.reason == "NamespaceTerminating";
        status.code == 403
            && status.details.as_ref().is_some_and(|details| details.causes.iter().any(ending))
    }
}

/// Takes the absence of the object for success.
pub(super) fn unless_missing<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}
