//! The one type behind which every kind of image stands, and what is told while one is made ready.
//! Only data: nothing here knows where an image comes from.

use std::path::PathBuf;

/// What a container gets from its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// For `imageID`; says what stands in: `trainyard://env/tensorflow-cpu-2.21.0-py3.11-…`.
    pub id: String,
    /// The name as the pod gave it.
    pub reference: String,
    /// Comes before the arguments unless the pod gives a command.
    pub entrypoint: Vec<String>,
    /// The arguments when the pod gives neither command nor arguments.
    pub cmd: Vec<String>,
    /// Variables in the image; the pod's come after them.
    pub env: Vec<(String, String)>,
    /// Where the program starts unless the pod says otherwise.
    pub working_dir: PathBuf,
    /// The user the image names, where it names one.
    pub user: Option<String>,
    /// What the root shows, in the order in which it is mounted.
    pub root: Vec<View>,
    /// Words for the event: what is used in place of the image.
    pub note: String,
}

/// What can be said of an image before anything is made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreseen {
    /// It brings a command, for containers that give none.
    pub has_command: bool,
}

/// One part of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// The host's system directories, read-only, as [`crate::system_views`] composes them.
    System,
    /// A folder (or file) of the host.
    Directory {
        /// On the host.
        source: PathBuf,
        /// Inside; absolute.
        target: PathBuf,
        /// What writing inside does.
        mode: ViewMode,
    },
}

/// What writing to a view does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewMode {
    /// Nothing: it is refused.
    ReadOnly,
    /// It works inside and changes nothing on the host.
    PrivateCopy,
    /// It changes the host's files.
    Writable,
}

/// When an image is looked for anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullPolicy {
    /// A tag that can move (`latest`, `2`) is looked up again; a whole version never needs to be.
    Always,
    /// Anything ready that fits is used.
    IfNotPresent,
    /// Only what is ready is used.
    Never,
}

/// What is being done to make an image ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Which step it is.
    pub step: Step,
    /// The step in words, fit for an event.
    pub words: String,
    /// Bytes to be fetched, where a download is named and its size is known.
    pub bytes: Option<u64>,
    /// How much of the whole is done, in percent, where that can be said.
    pub percent: Option<u8>,
}

/// Steps of making an image ready, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Finding out which release a tag means.
    Choosing,
    /// Another process makes the same environment.
    Waiting,
    /// The empty environment.
    Making,
    /// The packages, compiled to bytecode.
    Installing,
    /// One large download of the above.
    Downloading,
    /// Importing what was installed.
    Checking,
    /// Done.
    Ready,
}

impl Progress {
    pub(crate) fn new(step: Step, words: impl Into<String>) -> Self {
        Self { step, words: words.into(), bytes: None, percent: None }
    }

    pub(crate) const fn at(mut self, percent: u8) -> Self {
        self.percent = Some(percent);
        self
    }
}
