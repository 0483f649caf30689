//! Evaluation of the definition's CEL rules.
//!
//! Owns the walk from rule to rule, the binding of `self` and `oldSelf`, and what becomes of
//! `message`, `messageExpression`, `reason` and `fieldPath`. Must not know any particular rule.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use kube_cel::{
    KubeCelExt,
    cel::{
        self, Context, ExecutionError, Program,
        extractors::This,
        objects::{Key, OptionalValue},
    },
};
use regex::Regex;
use serde_json::Value;

use super::Violation;

thread_local! {
    /// The functions that rules may call. A context cannot be shared between threads.
    static FUNCTIONS: Context<'static> = functions();
}

fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("matches", matches);
    context
}

/// As the crate's own, but a pattern is compiled once per thread and not once per call.
#[expect(clippy::needless_pass_by_value, reason = "the signature that functions of rules have")]
fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    thread_local! {
        static COMPILED: RefCell<BTreeMap<String, Regex>> = const { RefCell::new(BTreeMap::new()) };
    }
    COMPILED.with_borrow_mut(|compiled| {
        if !compiled.contains_key(pattern.as_str()) {
            let regex = Regex::new(&pattern)
                .map_err(|error| ExecutionError::function_error("matches", error))?;
            compiled.insert(pattern.as_str().to_owned(), regex);
        }
        Ok(compiled.get(pattern.as_str()).is_some_and(|regex| regex.is_match(&text)))
    })
}

/// One node of a schema, reduced to its rules and to what rules may look at.
#[derive(Debug, Default)]
pub(super) struct RuleNode {
    properties: BTreeMap<String, Self>,
    additional: Option<Box<Self>>,
    items: Option<Box<Self>>,
    rules: Vec<Rule>,
    /// Every word of the rules that stand here: a field that none of them names is not bound.
    /// Evaluation copies what it selects from, so this is most of its speed.
    words: BTreeSet<String>,
    /// Whether a rule stands here or below.
    governed: bool,
}

#[derive(Debug)]
struct Rule {
    text: String,
    /// A rule that does not compile refuses everything: better than to let all pass.
    program: Result<Program, String>,
    message: Option<String>,
    message_text: String,
    message_program: Option<Program>,
    reason: Reason,
    field_path: String,
    optional_old: bool,
    compares: bool,
}

#[derive(Debug, Clone, Copy)]
enum Reason {
    Invalid,
    Required,
    Forbidden,
    Duplicate,
}

impl Reason {
    fn of(rule: &Value) -> Self {
        match rule.get("reason").and_then(Value::as_str) {
            Some("FieldValueRequired") => Self::Required,
            Some("FieldValueForbidden") => Self::Forbidden,
            Some("FieldValueDuplicate") => Self::Duplicate,
            _ => Self::Invalid,
        }
    }

    /// How the API server opens such a message; a plain value is shown.
    fn prefix(self, value: &Value) -> String {
        let (opening, shows_value) = match self {
            Self::Invalid => ("Invalid value: ", true),
            Self::Required => ("Required value: ", false),
            Self::Forbidden => ("Forbidden: ", false),
            Self::Duplicate => ("Duplicate value: ", true),
        };
        if shows_value && !value.is_object() && !value.is_array() {
            format!("{opening}{value}: ")
        } else {
            opening.to_owned()
        }
    }
}

impl Rule {
    fn compile(rule: &Value) -> Self {
        let text = |key: &str| rule.get(key).and_then(Value::as_str);
        let program = Program::compile(text("rule").unwrap_or_default())
            .map_err(|error| format!("cannot be evaluated: {error}"));
        let compares =
            program.as_ref().is_ok_and(|program| program.references().has_variable("oldSelf"));
        Self {
            text: text("rule").unwrap_or_default().to_owned(),
            program,
            message: text("message").map(str::to_owned),
            message_text: text("messageExpression").unwrap_or_default().to_owned(),
            message_program: text("messageExpression")
                .and_then(|expression| Program::compile(expression).ok()),
            reason: Reason::of(rule),
            field_path: text("fieldPath").unwrap_or_default().to_owned(),
            optional_old: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
            compares,
        }
    }

    /// The words of the rule and of its message.
    fn words(&self) -> impl Iterator<Item = &str> {
        [&self.text, &self.message_text]
            .into_iter()
            .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'))
    }

    /// The reason why the rule does not hold, if so.
    fn broken(&self, value: &Value, scope: &Context<'_>) -> Option<String> {
        let program = match &self.program {
            Ok(program) => program,
            Err(problem) => return Some(format!("rule {:?} {problem}", self.text)),
        };
        match program.execute(scope) {
            Ok(cel::Value::Bool(true)) => None,
            Ok(cel::Value::Bool(false)) => {
                Some(format!("{}{}", self.reason.prefix(value), self.explanation(scope)))
            }
            Ok(_) => Some(format!("rule {:?} is neither true nor false", self.text)),
            Err(error) => Some(format!("rule {:?} cannot be evaluated: {error}", self.text)),
        }
    }

