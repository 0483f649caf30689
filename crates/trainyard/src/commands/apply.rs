//! `trainyard apply -f`: makes the server's objects what manifests say.
//!
//! What was applied last is kept in kubectl's own annotation, so that both may be used in turn.
//! Everything is read, and where there are several objects tried out on the server, before the first
//! one is written. Owns the order of it; what has to change is `merge`'s.

mod keys;
mod merge;
mod target;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::files::Files;
use crate::cluster::{self, Access, Cluster, DryRun, Error, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::format::{self, Format};
use crate::present::text;
use keys::Lists;
use target::{Plan, Target};

/// Where kubectl keeps what was applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";

/// Make the server's objects what manifests say
///
/// Creates what is not there and changes what is: fields that were applied before and are no longer
/// in the manifest are removed, fields that others have set stay. Works on objects that kubectl has
/// applied, and the other way round. When a manifest is wrong nothing is sent.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    files: Files,
    /// The same as -f
    #[arg(value_name = "FILE")]
    more: Vec<std::path::PathBuf>,
    /// Only say what would be done: by what is there (client), or by asking the server to try
    #[arg(long, value_enum, value_name = "WHO", num_args = 0..=1, default_missing_value = "client",
          default_value = "none", require_equals = true)]
    dry_run: Rehearsal,
    /// What to do about fields that the server does not know
    #[arg(long, value_enum, value_name = "HOW", default_value = "strict", num_args = 0..=1,
          default_missing_value = "strict", require_equals = true)]
    validate: Validation,
    /// Print the objects: yaml, json, name or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    access: Access,
}

/// Who tries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rehearsal {
    None,
    Client,
    Server,
}

/// What to do about unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Validation {
    /// They are an error.
    #[value(alias = "true")]
    Strict,
    /// They are dropped, and said.
    Warn,
    /// They are dropped.
    #[value(alias = "false")]
    Ignore,
}

/// What became of an object.
struct Done {
    object: Value,
    what: &'static str,
}

