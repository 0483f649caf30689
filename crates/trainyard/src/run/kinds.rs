//! The kinds of job that can be run: one row each.
//!
//! A row says which objects it is about, which pods belong to one, what it asks for and how it has
//! ended. Everything else of a run is the same for all of them.

mod batch;
mod tfjob;
mod volcano;

use std::borrow::Cow;

use serde_json::Value;

/// A kind of job.
#[derive(Debug)]
pub(crate) struct JobKind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    /// How people call it, where its kind alone does not say which.
    pub(crate) title: &'static str,
    /// The label by which its pods name their job.
    pub(crate) label: &'static str,
    /// The pods that a job asks for.
    pub(crate) members: fn(&Value) -> Vec<Member<'_>>,
    /// Those of them that start all together or not at all; none where each starts by itself.
    pub(crate) gang: fn(&Value) -> Vec<Member<'_>>,
    /// The objects that it names itself, beside those of its pods.
    pub(crate) uses: fn(&Value) -> Vec<Use<'_>>,
    /// The names of its replicas, as far as they are known before there are pods.
    pub(crate) known: fn(&Value) -> Vec<String>,
    /// The replica that a pod of it plays.
    pub(crate) replica: fn(&Value) -> String,
    /// What it asks for beside them, in words.
    pub(crate) beside: fn(&Value) -> Vec<String>,
    /// Whether a replica stays when the job has ended, as a TensorBoard does.
    pub(crate) stays: fn(&str) -> bool,
    /// How it has ended; none while it has not.
    pub(crate) end: fn(&Value) -> Option<End>,
}

/// A pod that a job asks for.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    /// The kind of replica, as `worker`.
    pub(crate) role: Cow<'a, str>,
    pub(crate) index: u64,
    pub(crate) template: &'a Value,
}

impl Member<'_> {
    /// `worker-0`, as pods of it are labelled.
    pub(crate) fn replica(&self) -> String {
        format!("{}-{}", self.role.to_lowercase(), self.index)
    }
}

/// An object that a job cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Use<'a> {
    pub(crate) kind: &'static str,
    pub(crate) name: &'a str,
    /// Whether it is in the job's namespace, or in none.
    pub(crate) is_namespaced: bool,
}

/// How a job has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Succeeded,
    Failed {
        cause: Cause,
        /// The replica that the job's own status blames.
        replica: Option<String>,
        /// What its status says.
        message: String,
    },
}

/// What ended a job that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A replica failed.
    Replica,
    /// A time that the manifest sets has passed.
    Deadline,
    /// The specification cannot be run.
    Invalid,
}

/// All kinds.
const ALL: [&JobKind; 3] = [&tfjob::TFJOB, &batch::JOB, &volcano::JOB];

/// The row of an object; none when it is no job.
pub(crate) fn of(object: &Value) -> Option<&'static JobKind> {
    let version = object["apiVersion"].as_str()?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    ALL.into_iter().find(|row| row.group == group && object["kind"] == row.kind)
}

/// The names of all kinds.
pub(crate) fn names() -> String {
    ALL.map(|row| row.title).join(", ")
}
