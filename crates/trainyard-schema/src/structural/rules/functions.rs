//! The functions that rules may call.
//!
//! Owns those that differ from the library's: to mean what they mean in Go, to stay within bounds,
//! or because the library has none. Must not know rules.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use kube_cel::{
    KubeCelExt,
    cel::{
        self, Context, ExecutionError, Program,
        extractors::{Arguments, This},
        objects::{Key, OptionalValue, ResolveResult},
    },
};
use regex::Regex;

use super::{
    super::pattern,
    budget,
    limits::{BUILT_MAX, DIGITS_MAX, PATTERN_COST, RANGE_MAX},
};

/// The field of a value that may be absent (`a.?b`); no rule can write this name.
pub(super) const OPTIONAL_FIELD: &str = "@field";
/// `matches` with a pattern that is not written in the rule.
pub(super) const DYNAMIC_MATCHES: &str = "@matches";
/// What a text for `format` goes through.
pub(super) const PRECISE: &str = "@precise";

/// The names of types, with which `type(x)` is compared.
pub(super) const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

thread_local! {
    /// The functions that rules may call. A context cannot be shared between threads.
    static FUNCTIONS: Context<'static> = functions();
}

/// Lets something be evaluated with the functions that rules may call.
pub(super) fn with_functions<T>(then: impl FnOnce(&Context<'static>) -> T) -> T {
    FUNCTIONS.with(then)
}

fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("matches", matches);
    context.add_function(DYNAMIC_MATCHES, matches_any);
    context.add_function("find", find);
    context.add_function("findAll", find_all);
    context.add_function("split", split);
    context.add_function("join", join);
    context.add_function(PRECISE, precise);
    context.add_function("replace", replace);
    context.add_function("lists.range", range);
    context.add_function("type", type_of);
    context.add_function(OPTIONAL_FIELD, optional_field);
    for name in TYPES {
        context.add_variable_from_value(name, type_value(name));
    }
    context.add_function(budget::TURN, budget::turn);
    context.add_function(budget::PAIRS, budget::pairs);
    context.add_function(budget::MADE, budget::made);
    context.add_function(budget::ITEM, budget::item);
    context.add_function(budget::BEGIN, budget::begin_list);
    context.add_function(budget::PUSH, budget::push);
    context.add_function(budget::LIST, budget::list);
    context
}

thread_local! {
    /// Patterns that were compiled, each once per thread and not once per call.
    static COMPILED: RefCell<BTreeMap<String, Regex>> = const { RefCell::new(BTreeMap::new()) };
}

/// Does something with a pattern, which means what it means in Go. One that is not compiled yet costs that.
fn with_pattern<T>(
    (text, pattern): (&str, &str),
    compiling: u64,
    then: impl FnOnce(&Regex) -> T,
) -> Result<T, ExecutionError> {
    const KEPT: usize = 256;
    let scale = budget::of_text(pattern.len());
    budget::paid(budget::of_text(text.len()).saturating_mul(scale))?;
    COMPILED.with_borrow_mut(|compiled| {
        if !compiled.contains_key(pattern) {
            budget::paid(compiling)?;
            let regex = pattern::compile(pattern)
                .map_err(|error| ExecutionError::function_error("matches", error))?;
            if compiled.len() >= KEPT {
                compiled.clear();
            }
            compiled.insert(pattern.to_owned(), regex);
        }
        compiled.get(pattern).map(then).ok_or(ExecutionError::NoSuchOverload)
    })
}

/// As the library's own, but with the patterns of Go.
#[expect(clippy::needless_pass_by_value, reason = "the signature that functions of rules have")]
fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    with_pattern((&text, &pattern), 0, |regex| regex.is_match(&text))
}

/// The same with a pattern that is not written in the rule.
#[expect(clippy::needless_pass_by_value, reason = "the signature that functions of rules have")]
fn matches_any(
    This(text): This<Arc<String>>,
    pattern: Arc<String>,
) -> Result<bool, ExecutionError> {
    with_pattern((&text, &pattern), PATTERN_COST, |regex| regex.is_match(&text))
}

/// As the library's own, but with the patterns of Go.
#[expect(clippy::needless_pass_by_value, reason = "the signature that functions of rules have")]
fn find(This(text): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    with_pattern((&text, &pattern), PATTERN_COST, |regex| {
        regex.find(&text).map(|found| found.as_str().to_owned()).unwrap_or_default().into()
    })
}

