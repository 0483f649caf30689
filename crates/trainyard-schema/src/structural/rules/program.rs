//! A rule made ready for evaluation, and its evaluation.
//!
//! Owns compiling within limits and the words for what goes wrong.

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use kube_cel::cel::{
    self, Context, ExecutionError,
    common::ast::{CallExpr, EntryExpr, Expr, IdedExpr},
    objects::ResolveResult,
    parser::Parser,
};

use super::{
    Place, Rule, budget,
    functions::with_functions,
    limits::{COMPILE_STACK, DEPTH_MAX, PLAIN_SIGNS, TEXT_MAX},
    meter::metered,
    types::{self, Missing},
};

/// A rule made ready.
#[derive(Debug)]
pub(super) struct Compiled {
    /// A rule that does not compile refuses everything: better than to let all pass.
    pub(super) rule: Result<IdedExpr, String>,
    pub(super) message: Option<Result<IdedExpr, String>>,
    pub(super) compares: bool,
    pub(super) words: HashSet<Box<str>>,
    pub(super) whole: bool,
    pub(super) mentions: u64,
    /// How often loops over what the schema describes may turn.
    pub(super) turns: u64,
}

impl Compiled {
    pub(super) fn of(rule: &Rule, place: Place<'_>) -> Self {
        let words = [&rule.expression, &rule.message_expression]
            .into_iter()
            .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'))
            .map(Into::into)
            .collect();
        let mut compiled = Self {
            rule: Err(String::new()),
            message: None,
            compares: false,
            words,
            whole: false,
            mentions: 0,
            turns: 0,
        };
        compiled.rule = compiled
            .part(
                &rule.expression,
                rule,
                place,
                types::may_be_bool,
                "cel expression must evaluate to a bool",
            )
            .map_err(|detail| detail.replace("{part}", ""));
        compiled.compares =
            compiled.rule.as_ref().is_ok_and(|expression| names(expression, "oldSelf"));
        if !rule.message_expression.is_empty() {
            let wrong_type = "messageExpression must evaluate to a string";
            let part = compiled
                .part(&rule.message_expression, rule, place, types::may_be_text, wrong_type)
                .map_err(|detail| detail.replace("{part}", "messageExpression "));
            compiled.message = Some(part);
        }
        compiled
    }

    fn part(
        &mut self,
        text: &str,
        rule: &Rule,
        place: Place<'_>,
        fits: fn(types::Kind<'_>) -> bool,
        wrong_type: &str,
    ) -> Result<IdedExpr, String> {
        let mut expression =
            parsed(text).map_err(|problem| format!("{{part}}compilation failed: {problem}"))?;
        let (kind, look) = with_functions(|functions| {
            let has = |name: &str| has_function(functions, name);
            types::look(&expression, place, rule.optional_old, &has)
        });
        if !look.faults.is_empty() {
            let lines: Vec<_> = look.faults.iter().map(|fault| located(text, fault)).collect();
            return Err(format!("{{part}}compilation failed: {}", lines.join("\n")));
        }
        if !fits(kind) {
            return Err(wrong_type.to_owned());
        }
        self.whole |= look.whole;
        self.mentions += look.mentions;
        self.turns = self.turns.max(look.turns);
        metered(&mut expression);
        Ok(expression)
    }
}

/// Whether there is a function; the library tells only by the failure of a call.
fn has_function(functions: &Context<'_>, name: &str) -> bool {
    let call = call(name, Vec::new());
    !matches!(
        evaluated(&call, functions),
        Err(ExecutionError::UndeclaredReference(missing)) if *missing == name
    )
}

/// The words for something missing, with the place in the rule.
fn located(text: &str, fault: &Missing) -> String {
    let undeclared = |name: &str| format!("undeclared reference to '{name}' (in container '')");
    let (at, words) = match fault {
        Missing::Field(name) => (found(text, ".", name), format!("undefined field '{name}'")),
        Missing::Name(name) => (found(text, "", name), undeclared(name)),
        // There the place is the opening bracket.
        Missing::Function(name) => {
            (found(text, "", name).map(|at| at + name.len()), undeclared(name))
        }
    };
    let at = at.unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let source = text.split('\n').nth(line).unwrap_or_default();
    let dots = ".".repeat(column);
    format!("ERROR: <input>:{}:{}: {words}\n | {source}\n | {dots}^", line + 1, column + 1)
}

/// Where a name first stands for itself.
fn found(text: &str, before: &str, name: &str) -> Option<usize> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let wanted = format!("{before}{name}");
    text.match_indices(&wanted).map(|(at, _)| at).find(|at| {
        let head = text.get(..*at).unwrap_or_default();
        let tail = text.get(at + wanted.len()..).unwrap_or_default();
        let begins = !before.is_empty() || !head.ends_with(part_of_name);
        begins && !tail.starts_with(part_of_name)
    })
}

