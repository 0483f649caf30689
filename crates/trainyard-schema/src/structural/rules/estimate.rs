//! What a rule may cost at worst, told from the schema alone: how often its loops may turn, given how long
//! lists and maps may be.
//!
//! It counts the turns of loops over what the schema describes, and nothing else, so that it never refuses
//! what Kubernetes takes, which counts these and more.

use super::super::node::{Additional, Node, Type};

/// Most that a rule may cost, as Kubernetes has it.
const MOST: u64 = 10_000_000;
/// Longest request, from which lists without a bound get one.
const REQUEST_BYTES: u64 = 3 << 20;
/// What stands around a name and its value.
const PAIR_BYTES: u64 = 6;

/// How many elements or entries a list or map may have.
pub(super) fn most(node: &Node) -> u64 {
    let bound = |bound: Option<i64>| bound.and_then(|most| u64::try_from(most).ok());
    let more = node.more();
    if let Some(items) = node.items() {
        let own = bound(more.and_then(|more| more.max_items));
        own.unwrap_or_else(|| REQUEST_BYTES / (smallest(items) + 1))
    } else if let Additional::Of(value) = node.additional() {
        let own = bound(more.and_then(|more| more.max_properties));
        own.unwrap_or_else(|| REQUEST_BYTES / (smallest(value) + PAIR_BYTES))
    } else {
        1
    }
}

/// The fewest bytes that a value takes.
fn smallest(node: &Node) -> u64 {
    let own = match node.kind {
        Some(Type::Boolean) => 4,
        Some(Type::Integer | Type::Number) => 1,
        _ => 2,
    };
    let Some(more) = node.more() else { return own };
    let required = more.required.iter().filter_map(|name| {
        let value = node.property(name)?;
        Some(name.len() as u64 + PAIR_BYTES + smallest(value))
    });
    // A value of a format has some length, and this is more than any.
    let format = if more.format.is_empty() { 0 } else { 64 };
    let text = more.min_length.and_then(|least| u64::try_from(least).ok()).unwrap_or(0);
    own + format + text + required.sum::<u64>()
}

/// What is said of a rule whose loops may turn so often, in a place that there may be so many of.
pub(super) fn fault(turns: u64, places: u64) -> Option<String> {
    let cost = turns.saturating_mul(places);
    if cost <= MOST {
        return None;
    }
    let factor = if cost / MOST >= 100 {
        "more than 100x".to_owned()
    } else {
        let tenths = cost / (MOST / 10);
        format!("{}.{}x", tenths / 10, tenths % 10)
    };
    Some(format!(
        "estimated rule cost exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::structural::Schema;

    fn faults(schema: &Value) -> Vec<Option<String>> {
        let schema = Schema::parse(schema).unwrap();
        schema.rule_reports().into_iter().map(|report| report.cost_fault).collect()
    }

    #[test]
    fn loops_in_loops_over_lists_without_a_bound_are_refused() {
        let rule = json!([{"rule": "self.all(a, self.all(b, a + b >= 0))"}, {"rule": "self.all(a, a >= 0)"}]);
        let list = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule});
        let told = faults(&list);
        let said = told[0].as_deref().unwrap();
        assert!(
            said.starts_with("estimated rule cost exceeds budget by factor of more than 100x"),
            "{said}"
        );
        assert_eq!(told[1], None);
        let mut bounded = list.clone();
        bounded["maxItems"] = json!(3_000);
        assert_eq!(faults(&bounded), [None, None]);
        bounded["maxItems"] = json!(5_000);
        let told = faults(&bounded);
        assert!(told[0].as_deref().unwrap().contains("by factor of 2.5x ("), "{told:?}");
    }

    #[test]
    fn a_rule_counts_as_often_as_its_place() {
        let inner = json!({"type": "array", "maxItems": 1_000, "items": {"type": "integer"},
            "x-kubernetes-validations": [{"rule": "self.all(a, self.exists(b, a == b))"}]});
        assert_eq!(faults(&inner), [None]);
        let outer = json!({"type": "array", "maxItems": 20, "items": inner});
        assert!(faults(&outer)[0].is_some());
    }
}
