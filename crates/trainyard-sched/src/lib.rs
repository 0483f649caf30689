//! Which pod runs on which node, decided as a whole: a job's pods all together or not at all, and
//! queues that share the cluster as they are told.
//!
//! A state that is told of changes and asked for decisions. Pure: it must not know clients, clocks,
//! files, randomness or a hash's order; the same facts, learnt in any order, lead to the same
//! decisions.

mod admit;
mod affinity;
mod amounts;
mod around;
mod aside;
mod bounds;
mod budget;
mod bundle;
mod config;
mod cycle;
mod decision;
mod delta;
mod explain;
mod explanation;
mod facts;
mod fit;
mod gang;
mod group;
mod hold;
mod holders;
mod ledger;
mod meta;
mod muster;
mod news;
mod node;
mod objects;
mod outside;
mod peer;
mod place;
mod pod;
mod press;
mod queue;
mod refuse;
mod report;
mod room;
mod score;
mod search;
mod selector;
mod serve;
mod shape;
mod shares;
mod shortage;
mod slots;
mod state;
mod storage;
mod taint;
mod time;
mod vector;
mod words;

#[cfg(test)]
mod tests;

pub use amounts::{Amounts, written};
pub use budget::DisruptionBudget;
pub use config::Config;
pub use decision::{Cause, Condition, Decision, GroupReport};
pub use delta::{Delta, Doing, Reported};
pub use explanation::{Constraint, Explanation, Holder, Remedy, Shortage};
pub use group::{GroupCondition, GroupPhase, PodGroup};
pub use ledger::Ledger;
pub use node::Node;
pub use objects::{Namespace, PriorityClass};
pub use pod::{GroupKey, PLACEMENT, Phase, PlacementField, Pod, PodName};
pub use queue::{DEFAULT, Queue, QueueStatus, ROOT};
pub use state::State;
pub use storage::{
    BindClaim, BindVolume, Claim, ClaimWritten, CsiDriver, CsiNode, CsiStorageCapacity,
    ReleaseClaim, StorageClass, StorageDelta, Volume, VolumeAttachment,
};
