//! Label selectors: which pods are meant by their labels.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `{matchLabels, matchExpressions}`. An empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Expression>,
}

/// One condition on a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(crate) struct Expression {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) values: Vec<String>,
}

impl Selector {
    /// How many conditions it has, each value that it names counted.
    pub(crate) fn conditions(&self) -> usize {
        let expressions = self.match_expressions.iter().map(Expression::conditions);
        self.match_labels.len() + expressions.sum::<usize>()
    }

    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let exact = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        let holds = |e: &Expression| e.holds(labels.get(&e.key).map(String::as_str));
        self.match_labels.iter().all(exact) && self.match_expressions.iter().all(holds)
    }

    /// Adds a condition that a label has (`In`) or has not (`NotIn`) this value.
    pub(crate) fn and(&mut self, key: &str, operator: &str, value: &str) {
        self.match_expressions.push(Expression {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: vec![value.to_owned()],
        });
    }
}

impl Expression {
    /// How many comparisons it is: itself and the values that it names.
    pub(crate) fn conditions(&self) -> usize {
        1 + self.values.len()
    }

    /// Whether a label's value, or its absence, is as wanted. An operator that is not known holds
    /// for nothing.
    pub(crate) fn holds(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|one| one == value));
        let compared = |wanted: std::cmp::Ordering| {
            let bound = self.values.first().and_then(|bound| bound.parse::<i64>().ok());
            let number = value.and_then(|value| value.parse::<i64>().ok());
            matches!((number, bound), (Some(number), Some(bound)) if number.cmp(&bound) == wanted)
        };
        match self.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => compared(std::cmp::Ordering::Greater),
            "Lt" => compared(std::cmp::Ordering::Less),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn labels_and_expressions_must_all_hold() {
        let labels = [("app".to_owned(), "a".to_owned())].into();
        let selects = |selector| from_value::<Selector>(selector).unwrap().selects(&labels);
        assert!(selects(json!({})));
        assert!(selects(json!({"matchLabels": {"app": "a"}})));
        assert!(!selects(json!({"matchLabels": {"app": "a", "b": "c"}})));
        let expression = json!({"key": "app", "operator": "NotIn", "values": ["a"]});
        assert!(!selects(json!({"matchLabels": {"app": "a"}, "matchExpressions": [expression]})));
        let mut narrowed = Selector::default();
        narrowed.and("app", "In", "b");
        assert!(!narrowed.selects(&labels));
    }
}
