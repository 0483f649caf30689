//! Tables that the server makes: which columns are shown, and what is added to them.

use serde_json::Value;

use super::columns::Columns;
use super::{at, harmless, items, text};
use crate::cluster::Kind;

/// How a table is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub(crate) struct Options {
    /// Less important columns too.
    pub(crate) wide: bool,
    /// No line with the columns' names.
    pub(crate) no_headers: bool,
    /// All labels in a last column.
    pub(crate) show_labels: bool,
    /// Labels with a column of their own.
    pub(crate) label_columns: Vec<String>,
    /// The namespace in a first column.
    pub(crate) with_namespace: bool,
    /// The kind before the name.
    pub(crate) with_kind: bool,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    is_name: bool,
    is_wide: bool,
}

/// A row and the object that it is about.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    cells: Vec<String>,
    pub(crate) object: Value,
}

/// A table under way: rows may be added after some were printed.
#[derive(Debug)]
pub(crate) struct Table {
    options: Options,
    word: String,
    columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    layout: Columns,
    headed: bool,
}

impl Table {
    pub(crate) fn new(kind: &Kind, options: Options) -> Self {
        // Objects of no namespace have none to show.
        let with_namespace = options.with_namespace && kind.namespaced;
        Self {
            options: Options { with_namespace, ..options },
            word: kind.word(),
            columns: Vec::new(),
            rows: Vec::new(),
            layout: Columns::default(),
            headed: false,
        }
    }

    /// Takes a server's answer: a table, or where it knows none, an object or a list of them.
    pub(crate) fn add(&mut self, answer: &Value) {
        if answer["kind"] != "Table" {
            return self.add_plain(answer);
        }
        let columns: Vec<Column> = items(answer, &["columnDefinitions"])
            .map(|column| Column {
                name: text(column, &["name"]).to_uppercase(),
                is_name: column["format"] == "name" && column["type"] == "string",
                is_wide: column["priority"].as_i64().is_some_and(|priority| priority != 0),
            })
            .collect();
        // Answers of a watch leave them out after the first.
        if !columns.is_empty() && columns != self.columns {
            self.columns = columns;
            self.headed = false;
        }
        for row in items(answer, &["rows"]) {
            let cells = items(row, &["cells"]).map(cell).collect();
            self.rows.push(Row { cells, object: row["object"].clone() });
        }
    }

    fn add_plain(&mut self, answer: &Value) {
        let column =
            |name: &str, is_name| Column { name: name.to_owned(), is_name, is_wide: false };
        self.columns = vec![column("NAME", true), column("CREATED", false)];
        let several: Vec<&Value> = items(answer, &["items"]).collect();
        let objects = if answer.get("items").is_some() { several } else { vec![answer] };
        for object in objects {
            let created = text(object, &["metadata", "creationTimestamp"]).to_owned();
            let cells = vec![text(object, &["metadata", "name"]).to_owned(), created];
            self.rows.push(Row { cells, object: object.clone() });
        }
    }

    /// The rows that were added since the last time, below each other.
    pub(crate) fn print(&mut self) -> String {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return String::new();
        }
        let mut lines = Vec::with_capacity(rows.len() + 1);
        if !self.headed && !self.options.no_headers {
            lines.push(self.header());
        }
        self.headed = true;
        lines.extend(rows.iter().map(|row| self.line(row)));
        self.layout.lines(&lines)
    }

    fn header(&self) -> Vec<String> {
        let mut header = Vec::new();
        if self.options.with_namespace {
            header.push("NAMESPACE".to_owned());
        }
        header.extend(self.shown().map(|(_, column)| column.name.clone()));
        for label in &self.options.label_columns {
            header.push(label.rsplit('/').next().unwrap_or_default().to_uppercase());
        }
        if self.options.show_labels {
            header.push("LABELS".to_owned());
        }
        header
    }

    fn shown(&self) -> impl Iterator<Item = (usize, &Column)> {
        let wide = self.options.wide;
        self.columns.iter().enumerate().filter(move |(_, column)| wide || !column.is_wide)
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let mut line = Vec::new();
        if self.options.with_namespace {
            line.push(text(&row.object, &["metadata", "namespace"]).to_owned());
        }
        for (number, column) in self.shown() {
            let Some(cell) = row.cells.get(number) else { continue };
            line.push(if column.is_name && self.options.with_kind {
                format!("{}/{cell}", self.word)
            } else {
                cell.clone()
            });
        }
        let labels = at(&row.object, &["metadata", "labels"]);
        for label in &self.options.label_columns {
            line.push(text(labels, &[label]).to_owned());
        }
        if self.options.show_labels {
            line.push(all_labels(labels));
        }
        line
    }
}

fn all_labels(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A cell's text: what stands after a line's end is left out.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => match text.split_once(['\n', '\r', '\u{c}']) {
            Some((first, _)) => harmless(first) + "...",
            None => harmless(text),
        },
        other => harmless(&trainyard_schema::golang::print(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> Value {
        json!({"kind": "Table", "columnDefinitions": [
            {"name": "Name", "type": "string", "format": "name", "priority": 0},
            {"name": "Restarts", "type": "integer", "format": "", "priority": 0},
            {"name": "IP", "type": "string", "format": "", "priority": 1},
        ], "rows": [
            {"cells": ["mnist-ps-0", 3, null],
             "object": {"metadata": {"namespace": "team", "labels": {"b": "2", "x/a": "1"}}}},
            {"cells": ["two\nlines", 0, "10.0.0.1"], "object": {"metadata": {}}},
        ]})
    }

    fn shown(options: Options) -> String {
        let pods = Kind::example("", "v1", "Pod", "pods", true);
        let mut table = Table::new(&pods, options);
        table.add(&answer());
        table.print()
    }

    #[test]
    fn the_servers_columns_are_shown() {
        assert_eq!(
            shown(Options::default()),
            "NAME         RESTARTS\nmnist-ps-0   3\ntwo...       0\n"
        );
        assert_eq!(
            shown(Options { wide: true, no_headers: true, ..Options::default() }),
            "mnist-ps-0   3     \ntwo...       0     10.0.0.1\n"
        );
    }

    #[test]
    fn columns_are_added() {
        let options = Options {
            show_labels: true,
            with_namespace: true,
            with_kind: true,
            label_columns: vec!["x/a".into()],
            ..Options::default()
        };
        assert_eq!(
            shown(options),
            "NAMESPACE   NAME             RESTARTS   A     LABELS\n\
             team        pod/mnist-ps-0   3          1     b=2,x/a=1\n            \
             pod/two...       0                <none>\n"
        );
    }

    #[test]
    fn later_rows_have_no_header() {
        let pods = Kind::example("", "v1", "Pod", "pods", true);
        let mut table = Table::new(&pods, Options::default());
        table.add(&answer());
        table.print();
        assert_eq!(table.print(), "");
        let row = json!({"kind": "Table", "rows": [{"cells": ["a", 1, null]}]});
        table.add(&row);
        assert_eq!(table.print(), "a            1\n");
    }

    #[test]
    fn a_server_without_tables_is_shown_too() {
        let pods = Kind::example("", "v1", "Pod", "pods", true);
        let mut table = Table::new(&pods, Options::default());
        table.add(&json!({"kind": "PodList", "items": [{"metadata": {"name": "x"}}]}));
        assert_eq!(table.print(), "NAME   CREATED\nx      \n");
    }
}
