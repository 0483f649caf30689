//! The functions that a template may call.
//!
//! Owns their names and those that must differ from the `gotmpl` crate's to give what Go gives;
//! must not know syntax.

use std::sync::Arc;

use gotmpl::{Result, TemplateError, Value};

use super::format;

/// The functions of Go's text/template.
pub(super) const NAMES: [&str; 19] = [
    "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or",
    "print", "printf", "println", "slice", "urlquery",
];

/// The longest text that a template may make.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 20;

/// Not callable by name: gives nothing at all.
pub(super) const NOTHING: &str = "\u{1}nothing";
/// Not callable by name: fails with its argument.
pub(super) const FAIL: &str = "\u{1}fail";
/// Not callable by name: the text of what an action gives.
pub(super) const SHOW: &str = "\u{1}show";

/// Adds the functions to an engine. `nothing` is handed to templates that are called without data.
pub(super) fn register(engine: gotmpl::Template, nothing: Value) -> gotmpl::Template {
    engine
        .func(NOTHING, move |_| Ok(nothing.clone()))
        .func(FAIL, |args| Err(failed(format::print(args))))
        .func(SHOW, show)
        .func("print", |args| text(format::print(args)))
        .func("println", |args| text(format::println(args)))
        .func("printf", printf)
        .func("index", index)
        .func("html", |args| text(gotmpl::html_escape(&escapable(args))))
        .func("js", |args| text(gotmpl::js_escape(&escapable(args))))
        .func("urlquery", |args| text(gotmpl::url_encode(&escapable(args))))
}

fn failed(problem: impl Into<String>) -> TemplateError {
    TemplateError::Exec(problem.into())
}

fn text(text: String) -> Result<Value> {
    // What is printed could be doubled again and again.
    if text.len() > TEXT_BYTES_MAX {
        return Err(TemplateError::Write);
    }
    Ok(Value::String(Arc::from(text)))
}

/// The executor would write floats in its own way.
fn show(args: &[Value]) -> Result<Value> {
    match args {
        [value @ (Value::String(_) | Value::Nil)] => Ok(value.clone()),
        args => text(format::print(args)),
    }
}

fn printf(args: &[Value]) -> Result<Value> {
    let Some((first, args)) = args.split_first() else {
        return Err(failed("wrong number of args for printf: want at least 1 got 0"));
    };
    let Value::String(pattern) = first else {
        return Err(failed(format!("printf: expected a string as format; found {first}")));
    };
    let printed = format::printf(pattern, args, TEXT_BYTES_MAX);
    printed.map_or(Err(TemplateError::Write), text)
}

/// Without an index it is the value itself; a variable that there is not is an empty text.
fn index(args: &[Value]) -> Result<Value> {
    let Some((first, indices)) = args.split_first() else {
        return Err(failed("wrong number of args for index: want at least 1 got 0"));
    };
    if matches!(first, Value::Nil) {
        return Err(failed("index of untyped nil"));
    }
    let mut value = first.clone();
    for at in indices {
        value = match (&value, at) {
            (Value::Map(_), Value::String(key)) => {
                value.field(key).cloned().unwrap_or_else(|| Value::String(Arc::from("")))
            }
            (Value::String(_), _) => match value.index(at)? {
                Value::Int(byte) => Value::Uint(byte.unsigned_abs()),
                other => other,
            },
            _ => value.index(at)?,
        };
    }
    Ok(value)
}

/// What an escaping function works on: all its arguments, printed.
fn escapable(args: &[Value]) -> String {
    let shown: Vec<_> = args
        .iter()
        .map(|arg| match arg {
            Value::Nil => Value::String(Arc::from("<no value>")),
            arg => arg.clone(),
        })
        .collect();
    format::print(&shown)
}
