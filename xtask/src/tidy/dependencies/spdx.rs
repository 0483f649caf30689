//! Licence expressions of SPDX, as crates write them: `MIT OR Apache-2.0`, `A AND (B OR C)`, `A WITH B`, and
//! the old `A/B`, which means `OR`. Knows no licence by name. Pure.

use anyhow::{Result, bail, ensure};

/// What a crate may be used under.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// A licence, with its exception.
    Licence(String),
    All(Vec<Self>),
    Any(Vec<Self>),
}

impl Expression {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<_> = spaced.split_whitespace().collect();
        let mut reader = Reader { words: &words };
        let expression = reader.any()?;
        ensure!(reader.words.is_empty(), "`{}` is left over in `{text}`", reader.words.join(" "));
        Ok(expression)
    }

    /// Is what is allowed enough?
    pub(crate) fn holds(&self, allowed: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Licence(licence) => allowed(licence),
            Self::All(parts) => parts.iter().all(|part| part.holds(allowed)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(allowed)),
        }
    }
}

struct Reader<'a> {
    words: &'a [&'a str],
}

impl<'a> Reader<'a> {
    /// `OR` binds less than `AND`.
    fn any(&mut self) -> Result<Expression> {
        let mut parts = vec![self.all()?];
        while self.takes("OR") {
            parts.push(self.all()?);
        }
        Ok(single_or(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression> {
        let mut parts = vec![self.one()?];
        while self.takes("AND") {
            parts.push(self.one()?);
        }
        Ok(single_or(parts, Expression::All))
    }

    fn one(&mut self) -> Result<Expression> {
        if self.takes("(") {
            let inner = self.any()?;
            ensure!(self.takes(")"), "a bracket is not closed");
            return Ok(inner);
        }
        let licence = self.name()?;
        Ok(Expression::Licence(if self.takes("WITH") {
            format!("{licence} WITH {}", self.name()?)
        } else {
            licence.to_owned()
        }))
    }

    fn name(&mut self) -> Result<&'a str> {
        let Some((&word, rest)) = self.words.split_first() else { bail!("a licence is missing") };
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-.+:".contains(c));
        ensure!(plain && !["OR", "AND", "WITH"].contains(&word), "`{word}` is no licence");
        self.words = rest;
        Ok(word)
    }

    fn takes(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

fn single_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 { parts.remove(0) } else { many(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, allowed: &[&str]) -> bool {
        Expression::parse(text).unwrap().holds(&|licence| allowed.contains(&licence))
    }

    #[test]
    fn one_of_several_is_enough() {
        for text in
            ["MIT OR GPL-3.0-only", "GPL-3.0-only/MIT", "GPL-3.0-only / MIT", "MIT", "(MIT)"]
        {
            assert!(holds(text, &["MIT"]), "{text}");
            assert!(!holds(text, &["ISC"]), "{text}");
        }
    }

    #[test]
    fn all_of_several_are_needed() {
        assert!(!holds("MIT AND ISC", &["MIT"]));
        assert!(holds("MIT AND ISC", &["MIT", "ISC"]));
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert!(holds("A OR B AND C", &["A"]));
        assert!(!holds("A OR B AND C", &["B"]));
        assert!(!holds("(A OR B) AND C", &["A"]));
        assert!(holds("(A OR B) AND C", &["C", "B"]));
        assert!(holds("C AND (A OR (B AND D))", &["C", "B", "D"]));
    }

    #[test]
    fn an_exception_is_part_of_the_licence() {
        assert!(!holds("Apache-2.0 WITH LLVM-exception", &["Apache-2.0"]));
        assert!(holds("Apache-2.0 WITH LLVM-exception", &["Apache-2.0 WITH LLVM-exception"]));
        assert!(holds("Apache-2.0 WITH LLVM-exception OR MIT", &["MIT"]));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT Apache-2.0", "A WITH", "A, B"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