    fn explanation(&self, scope: &Context<'_>) -> String {
        let computed =
            self.message_program.as_ref().and_then(|program| match program.execute(scope) {
                Ok(cel::Value::String(text)) => Some(text.as_str().to_owned()),
                _ => None,
            });
        computed
            .or_else(|| self.message.clone())
            .unwrap_or_else(|| format!("failed rule: {}", self.text))
    }
}

impl RuleNode {
    /// Reads a schema.
    pub(super) fn compile(schema: &Value) -> Self {
        let properties: BTreeMap<_, _> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), Self::compile(schema)))
            .collect();
        let child = |key: &str| schema.get(key).map(|schema| Box::new(Self::compile(schema)));
        let (additional, items) = (child("additionalProperties"), child("items"));
        let rules: Vec<_> = schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(Rule::compile)
            .collect();
        let governed = !rules.is_empty()
            || properties
                .values()
                .chain(additional.as_deref())
                .chain(items.as_deref())
                .any(|node| node.governed);
        let words = rules.iter().flat_map(Rule::words).map(str::to_owned).collect();
        Self { properties, additional, items, rules, words, governed }
    }

    /// Adds what the rules refuse.
    pub(super) fn check(
        &self,
        value: &Value,
        old: Option<&Value>,
        violations: &mut Vec<Violation>,
    ) {
        FUNCTIONS.with(|functions| self.visit("", value, old, functions, violations));
    }

    fn visit(
        &self,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        functions: &Context<'_>,
        violations: &mut Vec<Violation>,
    ) {
        self.evaluate(path, value, old, functions, violations);
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let (child, path) = match (self.properties.get(name), &self.additional) {
                        (Some(child), _) if path.is_empty() => (child, name.clone()),
                        (Some(child), _) => (child, format!("{path}.{name}")),
                        (None, Some(child)) => (child.as_ref(), format!("{path}[{name}]")),
                        (None, None) => continue,
                    };
                    if child.governed {
                        let old = old.and_then(|old| old.get(name));
                        child.visit(&path, field, old, functions, violations);
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = self.items.as_ref().filter(|child| child.governed) else {
                    return;
                };
                for (index, item) in items.iter().enumerate() {
                    child.visit(&format!("{path}[{index}]"), item, None, functions, violations);
                }
            }
            _ => {}
        }
    }

    fn evaluate(
        &self,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        functions: &Context<'_>,
        violations: &mut Vec<Violation>,
    ) {
        if self.rules.is_empty() {
            return;
        }
        let mut scope = functions.new_inner_scope();
        scope.add_variable_from_value("self", self.bound(value, &self.words));
        let old = old.map(|old| self.bound(old, &self.words));
        for rule in &self.rules {
            if rule.compares {
                let bound = match (&old, rule.optional_old) {
                    (Some(old), true) => optional(OptionalValue::of(old.clone())),
                    (None, true) => optional(OptionalValue::none()),
                    (Some(old), false) => old.clone(),
                    // Nothing to compare with.
                    (None, false) => continue,
                };
                scope.add_variable_from_value("oldSelf", bound);
            }
            if let Some(message) = rule.broken(value, &scope) {
                let path = format!("{path}{}", rule.field_path);
                violations.push(Violation::new(path.trim_start_matches('.'), message));
            }
        }
    }

    /// The value as rules see it: declared fields that they name, and entries of maps.
    fn bound(&self, value: &Value, words: &BTreeSet<String>) -> cel::Value {
        match value {
            Value::Null => cel::Value::Null,
            Value::Bool(flag) => cel::Value::Bool(*flag),
            Value::Number(number) => number.as_i64().map_or_else(
                || cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
                cel::Value::Int,
            ),
            Value::String(text) => cel::Value::String(Arc::new(text.clone())),
            Value::Array(items) => {
                let undeclared = Self::default();
                let node = self.items.as_deref().unwrap_or(&undeclared);
                let items = items.iter().map(|item| node.bound(item, words));
                cel::Value::List(Arc::new(items.collect()))
            }
            Value::Object(fields) => {
                let named = fields.iter().filter_map(|(name, field)| {
                    let declared = self.properties.get(name).filter(|_| words.contains(name));
                    let node = declared.or(self.additional.as_deref())?;
                    Some((Key::String(Arc::new(name.clone())), node.bound(field, words)))
                });
                cel::Value::Map(named.collect::<HashMap<_, _>>().into())
            }
        }
    }
}

fn optional(value: OptionalValue) -> cel::Value {
    cel::Value::Opaque(Arc::new(value))
}
