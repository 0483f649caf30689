//! Why the API server did not do what it was asked.

use std::error::Error as _;
use std::io;

use kube::core::Status;

use crate::failure::Failure;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The server answered, and refused.
    #[error("{}", refusal(.0))]
    Refused(Box<Status>),
    /// Nobody answered.
    #[error("cannot reach the API server at {server}: {why}")]
    Unreachable {
        /// Where it should be.
        server: String,
        /// What happened instead.
        why: String,
    },
    /// No object can be called so; the path would lead to something else, be it all objects.
    #[error("{name:?} cannot be the name of {what}")]
    Name {
        /// Of what.
        what: &'static str,
        /// What was given.
        name: String,
    },
    /// An answer under way broke off.
    #[error("the connection to the API server at {server} broke off")]
    Broken {
        /// Who answered.
        server: String,
    },
    /// The answer is not what it should be.
    #[error("the answer of the API server at {server} cannot be used: {why}")]
    Answer {
        /// Who answered.
        server: String,
        /// What is wrong.
        why: String,
    },
}

/// What the server said. Some proxies answer with nothing but a code.
fn refusal(status: &Status) -> String {
    if status.message.is_empty() {
        format!("the API server answered with code {} {}", status.code, status.reason)
    } else {
        status.message.clone()
    }
}

impl Error {
    /// The code of the server's answer; 0 when there was none.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Refused(status) => status.code,
            _ => 0,
        }
    }

    /// What a failed sending means.
    pub(super) fn sending(server: &str, error: &kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            return Self::Refused(status.clone());
        }
        let mut why = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            why = match error.downcast_ref::<io::Error>() {
                Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    "connection refused".to_owned()
                }
                _ => error.to_string(),
            };
            cause = error.source();
        }
        Self::Unreachable { server: server.to_owned(), why }
    }

    /// What to do about it.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => Some(
                "is the yard up? start it with `trainyard up`; \
                 another server is chosen with --kubeconfig or --context",
            ),
            Self::Refused(status) if status.code == 401 => {
                Some("the kubeconfig is not this server's, or its credentials have expired")
            }
            _ => None,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = match &error {
            Error::Name { .. } => Self::usage(&error),
            _ if error.code() == 422 => Self::invalid(vec![error.to_string()]),
            _ => Self::plain(&error),
        };
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let status = Status::failure("pods \"x\" not found", "NotFound").with_code(404);
        let error = Error::Refused(status.boxed());
        assert_eq!(error.code(), 404);
        let failure = Failure::from(error);
        assert_eq!(failure.to_string(), "error: pods \"x\" not found");
        assert_eq!(failure.exit_code(), 1);
    }

    #[test]
    fn an_invalid_object_has_its_own_exit_code() {
        let status = Status::failure("TFJob is invalid", "Invalid").with_code(422);
        assert_eq!(Failure::from(Error::Refused(status.boxed())).exit_code(), 3);
        let bare = Status::failure("", "BadGateway").with_code(502);
        let said = Error::Refused(bare.boxed()).to_string();
        assert_eq!(said, "the API server answered with code 502 BadGateway");
    }

    #[test]
    fn who_is_away_is_named_with_what_to_do() {
        let error =
            Error::Unreachable { server: "https://127.0.0.1:1".into(), why: "refused".into() };
        let said = Failure::from(error).to_string();
        assert!(said.contains("https://127.0.0.1:1"), "{said}");
        assert!(said.contains("\nhint: is the yard up?"), "{said}");
    }
}
