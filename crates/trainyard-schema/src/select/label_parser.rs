//! Reads the text of a label selector.
//!
//! Word by word as the API server does, so that the same texts are refused with the same words. Must
//! not know how requirements are checked against labels.

use std::collections::BTreeSet;

use super::SelectError;
use super::labels::{Operator, Requirement, joined};
use super::words;
use crate::FieldError;

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Word,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

/// All requirements of a text, in its order.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectError> {
    let mut parser = Parser { tokens: scan(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.ahead() {
            (Token::Word | Token::Not, _) => {
                let requirement =
                    parser.requirement().map_err(|why| SelectError::Requirement { why })?;
                requirements.push(requirement);
                match parser.next() {
                    (Token::End, _) => return Ok(requirements),
                    (Token::Comma, _) => {
                        let (after, found) = parser.ahead();
                        if !matches!(after, Token::Word | Token::Not) {
                            return Err(unexpected(found, "identifier after ','"));
                        }
                    }
                    (_, found) => return Err(unexpected(found, "',' or 'end of string'")),
                }
            }
            (Token::End, _) => return Ok(requirements),
            (_, found) => return Err(unexpected(found, "!, identifier, or 'end of string'")),
        }
    }
}

fn unexpected(found: &str, wanted: &'static str) -> SelectError {
    SelectError::Unexpected { found: found.to_owned(), wanted }
}

fn scan(text: &str) -> Vec<(Token, &str)> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token();
        tokens.push(token);
        if token.0 == Token::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn token(&mut self) -> (Token, &'a str) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
        let start = self.at;
        match self.peek() {
            // The byte zero ends a text just as its end does.
            None | Some(0) => return (Token::End, ""),
            Some(byte) if is_special(byte) => {
                self.at += 1;
                let doubled = matches!(byte, b'=' | b'!') && self.peek() == Some(b'=');
                self.at += usize::from(doubled);
            }
            Some(_) => {
                let ends = |byte: u8| byte == 0 || is_special(byte) || is_blank(byte);
                while self.peek().is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
            }
        }
        // All bytes that end a word are ASCII, so this never cuts a letter.
        let literal = self.text.get(start..self.at).unwrap_or_default();
        if self.peek() == Some(0) {
            // Read as the end of this word, and gone.
            self.at += 1;
        }
        (kind_of(literal), literal)
    }
}

fn kind_of(literal: &str) -> Token {
    match literal {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::Greater,
        "in" => Token::In,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::Open,
        _ => Token::Word,
    }
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn at(&self, position: usize) -> (Token, &'a str) {
        self.tokens.get(position).copied().unwrap_or((Token::End, ""))
    }

    /// The token ahead, where `in` and `notin` are words like any other.
    fn ahead(&self) -> (Token, &'a str) {
        match self.at(self.position) {
            (Token::In | Token::NotIn, literal) => (Token::Word, literal),
            other => other,
        }
    }

    fn next(&mut self) -> (Token, &'a str) {
        let token = self.ahead();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.next();
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.next();
        }
        if token != Token::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let wrong = words::label_key(key);
        if !wrong.is_empty() {
            return Err(FieldError::invalid("", key, wrong.join("; ")).to_string());
        }
        let ends = matches!(self.ahead().0, Token::End | Token::Comma);
        let (operator, values) = if negated {
            // What follows a negated key is not looked at here; the caller refuses it.
            (Operator::DoesNotExist, BTreeSet::new())
        } else if ends {
            (Operator::Exists, BTreeSet::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                Operator::In | Operator::NotIn => self.values()?,
                _ => self.exact_value()?,
            };
            (operator, values)
        };
        let values = values.into_iter().map(Into::into).collect();
        Requirement::new(key, operator, values).map_err(|faults| joined(&faults))
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let (token, literal) = self.at(self.position);
        self.position += 1;
        Ok(match token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            _ => return Err(format!("found '{literal}', expected: {OPERATORS}")),
        })
    }

    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let (token, literal) = self.next();
        if token != Token::Open {
            return Err(format!("found '{literal}' expected: '('"));
        }
        match self.ahead() {
            (Token::Word | Token::Comma, _) => self.list(),
            (Token::Close, _) => {
                self.position += 1;
                Ok(BTreeSet::from([""]))
            }
            (_, found) => Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
    }

    /// Words with commas between them, up to the closing bracket; a word may be empty.
    fn list(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                (Token::Word, word) => {
                    values.insert(word);
                    match self.ahead() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => break,
                        (_, found) => {
                            return Err(format!("found '{found}', expected: ',' or ')'"));
                        }
                    }
                }
                (Token::Comma, _) => {
                    let after = self.ahead().0;
                    if values.is_empty() || matches!(after, Token::Close | Token::Comma) {
                        values.insert("");
                    }
                    if after == Token::Close {
                        break;
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
        self.position += 1;
        Ok(values)
    }

    fn exact_value(&mut self) -> Result<BTreeSet<&'a str>, String> {
        if matches!(self.ahead().0, Token::End | Token::Comma) {
            return Ok(BTreeSet::from([""]));
        }
        match self.next() {
            (Token::Word, word) => Ok(BTreeSet::from([word])),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }
}
