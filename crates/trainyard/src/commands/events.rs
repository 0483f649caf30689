//! `trainyard events`: what has happened, to a job and everything that belongs to it, or at all.

mod subject;

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

pub(super) use subject::Subject;

use super::job;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::columns::Columns;
use crate::present::{events, text};

/// Show what has happened, in order
///
/// `trainyard events mnist` shows the events of that job, its pods, its services and its pod group;
/// without a name all events of the namespace.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// A job's name
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Go on as things happen
    #[arg(short, long)]
    watch: bool,
    /// Only Warning, or only Normal
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Of all namespaces
    #[arg(short = 'A', long, conflicts_with = "job")]
    all_namespaces: bool,
    /// Without the line of the columns' names
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    access: Access,
}

impl Events {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let kind = kinds.known("events.v1")?;
            let job = match &self.job {
                Some(word) => Some(subject(&cluster, &kinds, kind, word).await?),
                None => None,
            };
            let mut layout = Columns::default();
            let scope = (!self.all_namespaces).then_some(cluster.namespace.as_str());
            let pages = cluster.list(kind, scope, &Query::default(), false).await?;
            let mut found: Vec<Value> = pages
                .iter()
                .flat_map(|page| page["items"].as_array().into_iter().flatten())
                .filter(|event| self.wants(event, job.as_ref()))
                .cloned()
                .collect();
            events::sort(&mut found);
            let mut rows: Vec<Vec<String>> = Vec::new();
            if !found.is_empty() && !self.no_headers {
                rows.push(events::header(self.all_namespaces));
            }
            let now = Timestamp::now();
            rows.extend(found.iter().map(|event| events::row(event, now, self.all_namespaces)));
            output::print(&layout.lines(&rows))?;
            if self.watch {
                let revision =
                    pages.last().map(|page| text(page, &["metadata", "resourceVersion"]));
                let revision = revision.unwrap_or_default().to_owned();
                return self.follow(&cluster, kind, job.as_ref(), layout, revision).await;
            }
            if found.is_empty() {
                let place = scope.map_or(String::new(), |name| format!(" in {name} namespace"));
                output::say(&format!("No events found{place}.\n"));
            }
            Ok(())
        })
    }

    fn wants(&self, event: &Value, job: Option<&Subject>) -> bool {
        let kind = text(event, &["type"]);
        let typed =
            self.types.is_empty() || self.types.iter().any(|one| one.eq_ignore_ascii_case(kind));
        typed && job.is_none_or(|job| job.is_in(event))
    }

    async fn follow(
        &self,
        cluster: &Cluster,
        kind: &Kind,
        job: Option<&Subject>,
        mut layout: Columns,
        mut revision: String,
    ) -> Result<(), Failure> {
        let scope = (!self.all_namespaces).then_some(cluster.namespace.as_str());
        loop {
            let query = Query::default().with("resourceVersion", &revision);
            let mut lines = cluster.watch(kind, scope, &query, false).await?;
            while let Some(line) = lines.next().await? {
                let change: Value = serde_json::from_slice(&line).unwrap_or_default();
                let event = &change["object"];
                match change["type"].as_str() {
                    Some("ERROR") => {
                        let why = text(event, &["message"]);
                        return Err(Failure::plain(format!("the watch ended: {why}")));
                    }
                    Some("ADDED" | "MODIFIED") if self.wants(event, job) => {
                        let row = events::row(event, Timestamp::now(), self.all_namespaces);
                        output::print(&layout.lines(&[row]))?;
                    }
                    _ => {}
                }
                let now_at = text(event, &["metadata", "resourceVersion"]);
                if !now_at.is_empty() {
                    now_at.clone_into(&mut revision);
                }
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// The job that a word means. A name that no job has, and no event tells of, is a slip.
async fn subject(
    cluster: &Cluster,
    kinds: &Kinds,
    events: &Kind,
    word: &str,
) -> Result<Subject, Failure> {
    match job::find(cluster, kinds, word).await {
        Ok((kind, object)) => Ok(Subject::of(&kind, &object)),
        Err(failure) => {
            let name = word.split_once('/').map_or(word, |(_, name)| name);
            let gone = Subject::gone(name);
            let all = cluster.objects(events, Some(&cluster.namespace), &Query::default()).await?;
            let is_told = !name.is_empty() && all.iter().any(|event| gone.is_in(event));
            if is_told { Ok(gone) } else { Err(failure) }
        }
    }
}
