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

use std::sync::Arc;

use anyhow::Result;

use super::bed::Bed;
use super::open::Open;
use crate::harness::Case;

/// A case on a yard, in a namespace of its own; and, as in the documentation, a command and what comes of
/// it.
pub(super) type Story = (Case<(Arc<Bed>, Arc<str>)>, [&'static str; 2]);

/// Those that may run beside each other.
pub(super) fn together() -> Vec<Story> {
    let all = [pods::all(), jobs::all(), volumes::all(), making::all(), around::all()];
    [all.concat(), lines::all()].concat()
}

/// Those that change what all others stand on.
pub(super) fn alone() -> Vec<Story> {
    nodes::all()
}

/// As cases on a yard, which takes down what came of them.
pub(super) fn cases(stories: Vec<Story>) -> Vec<Case<Arc<Open>>> {
    let case = |(story, _): Story| {
        let (name, longest) = (story.name.clone(), story.timeout);
        Case::new(name, move |open: Arc<Open>| play(open, story.clone())).within(longest)
    };
    stories.into_iter().map(case).collect()
}

async fn play(open: Arc<Open>, story: Case<(Arc<Bed>, Arc<str>)>) -> Result<()> {
    let bed = open.bed().await?;
    let namespace = open.new_namespace();
    make(&bed, &namespace).await?;
    story.play((bed, namespace.into())).await?;
    open.has_passed(&story.name);
    Ok(())
}

/// Makes a namespace in which pods can be made.
async fn make(bed: &Bed, namespace: &str) -> Result<()> {
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
    });
    bed.feed(&["create", "-f", "-"], &object.to_string()).await?;
    let words = ["-n", namespace, "wait", "--for=create", "--timeout=30s", "sa/default"];
    bed.ok(&words).await.map(drop)
}
