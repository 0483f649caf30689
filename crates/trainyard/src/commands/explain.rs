//! `trainyard explain`: why a job waits, and what would help.
//!
//! Owns finding what is meant and how it is shown; what binds is found out by the scheduler's own rules.

mod groups;
mod words;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use trainyard_operator::{Error, scheduler};

use super::job;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::text;

/// Say why a job waits: what is short, who has it, its place in the queue, what would fit
///
/// The job is a TFJob, a Volcano Job, a pod group or a pod. The rules are those of Trainyard's scheduler;
/// whatever schedules the cluster, this asks only to read.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A job's name, or KIND/NAME: tfjob/a, vcjob/b, podgroup/c, pod/d
    #[arg(value_name = "JOB")]
    word: String,
    /// How: text, or json for programs
    #[arg(short, long, value_enum, default_value = "text", hide_possible_values = true)]
    output: Form,
    /// The names that pods call the scheduler by
    #[arg(long = "scheduler-name", value_name = "NAME",
        default_values_t = ["default-scheduler", "volcano", "trainyard"].map(str::to_owned))]
    schedulers: Vec<String>,
    #[command(flatten)]
    access: Access,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let (kind, object) = self.find(&cluster, &kinds).await?;
            let related = related(&cluster, &kinds, &kind, &object).await?;
            let wanted = groups::of(&kind, &object, &related.groups, &related.pods);
            let options =
                scheduler::Options { names: self.schedulers.clone(), ..Default::default() };
            let mut told = Vec::new();
            for group in &wanted {
                let (namespace, name) = (group.namespace(), group.name());
                match scheduler::explain(cluster.client(), &options, namespace, name).await {
                    Ok(why) => told.push(why),
                    // It has ended meanwhile, or somebody else schedules it.
                    Err(Error::NoGroup { .. }) => {}
                    Err(error) => return Err(Failure::other("reading what is there", &error)),
                }
            }
            let name = text(&object, &["metadata", "name"]);
            let subject = format!("{}/{name}", kind.word());
            if self.output == Form::Json {
                let shown = json!({
                    "apiVersion": kind.api_version(), "kind": kind.kind,
                    "namespace": cluster.namespace, "name": name, "groups": told,
                });
                let shown = serde_json::to_string_pretty(&shown)
                    .map_err(|error| Failure::other("writing the explanation", &error))?;
                return output::print(&format!("{shown}\n"));
            }
            if told.is_empty() {
                let why = groups::why_none(&kind, &object);
                return output::print(&format!("{subject}: {why}\n"));
            }
            let now = Timestamp::now().as_second();
            let several = told.len() > 1;
            for why in &told {
                let subject =
                    if several { format!("pod/{}", why.group.name()) } else { subject.clone() };
                output::print(&words::told(&subject, why, now))?;
            }
            Ok(())
        })
    }

    /// What is meant: a job first, then a group, then a pod.
    async fn find(&self, cluster: &Cluster, kinds: &Kinds) -> Result<(Kind, Value), Failure> {
        let word = self.word.as_str();
        if let Some((kind, name)) = word.split_once('/') {
            let kind = kinds.known(kind)?;
            if !groups::can_wait(kind) || name.is_empty() {
                return Err(Failure::usage(format!("{word:?} is nothing that waits for nodes"))
                    .hint("name a TFJob, a Volcano Job, a pod group or a pod"));
            }
            return Ok((kind.clone(), cluster.get(kind, &cluster.namespace, name, None).await?));
        }
        if let Some(found) = job::named(cluster, kinds, word).await? {
            return Ok(found);
        }
        for kind in [groups::CRD_NAME, "pods"].into_iter().filter_map(|name| kinds.find(name)) {
            match cluster.get(kind, &cluster.namespace, word, None).await {
                Ok(object) => return Ok((kind.clone(), object)),
                Err(error) if error.code() == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::plain(format!(
            "there is neither a job, a pod group nor a pod {word:?} in namespace {:?}",
            cluster.namespace
        ))
        .hint("`trainyard get` lists the jobs; -n names another namespace"))
    }
}

/// What belongs to a job, as far as it waits.
struct Related {
    groups: Vec<Value>,
    pods: Vec<Value>,
}

async fn related(
    cluster: &Cluster,
    kinds: &Kinds,
    kind: &Kind,
    object: &Value,
) -> Result<Related, Failure> {
    let (mut groups, mut pods) = (Vec::new(), Vec::new());
    if let Some(label) = job::label(kind) {
        if let Some(kind) = kinds.find(groups::CRD_NAME) {
            groups = cluster.objects(kind, Some(&cluster.namespace), &Query::default()).await?;
        }
        let selector = format!("{label}={}", text(object, &["metadata", "name"]));
        let query = Query::default().with("labelSelector", selector);
        pods = cluster.objects(kinds.known("pods")?, Some(&cluster.namespace), &query).await?;
    }
    Ok(Related { groups, pods })
}
