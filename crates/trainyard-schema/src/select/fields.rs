//! Field selectors: `metadata.name=a,status.phase!=Running`.
//!
//! Must not know which fields a kind has; the caller asks [`Selector::requirements`].

use std::fmt;

use super::SelectError;

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=` or `==`
    Equals,
    /// `!=`
    NotEquals,
}

/// One thing that is asked of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The field.
    pub field: Box<str>,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub value: Box<str>,
}

/// Everything that is asked; all of it must hold. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// Reads the text of a query.
    pub fn parse(text: &str) -> Result<Self, SelectError> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = terms
            .into_iter()
            .filter(|term| !term.is_empty())
            .map(|term| requirement(text, term))
            .collect::<Result<Vec<_>, _>>()?;
        // An operator alone asks nothing.
        requirements.retain(|one| !(one.field.is_empty() && one.value.is_empty()));
        Ok(Self { requirements })
    }

    /// Whether an object is selected; `field` gives the value of a field, empty when absent.
    #[must_use]
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.requirements.iter().all(|one| {
            let equal = field(&one.field) == &*one.value;
            equal == (one.operator == Operator::Equals)
        })
    }

    /// The value that a field must have, where one is asked for.
    #[must_use]
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.requirements
            .iter()
            .find(|one| one.operator == Operator::Equals && &*one.field == field)
            .map(|one| &*one.value)
    }

    /// Whether nothing is asked, so that everything is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// What is asked.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

/// The terms between commas that have no backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|letter| {
        let splits = !escaped && letter == ',';
        escaped = !escaped && letter == '\\';
        splits
    })
    .collect()
}

fn requirement(selector: &str, term: &str) -> Result<Requirement, SelectError> {
    // The first operator splits; nothing escapes it.
    let (at, operator, length) = term
        .char_indices()
        .find_map(|(at, _)| {
            let rest = &term[at..];
            if rest.starts_with("!=") {
                Some((at, Operator::NotEquals, 2))
            } else if rest.starts_with("==") {
                Some((at, Operator::Equals, 2))
            } else if rest.starts_with('=') {
                Some((at, Operator::Equals, 1))
            } else {
                None
            }
        })
        .ok_or_else(|| SelectError::Term {
            selector: selector.to_owned(),
            term: term.to_owned(),
        })?;
    let (field, value) = (&term[..at], &term[at + length..]);
    Ok(Requirement { field: field.into(), operator, value: unescaped(value)?.into() })
}

/// A value without its backslashes.
fn unescaped(value: &str) -> Result<String, SelectError> {
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                Some(other) => {
                    return Err(SelectError::Escape { sequence: format!("\\{other}") });
                }
                None => return Err(SelectError::Escape { sequence: "\\".to_owned() }),
            },
            ',' | '=' => return Err(SelectError::Unescaped { letter: letter.into() }),
            plain_letter => plain.push(plain_letter),
        }
    }
    Ok(plain)
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, one) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if one.operator == Operator::Equals { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}", one.field)?;
            for letter in one.value.chars() {
                if matches!(letter, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(text: &str) -> Vec<(String, Operator, String)> {
        let selector = Selector::parse(text).unwrap();
        let all = selector.requirements().iter();
        all.map(|one| (one.field.to_string(), one.operator, one.value.to_string())).collect()
    }

    #[test]
    fn terms_and_escapes() {
        use Operator::{Equals, NotEquals};
        assert_eq!(asked(""), []);
        assert_eq!(asked(",,"), []);
        assert_eq!(asked("=,!="), []);
        assert_eq!(
            asked("b!=2,a==1"),
            [("a".to_owned(), Equals, "1".to_owned()), ("b".to_owned(), NotEquals, "2".to_owned())]
        );
        assert_eq!(asked("a="), [("a".to_owned(), Equals, String::new())]);
        assert_eq!(asked("=x"), [(String::new(), Equals, "x".to_owned())]);
        assert_eq!(asked(r"a=\,\=\\"), [("a".to_owned(), Equals, r",=\".to_owned())]);
        assert_eq!(asked("a!b=é"), [("a!b".to_owned(), Equals, "é".to_owned())]);
    }

    #[test]
    fn refuses_in_the_words_of_the_api_server() {
        let cases = [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("x=1,a", "invalid selector: 'x=1,a'; can't understand 'a'"),
            (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=\", r"invalid field selector: invalid escape sequence: \"),
            ("a===b", "invalid field selector: unescaped character in value: 61"),
        ];
        for (text, expected) in cases {
            assert_eq!(Selector::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn selects() {
        let selector = Selector::parse("metadata.name=a,status.phase!=Running").unwrap();
        let object = |phase| {
            move |field: &str| match field {
                "metadata.name" => "a",
                "status.phase" => phase,
                _ => "",
            }
        };
        assert!(selector.matches(object("Pending")));
        assert!(!selector.matches(object("Running")));
        assert_eq!(selector.exact("metadata.name"), Some("a"));
        assert_eq!(selector.exact("status.phase"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same(text in r"[ab!=,\\]{0,10}") {
            if let Ok(selector) = Selector::parse(&text) {
                let again = Selector::parse(&selector.to_string()).unwrap();
                let sorted = |selector: &Selector| {
                    let mut all: Vec<_> = selector
                        .requirements()
                        .iter()
                        .map(|one| (one.field.clone(), one.operator as u8, one.value.clone()))
                        .collect();
                    all.sort();
                    all
                };
                prop_assert_eq!(sorted(&again), sorted(&selector));
            }
        }

        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = Selector::parse(&text);
        }
    }
}
