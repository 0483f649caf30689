//! `trainyard wait`: until objects are as they should be.

mod goal;
mod volcano;

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use super::delete::gone;
use super::{selection, span};
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::text;
use goal::{Goal, Verdict};

/// kubectl's own.
const USUAL: Duration = Duration::from_secs(30);
/// A training may take long.
const WEEK: Duration = Duration::from_hours(168);
const AGAIN: Duration = Duration::from_millis(500);

/// Wait until objects are as they should be
///
/// `trainyard wait mnist` waits until the job has finished: exit code 0 if it has succeeded, 1 if
/// it has failed. A Volcano Job has each of its phases as a condition, as condition=Completed. With --for whatever else is waited for; exit code 5 when the time is up. A job
/// that can no longer come to what is waited for ends the waiting at once.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// KIND NAME…, KIND/NAME…, or a job's NAME
    #[arg(required = true, value_name = "WHAT")]
    words: Vec<String>,
    /// condition=TYPE[=STATUS], delete, jsonpath={PATH}[=VALUE] or create
    #[arg(long = "for", value_name = "GOAL")]
    goal: Option<Goal>,
    /// How long, as 30s or 5m; -1s for a week [default: 30s; without --for a week]
    #[arg(long, value_name = "TIME", value_parser = timeout, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = selection::labels)]
    selector: Option<String>,
    /// All objects of the kind in the namespace
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    access: Access,
}

/// Reads a time; a negative one is a week, as kubectl has it.
fn timeout(text: &str) -> Result<Duration, String> {
    match text.strip_prefix('-') {
        Some(rest) => span::read(rest).map(|_| WEEK),
        None => span::read(text),
    }
}

impl Wait {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let patience = self.timeout.unwrap_or(if self.goal.is_some() { USUAL } else { WEEK });
            let until = Instant::now() + patience;
            let finish = Goal::Finish;
            let goal = self.goal.as_ref().unwrap_or(&finish);
            let objects = self.objects(&cluster, &kinds).await?;
            if objects.is_empty() {
                return match goal {
                    Goal::Delete => Ok(()),
                    _ => Err(Failure::plain("no matching resources found")),
                };
            }
            for (kind, name) in objects {
                if self.goal.is_none() && !kind.is_training() {
                    return Err(Failure::usage(format!("what is {} to become?", kind.word()))
                        .hint("say it with --for: condition=Ready, delete, jsonpath={…}=VALUE"));
                }
                let waiting = one(&cluster, &kind, &name, goal);
                match tokio::time::timeout_at(until, waiting).await {
                    Ok(ended) => ended?,
                    Err(_) => {
                        return Err(Failure::deadline(format!(
                            "timed out waiting for {goal} on {}/{name}",
                            kind.plural
                        )));
                    }
                }
            }
            Ok(())
        })
    }

    async fn objects(
        &self,
        cluster: &Cluster,
        kinds: &Kinds,
    ) -> Result<Vec<(Kind, String)>, Failure> {
        let mut objects = Vec::new();
        for selection in selection::resolve(cluster, kinds, &self.words).await? {
            let kind = selection.kind;
            if selection.names.is_empty() {
                if !self.all && self.selector.is_none() {
                    return Err(Failure::usage(format!("no {} is named", kind.word()))
                        .hint("write names, labels with -l, or --all"));
                }
                let query = Query::default().maybe("labelSelector", self.selector.clone());
                for object in cluster.objects(&kind, Some(&cluster.namespace), &query).await? {
                    objects.push((kind.clone(), text(&object, &["metadata", "name"]).to_owned()));
                }
            }
            objects.extend(selection.names.into_iter().map(|name| (kind.clone(), name)));
        }
        Ok(objects)
    }
}

async fn one(cluster: &Cluster, kind: &Kind, name: &str, goal: &Goal) -> Result<(), Failure> {
    let met = || output::print(&format!("{}/{name} condition met\n", kind.word()));
    let namespace = cluster.namespace.as_str();
    if *goal == Goal::Delete {
        // Another one of the same name is another one.
        let uid = match cluster.get(kind, namespace, name, None).await {
            Err(error) if error.code() == 404 => return met(),
            answer => text(&answer?, &["metadata", "uid"]).to_owned(),
        };
        gone::wait(cluster, kind, namespace, name, Some(&uid)).await?;
        return met();
    }
    loop {
        let object = match cluster.get(kind, namespace, name, None).await {
            Err(error) if error.code() == 404 && *goal == Goal::Create => Value::Null,
            answer => answer?,
        };
        if judged(kind, name, goal, &object)? {
            return met();
        }
        let query = Query::default()
            .with("fieldSelector", format!("metadata.name={name}"))
            .maybe("resourceVersion", object["metadata"]["resourceVersion"].as_str());
        if let Ok(mut lines) = cluster.watch(kind, Some(namespace), &query, false).await {
            while let Ok(Some(line)) = lines.next().await {
                let event: Value = serde_json::from_slice(&line).unwrap_or_default();
                let is = |kind: &str| event["type"] == kind;
                if is("DELETED") || is("ERROR") {
                    break;
                }
                let changed = is("ADDED") || is("MODIFIED");
                if changed && judged(kind, name, goal, &event["object"])? {
                    return met();
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Whether the goal is reached; an error if it never will be.
fn judged(kind: &Kind, name: &str, goal: &Goal, object: &Value) -> Result<bool, Failure> {
    let verdict = if kind.is_volcano_job() && !matches!(goal, Goal::Path { .. }) {
        goal.judge(&volcano::conditions(object), true)?
    } else {
        goal.judge(object, kind.is_tfjob())?
    };
    match verdict {
        Verdict::Reached => Ok(true),
        Verdict::NotYet => Ok(false),
        Verdict::Never(why) => Err(Failure::plain(format!("{}/{name}: {why}", kind.word()))),
    }
}
