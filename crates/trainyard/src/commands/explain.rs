//! `trainyard explain`: why a job waits, and what would help.
//!
//! Owns finding what is meant and how it is shown; what binds is found out by the scheduler's own rules.

mod groups;
mod namespace_view;
mod words;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use trainyard_operator::scheduler::{Explanation, GroupKey};
use trainyard_operator::{Denied, Error, scheduler};

use super::events::Subject;
use super::job;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::text;
use namespace_view::NamespaceView;

/// The role that allows to read everything that explaining takes, as `trainyard manifests` prints it.
pub(super) const ROLE: &str = "trainyard-explain";

/// Say why a job waits: what is short, who has it, its place in the queue, what would fit
///
/// The job is a TFJob, a Volcano Job, a pod group or a pod. The rules are those of Trainyard's scheduler;
/// whatever schedules the cluster, this asks only to read. Whoever may not read nodes, queues and other
/// namespaces gets what the job's own namespace tells, and which rights the rest takes.
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
            let mut related = related(&cluster, &kinds, &kind, &object).await?;
            let wanted = groups::of(&kind, &object, &related.groups, &related.pods);
            let explained = self.ask(&cluster, &wanted, &mut related.denied).await?;
            let name = text(&object, &["metadata", "name"]);
            let subject = format!("{}/{name}", kind.word());
            if !related.denied.is_empty() {
                let events = events(&cluster, &kinds, &kind, &object, &mut related.denied).await?;
                let Related { groups, pods, denied } = &related;
                let view = NamespaceView::of(&kind, &object, groups, pods, &events, denied);
                return if self.output == Form::Json {
                    let mut shown = json!({"groups": explained});
                    view.add_to(&mut shown);
                    print_json(&cluster, &kind, name, shown)
                } else {
                    output::print(&view.text(&subject, Timestamp::now()))
                };
            }
            if self.output == Form::Json {
                return print_json(&cluster, &kind, name, json!({"groups": explained}));
            }
            if explained.is_empty() {
                let why = groups::why_none(&kind, &object);
                return output::print(&format!("{subject}: {why}\n"));
            }
            let now = Timestamp::now().as_second();
            let several = explained.len() > 1;
            for why in &explained {
                let subject =
                    if several { format!("pod/{}", why.group.name()) } else { subject.clone() };
                output::print(&words::told(&subject, why, now))?;
            }
            Ok(())
        })
    }

    /// Asks the scheduler's rules about each group. Where not everything may be read they cannot be
    /// asked: what is missing is added to `denied`.
    async fn ask(
        &self,
        cluster: &Cluster,
        wanted: &[GroupKey],
        denied: &mut Vec<Denied>,
    ) -> Result<Vec<Explanation>, Failure> {
        let options = scheduler::Options { names: self.schedulers.clone(), ..Default::default() };
        let mut explained = Vec::new();
        for group in wanted {
            let (namespace, name) = (group.namespace(), group.name());
            match scheduler::explain(cluster.client(), &options, namespace, name).await {
                Ok(why) => explained.push(why),
                // It has ended meanwhile, or somebody else schedules it.
                Err(Error::NoGroup { .. }) => {}
                Err(Error::Forbidden { denied: missing }) => {
                    denied.retain(|one| missing.iter().all(|new| new.resource != one.resource));
                    denied.extend(missing);
                    return Ok(Vec::new());
                }
                Err(error) => return Err(Failure::other("reading what is there", &error)),
            }
        }
        Ok(explained)
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
    /// What of it may not be read.
    denied: Vec<Denied>,
}

async fn related(
    cluster: &Cluster,
    kinds: &Kinds,
    kind: &Kind,
    object: &Value,
) -> Result<Related, Failure> {
    let mut related = Related { groups: Vec::new(), pods: Vec::new(), denied: Vec::new() };
    let Related { groups, pods, denied } = &mut related;
    if let Some(label) = job::label(kind) {
        if let Some(kind) = kinds.find(groups::CRD_NAME) {
            *groups = readable(cluster, kind, "podgroups", &Query::default(), denied).await?;
        }
        let selector = format!("{label}={}", text(object, &["metadata", "name"]));
        let query = Query::default().with("labelSelector", selector);
        *pods = readable(cluster, kinds.known("pods")?, "pods", &query, denied).await?;
    } else if groups::is_group(kind) {
        let all =
            readable(cluster, kinds.known("pods")?, "pods", &Query::default(), denied).await?;
        *pods = all.into_iter().filter(|pod| groups::is_member(pod, object)).collect();
    }
    Ok(related)
}

/// The events of what is explained, as far as they may be read.
async fn events(
    cluster: &Cluster,
    kinds: &Kinds,
    kind: &Kind,
    object: &Value,
    denied: &mut Vec<Denied>,
) -> Result<Vec<Value>, Failure> {
    let subject = kind.is_training().then(|| Subject::of(kind, object));
    let events = kinds.known("events.v1")?;
    let mut found = readable(cluster, events, "events", &Query::default(), denied).await?;
    found.retain(|event| match &subject {
        Some(subject) => subject.is_in(event),
        None => event["involvedObject"]["uid"] == object["metadata"]["uid"],
    });
    crate::present::events::sort(&mut found);
    Ok(found)
}

/// The objects of a kind in the namespace; none where they may not be listed, which is noted.
async fn readable(
    cluster: &Cluster,
    kind: &Kind,
    resource: &'static str,
    query: &Query,
    denied: &mut Vec<Denied>,
) -> Result<Vec<Value>, Failure> {
    match cluster.objects(kind, Some(&cluster.namespace), query).await {
        Ok(objects) => Ok(objects),
        Err(error) if error.code() == 403 => {
            denied.push(Denied { resource, problem: error.to_string() });
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

fn print_json(cluster: &Cluster, kind: &Kind, name: &str, mut shown: Value) -> Result<(), Failure> {
    shown["apiVersion"] = kind.api_version().into();
    shown["kind"] = kind.kind.clone().into();
    shown["namespace"] = cluster.namespace.clone().into();
    shown["name"] = name.into();
    let shown = serde_json::to_string_pretty(&shown)
        .map_err(|error| Failure::other("writing the explanation", &error))?;
    output::print(&format!("{shown}\n"))
}
