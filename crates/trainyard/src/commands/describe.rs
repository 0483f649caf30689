//! `trainyard describe`: an object in words, with what has happened to it.
//!
//! Owns which description is made; each kind of description is beside.

mod job;
mod plain;
mod pod;
mod sheet;
mod volcano;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::{events::Subject, job as jobs, selection};
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::{events, text};
use sheet::Sheet;

/// Describe objects: what they are, how they are, what has happened to them
///
/// `trainyard describe mnist` shows a job as a tree: its conditions, every replica with its pods,
/// restarts and exit codes, why it failed if it did, and the events of all of them. Other kinds are
/// described too: `describe pod mnist-worker-0`, `describe node/a`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// KIND, KIND NAME…, KIND/NAME…, or a job's NAME
    #[arg(value_name = "WHAT")]
    words: Vec<String>,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Whether to show events
    #[arg(long, default_value = "true", num_args = 0..=1, default_missing_value = "true",
          require_equals = true, action = clap::ArgAction::Set, value_name = "YES")]
    show_events: bool,
    #[command(flatten)]
    access: Access,
}

impl Describe {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let mut failures = Vec::new();
            let mut shown = false;
            for selection in selection::resolve(&cluster, &kinds, &self.words).await? {
                let kind = &selection.kind;
                let mut objects = Vec::new();
                if selection.names.is_empty() {
                    let scope = (!self.all_namespaces).then_some(cluster.namespace.as_str());
                    let query = Query::default().maybe("labelSelector", self.selector.clone());
                    objects = cluster.objects(kind, scope, &query).await?;
                }
                for name in &selection.names {
                    match cluster.get(kind, &cluster.namespace, name, None).await {
                        Ok(object) => objects.push(object),
                        Err(error) => failures.push(error.into()),
                    }
                }
                for object in objects {
                    let gap = if shown { "\n\n" } else { "" };
                    let text = self.one(&cluster, &kinds, kind, &object).await?;
                    output::print(&format!("{gap}{text}"))?;
                    shown = true;
                }
            }
            if !shown && failures.is_empty() {
                output::say(&format!("No resources found in {} namespace.\n", cluster.namespace));
            }
            Failure::all(failures)
                .map_err(|failure| selection::advise(&kinds, &self.words, failure))
        })
    }

    async fn one(
        &self,
        cluster: &Cluster,
        kinds: &Kinds,
        kind: &Kind,
        object: &Value,
    ) -> Result<String, Failure> {
        let now = Timestamp::now();
        let mut sheet = Sheet::new(now);
        if let Some(label) = jobs::label(kind).filter(|_| kind.is_training()) {
            let selector = format!("{label}={}", text(object, &["metadata", "name"]));
            let query = Query::default().with("labelSelector", selector);
            let namespace = text(object, &["metadata", "namespace"]);
            let pods = cluster.objects(kinds.known("pods")?, Some(namespace), &query).await;
            let (pods, unseen) = match pods {
                Ok(pods) => (pods, None),
                // The job itself is worth showing all the same.
                Err(error) if error.code() == 403 => (Vec::new(), Some(error)),
                Err(error) => return Err(error.into()),
            };
            if kind.is_tfjob() {
                job::describe(&mut sheet, object, &pods);
            } else {
                volcano::describe(&mut sheet, object, &pods);
            }
            if let Some(error) = unseen {
                sheet.field("Pods", &format!("not seen: {error}"));
            }
        } else if kind.group.is_empty() && kind.kind == "Pod" {
            pod::describe(&mut sheet, object);
        } else {
            plain::describe(&mut sheet, object);
        }
        if self.show_events {
            self.add_events(cluster, kinds, kind, object, &mut sheet).await?;
        }
        Ok(sheet.text())
    }

    /// A job's events with those of its replicas; anything else's own.
    async fn add_events(
        &self,
        cluster: &Cluster,
        kinds: &Kinds,
        kind: &Kind,
        object: &Value,
        sheet: &mut Sheet,
    ) -> Result<(), Failure> {
        let (name, uid) = (text(object, &["metadata", "name"]), text(object, &["metadata", "uid"]));
        let namespace = text(object, &["metadata", "namespace"]);
        let namespace = if namespace.is_empty() { None } else { Some(namespace) };
        let subject = kind.is_training().then(|| Subject::of(kind, object));
        let query = if subject.is_some() {
            Query::default()
        } else {
            let fields = format!("involvedObject.name={name},involvedObject.kind={}", kind.kind);
            Query::default().with("fieldSelector", fields)
        };
        let mut found = match cluster.objects(kinds.known("events.v1")?, namespace, &query).await {
            Ok(found) => found,
            // Not everybody may see events; the rest is worth showing all the same.
            Err(error) if error.code() == 403 => {
                sheet.field("Events", &format!("not seen: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        found.retain(|event| {
            if let Some(subject) = &subject {
                subject.is_in(event) && !events::precedes(event, object)
            } else {
                // A node's events carry its name for a UID.
                let about = text(event, &["involvedObject", "uid"]);
                about.is_empty() || about == uid || about == name
            }
        });
        events::sort(&mut found);
        if found.is_empty() {
            sheet.field("Events", "<none>");
        } else {
            sheet.heading("Events");
            sheet.table(2, &events::described(&found, sheet.now, subject.is_some()));
        }
        Ok(())
    }
}
