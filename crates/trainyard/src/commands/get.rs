//! `trainyard get`: objects as tables, as YAML, by paths into them, once or as they change.
//!
//! Owns what is asked for; how it is shown is `present`'s.

mod sort;
mod watch;

use clap::Args;
use serde_json::Value;
use trainyard_api::volcano;

use super::selection::{self, Selection};
use crate::cluster::{self, Access, Cluster, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::columns::Columns;
use crate::present::format::{self, Format};
use crate::present::table::{Options, Table};

/// Show objects: jobs, their pods, anything the server has
///
/// `trainyard get` lists the TFJobs, and the Volcano Jobs if there are any; `get mnist` shows the one of that name; `get pods`,
/// `get tfjobs,pods`, `get pod/a tfjob/b` whatever else. Kinds may be written as singular, plural,
/// short name or with their group.
#[derive(Debug, Args)]
#[command(visible_alias = "list")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub(crate) struct Get {
    /// KIND, KIND NAME…, KIND/NAME…, or a job's NAME
    #[arg(value_name = "WHAT")]
    words: Vec<String>,
    /// How: wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=NAME:PATH,…
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only objects with these fields, as status.phase=Running
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    /// Of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Go on as things change
    #[arg(short, long)]
    watch: bool,
    /// Only show what changes from now on
    #[arg(long)]
    watch_only: bool,
    /// In the order of what this path leads to
    #[arg(long, value_name = "PATH")]
    sort_by: Option<String>,
    /// With all labels
    #[arg(long)]
    show_labels: bool,
    /// With a column for each of these labels
    #[arg(short = 'L', long, value_name = "LABEL", value_delimiter = ',')]
    label_columns: Vec<String>,
    /// Without the line of the columns' names
    #[arg(long)]
    no_headers: bool,
    /// No error when a named object is not there
    #[arg(long)]
    ignore_not_found: bool,
    /// With the server's notes on who wrote which field
    #[arg(long)]
    show_managed_fields: bool,
    #[command(flatten)]
    access: Access,
}

impl Get {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let mut selections = selection::resolve(&cluster, &kinds, &self.words).await?;
            selections.extend(self.more(&cluster, &kinds).await?);
            self.check(&selections)?;
            if self.watch || self.watch_only {
                return self.follow(&cluster, &selections).await;
            }
            let shown = match &self.output {
                None | Some(Format::Wide) => self.tables(&cluster, &selections).await,
                Some(format) => self.objects(&cluster, &selections, format).await,
            };
            shown.map_err(|failure| selection::advise(&kinds, &self.words, failure))
        })
    }

    /// Volcano Jobs belong to all jobs, where there are some.
    async fn more(&self, cluster: &Cluster, kinds: &Kinds) -> Result<Option<Selection>, Failure> {
        let kind = kinds.find(volcano::names::CRD_NAME).filter(|_| self.words.is_empty());
        let Some(kind) = kind else { return Ok(None) };
        let some = cluster.objects(kind, self.scope(cluster), &self.query()).await?;
        let selection = Selection { kind: kind.clone(), names: Vec::new() };
        Ok((!some.is_empty()).then_some(selection))
    }

    fn check(&self, selections: &[Selection]) -> Result<(), Failure> {
        let named = selections.iter().any(|selection| !selection.names.is_empty());
        if named && (self.selector.is_some() || self.field_selector.is_some()) {
            return Err(Failure::usage("a name and a selector cannot be given together"));
        }
        if named && self.all_namespaces {
            return Err(Failure::usage("a name is looked for in one namespace: leave out -A"));
        }
        Ok(())
    }

    fn query(&self) -> Query {
        Query::default()
            .maybe("labelSelector", self.selector.clone())
            .maybe("fieldSelector", self.field_selector.clone())
    }

    fn options(&self, several: bool) -> Options {
        Options {
            wide: self.output == Some(Format::Wide),
            no_headers: self.no_headers,
            show_labels: self.show_labels,
            label_columns: self.label_columns.clone(),
            with_namespace: self.all_namespaces,
            with_kind: several,
        }
    }

    fn scope<'a>(&self, cluster: &'a Cluster) -> Option<&'a str> {
        (!self.all_namespaces).then_some(cluster.namespace.as_str())
    }

    /// Whole objects are asked for only where something in them decides.
    fn table_query(&self) -> Query {
        let query = self.query();
        if self.sort_by.is_some() { query.with("includeObject", "Object") } else { query }
    }

    async fn tables(&self, cluster: &Cluster, selections: &[Selection]) -> Result<(), Failure> {
        let mut failures = Vec::new();
        let mut shown = false;
        for selection in selections {
            let mut table = Table::new(&selection.kind, self.options(selections.len() > 1));
            for answer in self.answers(cluster, selection, &mut failures).await {
                table.add(&answer);
            }
            if let Some(path) = &self.sort_by {
                sort::by(path, &mut table.rows, |row| &row.object)?;
            }
            let text = table.print();
            if !text.is_empty() {
                let gap = if shown && !self.no_headers { "\n" } else { "" };
                output::print(&format!("{gap}{text}"))?;
                shown = true;
            }
        }
        if !shown && failures.is_empty() && !self.ignore_not_found {
            output::say(&nothing(cluster, selections, self.all_namespaces));
        }
        Failure::all(failures)
    }

    /// The server's answers about a selection, as tables.
    async fn answers(
        &self,
        cluster: &Cluster,
        selection: &Selection,
        failures: &mut Vec<Failure>,
    ) -> Vec<Value> {
        let query = self.table_query();
        if selection.names.is_empty() {
            let asked = cluster.list(&selection.kind, self.scope(cluster), &query, true).await;
            return asked.unwrap_or_else(|error| {
                failures.push(error.into());
                Vec::new()
            });
        }
        let mut answers = Vec::new();
        for name in &selection.names {
            match cluster.get(&selection.kind, &cluster.namespace, name, Some(&query)).await {
                Ok(answer) => answers.push(answer),
                Err(error) if error.code() == 404 && self.ignore_not_found => {}
                Err(error) => failures.push(error.into()),
            }
        }
        answers
    }

    async fn objects(
        &self,
        cluster: &Cluster,
        selections: &[Selection],
        format: &Format,
    ) -> Result<(), Failure> {
        let mut failures = Vec::new();
        let mut objects = Vec::new();
        for selection in selections {
            let kind = &selection.kind;
            if selection.names.is_empty() {
                objects.extend(cluster.objects(kind, self.scope(cluster), &self.query()).await?);
            }
            for name in &selection.names {
                match cluster.get(kind, &cluster.namespace, name, None).await {
                    Ok(object) => objects.push(object),
                    Err(error) if error.code() == 404 && self.ignore_not_found => {}
                    Err(error) => failures.push(error.into()),
                }
            }
        }
        if !self.show_managed_fields {
            objects.iter_mut().for_each(format::drop_managed_fields);
        }
        if let Some(path) = &self.sort_by {
            sort::by(path, &mut objects, |object| object)?;
        }
        let single = matches!(selections, [one] if one.names.len() == 1);
        if single && objects.is_empty() {
            return Failure::all(failures);
        }
        output::print_data(&format.print_with(
            &objects,
            single,
            !self.no_headers,
            &mut Columns::default(),
        )?)?;
        Failure::all(failures)
    }
}

/// What is said when there is nothing to show.
fn nothing(cluster: &Cluster, selections: &[Selection], everywhere: bool) -> String {
    if !everywhere && selections.iter().all(|selection| selection.kind.namespaced) {
        format!("No resources found in {} namespace.\n", cluster.namespace)
    } else {
        "No resources found\n".to_owned()
    }
}
