//! Templates: the language of Go's text/template over the four variables of a machine.
//!
//! Owns parsing, rendering and saying where a mistake is. The tree is made here by Go's grammar
//! and executed by the `gotmpl` crate. It must not know what a template is for.

mod format;
mod functions;
mod lex;
mod literal;
mod output;
mod parse;
mod place;
mod trace;

use std::{fmt, sync::Arc};

use gotmpl::{MissingKey, TemplateError, Value};
use thiserror::Error;

use self::{output::Output, parse::Trees, place::Lines};

/// The name of a text's own template.
const MAIN: &str = "job";
/// Rounds of all `range` loops of one rendering.
const ROUNDS_MAX: u64 = 1_000_000;

/// What happens to a variable that there is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    Refused,
    /// It becomes `<no value>`, as in Go.
    Allowed,
}

/// Names and values of what a template may use.
pub type Variables = [(&'static str, Arc<str>)];

/// A mistake in a template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct Error {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What is wrong.
    #[source]
    pub kind: ErrorKind,
}

impl Error {
    /// A short name for the kind of mistake.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.kind {
            ErrorKind::Syntax(_) => "syntax",
            ErrorKind::UnknownVariable { .. } => "unknown-variable",
            ErrorKind::Execution(_) => "execution",
        }
    }
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ErrorKind {
    /// It cannot be understood.
    #[error("{0}")]
    Syntax(String),
    /// It uses a variable that there is not.
    #[error("unknown variable .{name}; there are {}", dotted(known))]
    UnknownVariable {
        /// Its name.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// It can be understood, but not carried out.
    #[error("{0}")]
    Execution(String),
}

fn dotted(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!(".{name}")).collect();
    names.join(", ")
}

/// A template that can be rendered.
pub struct Template {
    text: String,
    lines: Lines,
    trees: Trees,
    missing: Missing,
    engine: gotmpl::Template,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Template {
    /// Understands a text.
    pub fn parse(text: &str, missing: Missing) -> Result<Self, Error> {
        let lines = Lines::of(text);
        let trees = parse::parse(text).map_err(|mistake| Error {
            line: lines.line(mistake.at),
            column: lines.column(text, mistake.at),
            kind: ErrorKind::Syntax(mistake.problem),
        })?;
        let mut engine = engine(missing, Value::Nil);
        for (name, tree) in &trees.named {
            engine = engine.add_parse_tree(name, tree.clone());
        }
        Ok(Self { text: text.to_owned(), lines, trees, missing, engine })
    }

    /// Appends the text that these variables give.
    pub fn render(&self, variables: &Variables, out: &mut String) -> Result<(), Error> {
        let data = data(variables);
        let before = out.len();
        let written = self.engine.execute_template_fmt(&mut Output::new(out), MAIN, &data);
        let outcome = match written {
            // Called without data, a template has no variables at all, which is not an error to
            // the engine: it is asked again with an empty set of variables.
            Ok(()) if self.trees.calls_without_data && self.missing == Missing::Refused => self
                .trace(&data, Value::Map(Arc::default()))
                .filter(|(error, _)| matches!(error, TemplateError::MissingKey { .. })),
            Ok(()) => None,
            // Executed again, step by step, to learn where it went wrong.
            Err(error) => Some(self.trace(&data, Value::Nil).unwrap_or((error, 0))),
        };
        outcome.map_or(Ok(()), |(error, at)| {
            out.truncate(before);
            Err(self.error(error, at, variables))
        })
    }

    /// Executes with every step noted; gives the error and where it came up.
    fn trace(&self, data: &Value, nothing: Value) -> Option<(TemplateError, usize)> {
        trace::execute(engine(self.missing, nothing), &self.trees, data)
    }

    fn error(&self, error: TemplateError, at: usize, variables: &Variables) -> Error {
        let kind = match error {
            TemplateError::MissingKey { key } => {
                let known = variables.iter().map(|(name, _)| (*name).to_owned()).collect();
                ErrorKind::UnknownVariable { name: key, known }
            }
            TemplateError::Exec(problem) => ErrorKind::Execution(problem),
            TemplateError::Write => ErrorKind::Execution(format!(
                "the text grows beyond {} MB",
                functions::TEXT_BYTES_MAX >> 20
            )),
            TemplateError::RangeIterLimit => {
                ErrorKind::Execution(format!("more than {ROUNDS_MAX} rounds of range loops"))
            }
            TemplateError::RecursionLimit => {
                ErrorKind::Execution("templates call each other too deeply".to_owned())
            }
            other => ErrorKind::Execution(other.to_string()),
        };
        let (line, column) = (self.lines.line(at), self.lines.column(&self.text, at));
        Error { line, column, kind }
    }
}

fn engine(missing: Missing, nothing: Value) -> gotmpl::Template {
    let missing = match missing {
        Missing::Refused => MissingKey::Error,
        Missing::Allowed => MissingKey::Invalid,
    };
    let engine = gotmpl::Template::new(MAIN).missing_key(missing).max_range_iters(ROUNDS_MAX);
    functions::register(engine, nothing)
}

fn data(variables: &Variables) -> Value {
    let named =
        variables.iter().map(|(name, value)| (Arc::from(*name), Value::String(Arc::clone(value))));
    Value::Map(Arc::new(named.collect()))
}
