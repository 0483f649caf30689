//! `get -w`: what is there, then what changes, until somebody ends it.

use serde_json::Value;

use super::{Format, Get, Selection, Table};
use crate::cluster::{Cluster, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::columns::Columns;
use crate::present::{format, text};

/// Where objects are shown as they come.
struct Screen<'a> {
    table: Table,
    format: Option<&'a Format>,
    layout: Columns,
    headers: bool,
    managed_fields: bool,
}

impl Screen<'_> {
    fn show(&mut self, answer: &Value) -> Result<(), Failure> {
        let Some(format) = self.format else {
            self.table.add(answer);
            return output::print(&self.table.print());
        };
        let mut object = answer.clone();
        if !self.managed_fields {
            format::drop_managed_fields(&mut object);
        }
        let text = format.print_with(&[object], true, self.headers, &mut self.layout)?;
        self.headers = false;
        let apart = if matches!(format, Format::Yaml) { "---\n" } else { "" };
        output::print_data(&format!("{text}{apart}"))
    }
}

impl Get {
    pub(super) async fn follow(
        &self,
        cluster: &Cluster,
        selections: &[Selection],
    ) -> Result<(), Failure> {
        let [selection] = selections else {
            return Err(Failure::usage("only one kind can be watched at a time"));
        };
        let as_table = matches!(self.output, None | Some(Format::Wide));
        let mut screen = Screen {
            table: Table::new(&selection.kind, self.options(false)),
            format: self.output.as_ref().filter(|_| !as_table),
            layout: Columns::default(),
            headers: !self.no_headers,
            managed_fields: self.show_managed_fields,
        };
        let query = match selection.names.as_slice() {
            [] => self.query(),
            [name] => Query::default().with("fieldSelector", format!("metadata.name={name}")),
            _ => return Err(Failure::usage("only one object can be watched at a time")),
        };
        let scope = self.scope(cluster);
        if let [name] = selection.names.as_slice() {
            // One that is not there is an error, not something to wait for.
            cluster.get(&selection.kind, &cluster.namespace, name, None).await?;
        }
        let pages = cluster.list(&selection.kind, scope, &query, as_table).await?;
        let mut revision = String::new();
        for page in &pages {
            revision = text(page, &["metadata", "resourceVersion"]).to_owned();
            if self.watch_only {
                continue;
            }
            if as_table {
                screen.show(page)?;
            } else {
                for mut object in page["items"].as_array().into_iter().flatten().cloned() {
                    object["apiVersion"] = selection.kind.api_version().into();
                    object["kind"] = selection.kind.kind.clone().into();
                    screen.show(&object)?;
                }
            }
        }
        loop {
            let from = query.clone().with("resourceVersion", &revision);
            let mut lines = cluster.watch(&selection.kind, scope, &from, as_table).await?;
            let before = revision.clone();
            while let Some(line) = lines.next().await? {
                revision = change(&mut screen, &line)?.unwrap_or(revision);
            }
            // Servers end watches after some minutes; one that ends them at once is not asked again
            // and again.
            if revision == before {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
    }
}

/// Shows a change; its revision, if it has one.
fn change(screen: &mut Screen<'_>, line: &[u8]) -> Result<Option<String>, Failure> {
    let Ok(event) = serde_json::from_slice::<Value>(line) else { return Ok(None) };
    let object = &event["object"];
    let of_row = text(&object["rows"][0]["object"], &["metadata", "resourceVersion"]);
    let own = text(object, &["metadata", "resourceVersion"]);
    let revision = if own.is_empty() { of_row } else { own }.to_owned();
    match event["type"].as_str() {
        Some("ERROR") => {
            return Err(Failure::plain(format!("the watch ended: {}", text(object, &["message"]))));
        }
        Some("BOOKMARK") => {}
        _ => screen.show(object)?,
    }
    Ok((!revision.is_empty()).then_some(revision))
}
