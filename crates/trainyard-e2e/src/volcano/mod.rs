//! What scenarios of Volcano Jobs and of the scheduler are played with: manifests, a world that is
//! looked at more widely, a played or a real scheduler, and nodes that are only objects.
//!
//! Must not know which server is behind the clients, nor what scenarios do.

mod fence;
mod floor;
mod gang;
mod look;
mod manifest;
mod scene;
mod supply;

pub(crate) use fence::SCENE;
pub(crate) use floor::{Floor, quick_scheduler};
pub(crate) use gang::Gang;
pub(crate) use manifest::{Task, policy, task, vcjob};
pub(crate) use scene::Scene;