/// Parses a rule, on a stack of its own when it could be nested deeply.
fn parsed(text: &str) -> Result<IdedExpr, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("the expression is longer than {TEXT_MAX} bytes"));
    }
    let signs = text.bytes().filter(|byte| byte.is_ascii_punctuation() || *byte == b' ').count();
    if signs < PLAIN_SIGNS {
        return parsed_here(text);
    }
    let text = text.to_owned();
    let thread = std::thread::Builder::new()
        .name("rule".to_owned())
        .stack_size(COMPILE_STACK)
        .spawn(move || parsed_here(&text));
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("the expression cannot be read".to_owned()),
        Err(problem) => Err(format!("cannot be compiled now: {problem}")),
    }
}

fn parsed_here(text: &str) -> Result<IdedExpr, String> {
    let parser = Parser::new().enable_optional_syntax(true);
    let expression = match catch_unwind(AssertUnwindSafe(|| parser.parse(text))) {
        Ok(Ok(expression)) => expression,
        Ok(Err(problems)) => return Err(problems.to_string().replace("\n| ", "\n | ")),
        Err(_) => return Err("the expression cannot be read".to_owned()),
    };
    match unsupported(&expression) {
        Some(problem) => Err(problem),
        None => Ok(expression),
    }
}

/// What the evaluator cannot take.
fn unsupported(root: &IdedExpr) -> Option<String> {
    let mut open = vec![(root, 1)];
    while let Some((expression, depth)) = open.pop() {
        if depth > DEPTH_MAX {
            return Some(format!("the expression is nested more than {DEPTH_MAX} levels deep"));
        }
        if matches!(expression.expr, Expr::Struct(_) | Expr::Unspecified) {
            return Some("the expression builds a message, which is not supported".to_owned());
        }
        open.extend(children(expression).into_iter().map(|child| (child, depth + 1)));
    }
    None
}

pub(super) fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map
            .entries
            .iter()
            .flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            })
            .collect(),
        Expr::Comprehension(inner) => {
            vec![
                &inner.iter_range,
                &inner.accu_init,
                &inner.loop_cond,
                &inner.loop_step,
                &inner.result,
            ]
        }
        Expr::Struct(_) | Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn names(expression: &IdedExpr, variable: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == variable)
        || children(expression).into_iter().any(|child| names(child, variable))
}

/// A call of a function.
pub(super) fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let call = CallExpr { func_name: name.to_owned(), target: None, args };
    IdedExpr { id: 0, expr: Expr::Call(call) }
}

/// Evaluates an expression.
pub(super) fn evaluated(expression: &IdedExpr, scope: &Context<'_>) -> ResolveResult {
    // The library gives up on what it does not know; a server must not.
    let result = catch_unwind(AssertUnwindSafe(|| cel::Value::resolve(expression, scope)))
        .unwrap_or_else(|_| Err(ExecutionError::function_error("rule", "cannot be evaluated")));
    budget::forget();
    result
}

/// Why an evaluation failed, in the words of the API server.
pub(super) fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(index) => match index {
            cel::Value::Int(index) => format!("index out of bounds: {index}"),
            _ => "index out of bounds".to_owned(),
        },
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. } => "no such overload".to_owned(),
        ExecutionError::FunctionError { message, .. } => match range_words(message) {
            Some(index) => format!("index out of range: {index}"),
            None => message.clone(),
        },
        other => other.to_string(),
    }
}

/// The index that the library's words about a range are about.
fn range_words(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(" out of range")?;
    before.rsplit_once("index ").map(|(_, index)| index)
}
