//! One container from the inside: its init, which makes the root, starts the program, hands on
//! orders and reports what ends.
//!
//! Everything here runs in processes forked by the holder. Must not know other containers.

mod confine;
pub(crate) mod init;
pub(crate) mod privileges;
pub(crate) mod program;
mod seccomp;
mod terminal;

use serde::{Deserialize, Serialize};

use crate::protocol::{Ending, ExecSpec, Reach, Refusal};

/// What the holder tells an init.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Run one more program. Brings three descriptors, unless it gets a terminal.
    Exec(Box<ExecSpec>),
    /// Send a signal.
    Signal {
        /// A program started by `Exec`; none: the container.
        exec: Option<String>,
        signal: i32,
        reach: Reach,
    },
    /// Kill everything and end.
    End,
}

/// What an init tells the holder. `exec` is none for the container's own program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Brings the other side of its terminal, if it has one.
    Started {
        exec: Option<String>,
    },
    Refused {
        exec: Option<String>,
        refusal: Refusal,
    },
    Ended {
        exec: Option<String>,
        ending: Ending,
    },
}
