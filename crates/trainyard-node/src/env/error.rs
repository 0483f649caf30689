//! Why a container's environment or command cannot be made, in the kubelet's words.

use crate::env::fields::FieldError;
use crate::env::resources::ResourceError;
use crate::objects::ObjectsError;

/// Why a container's environment or command cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvError {
    /// A config map that is not optional does not exist.
    #[error("configmap {name:?} not found")]
    NoConfigMap {
        /// Its name.
        name: String,
    },
    /// A secret that is not optional does not exist.
    #[error("secret {name:?} not found")]
    NoSecret {
        /// Its name.
        name: String,
    },
    /// A key that is not optional is not in its object.
    #[error("couldn't find key {key} in {object} {namespace}/{name}")]
    NoKey {
        /// `ConfigMap` or `Secret`.
        object: &'static str,
        /// The pod's.
        namespace: String,
        /// The object's.
        name: String,
        /// What was looked for.
        key: String,
    },
    /// A variable cannot hold this.
    #[error(
        "the value of environment variable {variable} ({origin}) {problem}: mount it as a volume instead"
    )]
    Value {
        /// The variable.
        variable: String,
        /// Where the value stands.
        origin: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No program could ever read it.
    #[error(
        "{name:?} ({origin}) cannot be the name of an environment variable: it must not be empty nor hold '=' or a zero byte"
    )]
    Name {
        /// The name.
        name: String,
        /// Where it stands.
        origin: String,
    },
    /// `valueFrom` names nothing this node knows.
    #[error(
        "environment variable {variable} has a valueFrom that this node does not know: use fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef"
    )]
    NoSource {
        /// The variable.
        variable: String,
    },
    /// A field of the pod.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A resource of a container.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// An object could not be read.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// Neither the container nor its image says what to run.
    #[error("no command specified")]
    NoCommand,
    /// A program's argument that cannot be passed.
    #[error("argument {position} of the command holds a zero byte, which no program can be given")]
    Argument {
        /// Counted from 0, the program.
        position: usize,
    },
}

impl EnvError {
    /// The reason a container waits for, as a kubelet names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::NoCommand | Self::Argument { .. } => "CreateContainerError",
            _ => "CreateContainerConfigError",
        }
    }
}
