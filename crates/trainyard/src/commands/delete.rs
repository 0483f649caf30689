//! `trainyard delete`: ends objects, by name, by label, by manifest, and waits until they are gone.

pub(super) mod gone;

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::files::Files;
use super::selection;
use super::span;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::text;

/// How long deletions are waited for unless said otherwise: pods may take their grace period.
const PATIENCE: Duration = Duration::from_hours(168);

/// Delete objects, and wait until they are gone
///
/// `trainyard delete mnist` deletes the TFJob of that name with its pods and services; `delete
/// pods a b`, `delete pod/a`, `delete tfjobs -l owner=me`, `delete -f job.yaml` whatever else.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub(crate) struct Delete {
    /// KIND NAME…, KIND/NAME…, or a job's NAME
    #[arg(value_name = "WHAT")]
    words: Vec<String>,
    #[command(flatten)]
    files: Files,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = selection::labels)]
    selector: Option<String>,
    /// All objects of the kind in the namespace
    #[arg(long)]
    all: bool,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Whether to wait until they are gone
    #[arg(long, default_value = "true", num_args = 0..=1, default_missing_value = "true",
          require_equals = true, action = clap::ArgAction::Set, value_name = "YES")]
    wait: bool,
    /// How long to wait, as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = span::read)]
    timeout: Option<Duration>,
    /// Seconds that pods get to end; 0 kills them at once
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u32>,
    /// The same as --grace-period=1
    #[arg(long, conflicts_with_all = ["grace_period", "force"])]
    now: bool,
    /// The same as --grace-period=0, without waiting for the node
    #[arg(long)]
    force: bool,
    /// What happens to what belongs to them: deleted afterwards, deleted before, or kept
    #[arg(long, value_enum, default_value = "background", value_name = "HOW")]
    cascade: Cascade,
    /// No error when something is not there
    #[arg(long)]
    ignore_not_found: bool,
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// `name` prints no more than the objects' names
    #[arg(short, long, value_name = "FORMAT", value_parser = ["name"])]
    output: Option<String>,
    #[command(flatten)]
    access: Access,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cascade {
    Background,
    Foreground,
    Orphan,
}

/// One object to delete.
#[derive(Debug, Clone)]
struct Doomed {
    kind: Kind,
    namespace: String,
    name: String,
    /// Listed rather than named: that it is gone already is no error.
    listed: bool,
}

