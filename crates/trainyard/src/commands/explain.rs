//! `trainyard explain`: why a job waits, and what would help.
//!
//! Owns finding what is meant and how it is shown; what binds is found out by the scheduler's own rules.

mod groups;
mod namespace_view;
mod words;

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use trainyard_operator::scheduler::{Constraint, Explanation, GroupKey};
use trainyard_operator::{Denied, Error, scheduler};

use super::events::Subject;
use super::job;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::{events, text};
use crate::run::words::some;
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

/// Groups of one job that are explained one by one, and those that are only named.
const EACH: usize = 5;
const NAMED: usize = 6;

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
            let events = related.events(&cluster, &kinds, &kind, &object).await?;
            let Related { groups, pods, denied } = &related;
            let view = NamespaceView::of(&kind, &object, groups, pods, &events, denied);
            if self.output == Form::Json {
                let mut shown = json!({"groups": explained});
                if view.is_needed() {
                    view.add_to(&mut shown);
                }
                return print_json(&cluster, &kind, text(&object, &["metadata", "name"]), shown);
            }
            let subject = format!("{}/{}", kind.word(), text(&object, &["metadata", "name"]));
            let waits_for_nodes =
                explained.iter().any(|why| why.waiting > 0 || why.constraint != Constraint::None);
            if !waits_for_nodes && view.is_needed() {
                return output::print(&view.text(&subject, Timestamp::now()));
            }
            if explained.is_empty() {
                let why = groups::why_none(&kind, &object);
                return output::print(&format!("{subject}: {why}\n"));
            }
            output::print(&told(&subject, &explained, Timestamp::now()))?;
            output::print(&view.starting(Timestamp::now()))
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
        let named: Vec<(&str, &str)> =
            wanted.iter().map(|group| (group.namespace(), group.name())).collect();
        if named.is_empty() {
            return Ok(Vec::new());
        }
        // Of those that are not there any more, or that somebody else schedules, nothing is said.
        match scheduler::explain_each(cluster.client(), &options, &named).await {
            Ok(explained) => Ok(explained),
            Err(Error::Forbidden { denied: missing }) => {
                denied.retain(|one| missing.iter().all(|new| new.resource != one.resource));
                denied.extend(missing);
                Ok(Vec::new())
            }
            Err(error) => Err(Failure::other("reading what is there", &error)),
        }
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

impl Related {
    /// The events of what is explained, as far as they may be read; none where nothing is told of them.
    async fn events(
        &mut self,
        cluster: &Cluster,
        kinds: &Kinds,
        kind: &Kind,
        object: &Value,
    ) -> Result<Vec<Value>, Failure> {
        let Self { groups, pods, denied } = self;
        if !NamespaceView::of(kind, object, groups, pods, &[], denied).is_needed() {
            return Ok(Vec::new());
        }
        let subject = kind.is_training().then(|| Subject::of(kind, object));
        let of_events = kinds.known("events.v1")?;
        let mut unread = Vec::new();
        let mut found =
            readable(cluster, of_events, "events", &Query::default(), &mut unread).await?;
        if !denied.is_empty() {
            denied.extend(unread);
        }
        found.retain(|event| match &subject {
            Some(subject) => subject.is_in(event) && !events::precedes(event, object),
            None => event["involvedObject"]["uid"] == object["metadata"]["uid"],
        });
        events::sort(&mut found);
        Ok(found)
    }
}

/// What is said of all groups; of many that wait each for itself only the first are explained.
fn told(subject: &str, explained: &[Explanation], now: Timestamp) -> String {
    let now = now.as_second();
    if let [why] = explained {
        return words::told(subject, why, now);
    }
    let of = |why: &Explanation| words::told(&format!("pod/{}", why.group.name()), why, now);
    let mut text: String = explained.iter().take(EACH).map(of).collect();
    let rest = explained.get(EACH..).unwrap_or_default();
    if !rest.is_empty() {
        let names: Vec<String> = rest.iter().map(|why| why.group.name().to_owned()).collect();
        let _ = writeln!(
            text,
            "{subject}: {} more wait: {}; `-o json` tells of each",
            rest.len(),
            some(&names, NAMED)
        );
    }
    text
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
    output::print_json(&format!("{shown}\n"))
}
