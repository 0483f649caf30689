//! A run: jobs from manifests, in a yard of their own that lives as long as they do.
//!
//! Owns what is asked before anything starts, following jobs to their end, judging it and telling it.
//! The yard is put together in `yard`, flags are `commands::run`'s. Must not know how pods are made.

pub(crate) mod attach;
pub(crate) mod board;
pub(crate) mod bundle;
pub(crate) mod conduct;
pub(crate) mod finish;
pub(crate) mod hints;
pub(crate) mod host_paths;
pub(crate) mod kinds;
pub(crate) mod names;
pub(crate) mod noise;
pub(crate) mod overrides;
pub(crate) mod places;
pub(crate) mod prepare;
pub(crate) mod restarts;
pub(crate) mod room;
pub(crate) mod script;
pub(crate) mod stage;
pub(crate) mod stuck;
pub(crate) mod summary;
pub(crate) mod verdict;
pub(crate) mod voice;
pub(crate) mod words;
