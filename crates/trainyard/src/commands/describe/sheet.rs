//! A description under way: fields below each other, sections, tables.

use jiff::Timestamp;
use serde_json::Value;

use crate::present::columns::indented;
use crate::present::time::{ago, time};
use crate::present::{harmless, items, lines, text};

/// Where the values of a section's fields begin, at least.
const VALUES: usize = 14;
/// Annotations that say again what the object says.
const NOISE: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Longest value of an annotation that is shown whole.
const LONGEST: usize = 140;

/// The text so far.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) now: Timestamp,
    out: String,
}

impl Sheet {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { now, out: String::new() }
    }

    pub(super) fn text(self) -> String {
        self.out
    }

    /// `Name:         value`.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        self.field_at(0, name, value);
    }

    /// The same, moved in. Further lines of a value stand below the first.
    pub(super) fn field_at(&mut self, indent: usize, name: &str, value: &str) {
        let width = VALUES.max(name.len() + 2);
        let mut lines = value.lines();
        let first = format!(
            "{:indent$}{:width$}{}",
            "",
            format!("{name}:"),
            harmless(lines.next().unwrap_or_default())
        );
        self.line(&first);
        for line in lines {
            self.line(&format!("{:1$}{2}", "", indent + width, harmless(line)));
        }
    }

    /// The same where there is a value.
    pub(super) fn maybe(&mut self, indent: usize, name: &str, value: &str) {
        if !value.is_empty() {
            self.field_at(indent, name, value);
        }
    }

    pub(super) fn heading(&mut self, name: &str) {
        self.line(&format!("{name}:"));
    }

    pub(super) fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    pub(super) fn table(&mut self, indent: usize, rows: &[Vec<String>]) {
        self.out.push_str(&indented(rows, indent));
    }

    /// Text of several lines as it is, moved in.
    pub(super) fn block(&mut self, indent: usize, text: &str) {
        for line in text.lines() {
            self.line(&format!("{:indent$}{}", "", harmless(line)));
        }
    }

    /// When something was, and how long ago.
    pub(super) fn when(&self, value: &Value) -> String {
        match time(value) {
            Some(_) => format!("{} ({} ago)", text(value, &[]), ago(value, self.now)),
            None => String::new(),
        }
    }

    /// A name, labels and annotations, as every object has them.
    pub(super) fn metadata(&mut self, object: &Value) {
        self.field("Name", text(object, &["metadata", "name"]));
        self.maybe(0, "Namespace", text(object, &["metadata", "namespace"]));
        self.pairs("Labels", &object["metadata"]["labels"], "=");
        self.pairs("Annotations", &object["metadata"]["annotations"], ": ");
    }

    /// Names and values, the first beside the field's name and the others below it.
    fn pairs(&mut self, name: &str, pairs: &Value, between: &str) {
        let lines: Vec<String> = pairs
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| *key != NOISE)
            .map(|(key, value)| {
                let value = value.as_str().unwrap_or_default().replace('\n', " ");
                let short: String = value.chars().take(LONGEST).collect();
                let dots = if short.len() < value.len() { "…" } else { "" };
                format!("{key}{between}{short}{dots}")
            })
            .collect();
        let value = if lines.is_empty() { "<none>".to_owned() } else { lines.join("\n") };
        self.field(name, &value);
    }

    /// Who it belongs to.
    pub(super) fn owners(&mut self, object: &Value) {
        for owner in items(object, &["metadata", "ownerReferences"]) {
            let owner = format!("{}/{}", text(owner, &["kind"]), text(owner, &["name"]));
            self.field("Controlled By", &owner);
        }
    }

    /// Conditions with their reasons and times.
    pub(super) fn conditions(&mut self, object: &Value) {
        let mut rows = Vec::new();
        for condition in items(object, &["status", "conditions"]) {
            let cell = |name: &str| text(condition, &[name]).to_owned();
            let since = [&condition["lastTransitionTime"], &condition["lastUpdateTime"]]
                .into_iter()
                .find(|value| time(value).is_some());
            rows.push(vec![
                cell("type"),
                cell("status"),
                since.map_or_else(|| "-".to_owned(), |value| ago(value, self.now)),
                cell("reason"),
                lines(text(condition, &["message"])),
            ]);
        }
        if rows.is_empty() {
            return;
        }
        self.heading("Conditions");
        let names = ["Type", "Status", "Since", "Reason", "Message"];
        rows.insert(0, names.map(str::to_owned).to_vec());
        self.table(2, &rows);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sheet() -> Sheet {
        Sheet::new("2026-01-01T00:01:00Z".parse().unwrap())
    }

    #[test]
    fn fields_stand_below_each_other() {
        let mut sheet = sheet();
        sheet.metadata(&json!({"metadata": {"name": "a", "labels": {"x": "1", "y": "2"},
            "annotations": {NOISE: "{}"}}}));
        assert_eq!(
            sheet.text(),
            "Name:         a\nLabels:       x=1\n              y=2\nAnnotations:  <none>\n"
        );
    }

    #[test]
    fn terminals_are_not_told_what_to_do() {
        let mut sheet = sheet();
        sheet.field("Name", "\u{1b}[31mred");
        assert_eq!(sheet.text(), "Name:         ^[[31mred\n");
    }

    #[test]
    fn conditions_are_a_table() {
        let mut sheet = sheet();
        sheet.conditions(&json!({"status": {"conditions": [{
            "type": "Running", "status": "True", "reason": "TFJobRunning", "message": "all run\n\nx\u{1b}",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}}));
        let text = sheet.text();
        let first = "  Running   True     60s     TFJobRunning   all run\n";
        let second = format!("{:44}x^[\n", "");
        assert!(text.contains(&format!("{first}{second}")), "{text}");
    }
}
