//! The walk from rule to rule.
//!
//! Owns which rules are asked of which part, what `self` and `oldSelf` are there, and what becomes
//! of an answer. Must not know how a rule is evaluated.

use kube_cel::cel::{self, Context, objects::OptionalValue};
use serde_json::Value;
use std::sync::Arc;

use super::{
    super::{
        correlate::Pair,
        node::{Additional, Marks, Node},
    },
    Place, Rule,
    bind::{Wanted, bound},
    budget, functions, limits,
    names::field_path,
    program::{self, Compiled},
};
use crate::{Fault, FieldError};

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What the rules say against an object; if `forgiving`, not what they said before as well.
pub(in crate::structural) fn check(
    root: Place<'_>,
    object: &Value,
    old: Option<&Value>,
    forgiving: bool,
) -> Vec<FieldError> {
    if !root.node.has(Marks::GOVERNED) {
        return Vec::new();
    }
    budget::open();
    let mut walk = Walk { path: String::new(), errors: Vec::new(), over: false };
    let pair = old.filter(|_| forgiving).map(|old| Pair { new: object, old, node: root.node });
    let was = Was { old, pair, nearest: None };
    walk.visit(root, object, was);
    walk.errors
}

/// What is known of a part before the write.
#[derive(Clone, Copy)]
struct Was<'a> {
    /// What rules may compare with.
    old: Option<&'a Value>,
    /// The part beside what it was, where the two can be matched.
    pair: Option<Pair<'a>>,
    /// The nearest part above that could be matched.
    nearest: Option<Pair<'a>>,
}

impl Was<'_> {
    /// Whether a rule that fails did so before as well.
    fn is_unchanged(&self) -> bool {
        self.pair.or(self.nearest).is_some_and(|pair| pair.is_unchanged())
    }

    fn field(&self, name: &str) -> Self {
        let old = self.old.and_then(|old| old.as_object()?.get(name)).filter(|old| !old.is_null());
        let Some(pair) = self.pair else {
            return Self { old, ..*self };
        };
        if self.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self { old, pair: None, nearest: None };
        }
        Self { old, pair: pair.field(name), nearest: Some(pair) }
    }
}

struct Walk {
    path: String,
    errors: Vec<FieldError>,
    /// No further rules are asked.
    over: bool,
}

impl Walk {
    fn step(&mut self, step: &str, place: Place<'_>, value: &Value, was: Was<'_>) {
        let length = self.path.len();
        let step = if length == 0 { step.trim_start_matches('.') } else { step };
        self.path.push_str(step);
        self.visit(place, value, was);
        self.path.truncate(length);
    }