/// The same for all that is found, within bounds.
fn find_all(This(text): This<Arc<String>>, Arguments(arguments): Arguments) -> ResolveResult {
    let (pattern, most) = match arguments.as_slice() {
        [cel::Value::String(pattern)] => (pattern, usize::MAX),
        [cel::Value::String(pattern), cel::Value::Int(most)] => {
            (pattern, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    with_pattern((&text, pattern), PATTERN_COST, |regex| {
        texts("findAll", regex.find_iter(&text).take(most).map(|found| found.as_str()))
    })?
}

/// As the library's own, within bounds.
fn split(This(text): This<Arc<String>>, Arguments(arguments): Arguments) -> ResolveResult {
    let (between, most) = match arguments.as_slice() {
        [cel::Value::String(between)] => (between, None),
        [cel::Value::String(between), cel::Value::Int(most)] => {
            (between, usize::try_from(*most).ok())
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    match most {
        Some(most) => texts("split", text.splitn(most, between.as_str())),
        None => texts("split", text.split(between.as_str())),
    }
}

/// Texts as a list, when there are not too many.
fn texts<'t>(function: &str, texts: impl Iterator<Item = &'t str>) -> ResolveResult {
    let most = usize::try_from(RANGE_MAX).unwrap_or(usize::MAX);
    let list: Vec<cel::Value> = texts.take(most + 1).map(|text| text.to_owned().into()).collect();
    if list.len() > most {
        return Err(ExecutionError::function_error(function, "the list becomes too long"));
    }
    Ok(cel::Value::List(Arc::new(list)))
}

/// As the library's own, within bounds, and for texts only as in Go.
fn join(This(list): This<Arc<Vec<cel::Value>>>, Arguments(arguments): Arguments) -> ResolveResult {
    let between = match arguments.as_slice() {
        [] => "",
        [cel::Value::String(between)] => between.as_str(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let text = |value: &'_ cel::Value| match value {
        cel::Value::String(text) => Ok(Arc::clone(text)),
        _ => Err(ExecutionError::NoSuchOverload),
    };
    let parts: Vec<Arc<String>> = list.iter().map(text).collect::<Result<_, _>>()?;
    let own = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
    if between.len().saturating_mul(parts.len()).saturating_add(own) > BUILT_MAX {
        return Err(ExecutionError::function_error("join", "the text becomes too long"));
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.as_str()).collect();
    Ok(parts.join(between).into())
}

/// A text for `format` that asks for no more digits than anybody reads.
fn precise(text: Arc<String>) -> ResolveResult {
    let asks_for = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest.get(..digits).and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(0)
    };
    let too_many = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 5 || asks_for(rest) > DIGITS_MAX
    };
    if text.split("%.").skip(1).any(too_many) {
        return Err(ExecutionError::function_error("format", "the precision is too large"));
    }
    Ok(cel::Value::String(text))
}

/// As the library's own, within bounds.
fn replace(This(text): This<Arc<String>>, Arguments(arguments): Arguments) -> ResolveResult {
    let wrong = |what: &str| ExecutionError::function_error("replace", what);
    let (from, to, most) = match arguments.as_slice() {
        [cel::Value::String(from), cel::Value::String(to)] => (from, to, None),
        [cel::Value::String(from), cel::Value::String(to), cel::Value::Int(most)] => {
            (from, to, usize::try_from(*most).ok())
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let count = text.matches(from.as_str()).count().min(most.unwrap_or(usize::MAX));
    if count.saturating_mul(to.len()).saturating_add(text.len()) > BUILT_MAX {
        return Err(wrong("the text becomes too long"));
    }
    Ok(text.replacen(from.as_str(), to, count).into())
}

/// As the library's own, within bounds.
fn range(count: i64) -> ResolveResult {
    if count > RANGE_MAX {
        return Err(ExecutionError::function_error("lists.range", "the list becomes too long"));
    }
    Ok(cel::Value::List(Arc::new((0..count).map(cel::Value::Int).collect())))
}

/// A type as a value: equal only to itself, since no text that rules can write begins so.
fn type_value(name: &str) -> cel::Value {
    let key = Key::String(Arc::new("\u{0}type".to_owned()));
    let name = cel::Value::String(Arc::new(name.to_owned()));
    cel::Value::Map(HashMap::from([(key, name)]).into())
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that functions of rules have")]
#[expect(clippy::unnecessary_wraps, reason = "the signature that functions of rules have")]
fn type_of(value: cel::Value) -> ResolveResult {
    let name = match &value {
        cel::Value::List(_) => "list",
        cel::Value::Map(_) => "map",
        cel::Value::Int(_) => "int",
        cel::Value::UInt(_) => "uint",
        cel::Value::Float(_) => "double",
        cel::Value::String(_) => "string",
        cel::Value::Bytes(_) => "bytes",
        cel::Value::Bool(_) => "bool",
        cel::Value::Null => "null_type",
        cel::Value::Duration(_) => "google.protobuf.Duration",
        cel::Value::Timestamp(_) => "google.protobuf.Timestamp",
        cel::Value::Function(..) | cel::Value::Opaque(_) => "opaque",
    };
    Ok(type_value(name))
}

/// A field, or nothing.
fn optional_field(Arguments(arguments): Arguments) -> ResolveResult {
    let [operand, cel::Value::String(name)] = arguments.as_slice() else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let held = <&OptionalValue>::try_from(operand).map(OptionalValue::value);
    let object = match held {
        Ok(held) => held,
        Err(_) => Some(operand),
    };
    let field = match object {
        None => None,
        Some(cel::Value::Map(fields)) => fields.map.get(&Key::String(Arc::clone(name))).cloned(),
        Some(_) => return Err(ExecutionError::NoSuchOverload),
    };
    let field = field.map_or_else(OptionalValue::none, OptionalValue::of);
    Ok(cel::Value::Opaque(Arc::new(field)))
}

/// A text turned into another type by an expression over `text`.
pub(super) fn converted(expression: &str, text: &str) -> Option<cel::Value> {
    with_functions(|functions| {
        let mut scope = functions.new_inner_scope();
        scope.add_variable_from_value("text", text.to_owned());
        Program::compile(expression).ok()?.execute(&scope).ok()
    })
}
