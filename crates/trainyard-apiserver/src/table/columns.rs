//! What the columns of built-in kinds are called and say of themselves.
//!
//! The rows are data, in `columns.json` beside. Must not know how cells are filled.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Value, json};

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// 0 for columns that are always shown; others are shown on demand.
    pub(crate) priority: i64,
}

impl Column {
    /// As a table's definition has it.
    pub(crate) fn value(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }
}

#[derive(Deserialize)]
struct Data {
    /// Descriptions that many columns have.
    texts: BTreeMap<String, String>,
    kinds: BTreeMap<String, Vec<Row>>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    #[serde(default = "string", rename = "type")]
    kind: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    priority: i64,
}

fn string() -> String {
    "string".to_owned()
}

fn table() -> &'static BTreeMap<String, Vec<Column>> {
    static TABLE: OnceLock<BTreeMap<String, Vec<Column>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // The tests read this file; a build in which it is unreadable has no columns.
        let Ok(data) = serde_json::from_str::<Data>(include_str!("columns.json")) else {
            return BTreeMap::new();
        };
        let described = |row: &Row| match data.texts.get(&row.text) {
            Some(text) => text.clone(),
            None => row.description.clone(),
        };
        let column = |row: Row| Column {
            description: described(&row),
            name: row.name,
            kind: row.kind,
            format: row.format,
            priority: row.priority,
        };
        data.kinds
            .into_iter()
            .map(|(kind, rows)| (kind, rows.into_iter().map(column).collect()))
            .collect()
    })
}

/// The columns of a built-in kind; name and creation for those that have none of their own.
pub(crate) fn of_kind(kind: &str) -> &'static [Column] {
    let table = table();
    table.get(kind).or_else(|| table.get("")).map(Vec::as_slice).unwrap_or_default()
}

/// The first column of nearly every kind.
pub(crate) fn name() -> Column {
    of_kind("").first().cloned().unwrap_or_else(|| Column {
        name: "Name".to_owned(),
        kind: string(),
        format: "name".to_owned(),
        description: String::new(),
        priority: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_can_be_read() {
        assert_eq!(table().len(), 23);
        for (kind, columns) in table() {
            assert!(columns.len() > 1, "{kind}");
            assert!(columns.iter().any(|column| column.format == "name"), "{kind}");
        }
        let names: Vec<&str> = of_kind("Pod").iter().map(|column| column.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "Name",
                "Ready",
                "Status",
                "Restarts",
                "Age",
                "IP",
                "Node",
                "Nominated Node",
                "Readiness Gates"
            ]
        );
        assert_eq!(of_kind("Role")[1].name, "Created At");
        assert!(name().description.starts_with("Name must be unique within a namespace."));
    }
}
