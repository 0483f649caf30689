//! Label selectors: what they ask of an object's labels, and whether it is so.
//!
//! Reading their text is the parser's, beside. Must not know whose labels they are.

use std::fmt;

use serde_json::{Map, Value};

use super::{SelectError, label_parser, words};
use crate::FieldError;

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equals,
    /// `==`, the same.
    DoubleEquals,
    /// `!=`
    NotEquals,
    /// `in`
    In,
    /// `notin`
    NotIn,
    /// The key alone.
    Exists,
    /// `!` and the key.
    DoesNotExist,
    /// `>`
    GreaterThan,
    /// `<`
    LessThan,
}

/// One thing that is asked of the labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    values: Vec<Box<str>>,
    /// The bound of `>` and `<`.
    bound: i64,
}

/// Everything that is asked of the labels; all of it must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// `None` selects nothing at all.
    requirements: Option<Vec<Requirement>>,
}

impl Default for Selector {
    /// Everything is selected.
    fn default() -> Self {
        Self { requirements: Some(Vec::new()) }
    }
}

impl Requirement {
    /// A requirement whose key and values are checked.
    pub fn new(
        key: &str,
        operator: Operator,
        values: Vec<Box<str>>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut faults = Vec::new();
        let wrong_key = words::label_key(key);
        if !wrong_key.is_empty() {
            faults.push(FieldError::invalid("key", key, wrong_key.join("; ")));
        }
        if let Some(fault) = count_fault(operator, &values) {
            faults.push(fault);
        }
        let mut bound = 0;
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in values.iter().enumerate() {
                match whole(value) {
                    Some(number) => bound = number,
                    None => faults.push(FieldError::invalid(
                        format!("values[{index}]"),
                        &**value,
                        "for 'Gt', 'Lt' operators, the value must be an integer",
                    )),
                }
            }
        }
        for (index, value) in values.iter().enumerate() {
            let wrong = words::label_value(value);
            if !wrong.is_empty() {
                let path = format!("values[{index}][{key}]");
                faults.push(FieldError::invalid(path, &**value, wrong.join("; ")));
            }
        }
        if faults.is_empty() {
            Ok(Self { key: key.into(), operator, values, bound })
        } else {
            Err(faults)
        }
    }

    /// The key it is about.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it compares.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What it compares with.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| &**value)
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| **one == *value);
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => label.and_then(whole).is_some_and(|n| n > self.bound),
            Operator::LessThan => label.and_then(whole).is_some_and(|n| n < self.bound),
        }
    }
}

/// A whole number as Go reads it: a sign is allowed, nothing else is.
fn whole(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// What is wrong with the number of values.
fn count_fault(operator: Operator, values: &[Box<str>]) -> Option<FieldError> {
    let (right, detail) = match operator {
        Operator::In | Operator::NotIn => {
            (!values.is_empty(), "for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
            (values.len() == 1, "exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist => {
            (values.is_empty(), "values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan => {
            (values.len() == 1, "for 'Gt', 'Lt' operators, exactly one value is required")
        }
    };
    let shown = if values.is_empty() {
        Value::Null
    } else {
        values.iter().map(|value| Value::from(&**value)).collect()
    };
    (!right).then(|| FieldError::invalid("values", shown, detail))
}

impl Selector {
    /// Reads the text of a query: `app=web,tier in (a, b),!old`.
    pub fn parse(text: &str) -> Result<Self, SelectError> {
        let mut requirements = label_parser::parse(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements: Some(requirements) })
    }

    /// One that selects nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Reads the object form, `{matchLabels, matchExpressions}`; null selects nothing and an empty
    /// one everything.
    pub fn from_label_selector(selector: &Value) -> Result<Self, SelectError> {
        if selector.is_null() {
            return Ok(Self::nothing());
        }
        let selector =
            selector.as_object().ok_or_else(|| shape("a label selector is an object"))?;
        let mut requirements = Vec::new();
        for (key, value) in members(selector, "matchLabels")? {
            let value = value.as_str().ok_or_else(|| shape("a label's value is a string"))?;
            requirements.push(expression(key, Operator::Equals, vec![value.into()])?);
        }
        for item in items(selector, "matchExpressions")? {
            let item = item.as_object().ok_or_else(|| shape("an expression is an object"))?;
            requirements.push(of_expression(item)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements: Some(requirements) })
    }

    /// One that asks for exactly these labels (the selector of a service or of a claim's volume).
    #[must_use]
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut requirements: Vec<_> = labels
            .into_iter()
            .map(|(key, value)| Requirement {
                key: key.into(),
                operator: Operator::Equals,
                values: vec![value.into()],
                bound: 0,
            })
            .collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements: Some(requirements) }
    }

    /// Whether labels, sorted by key, are selected.
    #[must_use]
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.matches_by(|key| {
            let index = labels.binary_search_by(|(one, _)| (**one).cmp(key)).ok()?;
            labels.get(index).map(|(_, value)| &**value)
        })
    }

    /// Whether labels that are still a JSON object (or absent) are selected.
    #[must_use]
    pub fn matches_value(&self, labels: Option<&Value>) -> bool {
        let labels = labels.and_then(Value::as_object);
        self.matches_by(|key| labels?.get(key)?.as_str())
    }

    fn matches_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .as_ref()
            .is_some_and(|all| all.iter().all(|one| one.holds(label(&one.key))))
    }

    /// Whether nothing is asked, so that everything is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// What is asked, by key.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        self.requirements.as_deref().unwrap_or_default()
    }
}

fn shape(what: &str) -> SelectError {
    SelectError::Expression { why: format!("invalid label selector: {what}") }
}

fn members<'a>(
    selector: &'a Map<String, Value>,
    field: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, SelectError> {
    match selector.get(field) {
        None | Some(Value::Null) => Ok(None.into_iter().flatten()),
        Some(Value::Object(members)) => Ok(Some(members).into_iter().flatten()),
        Some(_) => Err(shape(&format!("{field} is an object"))),
    }
}

fn items<'a>(selector: &'a Map<String, Value>, field: &str) -> Result<&'a [Value], SelectError> {
    match selector.get(field) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(shape(&format!("{field} is a list"))),
    }
}

fn of_expression(item: &Map<String, Value>) -> Result<Requirement, SelectError> {
    let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    let operator = match text("operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => {
            let other = crate::golang::quote(other);
            let why = format!("{other} is not a valid label selector operator");
            return Err(SelectError::Expression { why });
        }
    };
    let values = items(item, "values")?
        .iter()
        .map(|value| value.as_str().map(Into::into))
        .collect::<Option<Vec<Box<str>>>>()
        .ok_or_else(|| shape("a value is a string"))?;
    expression(text("key"), operator, values)
}

fn expression(
    key: &str,
    operator: Operator,
    values: Vec<Box<str>>,
) -> Result<Requirement, SelectError> {
    Requirement::new(key, operator, values)
        .map_err(|faults| SelectError::Expression { why: joined(&faults) })
}

/// Several faults as one text, each once.
pub(super) fn joined(faults: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for fault in faults {
        let text = fault.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut values: Vec<&str> = self.values().collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
