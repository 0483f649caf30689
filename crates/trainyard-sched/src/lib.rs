//! Which pod runs on which node, decided as a whole: a job's pods all together or not at all.
//!
//! A state that is told of changes and asked for decisions. Pure: it must not know clients, clocks,
//! files, randomness or a hash's order; the same changes in any order lead to the same decisions.

mod affinity;
mod amounts;
mod fit;
mod gang;
mod node;
mod place;
mod pod;
mod state;
mod taint;
mod words;

pub use amounts::Amounts;
pub use node::Node;
pub use pod::{Gang, Pod, PodName};
pub use state::{Decision, Delta, State};
