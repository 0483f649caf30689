//! What a container's image means on this machine: a cached Python environment that stands in for an
//! official image, a mapping the user gave, or the host itself.
//!
//! Owns the names of images, the choice of Python and package versions, the making and keeping of
//! environments. Knows nothing of Kubernetes, of pods, or of how a root is mounted.

mod choose;
mod command;
mod compose;
mod config;
mod demand;
mod error;
mod gauge;
mod ground;
mod held;
mod image;
mod index;
mod interpreters;
mod make;
mod reference;
mod releases;
mod requirements;
mod resolve;
mod room;
mod settings;
mod settle;
mod share;
mod store;
mod system;
mod tag;
mod tools;
mod variables;
mod version;

pub use config::{ConfigError, ConfigFile};
pub use error::{ImageError, SettingsError};
pub use ground::{Begun, Ground, Pending, Sandbox, Server, Task};
pub use image::{Foreseen, Image, Progress, PullPolicy, Step, View, ViewMode};
pub use resolve::Images;
pub use settings::{CodeMount, Installer, Mapping, Settings, Target, default_cache};
pub use system::{SystemView, system_views};