impl Delete {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.check()?;
        let manifests = if self.files.files.is_empty() { Vec::new() } else { self.files.read()? };
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let mut failures = Vec::new();
            let mut doomed = Vec::new();
            for manifest in manifests {
                match self.of_manifest(&cluster, &kinds, &manifest.object) {
                    Ok(one) => doomed.push(one),
                    Err(failure) if self.ignore_not_found => drop(failure),
                    Err(failure) => failures.push(failure.at(&manifest.place)),
                }
            }
            if !self.words.is_empty() {
                doomed.extend(self.of_words(&cluster, &kinds).await?);
            }
            if doomed.is_empty() && failures.is_empty() {
                output::say("No resources found\n");
            }
            self.all(&cluster, &doomed, &mut failures).await?;
            Failure::all(failures)
                .map_err(|failure| selection::advise(&kinds, &self.words, failure))
        })
    }

    fn check(&self) -> Result<(), Failure> {
        let by_file = !self.files.files.is_empty();
        if self.words.is_empty() && !by_file {
            return Err(Failure::usage("nothing is named")
                .hint("write a job's name, KIND NAME…, KIND/NAME… or -f FILE"));
        }
        if by_file && (!self.words.is_empty() || self.all || self.selector.is_some()) {
            return Err(Failure::usage("-f and names, labels or --all cannot be given together"));
        }
        if self.all && self.selector.is_some() {
            return Err(Failure::usage("--all and --selector cannot be given together"));
        }
        Ok(())
    }

    fn of_manifest(
        &self,
        cluster: &Cluster,
        kinds: &Kinds,
        object: &Value,
    ) -> Result<Doomed, Failure> {
        let (api_version, kind) = (text(object, &["apiVersion"]), text(object, &["kind"]));
        let kind = kinds.exact(api_version, kind).ok_or_else(|| {
            Failure::plain(format!("the server does not know {kind} of {api_version}"))
        })?;
        let written = text(object, &["metadata", "namespace"]);
        let namespace = if written.is_empty() { &cluster.namespace } else { written };
        let name = text(object, &["metadata", "name"]);
        if name.is_empty() {
            return Err(Failure::usage("an object with metadata.generateName has no name yet")
                .hint("delete it by its name, or by labels with -l"));
        }
        if self.access.namespace.is_some() && kind.namespaced && namespace != cluster.namespace {
            return Err(Failure::usage(format!(
                "the namespace {namespace:?} of the object is not the {:?} of --namespace",
                cluster.namespace
            )));
        }
        Ok(Doomed {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            listed: false,
        })
    }

    async fn of_words(&self, cluster: &Cluster, kinds: &Kinds) -> Result<Vec<Doomed>, Failure> {
        let mut doomed = Vec::new();
        for selection in selection::resolve(cluster, kinds, &self.words).await? {
            let kind = selection.kind;
            if !selection.names.is_empty() {
                if self.all || self.selector.is_some() {
                    return Err(Failure::usage(
                        "names and --all or labels cannot be given together",
                    ));
                }
                doomed.extend(selection.names.into_iter().map(|name| Doomed {
                    kind: kind.clone(),
                    namespace: cluster.namespace.clone(),
                    name,
                    listed: false,
                }));
                continue;
            }
            if !self.all && self.selector.is_none() {
                return Err(Failure::usage(format!("no {} is named", kind.word()))
                    .hint("write names, labels with -l, or --all"));
            }
            let scope = (!self.all_namespaces).then_some(cluster.namespace.as_str());
            let query = Query::default().maybe("labelSelector", self.selector.clone());
            for object in cluster.objects(&kind, scope, &query).await? {
                doomed.push(Doomed {
                    kind: kind.clone(),
                    namespace: text(&object, &["metadata", "namespace"]).to_owned(),
                    name: text(&object, &["metadata", "name"]).to_owned(),
                    listed: true,
                });
            }
        }
        Ok(doomed)
    }

    async fn all(
        &self,
        cluster: &Cluster,
        doomed: &[Doomed],
        failures: &mut Vec<Failure>,
    ) -> Result<(), Failure> {
        let options = self.options();
        let mut waited = Vec::new();
        for one in doomed {
            match cluster.delete(&one.kind, &one.namespace, &one.name, &options).await {
                Ok(answer) => {
                    output::print(&self.line(one))?;
                    waited.push((one, gone::uid(&answer)));
                }
                Err(error) if error.code() == 404 && (self.ignore_not_found || one.listed) => {}
                Err(error) => failures.push(error.into()),
            }
        }
        if !self.wait || self.dry_run || self.force {
            return Ok(());
        }
        let until = tokio::time::Instant::now() + self.timeout.unwrap_or(PATIENCE);
        for (one, uid) in waited {
            let gone = gone::wait(cluster, &one.kind, &one.namespace, &one.name, uid.as_deref());
            if let Ok(ended) = tokio::time::timeout_at(until, gone).await {
                ended?;
            } else {
                return Err(Failure::deadline(format!(
                    "{} {:?} is still there",
                    one.kind.word(),
                    one.name
                ))
                .hint("wait longer with --timeout; `trainyard describe` shows what holds it"));
            }
        }
        Ok(())
    }

    fn options(&self) -> Value {
        let policy = match self.cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        };
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        let grace = if self.force {
            Some(0)
        } else if self.now {
            Some(1)
        } else {
            self.grace_period
        };
        if let Some(seconds) = grace {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    fn line(&self, one: &Doomed) -> String {
        let word = one.kind.word();
        if self.output.is_some() {
            return format!("{word}/{}\n", one.name);
        }
        let forced = if self.force || self.grace_period == Some(0) { "force " } else { "" };
        let place = if one.kind.namespaced {
            format!(" from {} namespace", one.namespace)
        } else {
            String::new()
        };
        let tried = if self.dry_run { " (server dry run)" } else { "" };
        format!("{word} {:?} {forced}deleted{place}{tried}\n", one.name)
    }
}
