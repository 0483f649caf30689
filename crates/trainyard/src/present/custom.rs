//! Columns of the user's own: `-o custom-columns=NAME:.metadata.name,STATE:.status.phase`.

use serde_json::Value;
use trainyard_schema::golang;
use trainyard_schema::jsonpath::Path;

use super::columns::Columns;
use super::one_line;
use super::template::relaxed;

/// The columns that were asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Custom {
    columns: Vec<(String, Path)>,
}

impl Custom {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut columns = Vec::new();
        for part in text.split(',') {
            let (name, path) = part
                .split_once(':')
                .filter(|(name, _)| !name.is_empty())
                .ok_or(format!("{part:?} is no column: write NAME:PATH, as NAME:.metadata.name"))?;
            columns.push((name.to_owned(), relaxed(path).map_err(|error| error.to_string())?));
        }
        Ok(Self { columns })
    }

    pub(super) fn header(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn row(&self, object: &Value) -> Vec<String> {
        let cell = |(_, path): &(String, Path)| {
            let found: Vec<String> = path.find(object).into_iter().map(cell_text).collect();
            if found.is_empty() { "<none>".to_owned() } else { found.join(",") }
        };
        self.columns.iter().map(cell).collect()
    }

    pub(super) fn print(&self, objects: &[Value], headers: bool, layout: &mut Columns) -> String {
        let header = headers.then(|| self.header());
        let rows = objects.iter().map(|object| self.row(object));
        layout.lines(&header.into_iter().chain(rows).collect::<Vec<_>>())
    }
}

/// What stands in a cell: objects and lists as Go prints them, which is what kubectl does.
fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => one_line(text),
        other => golang::print(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_by_path() {
        let custom = Custom::parse("NAME:.metadata.name,X:{.a[*]},B:b").unwrap();
        let objects = [
            json!({"metadata": {"name": "one"}, "a": [1, 2], "b": {"c": "d"}}),
            json!({"b": true}),
        ];
        assert_eq!(
            custom.print(&objects, true, &mut Columns::default()),
            "NAME     X        B\none      1,2      map[c:d]\n<none>   <none>   true\n"
        );
        assert!(Custom::parse("NAME").unwrap_err().contains("NAME:PATH"));
        assert!(Custom::parse("NAME:.a[").is_err());
    }
}
