//! Regular expressions as schemas write them, which is as Go reads them.
//!
//! Owns the translation to the syntax of the library used here, and that each is compiled only when
//! something is first matched against it.

use std::sync::OnceLock;

use regex::Regex;

/// How large a compiled expression may become.
const SIZE_LIMIT: usize = 10 << 20;

/// A pattern that is compiled at its first use.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Result<Regex, Box<str>>>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text has a part that fits; an error when the pattern itself is wrong.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, &str> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text));
        match compiled {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(problem) => Err(problem),
        }
    }
}

/// Compiles an expression in Go's syntax.
pub(crate) fn compile(text: &str) -> Result<Regex, Box<str>> {
    regex::RegexBuilder::new(&translated(text))
        .size_limit(SIZE_LIMIT)
        .build()
        .map_err(|problem| go_words(text, &problem.to_string()).into())
}

/// What is wrong with an expression, in Go's words where these are known.
fn go_words(text: &str, problem: &str) -> String {
    let part = if problem.contains("unclosed group") {
        format!("missing closing ): `{text}`")
    } else if problem.contains("unopened group") {
        format!("unexpected ): `{text}`")
    } else if problem.contains("unclosed character class") {
        let from = text.rfind('[').and_then(|at| text.get(at..)).unwrap_or(text);
        format!("missing closing ]: `{from}`")
    } else if problem.contains("repetition operator missing expression") {
        let operator = text.find(['*', '+', '?', '{']).and_then(|at| text.get(at..=at));
        format!("missing argument to repetition operator: `{}`", operator.unwrap_or(text))
    } else {
        let last = problem.lines().last().unwrap_or_default();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    };
    format!("error parsing regexp: {part}")
}

/// In Go's syntax `\d`, `\w`, `\s` and `\b` are about ASCII only, a bracket inside a class stands for
/// itself, and so does a brace that opens no count.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.as_str().starts_with('Q') => {
                let tail = rest.as_str().get(1..).unwrap_or_default();
                let (quoted, after) = tail.split_once("\\E").unwrap_or((tail, ""));
                out.push_str(&regex::escape(quoted));
                rest = after.chars();
            }
            '\\' if rest.as_str().starts_with('b') => {
                rest.next();
                out.push_str("(?-u:\\b)");
            }
            '\\' => escaped(&mut out, rest.next()),
            '[' => class(&mut out, &mut rest),
            '{' if !opens_count(rest.as_str()) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    out
}

fn escaped(out: &mut String, letter: Option<char>) {
    match letter {
        Some('d') => out.push_str("[0-9]"),
        Some('D') => out.push_str("[^0-9]"),
        Some('w') => out.push_str("[0-9A-Za-z_]"),
        Some('W') => out.push_str("[^0-9A-Za-z_]"),
        Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
        Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
        Some(other) => out.extend(['\\', other]),
        None => out.push('\\'),
    }
}

/// The inside of brackets. One right after the opening is plain, and so are signs that are operators
/// here and not there.
fn class(out: &mut String, rest: &mut std::str::Chars<'_>) {
    out.push('[');
    if let Some(after) = rest.as_str().strip_prefix('^') {
        out.push('^');
        *rest = after.chars();
    }
    let mut first = true;
    while let Some(c) = rest.next() {
        match c {
            '\\' => escaped(out, rest.next()),
            ']' if first => out.push_str("\\]"),
            ']' => {
                out.push(']');
                return;
            }
            '[' => match rest.as_str().strip_prefix(':').and_then(|name| name.split_once(":]")) {
                Some((name, after)) => {
                    out.push_str("[:");
                    out.push_str(name);
                    out.push_str(":]");
                    *rest = after.chars();
                }
                None => out.push_str("\\["),
            },
            '&' | '~' => out.extend(['\\', c]),
            '-' if rest.as_str().starts_with('-') || opens_class(rest.as_str()) => {
                out.push_str("\\-");
            }
            c => out.push(c),
        }
        first = false;
    }
}

/// Whether a class follows: nothing ranges up to it.
fn opens_class(rest: &str) -> bool {
    rest.strip_prefix('\\')
        .is_some_and(|rest| rest.starts_with(['d', 'D', 'w', 'W', 's', 'S', 'p', 'P']))
}

/// Whether what follows a brace is a count: `3}`, `3,}` or `3,5}`.
fn opens_count(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inside.split_once(',') {
        None => digits(inside),
        Some((least, most)) => digits(least) && (most.is_empty() || digits(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_go() {
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{0663}", false),
            (r"^\w+$", "é", false),
            (r"^[\w-]+$", "a-b", true),
            (r"^[a-\d]+$", "a-1", true),
            (r"^[0-9-\pL]+$", "a-1", true),
            (r"^[a-z-9]+$", "a-9", true),
            (r"^[[a]+$", "[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "]", false),
            (r"^[a&&b]+$", "&", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{2,}$", "aaa", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"\bword\b", "a word here", true),
            (r"^\pL+$", "é", true),
            (r"^.+$", "a\nb", false),
        ];
        for (pattern, text, fits) in cases {
            assert_eq!(Pattern::new(pattern).is_match(text), Ok(fits), "{pattern} {text}");
        }
    }

    #[test]
    fn a_wrong_expression_is_an_error_and_not_a_panic() {
        for wrong in ["(", "[", "[a", "*", "a{2,1}", "\\", "(?<n", "[[:"] {
            assert!(Pattern::new(wrong).is_match("a").is_err(), "{wrong}");
        }
        for (wrong, words) in [
            ("(", "error parsing regexp: missing closing ): `(`"),
            ("a)", "error parsing regexp: unexpected ): `a)`"),
            ("b[a", "error parsing regexp: missing closing ]: `[a`"),
            ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
        ] {
            assert_eq!(&*compile(wrong).unwrap_err(), words);
        }
    }
}