impl Apply {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut files = self.files.clone();
        files.files.extend(self.more.iter().cloned());
        if files.files.is_empty() {
            return Err(Failure::usage("no manifest is given")
                .hint("name files or folders with -f, or `-f -` for standard input"));
        }
        let manifests = files.read()?;
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let explicit = self.access.namespace.as_deref();
            let mut plan = Plan::make(&cluster, &kinds, manifests, explicit)?;
            if plan.targets.len() > 1 && self.dry_run == Rehearsal::None {
                self.rehearse(&cluster, &plan).await?;
            }
            let mut failures = Vec::new();
            let mut objects = Vec::new();
            for number in 0..plan.targets.len() {
                plan.resolve(&cluster, number).await?;
                let target = &plan.targets[number];
                match self.one(&cluster, target, self.dry_run == Rehearsal::Server).await {
                    Ok(done) => self.tell(done, &mut objects)?,
                    Err(error) => failures.push(refused(target, error)),
                }
            }
            if let Some(format) = &self.output {
                let single = plan.targets.len() == 1;
                output::print_data(&format.print(&objects, single)?)?;
            }
            Failure::all(failures)
        })
    }

    /// Asks the server about all objects before the first is written.
    async fn rehearse(&self, cluster: &Cluster, plan: &Plan) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for target in plan.targets.iter().filter(|target| plan.can_be_tried(target)) {
            if let Err(error) = self.one(cluster, target, true).await {
                failures.push(refused(target, error).hint("nothing was changed"));
            }
        }
        Failure::all(failures)
    }

    fn tell(&self, done: Done, objects: &mut Vec<Value>) -> Result<(), Failure> {
        let mut object = done.object;
        if self.output.is_some() {
            format::drop_managed_fields(&mut object);
            objects.push(object);
            return Ok(());
        }
        let tried = match self.dry_run {
            Rehearsal::None => "",
            Rehearsal::Client => " (dry run)",
            Rehearsal::Server => " (server dry run)",
        };
        output::print(&format!("{} {}{tried}\n", format::name(&object), done.what))
    }

    fn query(&self, tried: bool) -> Query {
        let how = match self.validate {
            Validation::Strict => "Strict",
            Validation::Warn => "Warn",
            Validation::Ignore => "Ignore",
        };
        let dry_run = if tried { DryRun::Server } else { DryRun::No };
        dry_run
            .query()
            .with("fieldValidation", how)
            .with("fieldManager", "kubectl-client-side-apply")
    }

    /// Creates or changes one object.
    async fn one(&self, cluster: &Cluster, target: &Target, tried: bool) -> Result<Done, Error> {
        let kind = &target.kind;
        let (namespace, name) = (target.namespace.as_str(), target.name());
        let wanted = annotated(&target.object);
        let current = match cluster.get(kind, namespace, name, None).await {
            Err(error) if error.code() == 404 => {
                let object = without_nulls(wanted);
                if self.dry_run == Rehearsal::Client {
                    return Ok(Done { object, what: "created" });
                }
                let created = cluster.create(kind, namespace, &object, &self.query(tried)).await?;
                return Ok(Done { object: created, what: "created" });
            }
            answer => answer?,
        };
        let noted = text(&current, &["metadata", "annotations", LAST_APPLIED]);
        let last: Value = serde_json::from_str(noted).unwrap_or_default();
        let strategic = target::is_built_in(kind);
        let lists = if strategic { Lists::ByKey { kind: &kind.kind } } else { Lists::Whole };
        let patch = merge::patch(&last, &wanted, &current, &lists);
        if patch.is_empty() {
            return Ok(Done { object: current, what: "unchanged" });
        }
        if self.dry_run == Rehearsal::Client {
            return Ok(Done { object: current, what: "configured" });
        }
        let place = (namespace, name, "");
        let content = if strategic { STRATEGIC } else { MERGE };
        let sent =
            cluster.patch(kind, place, content, &Value::Object(patch), &self.query(tried)).await;
        let object = match sent {
            // A defined kind after all, whose group looks like the server's own.
            Err(error) if error.code() == 415 => {
                let patch = merge::patch(&last, &wanted, &current, &Lists::Whole);
                cluster.patch(kind, place, MERGE, &Value::Object(patch), &self.query(tried)).await?
            }
            answer => answer?,
        };
        Ok(Done { object, what: "configured" })
    }
}

/// A refusal, with the manifest's place. What the server finds wrong in a manifest is invalid.
fn refused(target: &Target, error: Error) -> Failure {
    match error.code() {
        400 | 422 => Failure::invalid(vec![error.to_string()]).at(&target.place),
        _ => Failure::from(error).at(&target.place),
    }
}

/// The object with what is wanted noted in it, letter by letter as kubectl writes it.
fn annotated(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(metadata) = object["metadata"].as_object_mut() else { return object };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if !annotations.is_object() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(LAST_APPLIED);
    }
    let noted = trainyard_schema::golang::json(&object) + "\n";
    object["metadata"]["annotations"][LAST_APPLIED] = noted.into();
    object
}

/// A new object has no field to remove: what is null is left out.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name, without_nulls(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(object: &Value) -> &str {
        text(object, &["metadata", "annotations", LAST_APPLIED])
    }

    #[test]
    fn what_was_applied_is_noted_as_kubectl_does() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a", "namespace": "default"}, "data": {"x": "<1>"},
        });
        let annotated = annotated(&object);
        assert_eq!(
            noted(&annotated),
            "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"\\u003c1\\u003e\"},\"kind\":\"ConfigMap\",\
             \"metadata\":{\"annotations\":{},\"name\":\"a\",\"namespace\":\"default\"}}\n"
        );
        assert_eq!(noted(&super::annotated(&annotated)), noted(&annotated));
    }

    #[test]
    fn nulls_are_left_out_of_new_objects() {
        let object = json!({"a": null, "b": [{"c": null, "d": 1}]});
        assert_eq!(without_nulls(object), json!({"b": [{"d": 1}]}));
    }
}
