//! What kubectl does beyond objects: pods that run, their logs and shells, nodes, events, the
//! cluster itself. One line each in the documentation, one test each here.
//!
//! Needs a yard with nodes `a` and `b`.

mod around;
mod jobs;
mod lines;
mod making;
mod nodes;
mod pods;
mod volumes;

use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use futures::future::BoxFuture;

use super::bed::Bed;
use crate::suite::report::Report;

/// Stories under way at the same time.
const AT_ONCE: usize = 3;
/// No story takes longer.
const LONGEST: Duration = Duration::from_mins(2);

/// A command and what is to be seen when it is used.
#[derive(Clone, Copy)]
pub(super) struct Story {
    /// `kubectl/file/what`.
    pub(super) name: &'static str,
    /// As in the documentation.
    pub(super) command: &'static str,
    /// What comes of it, in a few words.
    pub(super) gives: &'static str,
    pub(super) play: for<'a> fn(&'a Bed, &'a str) -> BoxFuture<'a, Result<()>>,
}

/// Stories of a file: function, command, what comes of it.
macro_rules! stories {
    ($file:literal: $($play:ident, $command:literal, $gives:literal);+ $(;)?) => {
        vec![$($crate::yard::stories::Story {
            name: concat!("kubectl/", $file, "/", stringify!($play)),
            command: $command,
            gives: $gives,
            play: |bed, namespace| Box::pin($play(bed, namespace)),
        }),+]
    };
}
pub(super) use stories;

/// Those that may run beside each other.
fn together() -> Vec<Story> {
    [pods::all(), jobs::all(), volumes::all(), making::all(), around::all(), lines::all()].concat()
}

/// Those that change what all others stand on.
fn alone() -> Vec<Story> {
    nodes::all()
}

/// Runs the stories that are wanted; all of them, with what came of each.
pub(super) async fn run(
    bed: &Bed,
    wants: impl Fn(&str) -> bool,
    report: &Report,
) -> Vec<(Story, bool)> {
    let shared: Vec<Story> = together().into_iter().filter(|story| wants(story.name)).collect();
    let play = async |(at, story): (usize, Story)| {
        let play = async |number| {
            let namespace = format!("story-{at}-{number}");
            open(bed, &namespace).await?;
            (story.play)(bed, &namespace).await
        };
        let good = report.play(story.name, LONGEST, play).await;
        (at, story, good)
    };
    let count = shared.len();
    let mut told: Vec<_> = futures::stream::iter(shared.into_iter().enumerate())
        .map(play)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    told.sort_by_key(|(at, _, _)| *at);
    for (at, story) in alone().into_iter().filter(|story| wants(story.name)).enumerate() {
        told.push(play((count + at, story)).await);
    }
    told.into_iter().map(|(_, story, good)| (story, good)).collect()
}

/// A namespace in which pods can be made.
async fn open(bed: &Bed, namespace: &str) -> Result<()> {
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
    });
    bed.feed(&["create", "-f", "-"], &object.to_string()).await?;
    let words = ["-n", namespace, "wait", "--for=create", "--timeout=30s", "sa/default"];
    bed.ok(&words).await.map(drop)
}
