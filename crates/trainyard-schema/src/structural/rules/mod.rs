//! The rules of a schema (`x-kubernetes-validations`): written in CEL, asked after everything else.
//!
//! Owns a rule as written and the walk from rule to rule. Nothing of a rule is compiled before it is
//! first asked, so that a program that never asks does not pay for it.

mod bind;
mod budget;
mod estimate;
mod functions;
mod limits;
mod meter;
mod names;
mod program;
mod types;
mod walk;

#[cfg(test)]
mod cost_tests;

use std::sync::OnceLock;

use serde_json::Value;

use self::program::Compiled;
pub(super) use self::{names::field_path, walk::check};
use super::node::{Additional, Marks, Node};
use crate::Fault;

/// One rule, as written.
#[derive(Debug, Default)]
pub(super) struct Rule {
    expression: Box<str>,
    message: Box<str>,
    message_expression: Box<str>,
    reason: Box<str>,
    field_path: Box<str>,
    optional_old: bool,
    compiled: OnceLock<Compiled>,
}

impl Rule {
    /// Reads a rule.
    pub(super) fn of(rule: &Value) -> Self {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default().into();
        Self {
            expression: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
            compiled: OnceLock::new(),
        }
    }

    /// What became of it at the node where it stands.
    fn compiled(&self, place: Place<'_>) -> &Compiled {
        self.compiled.get_or_init(|| Compiled::of(self, place))
    }

    /// What is said when it cannot be evaluated: its message, or the rule itself.
    fn told(&self) -> &str {
        if self.message.is_empty() { self.expression.trim() } else { self.message.trim() }
    }

    /// What is said when it does not hold and computes no message.
    fn refusal(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.told())
        } else {
            self.told().to_owned()
        }
    }

    fn fault(&self) -> Fault {
        match &*self.reason {
            "FieldValueRequired" => Fault::Required,
            "FieldValueForbidden" => Fault::Forbidden,
            "FieldValueDuplicate" => Fault::Duplicate,
            _ => Fault::Invalid,
        }
    }
}

/// Where a rule stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) node: &'a Node,
    /// Whether it is an object with type and metadata.
    pub(super) resource: bool,
}

/// What can be told of a rule without an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleReport {
    /// Where it stands, as steps from the root: `properties[spec].items`; empty for the root.
    pub path: String,
    /// Which of the rules there.
    pub index: usize,
    /// What is wrong with it.
    pub rule_fault: Option<String>,
    /// What is wrong with the expression for its message.
    pub message_fault: Option<String>,
    /// What it may cost, when that is too much.
    pub cost_fault: Option<String>,
    /// Whether it looks at what was before.
    pub compares: bool,
}

/// Looks at every rule of a schema without asking any.
pub(super) fn reports(root: Place<'_>) -> Vec<RuleReport> {
    let mut reports = Vec::new();
    visit(root, 1, &mut String::new(), &mut reports);
    reports
}

/// Looks at the rules of a place, of which there may be so many, and at those below it.
fn visit(place: Place<'_>, places: u64, path: &mut String, reports: &mut Vec<RuleReport>) {
    let node = place.node;
    if !node.has(Marks::GOVERNED) {
        return;
    }
    let rules = node.more().map(|more| more.rules.as_slice()).unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let compiled = rule.compiled(place);
        let message = compiled.message.as_ref();
        reports.push(RuleReport {
            path: path.clone(),
            index,
            rule_fault: compiled.rule.as_ref().err().cloned(),
            message_fault: message.and_then(|message| message.as_ref().err().cloned()),
            cost_fault: estimate::fault(compiled.turns, places),
            compares: compiled.compares,
        });
    }
    let several = places.saturating_mul(estimate::most(node));
    let mut below = |step: &str, child: &Node, places: u64| {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(step);
        visit(Place { node: child, resource: child.has(Marks::EMBEDDED) }, places, path, reports);
        path.truncate(length);
    };
    for (name, child) in &node.properties {
        below(&format!("properties[{name}]"), child, places);
    }
    if let Additional::Of(child) = &node.additional {
        below("additionalProperties", child, several);
    }
    if let Some(child) = node.items() {
        below("items", child, several);
    }
}
