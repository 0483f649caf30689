//! The parameters behind the question mark.
//!
//! Owns their names and how loosely they are read (`True`, `1`). Must not know verbs.

use trainyard_schema::golang;

use crate::failure::Failure;

/// All parameters, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

/// More than any client sends.
const MOST: usize = 64;

impl Query {
    /// Reads what stands behind the question mark.
    pub(crate) fn read(text: Option<&str>) -> Self {
        let text = text.unwrap_or_default();
        let pairs = form_urlencoded::parse(text.as_bytes()).into_owned().take(MOST).collect();
        Self { pairs }
    }

    /// A parameter's first value; an empty one counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let pair = self.pairs.iter().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Adds a parameter.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.pairs.push((name.to_owned(), value.to_owned()));
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a parameter says yes; `?watch` alone does.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let value = self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        value.is_some_and(|value| {
            !matches!(value.to_ascii_lowercase().as_str(), "false" | "0" | "f")
        })
    }

    /// Whether it says yes or no, if it is there at all.
    pub(crate) fn choice(&self, name: &str) -> Option<bool> {
        self.text(name)?;
        Some(self.flag(name))
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Failure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let shown = golang::quote(text);
            Failure::bad_request(format!("strconv.ParseInt: parsing {shown}: invalid syntax"))
        })
    }

    /// What is left, for a request that is passed on.
    pub(crate) fn without(&self, names: &[&str]) -> String {
        let mut out = form_urlencoded::Serializer::new(String::new());
        for (key, value) in self.pairs.iter().filter(|(key, _)| !names.contains(&key.as_str())) {
            out.append_pair(key, value);
        }
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_loosely() {
        let query = Query::read(Some("follow=True&watch&previous=false&limit=500&empty="));
        assert!(query.flag("follow") && query.flag("watch") && !query.flag("previous"));
        assert!(!query.flag("absent"));
        assert_eq!(query.number("limit").unwrap(), Some(500));
        assert_eq!(query.text("empty"), None);
        assert_eq!(query.without(&["limit", "watch", "empty"]), "follow=True&previous=false");
    }

    #[test]
    fn bad_values_are_refused() {
        let query = Query::read(Some("limit=x"));
        assert_eq!(query.number("limit").unwrap_err().code, 400);
    }
}