    fn visit(&mut self, place: Place<'_>, value: &Value, was: Was<'_>) {
        let node = place.node;
        if value.is_null() || self.over {
            return;
        }
        let more = node.more();
        let rules = more.map(|more| more.rules.as_slice()).unwrap_or_default();
        if !rules.is_empty() {
            self.ask(rules, place, value, was);
        }
        for clause in more.map(|more| more.all_of.as_slice()).unwrap_or_default() {
            self.clause(clause, place, value, was);
        }
        if !node.has(Marks::GOVERNED) {
            return;
        }
        let of = |node| Place { node, resource: node.has(Marks::EMBEDDED) };
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let (child, step) = match (node.property(name), node.additional()) {
                        (Some(child), _) => (child, format!(".{name}")),
                        (None, Additional::Of(child)) => (&**child, format!("[{name}]")),
                        (None, _) => continue,
                    };
                    if child.has(Marks::GOVERNED) {
                        self.step(&step, of(child), field, was.field(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = node.items().filter(|child| child.has(Marks::GOVERNED)) else {
                    return;
                };
                let pair = was.old.map(|old| Pair { new: value, old, node });
                let elements = pair.as_ref().and_then(Pair::elements);
                for (index, item) in items.iter().enumerate() {
                    let found = elements.as_ref().and_then(|elements| elements.at(index));
                    let matched = found.filter(|_| was.pair.is_some());
                    let was = Was {
                        old: found.map(|pair| pair.old),
                        pair: matched,
                        nearest: was.pair.or(was.nearest),
                    };
                    self.step(&format!("[{index}]"), of(child), item, was);
                }
            }
            _ => {}
        }
    }

    /// Rules inside `allOf` look at the part as the node outside describes it.
    fn clause(&mut self, clause: &Node, place: Place<'_>, value: &Value, was: Was<'_>) {
        let Some(more) = clause.more() else { return };
        let was = Was { pair: None, ..was };
        if !more.rules.is_empty() && !self.over {
            self.ask(&more.rules, place, value, was);
        }
        for inner in &more.all_of {
            self.clause(inner, place, value, was);
        }
    }

    fn ask(&mut self, rules: &[Rule], place: Place<'_>, value: &Value, was: Was<'_>) {
        let kind = place.node.kind.map_or("", super::super::node::Type::name);
        functions::with_functions(|functions| {
            for rule in rules.iter().filter(|rule| !rule.expression.trim().is_empty()) {
                let compiled = rule.compiled(place);
                let answer = self.answer(rule, compiled, place, value, was, functions, kind);
                if let Some(error) = answer {
                    self.errors.push(error);
                }
                if budget::is_empty() {
                    self.refuse_rest(kind);
                    return;
                }
            }
        });
    }

    fn refuse_rest(&mut self, kind: &str) {
        if !self.over {
            self.over = true;
            self.errors.push(FieldError::invalid(self.path.clone(), kind, OUT_OF_BUDGET));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of it describes one question")]
    fn answer(
        &self,
        rule: &Rule,
        compiled: &Compiled,
        place: Place<'_>,
        value: &Value,
        was: Was<'_>,
        functions: &Context<'static>,
        kind: &str,
    ) -> Option<FieldError> {
        let wrong = |detail: String| Some(FieldError::invalid(self.path.clone(), kind, detail));
        let expression = match &compiled.rule {
            Ok(expression) => expression,
            Err(problem) => return wrong(format!("rule compile error: {problem}")),
        };
        if compiled.compares && was.old.is_none() && !rule.optional_old {
            // Nothing to compare with.
            return None;
        }
        let scope = scope(rule, compiled, place, value, was, functions);
        let result = if budget::is_empty() {
            return None;
        } else {
            program::evaluated(expression, &scope)
        };
        if budget::is_empty() {
            return None;
        }
        match result {
            Ok(cel::Value::Bool(true)) => None,
            Ok(_) if !compiled.compares && was.is_unchanged() => None,
            Ok(_) => Some(self.refusal(rule, compiled, place, value, &scope)),
            Err(error) => {
                let (words, told) = (program::words(&error), rule.told());
                wrong(if words == "no such overload" {
                    format!(
                        "'{words}': call arguments did not match a supported operator, function \
                         or macro signature for rule: {told}"
                    )
                } else {
                    format!("{words} evaluating rule: {told}")
                })
            }
        }
    }

    fn refusal(
        &self,
        rule: &Rule,
        compiled: &Compiled,
        place: Place<'_>,
        value: &Value,
        scope: &Context<'_>,
    ) -> FieldError {
        let computed = match &compiled.message {
            Some(Ok(expression)) => message(expression, scope),
            _ => None,
        };
        let detail = computed.unwrap_or_else(|| rule.refusal());
        let mut path = self.path.clone();
        if let Ok(below) = field_path(&rule.field_path, place)
            && !below.is_empty()
        {
            let dot = if path.is_empty() || below.starts_with('[') { "" } else { "." };
            path = format!("{path}{dot}{below}");
        }
        let shown = !value.is_object() && !value.is_array();
        let fault = rule.fault();
        let value = match fault {
            Fault::Invalid | Fault::Duplicate if shown => Some(value.clone()),
            _ => None,
        };
        let detail = if fault == Fault::Duplicate { String::new() } else { detail };
        FieldError { fault, path, value, detail }
    }
}

/// The message that a rule computes; nothing when it does not come to one.
fn message(expression: &cel::IdedExpr, scope: &Context<'_>) -> Option<String> {
    let Ok(cel::Value::String(text)) = program::evaluated(expression, scope) else {
        return None;
    };
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= limits::MESSAGE_MAX && !text.contains('\n');
    fits.then(|| text.to_owned())
}

fn scope<'a>(
    rule: &Rule,
    compiled: &Compiled,
    place: Place<'_>,
    value: &Value,
    was: Was<'_>,
    functions: &'a Context<'static>,
) -> Context<'a> {
    let wanted = Wanted { words: &compiled.words, whole: compiled.whole };
    let mut scope = functions.new_inner_scope();
    let (now, mut weight) = bound(place, value, &wanted);
    scope.add_variable_from_value("self", now);
    // A message may name it though the rule does not.
    let old = was.old.map(|old| bound(place, old, &wanted)).map(|(old, count)| {
        weight += count;
        old
    });
    let old = match (old, rule.optional_old) {
        (Some(old), true) => Some(optional(OptionalValue::of(old))),
        (None, true) => Some(optional(OptionalValue::none())),
        (old, false) => old,
    };
    if let Some(old) = old {
        scope.add_variable_from_value("oldSelf", old);
    }
    budget::begin(weight, compiled.mentions);
    scope
}

fn optional(value: OptionalValue) -> cel::Value {
    cel::Value::Opaque(Arc::new(value))
}
